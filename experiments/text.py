"""Text, as in the paper: the pairs of words of the largest weights of each sign."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, percent, table
from experiments.systems.base import error
from experiments.systems.neighbors import by_dot_product

TITLE = "Text: the strongest pairs of words"
VERSION = 2
SHOWN = 20

#: The paper's preprocessing and triplets, and unit rows with random triplets, which suit text better.
WAYS = (("max", "knn:3:5"), ("unit", "random:20"))


def cells(setting: Setting) -> list[Cell]:
    name = setting.choose(full="r8_text", quick="r8_text", tiny="synthetic")
    scales = setting.choose(full=(10.0, 100.0, 1000.0, 10000.0, 100000.0), quick=(100.0, 1000.0), tiny=(10.0,))
    most = setting.choose(full=2_000, quick=300, tiny=40)
    return [
        cell("text", name, "hdsl", 0, VERSION, scale=scale, preprocess=preprocess, triplets=triplets, max_iter=most)
        for preprocess, triplets in WAYS
        for scale in scales
    ]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.model_selection import train_test_split

    from hdsl import HDSLClassifier

    texts, y, others, y_test = planted_texts() if cell.dataset == "synthetic" else data.read_texts(context.data, "r8_text")
    learn, choose = train_test_split(np.arange(len(texts)), test_size=0.2, stratify=y, random_state=0)
    words = CountVectorizer(min_df=2)
    X = words.fit_transform([texts[i] for i in learn]).astype(float)
    valid = words.transform([texts[i] for i in choose]).astype(float)
    test = words.transform(others).astype(float)
    names = words.get_feature_names_out()
    learner = HDSLClassifier(
        scale=cell.get("scale"), triplets=cell.get("triplets"), preprocess=cell.get("preprocess"),
        max_iter=cell.get("max_iter"), early_stopping=True, n_iter_no_change=200, random_state=0, n_jobs=1,
    )  # fmt: skip
    learner.fit(X, y[learn], X_val=valid, y_val=y[choose])
    pairs = learner.explain(names).pairs
    return {
        "n_words": len(names),
        "n_features": int(learner.n_active_features_),
        "n_pairs": len(pairs),
        "iteration": int(learner.chosen_iter_),
        "valid_error": float(learner.valid_error_),
        "test_error": float(np.mean(learner.predict(test) != y_test)),
        "plain_error": plain_error(X, y[learn], test, y_test),
        "alike": strongest(pairs, 1, X, y[learn]),
        "unlike": strongest(pairs, -1, X, y[learn]),
    }


def planted_texts() -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Reviews of few words, one of which depends on the class; for the tests."""
    random = np.random.default_rng(0)
    kinds = {"good": ["tasty", "delicious", "savoury"], "bad": ["stale", "soggy", "bland"]}

    def some(count: int) -> tuple[list[str], np.ndarray]:
        y = np.array(sorted(kinds))[np.arange(count) % 2]
        return [" ".join([random.choice(kinds[kind]), *random.choice(NOISE, 4)]) for kind in y], y

    return *some(120), *some(40)


NOISE = [f"{a}{b}" for a in ("ba", "du", "ki", "lo", "mu") for b in ("ran", "sil", "ton")]


def plain_error(X: Any, y: np.ndarray, test: Any, y_test: np.ndarray) -> float:
    """3-NN error of the dot product of the same preprocessed rows, over all words."""
    parts = data.scaled(data.Parts(data.Rows(X, y), data.Rows(test, y_test), data.Rows(test, y_test)))
    return error(by_dot_product(parts.train)(parts.test.X), parts.test)


def strongest(pairs: Any, sign: int, X: Any, y: np.ndarray) -> list[dict[str, Any]]:
    """The pairs of the largest weights of one sign, each word with the topics of its documents."""
    columns = X.tocsc()

    def topics(word: int) -> str:
        rows = columns.indices[columns.indptr[word] : columns.indptr[word + 1]]
        counts = Counter(y[rows].tolist()).most_common(2)
        told = [f"{topic} {100 * count / len(rows):.0f}%" for topic, count in counts if count >= 0.15 * len(rows)]
        return ", ".join(told)

    chosen = [pair for pair in pairs.itertuples() if pair.weight * sign > 0][:SHOWN]
    return [
        {
            "words": [pair.feature_i, pair.feature_j],
            "weight": float(pair.weight),
            "topics": [topics(pair.i), topics(pair.j)],
        }
        for pair in chosen
    ]


def report(found: Found, page: Page) -> str:
    cell, result = min(found.results, key=lambda pair: (pair[1]["valid_error"], pair[1]["n_features"]))
    chosen = f"λ = {cell.get('scale'):g}, preprocessing `{cell.get('preprocess')}`, triplets `{cell.get('triplets')}`"
    text = (
        f"{data.DATASETS[cell.dataset].title}: {result['n_words']:,} words. Validation rows chose {chosen}, and iteration "
        f"{result['iteration']:,}.\n{result['n_features']:,} words are in use, in {result['n_pairs']:,} pairs. Test error "
        f"{percent(result['test_error'])}%; of the dot product of all words {percent(result['plain_error'])}%.\n\n"
    )
    tried = [
        [
            f"`{c.get('preprocess')}`, `{c.get('triplets')}`", f"{c.get('scale'):g}", percent(r["valid_error"]),
            f"{r['n_features']:,}", f"{r['iteration']:,}",
        ]
        for c, r in found.results
    ]  # fmt: skip
    text += table(["preprocess, triplets", "λ", "validation error", "words", "iteration"], tried)
    text += "\nThe pairs of the largest weights of the chosen model. Beside each word: the topics of its training documents.\n"
    for key, title in [("alike", "Pairs that make two documents more similar"), ("unlike", "Pairs that make them less similar")]:
        rows = [
            [
                f"{pair['weight']:+.3g}", f"**{pair['words'][0]}**", pair["topics"][0], f"**{pair['words'][1]}**",
                pair["topics"][1],
            ]
            for pair in result[key]
        ]  # fmt: skip
        text += f"\n{title}:\n\n"
        text += table(["weight", "word of one", "topics", "word of the other", "topics"], rows, right=[0])
    return text
