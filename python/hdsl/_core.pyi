"""The compiled module, crates/hdsl-python."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Entries = tuple[_Ints, _Ints, _Floats]
_Csr = tuple[_Floats, _Ints, _Ints]
_Classes = tuple[list[str], _Ints]
_Triplets = tuple[list[_Ints], _Floats | None]
_Each = Callable[[dict[str, Any], Any], bool]
_Progress = Callable[[dict[str, Any]], None]

CHOICES: dict[str, list[str]]

class Model:
    """A learned similarity; immutable."""

    @staticmethod
    def from_bytes(bytes: bytes, name: str = ...) -> Model: ...
    @staticmethod
    def read(path: str) -> Model: ...
    @staticmethod
    def snapshot(rows: Any, preprocess: str, scale: float, atoms: list[tuple[int, int, float, float]]) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def write(self, path: str) -> None: ...
    @property
    def n_features(self) -> int: ...
    @property
    def scale(self) -> float: ...
    @property
    def preprocess(self) -> str: ...
    @property
    def chosen(self) -> int: ...
    @property
    def config(self) -> str: ...
    @property
    def triplets(self) -> str | None: ...
    @property
    def stop(self) -> str | None: ...
    @property
    def command_line(self) -> str | None: ...
    @property
    def classes(self) -> list[str] | None: ...
    @property
    def names(self) -> list[tuple[int, str]]: ...
    def with_rule(self, k: int, vote: str | None, normalization: str | None) -> Model: ...
    def with_names(self, names: list[str]) -> Model: ...
    def at_iteration(self, iteration: int) -> Model: ...
    def with_max_features(self, most: int) -> Model: ...
    def with_max_atoms(self, most: int) -> Model: ...
    def path(self) -> dict[str, Any]: ...
    def atoms(self) -> tuple[_Entries, _Ints]: ...
    def matrix(self) -> _Entries: ...
    def features_by_weight(self) -> _Entries: ...
    def pairs_by_weight(self) -> _Entries: ...
    def transform(self, rows: Any, dim: int | None, n_threads: int) -> tuple[_Csr, int]: ...
    def prepare(self, rows: Any, n_threads: int) -> _Csr: ...
    def dim(self, dim: int | None) -> int: ...
    def score_pairs(self, a: Any, b: Any, i: _Ints, j: _Ints, n_threads: int) -> _Floats: ...
    def explain_pair(self, a: Any, b: Any) -> tuple[_Entries, float]: ...

class Index:
    """A search index of the fitted rows."""

    def __init__(self) -> None: ...
    def search(
        self, rows: Any, queries: Any, among_others: bool, k: int, n_threads: int
    ) -> tuple[_Floats, _Ints]: ...
    def neighbors(
        self, model: Model, normalization: str, rows: Any, queries: Any, k: int, n_threads: int
    ) -> tuple[_Floats, _Ints]: ...
    def class_means(
        self, classes: _Classes, rows: Any, queries: Any, model: Model, normalization: str, n_threads: int
    ) -> tuple[tuple[_Floats, _Ints], float]: ...

class BaselineModel:
    """The learned similarity of a baseline; immutable."""

    @staticmethod
    def from_parts(preprocess: Any, learned: Any, is_matrix: bool, terms: Any = ...) -> BaselineModel: ...
    @property
    def n_features(self) -> int: ...
    def weights(self) -> tuple[_Ints, _Floats]: ...
    def matrix(self) -> _Floats: ...
    def prepare(self, rows: Any, n_threads: int) -> _Csr: ...
    def map(self, rows: Any, as_queries: bool, n_threads: int) -> tuple[_Csr, int]: ...
    def score_pairs(self, rows: Any, pairs: list[_Ints], n_threads: int) -> _Floats: ...

def fit_baseline(
    settings: str,
    source: dict[str, Any],
    x: Any,
    classes: _Classes | None = ...,
    *,
    triplets: _Triplets | None = ...,
    row_weights: _Floats | None = ...,
    start: BaselineModel | None = ...,
    each: _Each | None = ...,
    progress: _Progress | None = ...,
    n_threads: int = ...,
) -> tuple[BaselineModel, dict[str, Any]]: ...
def train(
    settings: dict[str, Any],
    x: Any,
    classes: _Classes | None = ...,
    *,
    valid: tuple[Any, _Classes] | None = ...,
    triplets: _Triplets | None = ...,
    row_weights: _Floats | None = ...,
    names: list[str] | None = ...,
    start: Model | None = ...,
    keep_preprocess: bool = ...,
    each: _Each | None = ...,
    snapshots: bool = ...,
    progress: _Progress | None = ...,
    n_threads: int = ...,
) -> tuple[Model, dict[str, Any]]: ...
def tune(
    settings: dict[str, Any],
    x: Any,
    classes: _Classes,
    *,
    valid: tuple[Any, _Classes] | None = ...,
    names: list[str] | None = ...,
    progress: _Progress | None = ...,
    n_threads: int = ...,
) -> tuple[Model, dict[str, Any], dict[str, Any]]: ...
def mine(settings: dict[str, Any], x: Any, classes: _Classes, n_threads: int) -> _Ints: ...
def vote(vote: str, neighbors: _Ints, scores: _Floats, codes: _Ints) -> _Ints: ...
def report(
    model: Model,
    path: str,
    *,
    title: str,
    made_by: str,
    k: int,
    names: list[str] | None = ...,
    train: tuple[Any, _Classes | None, list[str] | None] | None = ...,
    test: tuple[Any, _Classes | None, list[str] | None] | None = ...,
    train_seconds: float | None = ...,
    n_threads: int = ...,
) -> None: ...
def compact(model: Model, title: str) -> str: ...
def fetch_set(
    name: str,
    parts: list[str],
    folder: str | PathLike[str] | None,
    base_url: str | None,
    download: bool,
    again: bool,
    progress: Callable[[dict[str, Any]], object] | None,
) -> list[tuple[str, Path, Path | None]]: ...
def list_sets() -> list[dict[str, Any]]: ...
def data_folder() -> Path: ...
def read_file(
    path: str | PathLike[str],
    labels: str | PathLike[str] | None,
    n_features: int,
    n_threads: int,
) -> tuple[
    _Floats,
    _Ints,
    _Ints,
    int,
    list[str] | None,
    _Ints | None,
]: ...
