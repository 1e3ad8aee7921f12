"""Datasets by name: their files, splits and preprocessing for classification.

Features are scaled to [0, 1] by the maximum of the training part, and values above it elsewhere are clipped to 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_files
from sklearn.model_selection import train_test_split

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
    most = np.abs(parts.train.X).max(axis=0).toarray().ravel()
    # A feature that no training row contains has no effect; its values stay within [0, 1] as well.
    factor = 1.0 / np.where(most > 0, most, 1.0)

    def one(rows: Rows) -> Rows:
        X = sp.csr_matrix(rows.X.multiply(factor))
        np.clip(X.data, -1.0, 1.0, out=X.data)
        X.sort_indices()
        return Rows(X, rows.y)

    return Parts(one(parts.train), one(parts.valid), one(parts.test))


def stratified(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Two parts, the first with this fraction of every class."""
    first, second = train_test_split(np.arange(len(rows)), train_size=share, stratify=rows.y, random_state=seed)
    return rows.take(np.sort(first)), rows.take(np.sort(second))


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
    Dataset("planted_2", "planted, 2 classes", (), _planted(2), about="generated"),
    Dataset("planted_4", "planted, 4 classes", (), _planted(4), about="generated"),
    Dataset("synthetic", "synthetic", (), about="generated by the cells"),
)


def register(dataset: Dataset) -> Any:
    """Register a dataset; for modules that read their own files."""
    DATASETS[dataset.name] = dataset
    return dataset
