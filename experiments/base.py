"""Learning on top of a base similarity: S(x, x') = β <x, x'> + x' M x', against the base and against HDSL without one.

Every system chooses its settings on validation rows. On sets with a test part of their own, the validation rows are cut from
the training part, so the chosen setting is fitted again to all of it. On the others the splits are those of Table 3.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments import data, ranking
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.comparison import error_cell, summary
from experiments.data import Rows
from experiments.page import Page, table
from experiments.systems.base import Predictor, decades, error

TITLE = "Learning on top of a base similarity"
#: Of cells that learn with HDSL, and of others.
LEARNED_VERSION, VERSION = 2, 1

SYSTEMS = {
    "cosine": "cosine",
    "tfidf": "tf-idf cosine",
    "hdsl": "HDSL",
    "hdsl_base": "HDSL on top of a base",
    "svm": "linear SVM",
}
#: Sets with a test part of their own, and one seed.
OFFICIAL = ("reuters21578", "r8_text", "ohsumed_text", "rcv1_sample")
#: Values that are no counts, for which tf-idf is not defined.
NO_COUNTS = ("rcv1_sample",)
#: The prediction rule under which an iterate is kept; the rule itself is chosen afterwards.
STOPPING_RULE = {"n_neighbors": 15, "vote": "weighted"}

Choice = dict[str, Any]
#: The scores and numbers of the k most similar fitted rows.
Nearest = Callable[[sp.csr_matrix, int], tuple[np.ndarray, np.ndarray]]


def cells(setting: Setting) -> list[Cell]:
    """Cells of classification, and the cells of Cranfield, which belong to `ranking`."""
    sets = [(name, setting.seeds) for name in setting.datasets]
    sets += [(name, (0,)) for name in setting.choose(full=OFFICIAL, quick=OFFICIAL[2:], tiny=())]
    found = [
        cell("base", name, system, seed, version(system), **grid(system, name, setting))
        for name, seeds in sets
        for seed in seeds
        for system in SYSTEMS
        if system != "tfidf" or name not in NO_COUNTS
    ]
    return found + [one for one in ranking.cells(setting) if one.system in RANKINGS]


def version(system: str) -> int:
    return LEARNED_VERSION if system.startswith("hdsl") else VERSION


#: Systems of `ranking` that are shown beside.
RANKINGS = ("cosine", "bm25", "hdsl_titles", "hdsl_base")


def grid(system: str, dataset: str, setting: Setting) -> dict[str, Any]:
    """The settings among which a system chooses."""
    counts = () if dataset in NO_COUNTS else ("tfidf", "bm25")
    rule = {"neighbors": setting.choose(full=(1, 3, 7, 15, 31), quick=(3, 15), tiny=(1, 3)), "votes": ("majority", "weighted")}
    if system == "cosine":
        return {"preprocess": ("unit", "max+unit"), **rule}
    if system == "tfidf":
        return {"preprocess": ("tfidf",), **rule}
    if system == "svm":
        costs = setting.choose(full=decades(-3, 3), quick=(0.1, 1.0), tiny=(1.0,))
        return {"preprocess": ("max", "unit", *counts), "costs": costs}
    if system == "hdsl":
        return {
            "preprocess": ("max", *counts[:1]), **rule,
            "triplets": ("knn:3:5", "random:20"),
            "scales": setting.choose(full=decades(2, 4), quick=(1e3, 1e4), tiny=(100.0,)),
            "max_iter": setting.choose(full=1_000, quick=500, tiny=40),
            "mining_rounds": 1,
        }  # fmt: skip
    return {
        "preprocess": ("max+unit", *counts), **rule,
        "margins": setting.choose(full=(3.0,), quick=(3.0,), tiny=(1.0,)),
        "traces": setting.choose(full=(0.01, 0.03), quick=(0.03,), tiny=(0.1,)),
        "triplets": ("knn:5:10",),
        "normalization": "cosine",
        "max_iter": setting.choose(full=1_000, quick=500, tiny=40),
        "mining_rounds": 2,
    }  # fmt: skip


def run(cell: Cell, context: Context) -> dict[str, Any]:
    cut = data.DATASETS[cell.dataset].cut
    assert cut is not None
    parts = cut(context.data, cell.seed)  # raw rows: their preprocessing is part of the choice
    tried = list(TRY[cell.system](cell, parts.train, parts.valid))
    valid_error, choice = min(tried, key=lambda one: one[0])  # the first of the best
    rows = joined(parts.train, parts.valid) if cell.dataset in OFFICIAL else parts.train
    predict, n_features = FIT[cell.system](choice, rows, cell.seed)
    return {
        "test_error": error(predict(parts.test.X), parts.test), "valid_error": valid_error, "n_features": n_features,
        "choice": choice, "n_tried": len(tried),
    }  # fmt: skip


def joined(first: Rows, second: Rows) -> Rows:
    return Rows(sp.vstack([first.X, second.X]).tocsr(), np.r_[first.y, second.y])


def try_rules(cell: Cell, nearest: Nearest, train: Rows, valid: Rows) -> Iterator[tuple[float, Choice]]:
    """Validation errors of the prediction rules of a similarity."""
    most = min(max(cell.get("neighbors")), len(train))
    scores, near = nearest(valid.X, most)
    for k, vote in itertools.product(cell.get("neighbors"), cell.get("votes")):
        k = min(k, most)
        predicted = elected(scores[:, :k], near[:, :k], train.y, vote)
        yield error(predicted, valid), {"n_neighbors": k, "vote": vote}


def elected(scores: np.ndarray, near: np.ndarray, y: np.ndarray, vote: str) -> np.ndarray:
    from hdsl import _core

    classes, codes = np.unique(y, return_inverse=True)
    scores, near = np.ascontiguousarray(scores), np.ascontiguousarray(near)
    return classes[_core.vote(vote, near, scores, codes.astype(np.int64))]


def by_rule(nearest: Nearest, y: np.ndarray, choice: Choice) -> Predictor:
    return lambda X: elected(*nearest(X, choice["n_neighbors"]), y, choice["vote"])


def try_plain(cell: Cell, train: Rows, valid: Rows) -> Iterator[tuple[float, Choice]]:
    for how in cell.get("preprocess"):
        for wrong, rule in try_rules(cell, plain(how, train), train, valid):
            yield wrong, {"preprocess": how, **rule}


def fit_plain(choice: Choice, rows: Rows, seed: int) -> tuple[Predictor, int]:
    return by_rule(plain(choice["preprocess"], rows), rows.y, choice), 0


def plain(how: str, rows: Rows) -> Nearest:
    """The dot product of preprocessed rows: the cosine, if they have unit length."""
    from hdsl import _core
    from hdsl._matrix import as_csr

    one = data.preprocessing(how, rows.X)
    fitted, index = as_csr(one(rows.X)), _core.Index()

    def nearest(X: sp.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores, near = index.search(fitted, as_csr(one(X)), False, k, 1)
        return scores.reshape(-1, k), near.reshape(-1, k)

    return nearest


def try_hdsl(cell: Cell, train: Rows, valid: Rows) -> Iterator[tuple[float, Choice]]:
    for how, triplets, scale in itertools.product(cell.get("preprocess"), cell.get("triplets"), cell.get("scales")):
        yield from try_learner(cell, train, valid, {"preprocess": how, "triplets": triplets, "scale": scale})


def try_hdsl_base(cell: Cell, train: Rows, valid: Rows) -> Iterator[tuple[float, Choice]]:
    """β by its mean margin β mean|<x, y> - <x, z>| over the triplets, and λ by trace(M) / trace(βI) = 2λ / (β d)."""
    for how in cell.get("preprocess"):
        for wrong, rule in try_rules(cell, plain(how, train), train, valid):
            yield wrong, {"preprocess": how, **rule, "scale": 0.0}
        margin = mean_margin(data.preprocessing(how, train.X)(train.X), train.y, cell.seed)
        occurring = len(np.unique(train.X.indices))
        for size, trace in itertools.product(cell.get("margins"), cell.get("traces")):
            base = size / margin
            params = {
                "preprocess": how, "triplets": cell.get("triplets")[0], "normalization": cell.get("normalization"),
                "base": base, "scale": trace * base * occurring / 2,
            }  # fmt: skip
            for wrong, choice in try_learner(cell, train, valid, params):
                yield wrong, {**choice, "margin": size, "trace": trace}


def mean_margin(X: sp.csr_matrix, y: np.ndarray, seed: int) -> float:
    """The mean of |<x, y> - <x, z>| over the triplets of neighbors."""
    import hdsl

    mined = hdsl.mine_triplets(X, y, triplets="knn:3:5", preprocess="none", random_state=seed, n_jobs=1)
    return ranking.mean_margin(X, mined, np.ones(len(mined)))


def try_learner(cell: Cell, train: Rows, valid: Rows, params: Choice) -> Iterator[tuple[float, Choice]]:
    run = {"max_iter": cell.get("max_iter"), "mining_rounds": cell.get("mining_rounds")}
    learner = classifier(params, cell.seed, **run, early_stopping=True, n_iter_no_change=None, eval_every=50)
    learner.fit(train.X, train.y, X_val=valid.X, y_val=valid.y)
    for wrong, rule in try_rules(cell, nearest_of(learner), train, valid):
        yield wrong, {**params, **rule, **run, "iteration": int(learner.chosen_iter_)}


def fit_learner(choice: Choice, rows: Rows, seed: int) -> tuple[Predictor, int]:
    if not choice["scale"]:
        return fit_plain(choice, rows, seed)
    params = {name: choice[name] for name in ("preprocess", "triplets", "normalization", "base", "scale") if name in choice}
    run = {name: choice[name] for name in ("max_iter", "mining_rounds")}
    learner = classifier(params, seed, **run).fit(rows.X, rows.y)
    learner = learner.at(iteration=min(choice["iteration"], learner.n_iter_))
    return by_rule(nearest_of(learner), rows.y, choice), int(learner.n_active_features_)


def classifier(params: Choice, seed: int, **options: Any) -> Any:
    from hdsl import HDSLClassifier

    return HDSLClassifier(**params, **STOPPING_RULE, **options, random_state=seed, n_jobs=1)


def nearest_of(learner: Any) -> Nearest:
    return lambda X, k: learner.kneighbors(X, n_neighbors=k)


def try_svm(cell: Cell, train: Rows, valid: Rows) -> Iterator[tuple[float, Choice]]:
    for how, cost in itertools.product(cell.get("preprocess"), cell.get("costs")):
        choice = {"preprocess": how, "C": cost}
        yield error(fit_svm(choice, train, cell.seed)[0](valid.X), valid), choice


def fit_svm(choice: Choice, rows: Rows, seed: int) -> tuple[Predictor, int]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    one = data.preprocessing(choice["preprocess"], rows.X)
    machine = LinearSVC(C=choice["C"], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(one(rows.X), rows.y)
    return lambda X: machine.predict(one(X)), int((machine.coef_ != 0).any(axis=0).sum())


TRY: dict[str, Callable[..., Iterator[tuple[float, Choice]]]] = {
    "cosine": try_plain, "tfidf": try_plain, "hdsl": try_hdsl, "hdsl_base": try_hdsl_base, "svm": try_svm,
}  # fmt: skip
FIT: dict[str, Callable[[Choice, Rows, int], tuple[Predictor, int]]] = {
    "cosine": fit_plain, "tfidf": fit_plain, "hdsl": fit_learner, "hdsl_base": fit_learner, "svm": fit_svm,
}  # fmt: skip


def report(found: Found, page: Page) -> str:
    named = [one for one, _ in found.results if one.task == "base"]
    rows = []
    for name in dict.fromkeys(one.dataset for one in named):
        figures = {system: summary(found.of(task="base", dataset=name, system=system)) for system in SYSTEMS}
        best = min(figure.mean for figure in figures.values() if figure is not None)
        title = data.DATASETS[name].title + (" (smoke test)" if name in NO_COUNTS else "")
        rows.append([title, *(error_cell(figures[system], best) for system in SYSTEMS)])
    text = (
        "Test error in per cent, with the standard deviation over five random splits where the set has no test part of its own;\n"
        "in brackets the number of features of the learned part: 0 where nothing is learned, all of non-zero weight for the SVM.\n\n"
    )
    text += table(["dataset", *SYSTEMS.values()], rows)
    text += "\nChosen on validation rows, by system:\n\n"
    text += (
        "- cosine: preprocessing `unit` or `max+unit`; tf-idf cosine: `tfidf`. Both: k of 1, 3, 7, 15, 31, majority or weighted.\n"
        "- HDSL: preprocessing `max` or `tfidf`, triplets `knn:3:5` or `random:20`, λ of 10², 10³, 10⁴, one of 2,000\n"
        "  iterates (1,000 and 1,000 after mining again), k and vote.\n"
        "- HDSL on top of a base: preprocessing `max+unit`, `tfidf` or `bm25`, β such that the mean margin of the base is 3, λ such\n"
        "  that trace(M) is 0.01 or 0.03 of that of βI, triplets `knn:5:10`, one of 3,000 iterates (1,000 and twice 1,000 after mining\n"
        "  again), cosine normalization, k and vote; or the base alone. These settings were found by 3-fold cross-validation on the\n"
        "  training rows of r8 and Reuters.\n"
        "- linear SVM: preprocessing `max`, `unit`, `tfidf` or `bm25`, C of 10⁻³, ..., 10³, one class against the rest.\n"
    )
    text += ranked(found)
    lines = [
        [data.DATASETS[one.dataset].title, one.seed, SYSTEMS[one.system], ranking.in_words("choice", result["choice"])]
        for one, result in found.results
        if one.task == "base"
    ]
    details = table(["dataset", "seed", "system", "choice"], lines, right=[1])
    return text + f"\n<details><summary>Chosen settings</summary>\n\n{details}\n</details>\n"


def ranked(found: Found) -> str:
    """nDCG@10 of the judgments of Cranfield, from the cells of `ranking`."""
    rows = []
    for system in RANKINGS:
        results = [result for _, result in found.of(task="ranking", system=system)]
        for kind, words in [("alone", ""), ("added", ", added to cosine")]:
            if results and all(kind in result for result in results):
                each = np.concatenate([result[kind]["ndcg"] for result in results])
                rows.append([ranking.SYSTEMS[system] + words, f"{each.mean():.3f}"])
    return "\nRanking by judgments, Cranfield:\n\n" + table(["ranking", "nDCG@10"], rows) if rows else ""
