"""Datasets by name: their files, splits and preprocessing for classification.

Features are scaled to [0, 1] by the maximum of the training part, and values above it elsewhere are clipped to 1.
"""

from __future__ import annotations

import bz2
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_files
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

#: The default folder of real data, beside the project.
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Rows:
    """Rows and their classes."""

    X: sp.csr_matrix
    y: np.ndarray

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, numbers: np.ndarray) -> Rows:
        return Rows(self.X[numbers], self.y[numbers])


@dataclass(frozen=True)
class Parts:
    """Rows for training, validation and a single test."""

    train: Rows
    valid: Rows
    test: Rows


@dataclass(frozen=True)
class Dataset:
    """`files` in the data folder; `cut` splits them by a seed. Without files, the data is generated."""

    name: str
    title: str
    files: tuple[str, ...]
    cut: Callable[[Path, int], Parts] | None = None
    triplets: str = "knn:3:5"
    about: str = ""

    def missing(self, folder: Path) -> list[Path]:
        """Missing files."""
        return [folder / file for file in self.files if not (folder / file).is_file()]

    def fingerprint(self, folder: Path) -> str:
        """A hash of the files, or of the generated data."""
        return _fingerprint(self.name, folder)


def load(name: str, folder: Path, seed: int) -> Parts:
    """The parts of a dataset for a seed, preprocessed."""
    found = DATASETS[name]
    if found.cut is None:
        raise ValueError(f"{name} is not split into parts")
    return scaled(found.cut(folder, seed))


def scaled(parts: Parts) -> Parts:
    """Values divided by the training maximum of their feature, and clipped to 1."""
    one = preprocessing("max", parts.train.X)
    return Parts(*(Rows(one(rows.X), rows.y) for rows in (parts.train, parts.valid, parts.test)))


def preprocessing(how: str, train: sp.csr_matrix) -> Callable[[sp.csr_matrix], sp.csr_matrix]:
    """The map of rows that hdsl calls `how`, fitted on these rows: none, max, unit, max+unit, tfidf or bm25."""
    if how == "none":
        return sp.csr_matrix
    if how == "unit":
        return normalize
    if how == "max":
        return _by_maximum(train)
    if how == "max+unit":
        by_maximum = _by_maximum(train)
        return lambda X: normalize(by_maximum(X))
    if how == "tfidf":
        return _tfidf(train)
    if how == "bm25":
        return _bm25(train)
    raise ValueError(f"no preprocessing is called {how!r}")


def _by_maximum(train: sp.csr_matrix) -> Callable[[sp.csr_matrix], sp.csr_matrix]:
    most = np.abs(train).max(axis=0).toarray().ravel()
    # A feature that no training row contains has no effect; its values stay within [0, 1] as well.
    factor = 1.0 / np.where(most > 0, most, 1.0)

    def one(X: sp.csr_matrix) -> sp.csr_matrix:
        X = sp.csr_matrix(X.multiply(factor))
        np.clip(X.data, -1.0, 1.0, out=X.data)
        X.sort_indices()
        return X

    return one


def _tfidf(train: sp.csr_matrix) -> Callable[[sp.csr_matrix], sp.csr_matrix]:
    """1 + ln(count), times ln((1 + n) / (1 + df)) + 1 for a word in df of n training rows, then unit length."""
    holding = np.bincount(train.indices, minlength=train.shape[1])
    weight = np.log((1 + train.shape[0]) / (1 + holding)) + 1.0

    def one(X: sp.csr_matrix) -> sp.csr_matrix:
        X = sp.csr_matrix(X, copy=True)
        X.data = 1.0 + np.log(X.data)
        return normalize(sp.csr_matrix(X.multiply(weight)))

    return one


def _bm25(train: sp.csr_matrix) -> Callable[[sp.csr_matrix], sp.csr_matrix]:
    """The term weights of Okapi BM25 with k1 = 1.5 and b = 0.75, then unit length."""
    holding = np.bincount(train.indices, minlength=train.shape[1])
    weight = np.log1p((train.shape[0] - holding + 0.5) / (holding + 0.5))
    mean = train.sum() / train.shape[0]

    def one(X: sp.csr_matrix) -> sp.csr_matrix:
        X = sp.csr_matrix(X, copy=True)
        relative = np.repeat(np.asarray(X.sum(axis=1)).ravel() / mean, np.diff(X.indptr))
        X.data = 2.5 * X.data / (X.data + 1.5 * (0.25 + 0.75 * relative))
        return normalize(sp.csr_matrix(X.multiply(weight)))

    return one


def stratified(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Two parts, the first with this fraction of every class; the only row of a class is in the first."""
    _, codes, counts = np.unique(rows.y, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(counts[codes] == 1)
    others = np.flatnonzero(counts[codes] > 1)
    first, second = train_test_split(others, train_size=share, stratify=rows.y[others], random_state=seed)
    return rows.take(np.sort(np.r_[first, alone])), rows.take(np.sort(second))


@lru_cache(maxsize=2)
def _files(n_features: int | None, *paths: Path) -> list[Rows]:
    """svmlight files with the same number of features; None for the largest that occurs."""
    read = load_svmlight_files([str(path) for path in paths], n_features=n_features)
    return [Rows(sp.csr_matrix(X), y.astype(np.int64)) for X, y in zip(read[::2], read[1::2])]


def _dexter(folder: Path, seed: int) -> Parts:
    train, rest = _files(20_000, folder / "dexter/train.svm.bz2", folder / "dexter/valid.svm.bz2")
    return Parts(train, *stratified(rest, 0.5, seed))


def _dorothea(folder: Path, seed: int) -> Parts:
    rest, test = _files(100_000, folder / "dorothea/train.svm.bz2", folder / "dorothea/valid.svm.bz2")
    return Parts(*stratified(rest, 0.7, seed), test)


def _one_file(name: str, file: str, train: float, valid: float, about: str) -> Dataset:
    """A dataset of one file, split by these fractions."""

    def cut(folder: Path, seed: int) -> Parts:
        [rows] = _files(None, folder / file)
        first, rest = stratified(rows, train, seed)
        return Parts(first, *stratified(rest, valid / (1 - train), seed))

    title = {"reuters_top4": "reuters top 4"}.get(name, name)
    return Dataset(name, title, (file,), cut, about=about)


def _official(name: str, title: str, about: str) -> Dataset:
    """svmlight files with a test part of their own; a fifth of the training part is used for validation."""
    files = (f"{name}/train.svm.bz2", f"{name}/test.svm.bz2")

    def cut(folder: Path, seed: int) -> Parts:
        train, test = _files(None, *(folder / file for file in files))
        return Parts(*stratified(train, 0.8, seed), test)

    return Dataset(name, title, files, cut, about=about)


def read_texts(folder: Path, name: str) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Texts and classes of the training and test part, from lines `class<TAB>text`."""
    found: list[Any] = []
    for file in DATASETS[name].files:
        lines = bz2.decompress((folder / file).read_bytes()).decode().splitlines()
        classes, texts = zip(*(line.split("\t", 1) for line in lines))
        found += [list(texts), np.array(classes)]
    return found[0], found[1], found[2], found[3]


def _texts(name: str, title: str, about: str) -> Dataset:
    """Texts with a test part of their own, as counts of the words that two documents of the training file contain."""

    def cut(folder: Path, seed: int) -> Parts:
        texts, y, others, y_test = read_texts(folder, name)
        words = CountVectorizer(min_df=2)
        train = Rows(words.fit_transform(texts).astype(float).tocsr(), y)
        test = Rows(words.transform(others).astype(float).tocsr(), y_test)
        return Parts(*stratified(train, 0.8, seed), test)

    return Dataset(name, title, (f"{name}/train.tsv.bz2", f"{name}/test.tsv.bz2"), cut, about=about)


def planted(n_classes: int, seed: int, rows: int = 40, features: int = 300) -> Rows:
    """Rows of few words each, of which some depend on the class and most do not."""
    random = np.random.default_rng([n_classes, seed])
    y = np.repeat(np.arange(n_classes), rows)
    X = np.zeros((len(y), features))
    for row, label in enumerate(y):
        words = random.choice(12, 4, replace=False) + 12 * label  # a dozen words per class, of which a row has four
        noise = random.choice(np.arange(12 * n_classes, features), 10, replace=False)
        X[row, words] = random.integers(1, 5, len(words))
        X[row, noise] = random.integers(1, 5, len(noise))
    return Rows(sp.csr_matrix(X), y)


def _planted(n_classes: int) -> Callable[[Path, int], Parts]:
    def cut(folder: Path, seed: int) -> Parts:
        first, rest = stratified(planted(n_classes, 0), 0.6, seed)
        return Parts(first, *stratified(rest, 0.5, seed))

    return cut


@lru_cache(maxsize=None)
def _fingerprint(name: str, folder: Path) -> str:
    dataset, digest = DATASETS[name], hashlib.sha256()
    for file in dataset.files:
        digest.update((folder / file).read_bytes())
    if not dataset.files and dataset.cut is not None:
        parts = dataset.cut(folder, 0)
        for part in (parts.train, parts.valid, parts.test):
            digest.update(part.X.data.tobytes() + part.X.indices.tobytes() + part.y.tobytes())
    return digest.hexdigest()[:12]


def _datasets(*several: Dataset) -> dict[str, Dataset]:
    return {one.name: one for one in several}


#: Datasets without `cut` are read by the modules that use them.
DATASETS: dict[str, Dataset] = _datasets(
    Dataset(
        "dexter",
        "dexter",
        ("dexter/train.svm.bz2", "dexter/valid.svm.bz2"),
        _dexter,
        triplets="random:20",
        about="as in the paper; its published validation part is split in half, since the test labels were never published",
    ),
    Dataset(
        "dorothea",
        "dorothea",
        ("dorothea/train.svm.bz2", "dorothea/valid.svm.bz2"),
        _dorothea,
        about="as in the paper; its training part is split 70/30 for validation, and its published validation part is the test set",
    ),
    _one_file("farm_ads", "farm_ads/all.svm.bz2", 0.6, 0.2, "in place of rcv1_2: two classes of text, split 60/20/20"),
    _one_file(
        "reuters_top4", "reuters21578/top4.svm.bz2", 0.4, 0.3, "in place of rcv1_4: four classes of text, split 40/30/30"
    ),
    _official("reuters21578", "reuters, all classes", "news of 65 classes, the ModApte split"),
    _texts("r8_text", "R8 news", "news of eight topics, real words; a fifth of the training documents is used for validation"),
    _texts("ohsumed_text", "ohsumed", "abstracts of 23 disease categories, real words; a fifth of the training documents is used for validation"),
    _official("rcv1_sample", "RCV1 sample", "a small sample of unit rows of tf-idf, for a smoke test only"),
    Dataset("planted_2", "planted, 2 classes", (), _planted(2), about="generated"),
    Dataset("planted_4", "planted, 4 classes", (), _planted(4), about="generated"),
    Dataset("synthetic", "synthetic", (), about="generated by the cells"),
)


def register(dataset: Dataset) -> Any:
    """Register a dataset; for modules that read their own files."""
    DATASETS[dataset.name] = dataset
    return dataset
