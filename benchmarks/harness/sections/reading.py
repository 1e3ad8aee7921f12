"""Reading svmlight text."""

import statistics

from context import relative
from data import real, synthetic
from text import commands, compared, paragraph, ratio, seconds, table

TITLE = "Reading svmlight"


def files(context):
    rows = 2_000 if context.quick else 100_000
    yield f"synthetic, {rows:,} rows of 50 values", lambda: synthetic(context, rows, features=10 * rows)
    yield "farm_ads, 4,143 rows of 197 ones", lambda: real(context, "farm_ads/all.svm.bz2", plain=True)


def measure(context):
    rows, calls = [], []
    for name, file in files(context):
        path = context.attempt(f"reading {name}", file)
        if path is None:
            continue
        context.step(f"reading: {name}")
        row = {"name": name, "bytes": path.stat().st_size}
        for threads in [1, 2]:
            ours = ["read", relative(path), "--repeats", context.repeats, "--threads", threads]
            row[f"ours_{threads}"] = statistics.median(context.ours(*ours)["seconds"])
            calls.append(" ".join(map(str, [relative(context.tool), *ours])))
        baseline = context.attempt(
            "load_svmlight_file", lambda: context.baseline("reading", file=path, repeats=context.repeats)
        )
        row["sklearn"] = statistics.median(baseline["seconds"]) if baseline else None
        rows.append(row)
    return {"rows": rows, "commands": calls}


def glance(result):
    for row in result["rows"]:
        what = f"reading svmlight ({row['name'].split(',')[0]}), one thread"
        yield compared(what, row["ours_1"], "scikit-learn `load_svmlight_file`", row["sklearn"])


def render(result):
    text = paragraph("Uncompressed files, in the cache of the system; medians. scikit-learn reads with one thread.")
    text += table(
        ["file", "size", "hdsl, 1 thread", "2 threads", "scikit-learn", "ratio, 1 thread", "2 threads"],
        [
            [
                row["name"],
                f"{row['bytes'] / 1e6:.1f} MB",
                seconds(row["ours_1"]),
                seconds(row["ours_2"]),
                seconds(row["sklearn"]),
                f"**{ratio(row['ours_1'], row['sklearn'])}**",
                f"**{ratio(row['ours_2'], row['sklearn'])}**",
            ]
            for row in result["rows"]
        ],
        right={1, 2, 3, 4, 5, 6},
    )
    return text + "\n" + commands(result["commands"])
