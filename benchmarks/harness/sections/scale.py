"""Training on large data: time per iteration, threads, memory."""

from data import synthetic
from text import commands, memory, milliseconds, number, paragraph, table

TITLE = "Training on much data"


def cases(context):
    """Name, file, random triplets per row, iterations, threads, further flags."""
    rows = 2_000 if context.quick else 100_000
    features = 20_000 if context.quick else 1_000_000
    batch = ["--batch", str(rows)]
    base = lambda: synthetic(context, rows, features=features)  # noqa: E731
    narrow = features // 10
    # The set-up is divided among the iterations, so there have to be enough of them.
    iterations = (lambda full: full // 20) if context.quick else (lambda full: full)
    yield "T1", base, 10, iterations(1000), 1, []
    yield "T1, 2 threads", base, 10, iterations(1000), 2, []
    yield "T2", base, 100, iterations(200), 1, []
    yield "T2, batches", base, 100, iterations(100), 1, batch
    yield "T3, batches", base, 1000, iterations(40), 1, batch
    yield "narrow", lambda: synthetic(context, rows, features=narrow), 10, iterations(300), 1, []
    yield "wide", lambda: synthetic(context, rows, features=narrow, spread=100), 10, iterations(300), 1, []


def measure(context):
    result = {}
    for name, file, per_row, iterations, threads, extra in cases(context):
        context.step(f"scale: {name}")
        run = context.attempt(
            f"synthetic {name}",
            lambda: context.train(file(), f"random:{per_row}", 100, iterations, threads, extra),
        )
        if run:
            result[name] = {"batch": int(extra[1]) if extra else None, **run}
    return result


def glance(result):
    if "T1" in result and "T1, 2 threads" in result:
        one, two = result["T1"]["ms"], result["T1, 2 threads"]["ms"]
        what = f"two threads, {result['T1']['n_triplets']:,} triplets"
        yield what, milliseconds(two), "one thread", milliseconds(one), f"{number(one / two, 2)}×"
    if "narrow" in result and "wide" in result:
        narrow, wide = result["narrow"]["ms"], result["wide"]["ms"]
        yield (
            "100 times as many features, the same columns in use",
            milliseconds(wide),
            "original numbering",
            milliseconds(narrow),
            f"{number(wide / narrow, 3)}× the time",
        )


def render(result):
    titles = {
        "T1": "all triplets",
        "T1, 2 threads": "all triplets",
        "T2": "all triplets",
        "T2, batches": "batches of {batch:,}",
        "T3, batches": "batches of {batch:,}",
        "narrow": "all triplets, a tenth of the features",
        "wide": "all triplets, those columns among 100 times as many",
    }
    rows = [
        [
            f"{run['n_triplets']:,}",
            titles[name].format(**run),
            run["threads"],
            run["iterations"],
            f"**{milliseconds(run['ms'])}**",
            f"{milliseconds(run['fastest'])} – {milliseconds(run['slowest'])}",
            memory(run["peak_bytes"]),
        ]
        for name, run in result.items()
    ]
    some = next(iter(result.values()), None)
    text = ""
    if some:
        text += paragraph(
            f"Synthetic data: {some['n_rows']:,} rows of 50 values, Zipf exponent 0.8, random triplets, λ = 100.",
            "Time is `train_seconds` divided by `iterations`, set-up included; peak memory is the whole program's",
            "(VmHWM), data included.",
        )
    text += table(["triplets", "gradient over", "threads", "iterations", "an iteration", "range", "peak memory"],
                  rows, right={0, 2, 3, 4, 5, 6})  # fmt: skip
    lines = []
    if "T1" in result and "T1, 2 threads" in result:
        one, two = result["T1"]["ms"], result["T1, 2 threads"]["ms"]
        lines.append(f"- Two threads are {number(one / two, 3)} times as fast as one.")
    if "narrow" in result and "wide" in result:
        change = result["wide"]["ms"] / result["narrow"]["ms"]
        lines.append(f"- 100 times as many features, the same columns in use, take {number(change, 3)} times as long.")
    if lines:
        text += "\n" + "\n".join(lines) + "\n"
    return text + "\n" + commands(run["command"] for run in result.values())
