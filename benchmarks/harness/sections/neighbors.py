"""Classifying rows by their nearest neighbors."""

import statistics

from context import relative
from data import real
from text import commands, paragraph, percent, ratio, seconds, table

TITLE = "k-NN evaluation"

BASELINES = {
    "scipy": "scipy: X (βI + M) Xᵀ, `argpartition`",  # without β or M where there is none
    "sklearn": "scikit-learn, brute force",
    "sparse_dot_topn": "sparse_dot_topn `sp_matmul_topn`",
    "faiss": "FAISS `IndexFlatIP`, on `transform` output",
}


K = 10

# What to learn with.
SIMILARITIES = {
    "learned": ["--lambda", "100"],
    "base + learned": ["--lambda", "100", "--base", "auto", "--preprocess", "max+unit"],
    "dot product": None,
    "cosine": None,
}


def learned(context, name, options, train, test):
    """A model, what the baselines need to use the same similarity, and the command that made it."""
    short = name.replace(" + ", "-")
    model = context.folder / f"reuters-{short}.hdsl"
    iterations = 50 if context.quick else 1000
    learn = [relative(context.hdsl), "train", relative(train), *options, "--max-iter", str(iterations)]
    learn += ["--quiet", "-o", relative(model)]
    context.run(learn)
    description = context.folder / f"reuters-{short}.json"
    description.write_text(context.run([context.hdsl, "inspect", model, "--json"])[0])
    given = {"model": description}
    for part, file in [("train", train), ("test", test)]:
        given[f"mapped_{part}"] = context.folder / f"reuters-{short}-{part}.npz"
        context.run([context.hdsl, "transform", model, file, "-o", given[f"mapped_{part}"], "--quiet"])
    return relative(model), given, " ".join(learn)


def measure(context):
    train = context.attempt("k-NN evaluation", lambda: real(context, "reuters21578/train.svm.bz2"))
    test = context.attempt("k-NN evaluation", lambda: real(context, "reuters21578/test.svm.bz2"))
    if train is None or test is None:
        return {"rows": [], "commands": []}
    calls, rows = [], []
    for name, options in SIMILARITIES.items():
        row = {"name": name}
        similarity, given = "identity", {"model": None, "unit": name == "cosine"}
        if options:
            context.step(f"k-NN: {name}, learning")
            similarity, given, learn = learned(context, name, options, train, test)
            calls.append(learn)
        for threads in [1, 2]:
            context.step(f"k-NN: {name}, {threads} threads")
            asked = ["knn", similarity, relative(train), relative(test), "-k", str(K)]
            asked += ["--repeats", str(context.repeats), "--threads", str(threads)]
            asked += ["--preprocess", "unit"] if name == "cosine" else []
            ours = context.ours(*asked)
            row[f"ours_{threads}"], row["error"] = statistics.median(ours["seconds"]), ours["error"]
            if threads == 1:
                row["search_1"] = statistics.median(ours["search_seconds"])
            calls.append(" ".join([relative(context.tool), *asked]))
        for baseline in BASELINES:
            # The coordinates of a base are all features, which FAISS would need as a dense array.
            if baseline == "faiss" and name != "learned":
                continue
            # It multiplies sparse rows; those of a learned similarity alone are dense.
            if baseline == "sparse_dot_topn" and name == "learned":
                continue
            context.step(f"k-NN: {name}, {baseline}")
            found = context.attempt(
                f"k-NN, {name}, {BASELINES[baseline]}",
                lambda: context.baseline(
                    "neighbors", baseline=baseline, train=train, test=test, repeats=context.repeats, k=K, **given
                ),
            )  # fmt: skip
            if found:
                row[baseline] = statistics.median(found["seconds"])
                row[f"{baseline}_error"] = found["error"]
        rows.append(row)
    return {"rows": rows, "commands": calls}


def comparable(row, baseline):
    """What of ours does as much as a baseline: sparse_dot_topn searches indexed rows, the others index, search and vote."""
    return row["search_1" if baseline == "sparse_dot_topn" else "ours_1"]


def glance(result):
    for row in result["rows"]:
        for baseline, title in BASELINES.items():
            if row.get(baseline):
                what = "search alone" if baseline == "sparse_dot_topn" else "k-NN"
                ours = comparable(row, baseline)
                yield (
                    f"{what} on reuters21578, {row['name']}, one thread",
                    seconds(ours),
                    title,
                    seconds(row[baseline]),
                    ratio(ours, row[baseline]),
                )


def render(result):
    text = paragraph(
        f"reuters21578: 2,347 test rows classified by {K} neighbors of 5,946 training rows, 65 classes; medians, one thread",
        "unless noted. Reading and preprocessing are not measured. Ours includes mapping and indexing the rows; FAISS and, for",
        "learned similarities, scikit-learn and sparse_dot_topn get mapped rows (`hdsl transform`). scikit-learn has no dot product",
        "and ranks by cosine, so its error differs. sparse_dot_topn's time is that of its product alone, of a transposed matrix and",
        "without a vote, so it is compared with our search alone.",
    )
    rows = []
    for row in result["rows"]:
        rows.append([row["name"], "hdsl, 2 threads", seconds(row["ours_2"]), percent(row["error"]), ""])
        rows.append([row["name"], "hdsl", seconds(row["ours_1"]), percent(row["error"]), ""])
        rows.append([row["name"], "hdsl, search alone", seconds(row["search_1"]), "", ""])
        for baseline, title in BASELINES.items():
            if row.get(baseline):
                times = f"**{ratio(comparable(row, baseline), row[baseline])}**"
                rows.append([row["name"], title, seconds(row[baseline]), percent(row[f"{baseline}_error"]), times])
    text += table(["similarity", "who", "time", "error", "ratio to hdsl"], rows, right={2, 3, 4})
    return text + "\n" + commands(result["commands"])
