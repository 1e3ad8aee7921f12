"""The hyperparameter search `hdsl.tune`, and the contribution of each of its parts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, count, percent, table

TITLE = "One call: hdsl.tune"
VERSION = 6

#: Test error in per cent and number of features to aim at, from linear SVMs on such splits.
AIMS = {"dexter": (9.5, 400), "dorothea": (6.3, 400), "farm_ads": (10.0, 1500), "reuters_top4": (3.4, 900)}

#: Descriptions of the parts.
PARTS = {
    "base": "similarities learned on top of a base",
    "term-weights": "tf-idf and BM25",
    "mining-rounds": "mining rounds under the learned similarity",
    "ensembles": "averages of five models",
    "votes": "prediction rules other than the majority of 3",
    "cosine": "cosine normalization",
    "random": "random triplets",
    "neighbors": "triplets of neighbors",
    "unit": "rows of unit norm",
    "losses": "the squared hinge",
    "refit": "final training with the validation rows",
}


def cells(setting: Setting) -> list[Cell]:
    most = setting.choose(full=60.0, quick=20.0, tiny=2.0)
    return [
        cell("tuning", dataset, "tune", seed, VERSION, time=most) for seed in setting.seeds for dataset in setting.datasets
    ]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    import hdsl

    cut = data.DATASETS[cell.dataset].cut
    assert cut is not None
    parts = cut(context.data, cell.seed)  # raw rows: their preprocessing is part of the search
    train, valid, test = parts.train, parts.valid, parts.test
    best = hdsl.tune(
        train.X, train.y, X_val=valid.X, y_val=valid.y, time=cell.get("time"), random_state=cell.seed, n_jobs=1
    )
    both = sp.vstack([train.X, valid.X]).tocsr(), np.r_[train.y, valid.y]
    told = best.tuning_

    def tested(learner: Any) -> dict[str, Any]:
        return {
            "test_error": wrong(among(learner, train), test),
            "test_error_among_all": wrong(among(learner, data.Rows(*both)), test),
            "n_features": int(learner.n_active_features_),
        }

    ablations = {}
    for line in _lines(told.ablations):
        params = {name: line[name] for name in best.tuned_params_ if name in line}
        params["last_round_iter"] = params["last_round_iter"] or None  # a plain similarity has no iterations
        learner = hdsl.HDSLClassifier(**{**best.tuned_params_, **params}, n_jobs=1).fit(*both)
        ablations[line["part"]] = {**tested(learner), "expected_error": line["expected_error"], "valid_error": line["error"]}
    alone = hdsl.HDSLClassifier(**best.tuned_params_, n_jobs=1).fit(train.X, train.y)
    ablations["refit"] = {**tested(alone), "expected_error": None, "valid_error": None}
    winner = _lines(told.leaderboard)[0]
    return {
        **tested(best), "expected_error": told.expected_error, "valid_error": winner["error"],
        "reference_error": told.reference_error, "learned": told.learned, "finished": told.finished, "seconds": round(told.seconds, 1),
        "n_models": told.n_models, "params": best.tuned_params_, "ablations": ablations,
    }  # fmt: skip


def _lines(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame if isinstance(frame, list) else frame.to_dict("records")
    return [{name: _plain(value) for name, value in line.items()} for line in found]


def _plain(value: Any) -> Any:
    """Python's own types, and None where a data frame has NaN."""
    value = value.item() if hasattr(value, "item") else value
    return None if value != value else value


def among(learner: Any, rows: data.Rows) -> Any:
    """The same model with neighbors among these rows, as `hdsl evaluate MODEL --train ROWS` does."""
    from hdsl import HDSLClassifier

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hdsl"
        learner.save(path)
        return HDSLClassifier.load(path, X=rows.X, y=rows.y)


def wrong(learner: Any, rows: data.Rows) -> float:
    return float(np.mean(learner.predict(rows.X) != rows.y))


def spread(values: list[float]) -> str:
    """Mean and deviation, in per cent."""
    mean = 100 * float(np.mean(values))
    return f"{mean:.1f}" if len(values) < 2 else f"{mean:.1f} ± {100 * float(np.std(values, ddof=1)):.1f}"


def report(found: Found, page: Page) -> str:
    sets = [name for name in found.setting.datasets if found.of(dataset=name)]
    rows = []
    for name in sets:
        results = [result for _, result in found.of(dataset=name)]
        each = {key: [r[key] for r in results] for key in results[0]}
        aim = AIMS.get(name)
        rows.append([
            data.DATASETS[name].title, len(results), spread(each["test_error"]), spread(each["test_error_among_all"]),
            f"{np.mean(each['n_features']):,.0f}",
            f"{np.mean(each['expected_error']) * 100:.1f}" if None not in each["expected_error"] else "–",
            "" if aim is None else f"{aim[0]} [{aim[1]:,}]",
            f"{np.mean(each['seconds']):,.0f}", f"{np.mean(each['n_models']):,.0f}",
        ])  # fmt: skip
    text = (
        "One call of `hdsl.tune` per split, 60 seconds on one thread. The test error is that of the model with neighbors\n"
        "among the training rows, then among training and validation rows. *Expected* is the estimate of the error on new rows\n"
        "that the search returns.\n\n"
    )
    head = [
        "dataset", "splits", "test error", "among all rows", "features", "expected", "aim [features]", "seconds", "models evaluated",
    ]  # fmt: skip
    text += table(head, rows, right=[1, 7, 8])
    text += "\n### Ablations\n\n"
    text += (
        "The test error without a part, minus the test error with it, in points: positive if the part helped. Without a part, the\n"
        "choice is repeated on the same validation rows among all evaluated models that do not use it, and the result is trained as\n"
        "the winner was. With the standard deviation over the splits; in brackets the difference that the search expected.\n\n"
    )
    rows = []
    for part, words in PARTS.items():
        row: list[Any] = [words]
        for name in sets:
            pairs = [(r["ablations"][part], r) for _, r in found.of(dataset=name) if part in r["ablations"]]
            if not pairs:
                row.append("–")
                continue
            gains = [100 * (w["test_error"] - r["test_error"]) for w, r in pairs]
            told = f"{np.mean(gains):+.1f}" + (f" ± {np.std(gains, ddof=1):.1f}" if len(gains) > 1 else "")
            hopes = [
                100 * (w["expected_error"] - r["expected_error"])
                for w, r in pairs
                if w["expected_error"] is not None and r["expected_error"] is not None
            ]
            row.append(told + (f" ({np.mean(hopes):+.1f})" if hopes else ""))
        rows.append(row)
    text += table(["without", *(data.DATASETS[name].title for name in sets)], rows)
    text += "\n<details><summary>Chosen configurations</summary>\n\n"
    lines = []
    for name in sets:
        for cell, result in found.of(dataset=name):
            p = result["params"]
            lines.append([
                data.DATASETS[name].title, cell.seed, p["preprocess"], f"{p['base']:g}", p["triplets"], "–" if p["scale"] is None else f"{p['scale']:g}", p["loss"],
                p["mining_rounds"], p["n_estimators"], f"{p['vote']} of {p['n_neighbors']}" if p["vote"] != "class-mean" else p["vote"], p["normalization"],
                percent(result["valid_error"]), percent(result["test_error"]), count(result["n_features"], "feature"),
            ])  # fmt: skip
    head = [
        "dataset", "seed", "preprocess", "base", "triplets", "λ", "loss", "mining rounds", "models", "vote", "normalization",
        "validation", "test", "features",
    ]  # fmt: skip
    return text + table(head, lines, right=[1, 3, 5, 7, 8]) + "\n</details>\n"
