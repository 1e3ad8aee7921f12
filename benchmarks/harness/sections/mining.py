"""Mining triplets: the 3 nearest rows of the same class and the 5 nearest of other classes, for each row."""

import statistics

from data import real, synthetic
from text import commands, compared, paragraph, ratio, seconds, table

TITLE = "Mining triplets"


def cases(context):
    """Name, file, whether all pairs of rows fit into memory for scipy."""
    rows = 2_000 if context.quick else 100_000
    yield "farm_ads, 4,143 rows", lambda: real(context, "farm_ads/all.svm.bz2"), True
    yield f"synthetic, {rows:,} rows", lambda: synthetic(context, rows, features=10 * rows), context.quick


def measure(context):
    rows, calls = [], []
    for name, file, fits in cases(context):
        path = context.attempt(f"mining {name}", file)
        if path is None:
            continue
        row = {"name": name}
        for threads in [1, 2]:
            context.step(f"mining: {name}, {threads} threads")
            run = context.train(path, "knn:3:5", 100, 1, threads)
            row[f"ours_{threads}"] = run["mine_seconds"]
            calls.append(run["command"])
        row["scipy"] = None
        if fits:
            context.step(f"mining: {name}, scipy")
            baseline = context.attempt(
                f"scipy mining of {name}", lambda: context.baseline("mining", file=path, repeats=context.repeats)
            )
            row["scipy"] = statistics.median(baseline["seconds"]) if baseline else None
        else:
            why = "the dense matrix of all pairs of rows does not fit into memory"
            context.leave_out(f"scipy mining of {name}", why)
        rows.append(row)
    return {"rows": rows, "commands": calls}


def glance(result):
    for row in result["rows"]:
        if row["scipy"]:
            what = f"mining 3 × 5 neighbors, {row['name']}"
            yield compared(what, row["ours_1"], "scipy X Xᵀ with argpartition", row["scipy"])


def render(result):
    text = paragraph(
        "`mine_seconds` of `hdsl train --json`, medians. For comparison scipy: X Xᵀ as a sparse product, made dense, and",
        "`argpartition` for the rows of the same class and for those of other classes, one thread.",
    )
    text += table(
        ["rows", "hdsl, 1 thread", "2 threads", "scipy", "ratio, 1 thread"],
        [
            [row["name"], seconds(row["ours_1"]), seconds(row["ours_2"]), seconds(row["scipy"]),
             f"**{ratio(row['ours_1'], row['scipy'])}**"]
            for row in result["rows"]
        ],
        right={1, 2, 3, 4},
    )  # fmt: skip
    return text + "\n" + commands(result["commands"])
