"""Ranking, which the paper leaves open: triplets from judgments, cross-validation over queries."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, table
from experiments.retrieval import Collection, Quality, bm25, by_chance, collection, cranfield, quality, tfidf

TITLE = "Ranking: judgments instead of classes"
VERSION = 3

#: Hard negatives: the number of unjudged documents of the highest cosine, and how many of them are drawn per answer.
HARD, AGAINST = 50, 5
FOLDS = 5

SYSTEMS = {
    "cosine": "tf-idf cosine",
    "bm25": "BM25",
    "hdsl": "HDSL, from judgments",
    "hdsl_titles": "HDSL, from judgments and titles",
    "hdsl_base": "HDSL on top of the cosine, from judgments and titles",
}

data.register(
    data.Dataset(
        "cranfield",
        "Cranfield",
        ("cranfield/cran.all.1400.bz2", "cranfield/cran.qry.bz2", "cranfield/cranqrel.bz2"),
        about="1,400 abstracts, 225 queries, graded judgments",
    )
)


def cells(setting: Setting) -> list[Cell]:
    name = setting.choose(full="cranfield", quick="cranfield", tiny="synthetic")
    grids: dict[str, dict[str, Any]] = {
        "cosine": {"sublinear": (False, True)},
        "bm25": {"k1": (0.5, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0), "b": (0.3, 0.5, 0.65, 0.75, 0.85, 1.0)},
    }
    learned: dict[str, Any] = {
        "scales": setting.choose(full=(300.0, 1000.0, 3000.0), quick=(1000.0,), tiny=(100.0,)),
        "iterations": setting.choose(full=(400, 800, 1200, 1600), quick=(400, 800), tiny=(20, 40)),
        "normalizations": ("dot", "cosine"),
        "weights": (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0),
        "inner": setting.choose(full=3, quick=2, tiny=2),
        "n_estimators": setting.choose(full=4, quick=1, tiny=1),
    }
    grids["hdsl"] = {**learned, "titles": (0.0,)}
    grids["hdsl_titles"] = {**learned, "titles": setting.choose(full=(1.0, 3.0), quick=(3.0,), tiny=(1.0,))}
    grids["hdsl_base"] = {
        "scales": setting.choose(full=(1000.0,), quick=(1000.0,), tiny=(100.0,)),
        "titles": setting.choose(full=(3.0, 10.0), quick=(3.0,), tiny=(1.0,)),
        "iterations": setting.choose(full=(1600, 3000), quick=(800,), tiny=(20, 40)),
        "bases": setting.choose(full=(0.3, 1.0, 3.0), quick=(1.0,), tiny=(1.0,)),
        "inner": learned["inner"],
        "n_estimators": learned["n_estimators"],
    }
    folds = setting.choose(full=range(FOLDS), quick=range(2), tiny=range(2))
    return [cell("ranking", name, system, fold, VERSION, **grids[system]) for fold in folds for system in SYSTEMS]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    of = planted() if cell.dataset == "synthetic" else cranfield(context.data)
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(np.arange(of.gains.shape[0])))
    learn, test = folds[cell.seed]
    if cell.system == "cosine":
        choices = [({"sublinear": way}, cosine(of, way)) for way in cell.get("sublinear")]
        choice, scores = best(choices, of, learn)
        return {"test": test.tolist(), "choice": choice, "alone": told(scores[test], of, test)}
    if cell.system == "bm25":
        pairs = [(k1, b) for k1 in cell.get("k1") for b in cell.get("b")]
        choice, scores = best([({"k1": k1, "b": b}, bm25(of, k1, b)) for k1, b in pairs], of, learn)
        return {"test": test.tolist(), "choice": choice, "alone": told(scores[test], of, test)}
    return (on_base if cell.system == "hdsl_base" else learned)(cell, of, learn, test)


def cosine(of: Collection, sublinear: bool) -> np.ndarray:
    return (tfidf(of.queries, of, sublinear) @ tfidf(of.documents, of, sublinear).T).toarray()


def best(choices: list[tuple[Any, np.ndarray]], of: Collection, queries: np.ndarray) -> tuple[Any, np.ndarray]:
    """The choice with the highest nDCG on these queries; the first of equals."""
    return max(choices, key=lambda pair: judged(pair[1][queries], of, queries).ndcg.mean())


def judged(scores: np.ndarray, of: Collection, queries: np.ndarray) -> Quality:
    """Without the documents that the queries were written from."""
    return quality(scores, of.gains[queries], of.sources[queries])


def told(scores: np.ndarray, of: Collection, queries: np.ndarray) -> dict[str, list[float]]:
    """Both measures per query, and again with the sources as wrong answers, another reading of the judgments."""
    without, within = judged(scores, of, queries), quality(scores, of.gains[queries])
    return {
        "ndcg": without.ndcg.round(6).tolist(), "ap": without.precision.round(6).tolist(),
        "ndcg_sources_wrong": within.ndcg.round(6).tolist(), "ap_sources_wrong": within.precision.round(6).tolist(),
    }  # fmt: skip


class Rows:
    """The rows of the triplets: queries, documents, titles, bodies."""

    def __init__(self, of: Collection) -> None:
        parts = [tfidf(part, of, True) for part in (of.queries, of.documents, of.titles, of.bodies)]
        self.queries, self.documents, self.titles, self.bodies = parts
        self.all = sp.vstack(parts).tocsr()
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.cosine = (self.queries @ self.documents.T).toarray()
        self.by_title = (self.titles @ self.bodies.T).toarray()


def triplets(
    of: Collection, rows: Rows, queries: np.ndarray, titles: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Triplets with weights. Every query counts the same, and titles together `titles` times as much as queries."""
    random = np.random.default_rng([seed, 7])
    found, weights = [], []
    for query in queries:
        gains = of.gains[query]
        answers = np.flatnonzero(gains)
        others = np.where((gains > 0) | of.sources[query], -np.inf, rows.cosine[query])
        hard = np.argsort(-others, kind="stable")[: min(HARD, int(np.isfinite(others).sum()))]
        for answer in answers:
            for other in random.choice(hard, min(AGAINST, len(hard)), replace=False):
                found.append((query, rows.starts[1] + answer, rows.starts[1] + other))
                weights.append(gains[answer] / len(answers))
            for other in answers[gains[answers] < gains[answer]]:
                found.append((query, rows.starts[1] + answer, rows.starts[1] + other))
                weights.append((gains[answer] - gains[other]) / len(answers))
    judged = np.array(weights) / np.sum(weights)
    if titles == 0.0:
        return np.array(found), judged
    # A title and its own abstract, against similar abstracts: no judgments are used.
    usable = np.flatnonzero((np.diff(rows.titles.indptr) >= 2) & (np.diff(rows.bodies.indptr) >= 5))
    own = []
    for document in usable:
        others = rows.by_title[document].copy()
        others[document] = -np.inf
        hard = np.argsort(-others, kind="stable")[:HARD]
        for other in random.choice(hard, min(AGAINST, len(hard)), replace=False):
            own.append((rows.starts[2] + document, rows.starts[3] + document, rows.starts[3] + other))
    return np.vstack([found, own]), np.r_[judged, np.full(len(own), titles / len(own))]


@dataclass(frozen=True)
class Learned:
    """A learned similarity with its normalization."""

    M: Any
    normalization: str

    @property
    def n_features(self) -> int:
        return len(np.unique(self.M.tocoo().row))

    def scores(self, queries: sp.csr_matrix, documents: sp.csr_matrix) -> np.ndarray:
        """Of each query and document; under cosine normalization divided by both norms under M."""
        scores = ((queries @ self.M) @ documents.T).toarray()
        if self.normalization == "cosine":
            lengths = [np.sqrt(np.asarray((rows @ self.M).multiply(rows).sum(axis=1))).ravel() for rows in (queries, documents)]
            # A row without any of the words in use has norm 0, and all its scores are 0.
            scores /= np.maximum(np.outer(*lengths), 1e-12)
        return scores


def learned_along(
    of: Collection, rows: Rows, learn: np.ndarray, scale: float, titles: float, cell: Cell
) -> dict[int, Any]:
    """M by iteration: the average of several models with different hard negatives; such an average is again a convex
    combination of atoms."""
    from hdsl import HDSL

    iterations = cell.get("iterations")
    matrices: dict[int, Any] = {}
    for model in range(cell.get("n_estimators")):
        mined, weights = triplets(of, rows, learn, titles, model)
        learner = HDSL(scale=scale, preprocess="none", max_iter=max(iterations), random_state=model, n_jobs=1)
        learner.fit_triplets(rows.all, mined, sample_weight=weights)
        for at in iterations:
            M = learner.at(iteration=min(at, learner.n_iter_)).get_bilinear_matrix() / cell.get("n_estimators")
            matrices[at] = M if model == 0 else matrices[at] + M
    return matrices


def learned(cell: Cell, of: Collection, learn: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Choose by cross-validation within the training queries, then train on all of them."""
    rows = Rows(of)
    ways = [(scale, titles) for scale in cell.get("scales") for titles in cell.get("titles")]
    alone: dict[tuple[Any, ...], np.ndarray] = defaultdict(lambda: np.zeros(len(learn)))
    added: dict[tuple[Any, ...], np.ndarray] = defaultdict(lambda: np.zeros(len(learn)))
    inner = KFold(cell.get("inner"), shuffle=True, random_state=1).split(np.arange(len(learn)))
    for first, second in inner:
        for way in ways:
            for at, M in learned_along(of, rows, learn[first], *way, cell).items():
                for normalization in cell.get("normalizations"):
                    model, name = Learned(M, normalization), (*way, at, normalization)
                    ask = learn[second]
                    scores = model.scores(rows.queries[ask], rows.documents)
                    alone[name][second] = judged(scores, of, ask).ndcg
                    unit = unit_of(model, rows, learn[first])
                    for weight in cell.get("weights"):
                        mixed = rows.cosine[ask] + weight * unit * scores
                        added[(*name, weight)][second] = judged(mixed, of, ask).ndcg
    result: dict[str, Any] = {"test": test.tolist()}
    for kind, tried in [("alone", alone), ("added", added)]:
        scale, titles, at, normalization, *weight = max(tried, key=lambda name: tried[name].mean())
        model = Learned(learned_along(of, rows, learn, scale, titles, cell)[at], normalization)
        scores = model.scores(rows.queries[test], rows.documents)
        choice = {"scale": scale, "titles": titles, "iteration": at, "normalization": normalization, "n_features": model.n_features}
        if weight:
            scores = rows.cosine[test] + weight[0] * unit_of(model, rows, learn) * scores
            choice["weight"] = weight[0]
        result[kind] = told(scores, of, test)
        result[f"choice_{kind}"] = choice
    return result


def unit_of(model: Learned, rows: Rows, learn: np.ndarray) -> float:
    """The factor that gives learned scores the standard deviation of the cosine, on the training queries."""
    spread = float(model.scores(rows.queries[learn], rows.documents).std())
    return float(rows.cosine[learn].std()) / (spread or 1.0)


def on_base(cell: Cell, of: Collection, learn: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """The cosine of S(x, z) = β <x, z> + x' M z, where M is learned without a base and β is added afterwards.

    Few judgments with hard negatives mislead M if the base takes part in the margins. β is relative to the mean norm
    under M, and chosen with the rest by cross-validation within the training queries.
    """
    rows = Rows(of)
    tried: dict[tuple[Any, ...], np.ndarray] = defaultdict(lambda: np.zeros(len(learn)))
    inner = KFold(cell.get("inner"), shuffle=True, random_state=1).split(np.arange(len(learn)))
    for first, second in inner:
        ask = learn[second]
        for way in itertools.product(cell.get("scales"), cell.get("titles")):
            for at, M in learned_along(of, rows, learn[first], *way, cell).items():
                for size in cell.get("bases"):
                    scores = with_base(M, size, rows, learn[first]).scores(rows.queries[ask], rows.documents)
                    tried[(*way, at, size)][second] = judged(scores, of, ask).ndcg
    scale, titles, at, size = max(tried, key=lambda name: tried[name].mean())
    M = learned_along(of, rows, learn, scale, titles, cell)[at]
    scores = with_base(M, size, rows, learn).scores(rows.queries[test], rows.documents)
    choice = {
        "scale": scale, "titles": titles, "iteration": at, "base": size, "n_features": Learned(M, "cosine").n_features,
    }  # fmt: skip
    return {"test": test.tolist(), "alone": told(scores, of, test), "choice_alone": choice}


def with_base(M: Any, size: float, rows: Rows, learn: np.ndarray) -> Learned:
    """M + βI under cosine normalization. β is `size` times the mean norm under M of a training query times a document's."""
    norms = [
        np.sqrt(np.asarray((part @ M).multiply(part).sum(axis=1))).mean() for part in (rows.queries[learn], rows.documents)
    ]
    return Learned(sp.csr_matrix(M + size * norms[0] * norms[1] * sp.identity(M.shape[0])), "cosine")


def mean_margin(X: sp.csr_matrix, triplets: np.ndarray, weights: np.ndarray) -> float:
    """The weighted mean of |<x, y> - <x, z>|."""
    anchors, near, far = triplets.T
    margins = np.asarray(X[anchors].multiply(X[near] - X[far]).sum(axis=1)).ravel()
    return float(np.average(np.abs(margins), weights=weights))


def planted() -> Collection:
    """Abstracts of a few topics with interchangeable words, and queries that use few of them; for the tests."""
    random = np.random.default_rng(3)
    names = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("ab", "el", "ip", "or") for c in ("tux", "nim")]
    topics = [names[6 * topic : 6 * topic + 6] for topic in range(5)]
    noise = names[30:]

    def text(topic: int, telling: int, other: int) -> str:
        return " ".join([*random.choice(topics[topic], telling, replace=False), *random.choice(noise, other)])

    of_documents, of_queries = np.arange(60) % 5, np.arange(25) % 5
    titles = [text(topic, 2, 1) for topic in of_documents]
    bodies = [text(topic, 3, 6) for topic in of_documents]
    texts = [f"{title} {body}" for title, body in zip(titles, bodies)]
    gains = (of_queries[:, None] == of_documents[None, :]) * (1.0 + np.arange(60) % 4)
    sources = np.zeros(gains.shape, dtype=bool)
    sources[np.arange(25), np.arange(25)] = True
    queries = [text(topic, 2, 1) for topic in of_queries]
    return collection(texts, queries, titles, bodies, np.where(sources, 0.0, gains), sources)


def rankings(found: Found) -> dict[str, dict[str, np.ndarray]]:
    """For each ranking and measure, one number per query, in the order of the folds."""
    result: dict[str, dict[str, np.ndarray]] = {}
    for system, title in SYSTEMS.items():
        cells_ = found.of(system=system)
        for kind in ("alone", "added"):
            if cells_ and all(kind in r for _, r in cells_):
                mixed = all("added" in r for _, r in cells_)
                name = f"{title}, {'alone' if kind == 'alone' else 'added to cosine'}" if mixed else title
                measures = cells_[0][1][kind]
                result[name] = {m: np.concatenate([r[kind][m] for _, r in cells_]) for m in measures}
    return result


def report(found: Found, page: Page) -> str:
    from experiments.pictures import plt

    found_rankings = rankings(found)
    best_ndcg = max(values["ndcg"].mean() for values in found_rankings.values())
    cosine_, bm25_ = (found_rankings.get(SYSTEMS[name]) for name in ("cosine", "bm25"))
    rows, wrong = [], []
    for name, values in found_rankings.items():
        ndcg = f"{values['ndcg'].mean():.3f}"
        if values["ndcg"].mean() == best_ndcg:
            ndcg = f"**{ndcg}**"
        against = [versus(values["ndcg"], other) for other in (cosine_, bm25_)]
        rows.append([name, ndcg, f"{values['ap'].mean():.3f}", *against])
        wrong.append([name, f"{values['ndcg_sources_wrong'].mean():.3f}", f"{values['ap_sources_wrong'].mean():.3f}"])
    number = len(next(iter(found_rankings.values()))["ndcg"])
    text = (
        f"{data.DATASETS[found.results[0][0].dataset].title}: {number} queries, each in the test once ({FOLDS} folds over "
        "queries). All choices, including BM25's\nk1 and b, are made on the queries of the other folds; for HDSL by cross-validation "
        "within those. All systems use stems without\nstop words. The p-value of a difference is that of a sign-flip test over "
        "queries.\n\n"
    )
    text += table(["ranking", "nDCG@10", "mean average precision", "nDCG less cosine's", "nDCG less BM25's"], rows)
    figure, ax = plt.subplots(figsize=(7.2, 0.45 * len(rows) + 1.0), layout="constrained")
    names = list(found_rankings)[::-1]
    for place, name in enumerate(names):
        values = found_rankings[name]["ndcg"]
        error = values.std(ddof=1) / np.sqrt(len(values))
        ours = name.startswith("HDSL")
        ax.errorbar(values.mean(), place, xerr=error, fmt="o", color="#1f6fb4" if ours else "0.35", capsize=3)
    ax.set(yticks=range(len(names)), yticklabels=names, xlabel="nDCG@10, with its standard error over queries")
    text += "\n" + page.figure("ranking", figure, "nDCG@10 of each ranking")
    text += (
        "\nThe collection's grades go from 1, a complete answer, to 4, of minimum interest; the gain of an answer is 5 less its\n"
        "grade. One document per query has the grade -1, which the collection's notes do not explain: it is the document that\n"
        "the query was written for, and is left out of the ranking. With it as a wrong answer, another reading:\n\n"
    )
    text += table(["ranking", "nDCG@10", "mean average precision"], wrong)
    choices = []
    for system in SYSTEMS:
        for cell, result in found.of(system=system):
            told_ = {k: v for k, v in result.items() if k.startswith("choice")}
            choices.append([SYSTEMS[system], cell.seed, "; ".join(f"{in_words(k, v)}" for k, v in told_.items())])
    text += "\nChosen settings, by fold:\n\n" + table(["system", "fold", "choice"], choices, right=[1])
    return text


def in_words(kind: str, choice: dict[str, Any]) -> str:
    told_ = ", ".join(f"{name} {value if isinstance(value, str) else format(value, 'g')}" for name, value in choice.items())
    return told_ if kind == "choice" else f"{kind.removeprefix('choice_')}: {told_}"


def versus(ours: np.ndarray, theirs: dict[str, np.ndarray] | None) -> str:
    if theirs is None or theirs["ndcg"] is ours or np.array_equal(theirs["ndcg"], ours):
        return ""
    if len(theirs["ndcg"]) != len(ours):
        return ""  # In an unfinished run, they may have other folds.
    differences = ours - theirs["ndcg"]
    return f"{differences.mean():+.3f} (p {by_chance(differences):.2g})"
