"""What is compared of a model, in a form that does not depend on the program, and the comparison."""

import math

from comparison.program import Failed

#: Entries of M, objectives and scores may differ by this much of the largest of them.
TOLERANCE = 1e-9


def empty():
    """Features in use, entries of M by `i,j`, then facts that have to be equal, and lists of numbers within the
    tolerance. `iterations` and `errors` are printed."""
    return {"features": [], "entries": {}, "iterations": [], "errors": [], "facts": {}, "values": {}}


def from_train(result, answer, _):
    result["iterations"] += [run["iterations"] for run in answer.each("grid")]
    if answer["iterations"] not in result["iterations"]:
        result["iterations"].append(answer["iterations"])
    for key in ["chosen_iteration", "gap_certified", "n_atoms", "n_features", "n_triplets", "valid_error"]:
        result["facts"][key] = answer[key]
    for key in ["objective", "scale"]:
        result["values"][key] = [answer[key]]
    result["values"]["objectives of the grid"] = [run["objective"] for run in answer.each("grid")]
    if answer["gap_certified"]:
        result["values"]["gap"] = [answer["gap"]]


def from_tune(result, answer, _):
    if answer["finished"] is not True:
        raise Failed("the search did not finish in time, so its result depends on the machine")
    board = answer.each("leaderboard")
    result["iterations"] = [place["last_iter"] for place in board]
    for key in ["n_judged", "n_models", "n_rows", "n_atoms", "n_features"]:
        result["facts"][key] = answer[key]
    for key in ["error", "n_features", "n_atoms", "rounds", "models", "k"]:
        result["facts"][f"leaderboard {key}"] = [place[key] for place in board]
    for key in ["score", "scale"]:
        result["values"][f"leaderboard {key}"] = [place[key] for place in board]
    for key in ["expected_error", "expected_error_deviation"]:
        result["values"][key] = [answer[key]]


def from_explain(result, answer, line):
    if "--pair" in line:
        parts = answer.each("contributions")
        result["facts"]["contributing pairs"] = [[part["i"], part["j"]] for part in parts]
        result["values"]["contributions"] = [part["value"] for part in parts]
        return
    # The whole matrix once for each call: a second one is of an earlier iterate.
    prefix = f"{len(result['facts'])}:" if result["entries"] else ""
    for feature in answer.each("features"):
        result["features"].append(prefix + str(feature["feature"]))
        result["entries"][f"{prefix}{feature['feature']},{feature['feature']}"] = feature["weight"]
    for pair in answer.each("pairs"):
        result["entries"][f"{prefix}{pair['i']},{pair['j']}"] = pair["weight"]
    if len(answer["features"]) != answer["n_features"] or len(answer["pairs"]) != answer["n_pairs"]:
        raise Failed("explain --top 0 does not list all features and pairs")


def from_evaluate(result, answer, _):
    result["errors"].append(answer["error"])
    number = len(result["errors"])
    result["facts"][f"wrong rows {number}"] = [answer["n_wrong"], answer["n_test"]]
    result["values"][f"balanced error {number}"] = [answer["balanced_error"]]


def from_score(result, answer, _):
    """Pairs are listed as anchor, near, anchor, far: the error is the share of triplets that are not satisfied."""
    scores = [pair["score"] for pair in answer.each("scores")]
    result["values"]["scores"] = scores
    wrong = sum(not near > far for near, far in zip(scores[::2], scores[1::2]))
    result["errors"].append(wrong / (len(scores) // 2))


def from_neighbors(result, answer, _):
    lists = [row.each("neighbors") for row in answer.each("rows")]
    result["facts"]["neighbors"] = [[near["row"] for near in nearest] for nearest in lists]
    result["values"]["similarities"] = [near["score"] for nearest in lists for near in nearest]


def from_predict(result, answer, _):
    result["facts"]["predicted"] = answer["classes"]


def from_triplets(result, answer, _):
    result["facts"]["mined"] = [answer["n_triplets"], answer["n_anchors"], answer["satisfied_by_dot_product"]]
    result["values"]["weight of triplets"] = [answer["total_weight"]]


def from_demo(result, answer, _):
    result["iterations"].append(answer["iterations"])
    result["errors"] += [answer["error"], answer["dot_product_error"]]
    for key in ["n_triplets", "n_pairs", "planted_features_found", "planted_pairs_found", "valid_error"]:
        result["facts"][f"demo {key}"] = answer[key]


def nothing(result, answer, line):
    """Of files that a command writes, only what is learned from them is compared."""


READERS = {
    "train": from_train, "tune": from_tune, "explain": from_explain, "evaluate": from_evaluate, "score": from_score,
    "neighbors": from_neighbors, "predict": from_predict, "triplets": from_triplets, "demo": from_demo,
    "vectorize": nothing, "convert": nothing,
}  # fmt: skip


def difference(old, new):
    """The largest difference of two lists of numbers in units of the largest of them, or why they cannot be compared.

    >>> difference([1.0, -2.0], [1.0, -1.0])
    (0.5, None)
    >>> difference([1.0], [1.0, 2.0])
    (inf, '1 and 2 numbers')
    >>> difference([float("nan")], [float("nan")])
    (inf, 'nan is not a finite number')
    >>> difference([None], [None])
    (inf, 'None is not a finite number')
    """
    if len(old) != len(new):
        return math.inf, f"{len(old)} and {len(new)} numbers"
    for value in [*old, *new]:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            return math.inf, f"{value} is not a finite number"
    largest = max((abs(value) for value in [*old, *new]), default=0.0)
    if largest == 0.0:
        return 0.0, None
    return max(abs(a - b) for a, b in zip(old, new)) / largest, None


def compare(old, new):
    """The largest difference of any number, and what differs.

    >>> one = {**empty(), "entries": {"1,1": 2.0}, "iterations": [3]}
    >>> compare(one, one)
    (0.0, [])
    >>> compare(one, {**one, "entries": {"1,1": 2.0, "1,2": 1e-20}})[1]
    ['entries of M: 0 only in the old model, 1 only in the new one']
    >>> compare(one, {**one, "iterations": [4]})[1]
    ['iterations: [3] and [4]']
    >>> compare(empty(), empty())[1]
    ['nothing was learned']
    >>> compare({"failed": "no such file"}, {"failed": "no such file"})[1]
    ['old: no such file', 'new: no such file']
    """
    reasons = [f"{side}: {result['failed']}" for side, result in [("old", old), ("new", new)] if "failed" in result]
    if reasons:
        return math.inf, reasons
    if not old["entries"] and not old["values"]:
        return math.inf, ["nothing was learned"]
    if sorted(old["features"]) != sorted(new["features"]):
        apart = set(old["features"]) ^ set(new["features"])
        reasons.append(f"features: {len(apart)} are in one model only")
    largest = 0.0
    if old["entries"].keys() != new["entries"].keys():
        gone, added = old["entries"].keys() - new["entries"].keys(), new["entries"].keys() - old["entries"].keys()
        reasons.append(f"entries of M: {len(gone)} only in the old model, {len(added)} only in the new one")
    lists = {"entries of M": ([], [])}
    for key in sorted(old["entries"].keys() & new["entries"].keys()):
        lists["entries of M"][0].append(old["entries"][key])
        lists["entries of M"][1].append(new["entries"][key])
    for key in ["iterations", "errors"]:
        if old[key] != new[key] or any(value != value for value in old[key]):
            reasons.append(f"{key}: {short(old[key])} and {short(new[key])}")
    for kind in ["facts", "values"]:
        for key in sorted(old[kind].keys() ^ new[kind].keys()):
            reasons.append(f"{key}: in one result only")
    for key in sorted(old["facts"].keys() & new["facts"].keys()):
        if old["facts"][key] != new["facts"][key]:
            reasons.append(f"{key}: {short(old['facts'][key])} and {short(new['facts'][key])}")
    for key in sorted(old["values"].keys() & new["values"].keys()):
        lists[key] = (old["values"][key], new["values"][key])
    for key, (ours, theirs) in lists.items():
        apart, why = difference(ours, theirs)
        largest = max(largest, apart)
        if why or apart > TOLERANCE:
            reasons.append(f"{key}: {why or f'differ by {apart:.1e} of the largest'}")
    return largest, reasons


def short(value):
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
