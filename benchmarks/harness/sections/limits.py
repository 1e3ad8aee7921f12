"""The phases of an iteration against the memory bandwidth of the machine."""

from context import relative
from data import real, synthetic
from text import commands, milliseconds, number, paragraph, percent, table

TITLE = "Phases of an iteration against memory bandwidth"

#: What a part does, and why it may be far from the limit.
PARTS = {
    "product": (
        "product u = C x_i of pair coefficients and a column",
        "each coefficient is multiplied by a random entry of a dense vector over rows, which is in the L2 or L3 cache; these "
        "accesses are slower than sequential ones but are not counted as memory traffic",
    ),
    "row": (
        "row of H = Xᵀ u, its best partner",
        "bounds are evaluated for all blocks of columns, and what remains is read column by column",
    ),
    "line search": (
        "line search",
        "the atom's values at near and far rows are looked up in a vector over rows, two per triplet of an anchor that has one of the "
        "features, and all affected triplets are gone through in each Newton step",
    ),
    "update": (
        "update of margins, C, D and active atoms",
        "a changed triplet updates a few sums at random addresses, with unpredictable branches in between; prefetching for 32 "
        "triplets at a time gained nothing",
    ),
}


def cases(context):
    """Name, file, triplets, iterations."""
    rows, features = (2_000, 20_000) if context.quick else (100_000, 1_000_000)
    few = 20 if context.quick else 1
    yield f"synthetic, {10 * rows:,} random triplets", lambda: synthetic(context, rows, features=features), "random:10", 300 // few
    yield "farm_ads, 3 × 5 neighbors", lambda: real(context, "farm_ads/all.svm.bz2"), "knn:3:5", 1000 // few
    yield "dexter, 20 random triplets per row", lambda: real(context, "dexter/train.svm.bz2"), "random:20", 1000 // few


def measure(context):
    rows, calls = [], []
    for name, file, triplets, iterations in cases(context):
        context.step(f"limits: {name}")

        def run():
            asked = ["limits", relative(file()), "--triplets", triplets, "--max-iter", str(iterations), "--threads", "1"]
            calls.append(" ".join([relative(context.tool), *asked]))
            # Of several runs, that with the median time; its parts belong together.
            found = [context.ours(*asked) for _ in range(context.repeats)]
            return sorted(found, key=lambda one: one["seconds"])[len(found) // 2]

        found = context.attempt(f"limits, {name}", run)
        if found:
            rows.append({"name": name, **found})
    return {"rows": rows, "commands": calls}


def glance(result):
    return ()


def share_of_limit(run, phase):
    """The time that reading takes at the rates of the machine, as a share of the time it took."""
    limit = phase["bytes"] / run["bytes_per_second"] + phase["lines"] / run["lines_per_second"]
    return limit / phase["seconds"] if phase["seconds"] else float("nan")


def render(result):
    text = paragraph(
        "The limit of a phase is the time to read its sequential bytes and its random cache lines at the rates of this machine,",
        "measured in the same run with one thread. Bytes and lines are counted while the solver runs. The last column is the limit",
        "divided by the time of the phase. It exceeds 100% if the data is in the cache, or, for rows of H, if bounds exclude most",
        "of what a plain product would read.",
    )
    for run in result["rows"]:
        n = run["iterations"]
        text += paragraph(
            f"**{run['name']}**: {n} iterations of {milliseconds(1000 * run['seconds'] / n)}; "
            f"{number(run['bytes_per_second'] / 1e9)} GB/s sequential, {number(run['lines_per_second'] / 1e6)} million random lines/s."
        )
        rows, low = [], []
        for phase in run["phases"]:
            title, why = PARTS[phase["name"]]
            share = share_of_limit(run, phase)
            rows.append(
                [
                    title,
                    milliseconds(1000 * phase["seconds"] / n),
                    percent(phase["seconds"] / run["seconds"]),
                    f"{number(phase['bytes'] / n / 1e6)} MB",
                    f"{phase['lines'] // n:,}",
                    f"**{percent(share)}**",
                ]
            )
            if share < 0.3:
                low.append(f"{phase['name']}: {why}")
        text += table(
            ["phase", "time per iteration", "share of iteration", "sequential", "random cache lines", "limit / time"],
            rows,
            right={1, 2, 3, 4, 5},
        )
        if low:
            text += "\n" + paragraph("Below 30%: " + "; ".join(low) + ".")
    return text + commands(result["commands"])
