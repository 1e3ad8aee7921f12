"""Training on real data: time per iteration."""

from data import real, split
from text import commands, milliseconds, paragraph, ratio, table

TITLE = "Training on real data"

# The authors' program cannot be shipped; 102 s for 1,000 iterations on dexter, under Octave on this kind of machine.
AUTHORS_MS = 102.0


def cases(context):
    """Name, file, triplets, further flags."""
    yield "dexter", lambda: real(context, "dexter/train.svm.bz2"), "random:20", []
    yield "dexter, exact search", lambda: real(context, "dexter/train.svm.bz2"), "random:20", ["--search", "exact"]
    if context.quick:
        return
    yield "dorothea", lambda: real(context, "dorothea/train.svm.bz2"), "knn:3:5", []
    farm_ads, reuters = "farm_ads/all.svm.bz2", "reuters21578/top4.svm.bz2"
    yield "farm_ads, all rows", lambda: real(context, farm_ads), "knn:3:5", []
    yield "farm_ads, 60%", lambda: split(context, farm_ads, [0.6, 0.2, 0.2])[0], "knn:3:5", []
    yield "reuters top 4, all rows", lambda: real(context, reuters), "knn:3:5", []
    yield "reuters top 4, 40%", lambda: split(context, reuters, [0.4, 0.3, 0.3])[0], "knn:3:5", []


def measure(context):
    iterations = 100 if context.quick else 1000
    rows = []
    for name, file, triplets, extra in cases(context):
        context.step(f"training: {name}")
        run = context.attempt(name, lambda: context.train(file(), triplets, 100, iterations, extra=extra))
        if run:
            rows.append({"name": name, **run})
    return {"rows": rows}


def glance(result):
    for row in result["rows"]:
        if row["name"] == "dexter":
            yield (
                "an iteration of training on dexter",
                milliseconds(row["ms"]),
                "authors' Matlab program under Octave",
                milliseconds(AUTHORS_MS),
                ratio(row["ms"], AUTHORS_MS),
            )


def render(result):
    text = paragraph(
        "λ = 100, one thread. Time is `train_seconds` of `hdsl train --json` divided by `iterations`: the solver with its",
        "set-up, without reading and mining; the median of the runs, and the fastest and slowest.",
    )
    text += table(
        ["data", "rows", "triplets", "iterations", "an iteration", "range"],
        [
            [
                row["name"],
                f"{row['n_rows']:,}",
                f"{row['n_triplets']:,}",
                f"{row['iterations']:,}",
                f"**{milliseconds(row['ms'])}**",
                f"{milliseconds(row['fastest'])} – {milliseconds(row['slowest'])}",
            ]
            for row in result["rows"]
        ],
        right={1, 2, 3, 4, 5},
    )
    text += "\n" + paragraph(
        f"The authors' program, Matlab with C under Octave, takes {AUTHORS_MS:.0f} s for 1,000 iterations on dexter on",
        "this kind of machine. It cannot be shipped with ours, so that figure is quoted and not measured here.",
    )
    return text + commands(row["command"] for row in result["rows"])
