"""The measures, BM25 and the collection that ranking rests on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import average_precision_score, ndcg_score

from experiments import data, ranking
from experiments.cells import SETTINGS
from experiments.retrieval import Collection, bm25, by_chance, cranfield, quality, tfidf


@pytest.fixture(scope="module")
def of():
    return ranking.planted()


def test_measures_agree_with_scikit_learn():
    random = np.random.default_rng(0)
    gains = random.integers(0, 5, (20, 40)) * (random.random((20, 40)) < 0.3)
    gains[:, 0] = 1.0
    scores = random.random((20, 40))
    found = quality(scores, gains.astype(float))
    for query in range(20):
        assert found.ndcg[query] == pytest.approx(ndcg_score([gains[query]], [scores[query]], k=10))
        assert found.precision[query] == pytest.approx(average_precision_score(gains[query] > 0, scores[query]))


def test_what_is_left_out_is_in_no_ranking():
    random = np.random.default_rng(1)
    gains = random.integers(0, 5, (6, 15)).astype(float)
    scores = random.random((6, 15))
    left_out = np.zeros(gains.shape, dtype=bool)
    left_out[:, 3] = True
    found = quality(scores, gains, left_out)
    without = quality(np.delete(scores, 3, axis=1), np.delete(gains, 3, axis=1))
    np.testing.assert_allclose(found.ndcg, without.ndcg)
    np.testing.assert_allclose(found.precision, without.precision)


def test_bm25_is_its_formula():
    counts = sp.csr_matrix([[2.0, 0, 1], [0, 3, 1], [1, 1, 0]])
    queries = sp.csr_matrix([[1.0, 0, 2]])
    nothing = np.zeros((1, 3))
    of = Collection(counts, queries, counts, counts, nothing, nothing > 0, np.array(["a", "b", "c"]))
    k1, b = 1.5, 0.6
    length, mean = [3, 4, 2], 3.0
    holding = [2, 2, 2]
    for document in range(3):
        want = 0.0
        for word, times in [(0, 1.0), (2, 2.0)]:
            tf = counts[document, word]
            rarity = np.log(1 + (3 - holding[word] + 0.5) / (holding[word] + 0.5))
            want += times * rarity * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length[document] / mean))
        assert bm25(of, k1, b)[0, document] == pytest.approx(want)


def test_chance_is_what_signs_at_random_give():
    assert by_chance(np.full(12, 0.1)) < 0.002  # 2 of 4096 ways
    assert by_chance(np.array([0.1, -0.1] * 10)) == 1.0


def test_triplets_are_what_was_judged(of):
    rows = ranking.Rows(of)
    queries = np.arange(5)
    mined, weights = ranking.triplets(of, rows, queries, 0.0, 0)
    np.testing.assert_allclose(weights.sum(), 1.0)
    first = rows.starts[1]
    for query, near, far in mined:
        assert query in queries
        assert of.gains[query, near - first] > of.gains[query, far - first]
        assert not of.sources[query, near - first] and not of.sources[query, far - first]
    both, weights = ranking.triplets(of, rows, queries, 1.0, 0)
    own = both[len(mined) :]
    assert np.all(own[:, 1] - rows.starts[3] == own[:, 0] - rows.starts[2]), "a title and its own abstract"
    assert np.all(own[:, 2] != own[:, 1])
    np.testing.assert_allclose([weights[: len(mined)].sum(), weights[len(mined) :].sum()], [1.0, 1.0])


def test_no_test_query_is_learned_from(of, monkeypatch):
    seen: list[int] = []
    mine = ranking.triplets

    def watched(of, rows, queries, titles, seed):
        seen.extend(queries.tolist())
        return mine(of, rows, queries, titles, seed)

    monkeypatch.setattr(ranking, "triplets", watched)
    cell = next(c for c in ranking.cells(SETTINGS["tiny"]) if c.system == "hdsl_titles" and c.seed == 1)
    result = ranking.run(cell, None)
    assert seen and not set(seen) & set(result["test"])


def test_rows_are_of_unit_length(of):
    rows = tfidf(of.documents, of, True)
    np.testing.assert_allclose(np.asarray(rows.multiply(rows).sum(axis=1)).ravel(), 1.0)


def test_cranfield_is_read_whole():
    if data.DATASETS["cranfield"].missing(data.BESIDE):
        pytest.skip("the collection is not beside the project")
    of = cranfield(data.BESIDE)
    assert of.documents.shape[0] == 1400 and of.queries.shape[0] == 225
    assert (of.gains > 0).sum() == 1612 and np.all((of.gains > 0).sum(axis=1) >= 1)
    assert np.all(of.sources.sum(axis=1) == 1) and not np.any(of.sources & (of.gains > 0))
    # The first query's best answers by its own scale: three of grade 2, counted from 0 here.
    assert set(np.flatnonzero(of.gains[0] == 3)) >= {183, 28, 30}
    # Why grade -1 is the source: by words alone it ranks above the answers of every grade.
    rank = np.argsort(np.argsort(-ranking.cosine(of, True), axis=1), axis=1)
    medians = [np.median(rank[of.sources])] + [np.median(rank[of.gains == gain]) for gain in (4, 3, 2, 1)]
    assert medians == sorted(medians) and medians[0] < 4
