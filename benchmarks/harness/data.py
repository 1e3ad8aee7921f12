"""Files to measure on: real ones from a folder beside the project, if there is one, and synthetic ones."""

import bz2
import shutil

from context import ROOT, LeftOut

REAL = ROOT.parent / "shared" / "data"


def real(context, name, plain=False):
    """A file of the real data; decompressed first where the reading of text is what is measured."""
    source = REAL / name
    if not source.exists():
        raise LeftOut(f"there is no ../shared/data/{name} beside the project")
    if not plain:
        return source
    copy = context.folder / name.replace("/", "-").removesuffix(".bz2")
    if not copy.exists():
        with bz2.open(source) as packed, open(copy, "wb") as out:
            shutil.copyfileobj(packed, out)
    return copy


def split(context, name, shares):
    """Parts of a real file, every class in proportion, seed 0: the first split of the protocol."""
    source = real(context, name)
    stem = name.replace("/", "-").removesuffix(".bz2").rpartition(".")[0]
    parts = [context.folder / f"{stem}-{100 * share:.0f}-{part}.svm" for part, share in enumerate(shares)]
    if not all(part.exists() for part in parts):
        wanted = ",".join(map(str, shares))
        context.run([context.tool, "split", source, "--shares", wanted, "--seed", "0", "-o", *parts])
    return parts


def synthetic(context, rows, per_row=50, features=1_000_000, spread=1):
    """Synthetic rows as svmlight, made once."""
    path = context.folder / f"synthetic-{rows}-{per_row}-{features}-{spread}.svm"
    if not path.exists():
        context.step(f"making {path.name}")
        context.run(
            [context.tool, "synthesize", "--rows", rows, "--per-row", per_row]
            + ["--features", features, "--spread", spread, "-o", path]
        )
    return path
