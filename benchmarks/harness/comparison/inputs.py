"""Rows, triplets, clicks and judgments that both programs learn from. Made once, and only with Python's own library, so
that they do not depend on the program compared; but for planted rows, which the old program's `demo` makes."""

import bz2
import random
import re
import shutil
from collections import Counter


class Inputs:
    """Files by name. `planted-train` is the file `planted-train.svm` of the folder, `dexter-train` a file of `real`."""

    def __init__(self, folder, real):
        self.folder, self.real = folder, real

    def __getitem__(self, name):
        if name in REAL:
            return str(self.real / REAL[name])
        found = [path for path in self.folder.iterdir() if path.stem == name]
        if len(found) != 1:
            raise KeyError(f"there is no file called {name} among the inputs")
        return str(found[0])

    def keys(self):
        return [*REAL, *(path.stem for path in self.folder.iterdir())]


REAL = {
    "dexter-train": "dexter/train.svm.bz2",
    "dexter-test": "dexter/valid.svm.bz2",
    "dorothea-train": "dorothea/train.svm.bz2",
    "dorothea-test": "dorothea/valid.svm.bz2",
    "dorothea-bare": "dorothea/dorothea_valid.data.bz2",
    "dorothea-bare-labels": "dorothea/dorothea_valid.labels",
    "rcv1-train": "rcv1_sample/train.svm.bz2",
    "rcv1-test": "rcv1_sample/test.svm.bz2",
}


def make(folder, real, old):
    """All inputs; the folder appears when it is complete."""
    if folder.exists():
        return Inputs(folder, real)
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    planted(unfinished, old)
    if real:
        subset(real / "farm_ads/all.svm.bz2", unfinished, "farm_ads", 8)
        subset(real / "reuters21578/top4.svm.bz2", unfinished, "top4", 8)
        every(real / "reuters21578/train.svm.bz2", unfinished / "reuters-train.svm", 5)
        every(real / "reuters21578/test.svm.bz2", unfinished / "reuters-test.svm", 5)
        every(real / "r8_text/train.tsv.bz2", unfinished / "text-train.tsv", 9)
        every(real / "r8_text/test.tsv.bz2", unfinished / "text-test.tsv", 9)
        cranfield(real / "cranfield", unfinished)
    unfinished.rename(folder)
    return Inputs(folder, real)


def planted(folder, old):
    old.call(["demo", "--dir", "demo"], folder)
    for part in ["train", "valid", "test"]:
        shutil.copy(folder / "demo" / f"{part}.svm", folder / f"planted-{part}.svm")
    lines = (folder / "planted-train.svm").read_text().splitlines()
    write(folder / "small-train.svm", lines[:300])
    write(folder / "small-more.svm", lines[300:400])
    shutil.copy(folder / "planted-test.svm", folder / "small-test.svm")
    shutil.rmtree(folder / "demo")

    classes = [line.split()[0] for line in lines]
    draws = random.Random(0)

    def triplets(n):
        for _ in range(n):
            anchor, near, far = (int(draws.random() * len(lines)) for _ in range(3))
            while near == anchor or classes[near] != classes[anchor]:
                near = int(draws.random() * len(lines))
            while classes[far] == classes[anchor]:
                far = int(draws.random() * len(lines))
            yield anchor, near, far

    given = list(triplets(4000))
    write(folder / "given.txt", (f"{a} {n} {f}" for a, n, f in given))
    write(folder / "weighted.txt", (f"{a} {n} {f} {1 + i % 7 / 4}" for i, (a, n, f) in enumerate(given)))
    # Some are clicked twice, some with a count.
    clicks = [f"{a} {n} {f}" for a, n, f in given[:2000] + given[:500]]
    write(folder / "clicks.txt", clicks + [f"{a} {n} {f} {2 + i % 3}" for i, (a, n, f) in enumerate(given[300:900])])
    write(folder / "planted-pairs.txt", (f"{a} {b}" for a, n, f in triplets(500) for b in (n, f)))


def subset(source, folder, name, step):
    """Every so many rows to train on, and as many to validate and to test on."""
    lines = text(source).rstrip("\n").split("\n")
    for part, start in [("train", 0), ("valid", 1), ("test", 2)]:
        write(folder / f"{name}-{part}.svm", lines[start::step])


def every(source, path, step):
    write(path, text(source).rstrip("\n").split("\n")[::step])


def cranfield(source, folder):
    """Word counts of the documents, then of the queries; every fifth query is kept for the test."""
    documents = [words(entry) for entry in entries(source / "cran.all.1400.bz2")]
    queries = [words(entry) for entry in entries(source / "cran.qry.bz2")]
    frequent = Counter(word for document in documents for word in document)
    numbers = {word: number for number, word in enumerate(sorted(w for w, n in frequent.items() if 3 <= n <= 500), 1)}
    rows = []
    for found in documents + queries:
        pairs = sorted((numbers[word], count) for word, count in found.items() if word in numbers)
        rows.append(" ".join(["0", *(f"{number}:{count}" for number, count in pairs)]))
    write(folder / "cranfield-rows.svm", rows)
    judged = {}
    for line in text(source / "cranqrel.bz2").split("\n")[:-1]:
        query, document, grade = map(int, line.split())
        # -1 marks the document that a query was written from.
        if grade >= 1:
            judged.setdefault(query - 1, {})[document - 1] = grade
    train = [(q, d, g) for q, grades in judged.items() if q % 5 for d, g in grades.items()]
    write(folder / "judgments-low.txt", (f"{len(documents) + q} {d} {g}" for q, d, g in train))
    write(folder / "judgments-high.txt", (f"{len(documents) + q} {d} {5 - g}" for q, d, g in train))
    pairs = []
    for query, grades in judged.items():
        if query % 5 == 0:
            anchor = len(documents) + query
            for near, best in grades.items():
                for far, worse in grades.items():
                    if best < worse:
                        pairs += [f"{anchor} {near}", f"{anchor} {far}"]
    write(folder / "cranfield-pairs.txt", pairs[:4000])


def entries(path):
    """The abstracts of a file of SMART's format."""
    found = re.split(r"^\.I.*\n", text(path), flags=re.MULTILINE)[1:]
    return [re.split(r"^\.W\s*\n", entry, flags=re.MULTILINE)[1] for entry in found]


def words(entry):
    return Counter(re.findall(r"[a-z]{2,}", entry.lower()))


def text(path):
    return bz2.decompress(path.read_bytes()).decode("latin-1")


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="latin-1")
