"""A test collection, what ranks it without learning, and how good a ranking is."""

from __future__ import annotations

import bz2
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.preprocessing import normalize

#: Places of a ranking that count.
TOP = 10


@dataclass(frozen=True)
class Collection:
    """Counts of words, and what was judged. Everybody ranks by the same words."""

    documents: sp.csr_matrix
    queries: sp.csr_matrix
    #: Titles, and documents without them: queries and answers that nobody had to judge.
    titles: sp.csr_matrix
    bodies: sp.csr_matrix
    #: Queries by documents: what an answer is worth, 0 for nothing.
    gains: np.ndarray
    #: Queries by documents: the document that the query was written from.
    sources: np.ndarray
    words: np.ndarray


def cranfield(folder: Path) -> Collection:
    """Cleverdon's collection. Its scale goes from 1, a complete answer, to 4, of minimum interest.

    A grade of -1, of which its notes say nothing, stands once for every query, on its last line. These documents
    answer better than those of grade 1 as far as their words go: they are what the query was written from.
    """
    documents = _entries(folder / "cranfield/cran.all.1400.bz2")
    # Judgments number queries by position, whatever `.I` says.
    queries = _entries(folder / "cranfield/cran.qry.bz2")
    gains = np.zeros((len(queries), len(documents)))
    sources = np.zeros(gains.shape, dtype=bool)
    path = folder / "cranfield/cranqrel.bz2"
    for number, line in enumerate(_text(path).splitlines(), 1):
        query, document, grade = map(int, line.split())
        if grade not in (-1, 1, 2, 3, 4):
            raise ValueError(f"{path}:{number}: the grade is {grade}, expected 1 to 4, or -1")
        if grade == -1:
            sources[query - 1, document - 1] = True
        else:
            gains[query - 1, document - 1] = 5 - grade
    texts = [" ".join(entry["W"].split()) for entry in documents]
    titles = [" ".join(entry["T"].split()) for entry in documents]
    # An abstract begins with its title.
    bodies = [text[len(title) :] if text.startswith(title) else text for text, title in zip(texts, titles)]
    return collection(texts, [entry["W"] for entry in queries], titles, bodies, gains, sources)


def collection(
    texts: list[str], queries: list[str], titles: list[str], bodies: list[str], gains: np.ndarray, sources: np.ndarray
) -> Collection:
    """Counts of the stems of words, without stop words."""
    counts = CountVectorizer(analyzer=_stems())
    documents = counts.fit_transform(texts).astype(float)
    others = [counts.transform(several).astype(float).tocsr() for several in (queries, titles, bodies)]
    return Collection(documents.tocsr(), *others, gains, sources, counts.get_feature_names_out())


def _stems() -> Callable[[str], list[str]]:
    import snowballstemmer

    stem = snowballstemmer.stemmer("porter").stemWord
    known: dict[str, str] = {}

    def stems(text: str) -> list[str]:
        found = [word for word in re.findall(r"[a-z][a-z0-9]+", text.lower()) if word not in ENGLISH_STOP_WORDS]
        for word in found:
            if word not in known:
                known[word] = stem(word)
        return [known[word] for word in found]

    return stems


def _text(path: Path) -> str:
    return bz2.decompress(path.read_bytes()).decode("latin-1")


def _entries(path: Path) -> list[dict[str, str]]:
    """SMART's format: `.I number`, then fields `.T`, `.A`, `.B`, `.W` on lines of their own."""
    entries: list[dict[str, str]] = []
    field = ""
    for line in _text(path).splitlines():
        mark = re.fullmatch(r"\.([ITABW])(\s+\d+)?\s*", line)
        if mark:
            field = mark[1]
            if field == "I":
                entries.append({"T": "", "A": "", "B": "", "W": ""})
        elif field in ("T", "A", "B", "W"):
            entries[-1][field] += line + "\n"
    return entries


def tfidf(counts: sp.csr_matrix, of: Collection, sublinear: bool) -> sp.csr_matrix:
    """Unit-length rows of tf-idf; `sublinear` takes 1 + ln tf."""
    number, holding = of.documents.shape[0], np.bincount(of.documents.indices, minlength=of.documents.shape[1])
    rows = counts.copy()
    if sublinear:
        rows.data = 1.0 + np.log(rows.data)
    return normalize(sp.csr_matrix(rows.multiply(np.log((1 + number) / (1 + holding)) + 1.0)))


def bm25(of: Collection, k1: float, b: float) -> np.ndarray:
    """Scores of every query and document by Okapi BM25."""
    number, holding = of.documents.shape[0], np.bincount(of.documents.indices, minlength=of.documents.shape[1])
    length = np.asarray(of.documents.sum(axis=1)).ravel()
    rarity = np.log(1.0 + (number - holding + 0.5) / (holding + 0.5))
    rows = of.documents.tocoo()
    damped = rows.data + k1 * (1.0 - b + b * length[rows.row] / length.mean())
    weights = rows.data * (k1 + 1.0) / damped * rarity[rows.col]
    return (of.queries @ sp.csr_matrix((weights, (rows.row, rows.col)), of.documents.shape).T).toarray()


@dataclass(frozen=True)
class Quality:
    """Of a ranking, one number a query."""

    ndcg: np.ndarray
    precision: np.ndarray


def quality(scores: np.ndarray, gains: np.ndarray, left_out: np.ndarray | None = None) -> Quality:
    """nDCG@10 with the gain of a grade itself, and average precision. What is left out is in no ranking."""
    if left_out is not None:
        scores, gains = np.where(left_out, -np.inf, scores), np.where(left_out, 0.0, gains)
    # Among equals the lower number: the same for everybody.
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(gains, order, axis=1)
    discount = 1.0 / np.log2(np.arange(TOP) + 2.0)
    ideal = -np.sort(-gains, axis=1)[:, :TOP] @ discount[: min(TOP, gains.shape[1])]
    found = ranked > 0
    share = np.cumsum(found, axis=1) / np.arange(1, found.shape[1] + 1)
    return Quality(
        (ranked[:, :TOP] @ discount[: min(TOP, gains.shape[1])]) / np.maximum(ideal, 1e-300),
        (share * found).sum(axis=1) / np.maximum(found.sum(axis=1), 1),
    )


def by_chance(differences: np.ndarray, draws: int = 10_000) -> float:
    """How often signs at random give a mean difference as far from 0 as this one (two-sided)."""
    random = np.random.default_rng(0)
    signs = random.choice([-1.0, 1.0], size=(draws, len(differences)))
    means = np.abs(signs @ differences) / len(differences)
    return float((1 + np.sum(means >= abs(differences.mean()) - 1e-15)) / (draws + 1))
