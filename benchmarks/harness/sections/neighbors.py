"""Classifying rows by their nearest neighbors."""

import statistics

from context import relative
from data import real
from text import commands, paragraph, percent, ratio, seconds, table

TITLE = "k-NN evaluation"

BASELINES = {
    "scipy": "scipy: X M Xᵀ, `argpartition`",  # without M for the dot product
    "sklearn": "scikit-learn, brute force",
    "faiss": "FAISS `IndexFlatIP`, on `transform` output",
}


def measure(context):
    train = context.attempt("k-NN evaluation", lambda: real(context, "reuters21578/train.svm.bz2"))
    test = context.attempt("k-NN evaluation", lambda: real(context, "reuters21578/test.svm.bz2"))
    if train is None or test is None:
        return {"rows": [], "commands": []}
    model = context.folder / "reuters.hdsl"
    iterations = 50 if context.quick else 1000
    context.step("k-NN: learning a similarity to evaluate")
    learn = [relative(context.hdsl), "train", relative(train), "--scale", "100", "--max-iter", str(iterations)]
    learn += ["--quiet", "-o", relative(model)]
    context.run(learn)
    description = context.folder / "reuters.json"
    description.write_text(context.run([context.hdsl, "inspect", model, "--json"])[0])
    mapped = {}
    for part, file in [("train", train), ("test", test)]:
        mapped[part] = context.folder / f"reuters-{part}.npz"
        context.run([context.hdsl, "transform", model, file, "-o", mapped[part], "--quiet"])
    calls, rows = [" ".join(learn)], []
    for name, similarity in [("learned similarity", relative(model)), ("dot product", "identity")]:
        row = {"name": name}
        for threads in [1, 2]:
            context.step(f"k-NN: {name}, {threads} threads")
            asked = ["knn", similarity, relative(train), relative(test), "-k", "3"]
            asked += ["--repeats", str(context.repeats), "--threads", str(threads)]
            ours = context.ours(*asked)
            row[f"ours_{threads}"], row["error"] = statistics.median(ours["seconds"]), ours["error"]
            calls.append(" ".join([relative(context.tool), *asked]))
        for baseline in BASELINES:
            if baseline == "faiss" and similarity == "identity":
                continue
            context.step(f"k-NN: {name}, {baseline}")
            found = context.attempt(
                f"k-NN, {name}, {BASELINES[baseline]}",
                lambda: context.baseline(
                    "neighbors", baseline=baseline, train=train, test=test, repeats=context.repeats,
                    model=None if similarity == "identity" else description,
                    mapped_train=mapped["train"], mapped_test=mapped["test"],
                ),
            )  # fmt: skip
            if found:
                row[baseline] = statistics.median(found["seconds"])
                row[f"{baseline}_error"] = found["error"]
        rows.append(row)
    return {"rows": rows, "commands": calls}


def glance(result):
    for row in result["rows"]:
        for baseline, title in BASELINES.items():
            if row.get(baseline):
                yield (
                    f"k-NN on reuters21578, {row['name']}, one thread",
                    seconds(row["ours_1"]),
                    title,
                    seconds(row[baseline]),
                    ratio(row["ours_1"], row[baseline]),
                )


def render(result):
    text = paragraph(
        "reuters21578: 2,347 test rows classified by 3 neighbors of 5,946 training rows, 65 classes; medians, one thread",
        "unless noted. Reading and preprocessing are not measured. Ours includes mapping and indexing the rows; FAISS and, for",
        "the learned similarity, scikit-learn get mapped rows (`hdsl transform`). scikit-learn has no dot product and",
        "ranks by cosine, so its error differs.",
    )
    rows = []
    for row in result["rows"]:
        rows.append([row["name"], "hdsl, 2 threads", seconds(row["ours_2"]), percent(row["error"]), ""])
        rows.append([row["name"], "hdsl", seconds(row["ours_1"]), percent(row["error"]), ""])
        for baseline, title in BASELINES.items():
            if row.get(baseline):
                times = f"**{ratio(row['ours_1'], row[baseline])}**"
                rows.append([row["name"], title, seconds(row[baseline]), percent(row[f"{baseline}_error"]), times])
    text += table(["similarity", "who", "time", "error", "ratio to hdsl"], rows, right={2, 3, 4})
    return text + "\n" + commands(result["commands"])
