"""Methods beside fit and predict: votes as probabilities, graphs, metrics, components, importances, Euclidean output."""

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectFromModel
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from conftest import planted
from hdsl import OASIS, DiagonalSimilarity, HDSL, HDSLClassifier

FITTED = {
    "paper": lambda: HDSL(scale=20, max_iter=40),
    "base": lambda: HDSL(scale=20, base=0.5, max_iter=40, preprocess="unit"),
    "base alone": lambda: HDSL(base=2.0, max_iter=0, preprocess="max+unit"),
    "cosine": lambda: HDSL(scale=20, max_iter=40, normalization="cosine"),
    "reduced": lambda: HDSL(scale=20, max_iter=40, n_components=5),
    "reduced on a base": lambda: HDSL(scale=20, base=0.5, max_iter=40, n_components=5),
    "term weights": lambda: HDSL(scale=20, max_iter=40, preprocess="bm25"),
    "diagonal": lambda: DiagonalSimilarity(),
    "oasis": lambda: OASIS(),
}


@pytest.mark.parametrize("which", FITTED)
def test_euclidean_neighbors_are_those_of_the_similarity(which):
    X, y = planted(300, 60, seed=3)
    X[:5] = 0  # rows without any feature are neighbors, too
    X.eliminate_zeros()
    fitted, queries = X[:200], X[200:]
    learner = FITTED[which]().fit(fitted, y[:200])
    if which.startswith("reduced"):  # the neighbors of the approximation
        Z, Q = learner.transform(fitted), learner.transform(queries)
        scores = (Q @ Z.T).toarray()
    else:
        scores = learner.similarity(queries, fitted)
    learner.set_params(euclidean=True)
    nearest = NearestNeighbors(n_neighbors=10).fit(learner.transform(fitted, items=True))
    distances, rows = nearest.kneighbors(learner.transform(queries))
    best = -np.sort(-scores, axis=1)[:, :10]
    np.testing.assert_allclose(np.take_along_axis(scores, rows, axis=1), best, atol=1e-9)  # ties in any order
    assert learner.transform(fitted).shape[1] == len(learner.get_feature_names_out())
    assert learner.get_feature_names_out()[-1] == "euclidean"
    # The distances are those that the documentation gives.
    if which == "paper":
        own = np.diag(learner.similarity(queries))[:, None]
        largest = np.diag(learner.similarity(fitted)).max()
        np.testing.assert_allclose(distances**2, own + largest - 2 * best, atol=1e-6)


def test_without_it_euclidean_neighbors_are_others():
    X, y = planted(300, 60, seed=3)
    learner = HDSL(scale=20, max_iter=40).fit(X[:200], y[:200])
    true = learner.kneighbors(X[200:], 10, return_similarity=False)
    near = NearestNeighbors(n_neighbors=10).fit(learner.transform(X[:200])).kneighbors(learner.transform(X[200:]))[1]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(true, near)])
    assert recall < 0.9


def test_a_pipeline_maps_rows_to_search_and_queries():
    X, y = planted(300, 60, seed=3)
    pipeline = make_pipeline(HDSL(scale=20, max_iter=40, euclidean=True), KNeighborsClassifier(n_neighbors=1))
    pipeline.fit(X[:200], y[:200])
    direct = HDSLClassifier(scale=20, max_iter=40, n_neighbors=1).fit(X[:200], y[:200])
    scores = np.sort(direct.similarity(X[200:], X[:200]), axis=1)
    unique = scores[:, -1] - scores[:, -2] > 1e-9
    assert unique.sum() > 20
    np.testing.assert_array_equal(pipeline.predict(X[200:])[unique], direct.predict(X[200:])[unique])
    frame = pd.DataFrame(X[:200].toarray(), columns=[f"w{n}" for n in range(60)])
    items = HDSL(scale=20, max_iter=40, euclidean=True).set_output(transform="pandas").fit_transform(frame, y[:200])
    assert items.columns[-1] == "euclidean" and (items["euclidean"] > 0).any()


def test_items_of_several_calls_share_a_radius():
    X, y = planted(200, 60)
    learner = HDSL(scale=20, max_iter=40, euclidean=True).fit(X, y)
    norms = np.sqrt(np.diag(learner.similarity(X)))
    whole = learner.transform(X, items=True, radius=9.0)
    parts = [learner.transform(X[:50], items=True, radius=9.0), learner.transform(X[50:], items=True, radius=9.0)]
    np.testing.assert_array_equal(sp.vstack(parts).toarray(), whole.toarray())
    np.testing.assert_allclose(np.sqrt(whole.multiply(whole).sum(axis=1)), 9)
    with pytest.raises(ValueError, match=rf"row {norms.argmax()} of X has the norm"):
        learner.transform(X, items=True, radius=norms.max() * 0.99)
    with pytest.raises(ValueError, match="only with euclidean=True"):
        learner.set_params(euclidean=False).transform(X, radius=9.0)
    with pytest.raises(ValueError, match="always 1"):
        learner.set_params(euclidean=True, normalization="cosine").transform(X, radius=9.0)


@pytest.mark.parametrize("which", FITTED)
def test_components_are_the_map(which):
    X, y = planted(200, 60)
    learner = FITTED[which]().fit(X, y)
    L = learner.components_
    assert sp.issparse(L) and L.shape == (len(learner.get_feature_names_out()), 60)
    mapped = learner.preprocess_rows(X) @ L.T
    expected = learner.transform(X)
    np.testing.assert_allclose(mapped.toarray(), expected.toarray() if sp.issparse(expected) else expected, atol=1e-9)
    if hasattr(learner, "get_mahalanobis_matrix") and not which.startswith("reduced"):
        np.testing.assert_allclose(learner.get_mahalanobis_matrix().toarray(), (L.T @ L).toarray(), atol=1e-9)


@pytest.mark.parametrize("which", ["paper", "base", "cosine", "reduced", "oasis", "diagonal"])
def test_distances(which):
    X, y = planted(200, 60)
    learner = FITTED[which]().fit(X, y)
    rows = X[:20].toarray()
    i, j = np.arange(10), np.arange(10, 20)
    learner.set_params(**({"n_components": None} if which == "reduced" else {}))
    Z = learner.transform(rows)
    if which == "cosine":
        Z = normalize(Z)
    expected = np.linalg.norm(Z[i] - Z[j], axis=1)
    np.testing.assert_allclose(learner.pair_distance(np.stack([rows[i], rows[j]], axis=1)), expected, atol=1e-9)
    np.testing.assert_allclose(learner.pair_distance(np.stack([i, j], axis=1)), expected, atol=1e-9)
    metric = learner.get_metric()
    np.testing.assert_allclose([metric(rows[a], rows[b]) for a, b in zip(i, j)], expected, atol=1e-9)
    np.testing.assert_allclose(metric(rows[0], rows[10], squared=True), expected[0] ** 2, atol=1e-9)
    if which in ("paper", "base"):
        S = learner.similarity(rows)
        squares = S[i, i] + S[j, j] - 2 * S[i, j]
        np.testing.assert_allclose(expected**2, squares, atol=1e-9)
    with pytest.raises(ValueError, match="u and v have the shape"):
        metric(rows[0][:5], rows[1][:5])
    with pytest.raises(ValueError, match="pairs names row 200"):
        learner.pair_distance([[0, 200]])


def test_a_metric_for_scikit_learn():
    X, y = planted(60, 30)
    learner = HDSL(scale=20, max_iter=20).fit(X, y)
    rows = X.toarray()
    slow = NearestNeighbors(n_neighbors=3, metric=learner.get_metric(), algorithm="brute").fit(rows)
    fast = NearestNeighbors(n_neighbors=3).fit(learner.transform(rows))
    np.testing.assert_allclose(slow.kneighbors(rows)[0], fast.kneighbors(learner.transform(rows))[0], atol=1e-6)


def test_importances_select_features():
    X, y = planted()
    learner = HDSL(scale=20, max_iter=20).fit(X, y)
    p = learner.feature_importances_
    assert p.shape == (400,) and p.sum() == pytest.approx(1)
    M = learner.get_bilinear_matrix().toarray()
    np.testing.assert_allclose(p, np.abs(M).sum(axis=1) / np.abs(M).sum())
    assert set(np.argsort(-p)[:8]) <= set(range(12))  # the planted markers
    chosen = SelectFromModel(HDSL(scale=20, max_iter=20), max_features=12, threshold=-np.inf).fit(X, y)
    assert set(chosen.get_support(indices=True)) == set(np.argsort(-p, kind="stable")[:12])
    assert chosen.transform(X).shape == (200, 12)
    only = SelectFromModel(learner, prefit=True, threshold=1e-12).transform(X)
    assert only.shape[1] == learner.n_active_features_
    on_base = HDSL(scale=20, base=1.0, max_iter=10).fit(X, y)
    full = on_base.get_mahalanobis_matrix().toarray()
    np.testing.assert_allclose(on_base.feature_importances_, np.abs(full).sum(axis=1) / np.abs(full).sum())
    oasis = OASIS().fit(X[:, :20], y)
    np.testing.assert_allclose(
        oasis.feature_importances_ * np.abs(oasis.matrix_).sum(),
        (np.abs(oasis.matrix_).sum(axis=0) + np.abs(oasis.matrix_).sum(axis=1)) / 2,
    )


def test_graphs_of_neighbors():
    X, y = planted()
    learner = HDSL(scale=20, max_iter=40).fit(X, y)
    for queries in [None, X[:7]]:
        scores, near = learner.kneighbors(queries, 4)
        graph = learner.kneighbors_graph(queries, 4)
        weighted = learner.kneighbors_graph(queries, 4, mode="similarity")
        assert graph.shape == weighted.shape == (len(near), 200) and graph.nnz == 4 * len(near)
        at = np.arange(len(near))[:, None]
        np.testing.assert_array_equal(graph.toarray()[at, near], 1)
        np.testing.assert_array_equal(weighted.toarray()[at, near], scores)
        assert graph.has_sorted_indices
    with pytest.raises(ValueError, match="'connectivity' or 'similarity'"):
        learner.kneighbors_graph(mode="distance")


@pytest.mark.parametrize("vote", ["majority", "weighted", "squared", "class-mean"])
def test_decisions_agree_with_predictions(vote):
    X, y = planted()
    several = HDSLClassifier(scale=20, max_iter=20, vote=vote).fit(X, y)
    scores = several.decision_function(X)
    assert scores.shape == (200, 4)
    np.testing.assert_array_equal(several.classes_[scores.argmax(axis=1)], several.predict(X))
    two = HDSLClassifier(scale=20, max_iter=20, vote=vote).fit(X, y > 1)
    scores = two.decision_function(X)
    assert scores.shape == (200,)
    np.testing.assert_array_equal(scores > 0, two.predict(X))


def test_class_weights_are_those_of_anchors():
    X, y = planted()
    given = {0: 3.0, 1: 0.5, 2: 0.0}  # and 1 for class 3
    weights = np.array([3.0, 0.5, 0.0, 1.0])
    from hdsl import mine_triplets

    triplets = mine_triplets(X, y)
    by_hand = HDSL(scale=20, max_iter=30).fit_triplets(X, triplets, sample_weight=weights[y[triplets[:, 0]]])
    weighted = HDSL(scale=20, max_iter=30, class_weight=given).fit(X, y)
    np.testing.assert_array_equal(weighted.similarity(X), by_hand.similarity(X))
    assert weighted.n_triplets_ == by_hand.n_triplets_ < len(triplets)
    for baseline in [DiagonalSimilarity(), OASIS()]:
        given_triplets = type(baseline)().fit_triplets(X, triplets, sample_weight=weights[y[triplets[:, 0]]])
        mined = baseline.set_params(class_weight=given).fit(X, y)
        np.testing.assert_allclose(mined.similarity(X), given_triplets.similarity(X), atol=1e-9)
    # Names that a file would order otherwise, mining rounds, and everything chosen from the data.
    names = np.array(["10", "9", "b", "a"])
    renamed = HDSL(scale=20, max_iter=30, class_weight={names[c]: w for c, w in given.items()}).fit(X, names[y])
    np.testing.assert_allclose(renamed.similarity(X), weighted.similarity(X), atol=1e-9)
    rounds = HDSL(scale=20, max_iter=10, mining_rounds=1)
    plain = rounds.fit(X, y).similarity(X)
    assert not np.allclose(rounds.set_params(class_weight=given).fit(X, y).similarity(X), plain)
    assert np.array_equal(rounds.set_params(class_weight={0: 1.0}).fit(X, y).similarity(X), plain)
    chosen = HDSLClassifier(class_weight="balanced").fit(X, y)
    assert chosen.choice_ is not None
    with pytest.raises(ValueError, match="class_weight .* scale='auto'"):
        HDSL(scale="auto", class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="expected finite numbers from 0"):
        HDSL(class_weight={0: -1.0}).fit(X, y)
    with pytest.raises(ValueError, match="contains 7, which is not among the classes"):
        HDSL(class_weight={7: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="'class_weight' parameter of HDSL"):
        HDSL(class_weight="heavy").fit(X, y)


def test_class_weights_in_votes():
    """By hand: the most similar rows are taken until their weights sum to n_neighbors."""
    X, y = planted(120, 60)
    weights = np.array([2.5, 0.3, 1.0, 0.7])
    classifier = HDSLClassifier(scale=20, max_iter=20, class_weight=dict(enumerate(weights))).fit(X, y)
    queries = planted(40, 60, seed=5)[0]
    scores = classifier.similarity(queries, X)
    for q, p in enumerate(classifier.predict_proba(queries)):
        left, votes = 3.0, np.zeros(4)
        for row in np.argsort(-scores[q], kind="stable"):
            counted = min(left, weights[y[row]])
            votes[y[row]] += counted
            left -= counted
        np.testing.assert_allclose(p, votes / votes.sum(), atol=1e-6)
    np.testing.assert_array_equal(
        classifier.predict(queries), classifier.predict_proba(queries).argmax(axis=1)
    )
    one = HDSLClassifier(scale=20, max_iter=20).fit(X, y)
    same = HDSLClassifier(scale=20, max_iter=20, class_weight=dict.fromkeys(range(4), 1.0)).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(queries), same.predict_proba(queries))


def test_balanced_weights_find_a_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.08).astype(int)
    X = rng.normal(size=(400, 5)) + 1.2 * y[:, None]
    recall = []
    for class_weight in [None, "balanced"]:
        classifier = HDSLClassifier(scale=10, preprocess="unit", n_neighbors=15, class_weight=class_weight)
        predicted = classifier.fit(X[:300], y[:300]).predict(X[300:])
        recall.append(predicted[y[300:] == 1].mean())
    assert recall[1] > recall[0]


def test_rows_have_no_weights():
    X, y = planted()
    for learner in [HDSL(), HDSLClassifier(), DiagonalSimilarity(), OASIS()]:
        with pytest.raises(TypeError, match="sample_weight"):
            learner.fit(X, y, sample_weight=np.ones(200))


def test_results_without_pandas_and_polars():
    """In a process that cannot import them."""
    code = """
    import sys

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("pandas", "polars"):
                raise ImportError(name)

    sys.meta_path.insert(0, Missing())
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from hdsl import HDSL, HDSLClassifier
    texts = ["tasty soup", "tasty rice", "delicious soup", "delicious rice",
             "stale soup", "stale rice", "soggy soup", "soggy rice"] * 2
    model = make_pipeline(TfidfVectorizer(), HDSLClassifier(scale=2)).fit(texts, (["good"] * 4 + ["bad"] * 4) * 2)
    pairs = model[-1].explain().pairs
    print(pairs)
    assert {"tasty", "delicious"} <= {*pairs["feature_i"], *pairs["feature_j"]}
    assert pairs.rows()[0]["weight"] == pairs["weight"][0]
    print(model[-1].explain_pair(*model[:-1].transform(["tasty soup", "delicious rice"])))
    try:
        model[-1].set_output(transform="polars").explain()
    except ImportError as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["i", "j", "feature_i", "feature_j", "weight"]
    assert "contribution" in done.stdout and "set_output asks for polars, which is not installed" in done.stdout


def test_long_tables_are_shown_in_part():
    from hdsl._frames import Table

    table = Table({"n": np.arange(100), "half": np.arange(100) / 2})
    lines = repr(table).splitlines()
    assert len(lines) == 1 + 20 + 1 + 20 and lines[21] == "... 60 more rows"
    assert lines[-1].split() == ["99", "99", "49.5"]
    assert type(table["n"][0]) is int and len(table.rows()) == 100
    assert "Empty table" in repr(Table({"n": []}))
