"""Time to a given validation error: ours against what one would try instead."""

import os
import shlex

from context import relative
from data import real, split
from text import commands, paragraph, percent, ratio, seconds, table

TITLE = "Time to a validation error"

SCALES = "10,100,1000,10000"
# In this order: triplets and preprocessing of the paper's protocol, and a second recipe that is often better.
RECIPES = {"paper": None, "random triplets, unit rows": ["--triplets", "random:20", "--preprocess", "unit"]}
BASELINES = {
    "linear_svc_l2": "LinearSVC, L2",
    "linear_svc_l1": "LinearSVC, L1",
    "svd_nca": "TruncatedSVD + NCA, 3-NN",
    "svd_scml": "TruncatedSVD + SCML (metric-learn), 3-NN",
}


def sets(context):
    """Name, training and validation rows, triplets of the paper. Splits are the first of the protocol."""
    yield (
        "dexter",
        lambda: [real(context, "dexter/train.svm.bz2"), split(context, "dexter/valid.svm.bz2", [0.5, 0.5])[0]],
        "random:20",
    )
    if context.quick:
        return
    yield "dorothea", lambda: split(context, "dorothea/train.svm.bz2", [0.7, 0.3]), "knn:3:5"
    yield "farm_ads", lambda: split(context, "farm_ads/all.svm.bz2", [0.6, 0.2, 0.2])[:2], "knn:3:5"
    yield "reuters top 4", lambda: split(context, "reuters21578/top4.svm.bz2", [0.4, 0.3, 0.3])[:2], "knn:3:5"


def measure(context):
    iterations, patience = (300, 50) if context.quick else (2000, 300)
    result = {"sets": [], "commands": [], "choices": {}}
    for name, files, triplets in sets(context):
        found = context.attempt(f"time to a validation error on {name}", files)
        if found is None:
            continue
        train, valid = found
        entry = {"name": name, "ours": {}, "baselines": {}}
        for recipe, flags in RECIPES.items():
            context.step(f"validation: {name}, hdsl, {recipe}")
            flags = flags or ["--triplets", triplets, "--preprocess", "max"]
            asked = ["trace", relative(train), relative(valid), *flags, "--scale", SCALES]
            asked += ["--max-iter", str(iterations), "--patience", str(patience)]
            entry["ours"][recipe] = {key: value for key, value in context.ours(*asked).items() if key != "iterations"}
            result["commands"].append(shlex.join([relative(context.tool), *asked]))
        for baseline, title in BASELINES.items():
            context.step(f"validation: {name}, {title}")
            python = os.environ.get("HDSL_METRIC_LEARN_PYTHON") if baseline == "svd_scml" else None
            done = context.attempt(
                f"{title} on {name}",
                lambda: context.baseline(
                    "validation", python=python, timeout=120 if context.quick else 1800,
                    baseline=baseline, train=train, valid=valid, quick=context.quick,
                ),
            )  # fmt: skip
            if done:
                entry["baselines"][baseline] = done
                result["choices"][baseline] = done["choice"]
        result["sets"].append(entry)
    return result


def first_below(entry, error):
    """When our validation error first was at or below this: seconds through recipes and λ in order, and the least
    seconds that a run of one recipe and λ takes. Nothing if it never was."""
    waited, alone, before = None, None, 0.0
    for trace in entry["ours"].values():
        begun, last = {}, trace["mine_seconds"]
        for point in trace["evaluations"]:
            begun.setdefault(point["scale"], last)
            last = point["seconds"]
            if point["error"] <= error + 1e-12:
                waited = waited or before + point["seconds"]
                its_own = trace["mine_seconds"] + point["seconds"] - begun[point["scale"]]
                alone = min(alone or its_own, its_own)
        before += trace["seconds"]
    return (waited, alone) if waited else None


def best(entry):
    """The recipe with the lowest error, the first of equals."""
    return min(entry["ours"].values(), key=lambda trace: trace["error"])


def glance(result):
    for entry in result["sets"]:
        for baseline, title in BASELINES.items():
            other = entry["baselines"].get(baseline)
            if other is None:
                continue
            ours, there = first_below(entry, other["error"]), percent(other["error"])
            what = f"{entry['name']}: until a validation error of {there}"
            if ours:
                yield what, seconds(ours[0]), title, seconds(other["seconds"]), ratio(ours[0], other["seconds"])
            else:
                reached = f"not reached, best {percent(best(entry)['error'])}"
                yield what, reached, title, seconds(other["seconds"]), "–"


def render(result):
    grid = SCALES.replace(",", ", ")
    text = paragraph(
        "Time until a good configuration is found on validation rows, on one thread. Reading is not included, nor is",
        "preprocessing for the baselines. The time of a baseline is that of fitting and evaluating all of its configurations,",
        f"and of the best one alone. `hdsl` tries the recipes in the order below, each with λ = {grid} in that",
        "order, until the 3-NN validation error stops falling; preprocessing, mining and evaluation are included.",
        "*Until there* is the time at which `hdsl` first has the baseline's error or a lower one, and *one λ alone* the same",
        "with the best λ and recipe known beforehand. Errors on validation rows are optimistic for all methods.",
    )
    text += plot_links(result)
    rows = []
    for entry in result["sets"]:
        for recipe, trace in entry["ours"].items():
            about = f"hdsl, {recipe}: λ {trace['scale']:g}, {trace['features']} features"
            rows.append([entry["name"], about, percent(trace["error"]), seconds(trace["seconds"]), "", "", "", "", ""])
        for baseline, title in BASELINES.items():
            other = entry["baselines"].get(baseline)
            if other is None:
                continue
            there = ["not reached", "", "", ""]
            if ours := first_below(entry, other["error"]):
                there = [seconds(ours[0]), seconds(ours[1]), f"**{ratio(ours[0], other['seconds'])}**"]
                there.append(f"**{ratio(ours[1], other['alone'])}**")
            about = f"{title}: {other['setting']}"
            times = [seconds(other["seconds"]), seconds(other["alone"])]
            rows.append([entry["name"], about, percent(other["error"]), *times, *there])
    text += table(
        ["data", "who, best setting", "validation error", "all settings", "best alone"]
        + ["hdsl until there", "one λ alone", "ratio", "ratio alone"],
        rows,
        right={2, 3, 4, 5, 6, 7, 8},
    )
    text += "\nWhat each chose from:\n\n"
    text += "".join(f"- {BASELINES[baseline]}: {choice}\n" for baseline, choice in result["choices"].items())
    return text + "\n" + commands(result["commands"])


def plot_links(result):
    names = [entry["name"] for entry in result["sets"]]
    links = [f"![Validation error over time on {name}]({{plots}}/{plot_name(name)})" for name in names]
    return "\n".join(links) + "\n\n" if links else ""


def plot_name(name):
    return f"validation-{name.replace(' ', '-')}.svg"


def plot(result, folder, plots):
    """Our error over time, and each baseline as a point."""
    for entry in result["sets"]:
        curves = {}
        for recipe, trace in entry["ours"].items():
            lowest, curve = 1.0, []
            for point in trace["evaluations"]:
                lowest = min(lowest, point["error"])
                curve.append((point["seconds"], 100 * lowest))
            curves[f"hdsl, {recipe}"] = curve
        points = {
            BASELINES[baseline]: (other["seconds"], 100 * other["error"]) for baseline, other in entry["baselines"].items()
        }
        plots.race(folder / plot_name(entry["name"]), entry["name"], curves, points)
