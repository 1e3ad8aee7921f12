"""Searching an index file."""

import shutil
import statistics

from context import relative
from text import commands, paragraph, ratio, seconds, table

TITLE = "An index of rows"

CASES = {"learned part alone": "0", "base and learned part": "1"}


def measure(context):
    n = 20_000 if context.quick else 1_000_000
    rows, calls = [], []
    for name, base in CASES.items():
        folder = context.folder / f"index-{base}"
        row = {"name": name, "rows": n}
        for threads in [2, 1]:
            context.step(f"index: {name}, {threads} threads")
            ours = ["index", relative(folder), "--rows", n, "--base", base, "--threads", threads]
            # The first makes the index, and what scipy searches.
            found = context.ours(*ours, *(["--npz"] if threads == 2 else ["--again"]))
            calls.append(" ".join(map(str, [relative(context.tool), *ours])))
            row[f"open_{threads}"] = statistics.median(found["open"])
            row[f"first_{threads}"] = found["first"][0]
            row[f"later_{threads}"] = found["median"]
            row[f"add_{threads}"] = statistics.median(found["add"])
        context.step(f"index: {name}, scipy")
        if base == "1":
            row["scipy"] = context.attempt("index, scipy", lambda: context.baseline("index", folder=folder))
        rows.append(row)
        shutil.rmtree(folder)
    return {"rows": rows, "commands": calls}


def glance(result):
    for row in result["rows"]:
        if row.get("scipy"):
            for name, found in row["scipy"].items():
                yield (
                    f"search of {row['rows']:,} texts, one thread",
                    seconds(row["later_1"]),
                    f"scipy, {name}, `argpartition`",
                    seconds(found),
                    ratio(row["later_1"], found),
                )


def render(result):
    text = paragraph(
        "Made-up texts of 100 words out of 200,000, tf-idf, 200 atoms of pairs of the most frequent words; k = 10. *First* is the first",
        "search after a file is opened, *later* the median over 50 queries when columns are in memory, *add* one row, saved to disk.",
    )
    head = ["similarity", "threads", "open", "first search", "later", "add a row"]
    lines = []
    for row in result["rows"]:
        for threads in [1, 2]:
            times = [row[f"{what}_{threads}"] for what in ["open", "first", "later", "add"]]
            lines.append([row["name"], str(threads), *(seconds(time) for time in times)])
    text += table(head, lines, right={1, 2, 3, 4, 5})
    for row in result["rows"]:
        if row.get("scipy"):
            told = [
                f"{name} {seconds(found)} ({ratio(row['later_1'], found)}; {ratio(row['later_2'], found)} with two threads)"
                for name, found in row["scipy"].items()
            ]
            text += "\n" + paragraph(
                f"scipy and `argpartition` on the {row['name'].split()[0]} alone, one thread, one query at a time: {'; '.join(told)}."
            )
    return text + "\n" + commands(result["commands"])
