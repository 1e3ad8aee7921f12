"""Settings that are left open, chosen by errors on a bounded sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hdsl import _core
from hdsl._pipeline import names_of_features
from hdsl._settings import compiled
from hdsl.dask._blocks import Blocks
from hdsl.dask._worker import aligned

#: The most training and validation rows that are gathered if there are validation rows.
MOST = (10_000, 2_000)


@dataclass
class Choice:
    """What was chosen, as the library's `train/automatic.rs`."""

    #: Settings as they were given: those of the base alone.
    given: dict[str, Any]
    preprocess: str
    iterations: int | None
    time_limit: float | None
    facts: dict[str, Any] | None
    #: Whether a similarity is learned only if it is better than the base alone.
    if_better: bool

    @property
    def is_base_alone(self) -> bool:
        """Whether the base alone was chosen."""
        return self.iterations == 0

    def apply(self, chosen: dict[str, Any]) -> None:
        """Make the choices in settings."""
        chosen["preprocess"] = self.preprocess
        chosen["time_limit"] = self.time_limit
        if self.iterations:
            chosen["max_iter"] = self.iterations

    def is_beaten_by_base(self, facts: dict[str, Any]) -> bool:
        """Whether the base alone has fewer errors on the validation rows than what was learned."""
        error = facts["valid_error"]
        if self.facts is None or not self.if_better or self.facts["learned_error"] is not None or error is None:
            return False
        is_better = error < self.facts["base_error"]
        self.facts["learned_error"] = error
        self.iterations = max(facts["grid"][0][3], 1) if is_better else 0
        self.facts["max_iter"] = self.iterations
        return not is_better

    def base_alone(self, estimator: Any, preprocessor: Any, classes: Any) -> tuple[Any, dict[str, Any]]:
        """The model of the base alone."""
        return _core.base_alone(
            compiled(estimator, self.given), preprocessor, classes=classes, names=names_of_features(estimator)
        )


def choose(estimator: Any, chosen: dict[str, Any], rows: Blocks, classes: Any, valid: Any) -> Choice | None:
    """Choose what is left open; None if nothing is, or if there are too few rows."""
    given = dict(chosen)
    if chosen["max_iter"] == 0:
        kind = _core.resolved(chosen["preprocess"], aligned(rows.client.gather(rows.statistics())))
        return Choice(given, kind, 0, chosen["time_limit"], None, False)
    if_better = not chosen["lambda"] and chosen["base"] != 0
    if classes is None or not (chosen["preprocess"] == "auto" or if_better):
        return None
    seed = chosen["seed"]
    if valid is None:
        numbers = _core.rows_to_compare(classes, seed)
        held = None
    else:
        numbers = _sample(classes, MOST[0], seed)
        which = _sample(valid[1], MOST[1], seed)
        held = valid[0].gather(which.astype(np.int64)), (valid[1][0], valid[1][1][which])
    sample = rows.gather(numbers.astype(np.int64))
    found = _core.choose(
        compiled(estimator, chosen),
        sample,
        numbers.astype(np.uint32),
        classes,
        aligned(rows.client.gather(rows.statistics())),
        valid=held,
        n_threads=estimator._threads(),
    )
    if found is None:
        return None
    kind, iterations, time_limit, (n_held_out, base_error, learned_error) = found
    facts = {
        "n_held_out": n_held_out,
        "base_error": base_error,
        "learned_error": learned_error,
        "max_iter": iterations,
    }
    return Choice(given, kind, iterations, time_limit, facts, if_better)


def _sample(classes: Any, most: int, seed: int) -> Any:
    n = len(classes[1])
    if n <= most:
        return np.arange(n, dtype=np.uint32)
    return _core.sampled_rows(classes, most / n, seed)
