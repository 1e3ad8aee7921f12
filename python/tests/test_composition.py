"""In pipelines, searches and data frames, in files and through pickles."""

import bz2
import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from conftest import planted
from hdsl import HDSL, HDSLClassifier, TripletHDSL, mine_triplets
from hdsl.model_selection import AnchorKFold


def documents():
    """Texts about soup or about trains, whose words of the subject never meet in one text."""
    rng = np.random.default_rng(0)
    subjects = {"food": ["soup", "bread", "salt"], "rail": ["train", "rail", "station"]}
    fill = [f"word{n}" for n in range(200)]
    texts, y = [], []
    for number in range(160):
        subject = ["food", "rail"][number % 2]
        texts.append(" ".join([rng.choice(subjects[subject]), *rng.choice(fill, 8)]))
        y.append(subject)
    return texts, np.array(y)


def test_a_pipeline_in_a_grid_search_explains_itself_in_words():
    texts, y = documents()
    pipeline = Pipeline([("tfidf", TfidfVectorizer()), ("hdsl", HDSLClassifier(max_iter=30))])
    search = GridSearchCV(pipeline, {"hdsl__scale": [1, 100]}, cv=3, n_jobs=2).fit(texts, y)
    assert search.best_score_ > 0.95
    best = search.best_estimator_
    words = best["tfidf"].get_feature_names_out()
    pairs = best["hdsl"].explain(words).pairs
    top = set(pairs["feature_i"][:8]) | set(pairs["feature_j"][:8])
    assert {"soup", "bread", "salt", "train", "rail", "station"} <= top
    food = {"soup", "bread", "salt"}
    for pair in pairs[:4].itertuples():  # words of one subject are alike, of two subjects unlike
        assert ({pair.feature_i, pair.feature_j} <= food) == (pair.weight > 0)


def test_r8(real_data):
    def read(name):
        with bz2.open(real_data / "r8_text" / name, "rt") as file:
            labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file))
        return list(texts), np.array(labels)

    texts, y = read("train.tsv.bz2")
    texts, y = texts[::4], y[::4]
    pipeline = Pipeline([("tfidf", TfidfVectorizer()), ("hdsl", HDSLClassifier(max_iter=150))])
    search = GridSearchCV(pipeline, {"hdsl__scale": [10, 1000]}, cv=2, n_jobs=2).fit(texts, y)
    test_texts, test_y = read("test.tsv.bz2")
    assert search.score(test_texts, test_y) > 0.85
    best = search.best_estimator_
    named = best["hdsl"].set_feature_names(best["tfidf"].get_feature_names_out()).explain()
    assert set(named.features["name"]) & {"earnings", "shr", "cts", "acquire", "oil", "crude", "wheat", "grain"}


def test_cross_validation_and_calibration():
    X, y = planted()
    classifier = HDSLClassifier(scale=20, max_iter=40)
    assert cross_val_score(classifier, X, y, cv=3).mean() > 0.6
    calibrated = CalibratedClassifierCV(classifier, cv=2).fit(X, y)
    p = calibrated.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_the_map_serves_other_learners():
    X, y = planted()
    pipeline = make_pipeline(HDSL(scale=20, max_iter=60), KNeighborsClassifier(metric="cosine"))
    assert pipeline.fit(X, y).score(X, y) > 0.9


def test_data_frames_in_and_out():
    X, y = planted(60, 30)
    names = [f"column {n}" for n in range(30)]
    frame = pd.DataFrame(X.toarray(), columns=names)
    learned = HDSL(scale=20, max_iter=10).set_output(transform="pandas").fit(frame, y)
    out = learned.transform(frame)
    assert isinstance(out, pd.DataFrame) and list(out.columns) == list(learned.get_feature_names_out())
    assert out.columns[0].startswith("column ")
    np.testing.assert_allclose(out @ out.T, learned.similarity(frame), atol=1e-9)
    polars = learned.set_output(transform="polars").transform(frame)
    assert isinstance(polars, pl.DataFrame) and polars.columns == list(out.columns)
    assert isinstance(learned.explain().pairs, pl.DataFrame)
    assert isinstance(learned.explain_pair(frame.iloc[[0]], frame.iloc[[1]]), pl.DataFrame)
    # A sparse matrix becomes a frame as well, if a frame is what was asked for.
    bare = HDSL(scale=20, max_iter=10).set_output(transform="pandas").fit(X, y)
    assert isinstance(bare.transform(X), pd.DataFrame)
    assert set(learned.explain().features["name"]) <= set(names)


@pytest.mark.parametrize("duplicate", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy, copy.copy])
def test_copies_are_the_same(duplicate):
    X, y = planted()
    original = HDSLClassifier(scale=20, max_iter=20).fit(X, y)
    original.predict(X)  # builds what pickling leaves out
    other = duplicate(original)
    np.testing.assert_array_equal(other.predict_proba(X), original.predict_proba(X))
    assert other.path_.tobytes() == original.path_.tobytes()
    assert other._model == original._model
    fresh = clone(original)
    assert fresh.get_params() == original.get_params() and not hasattr(fresh, "_model")


def test_files_keep_everything_that_is_needed(tmp_path):
    X, y = planted()
    names = [f"w{n}" for n in range(X.shape[1])]
    original = HDSLClassifier(scale=20, max_iter=20, loss="squared-hinge").fit(X, y).set_feature_names(names)
    original.save(tmp_path / "m.hdsl")
    loaded = HDSLClassifier.load(tmp_path / "m.hdsl", X, y)
    np.testing.assert_array_equal(loaded.predict(X), original.predict(X))
    assert loaded.path_.tobytes() == original.path_.tobytes()
    assert (loaded.scale, loaded.loss, loaded.n_neighbors) == (20, "squared-hinge", 3)
    assert (loaded.vote, loaded.normalization) == ("majority", "dot")
    triplets = TripletHDSL.load(tmp_path / "m.hdsl", X)  # which has no votes and no labels
    np.testing.assert_array_equal(triplets.kneighbors(X)[1], original.kneighbors(X)[1])
    assert list(loaded.get_feature_names_out()) == list(original.get_feature_names_out())
    bare = HDSL.load(tmp_path / "m.hdsl")
    np.testing.assert_array_equal(bare.similarity(X), original.similarity(X))
    with pytest.raises(ValueError, match="rows it was fitted on"):
        bare.kneighbors(X)
    with pytest.raises(FileNotFoundError):
        HDSL.load(tmp_path / "none.hdsl")
    (tmp_path / "bad.hdsl").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="bad.hdsl"):
        HDSL.load(tmp_path / "bad.hdsl")
    with pytest.raises(OSError):
        original.save(tmp_path / "no" / "such" / "folder")


def test_a_triplet_estimator_in_cross_validation():
    X, y = planted()
    triplets = mine_triplets(X, y, triplets="random:5")
    learner = TripletHDSL(preprocessor=X, scale=20, max_iter=60)
    scores = cross_val_score(learner, triplets, cv=AnchorKFold(4))
    assert scores.shape == (4,) and scores.min() > 0.7
    search = GridSearchCV(learner, {"scale": [1, 20]}, cv=AnchorKFold(2)).fit(triplets)
    assert search.best_score_ > 0.7
    learner.fit(triplets)
    margins = learner.decision_function(triplets)
    S = learner.similarity(X)
    a, n, f = triplets.T
    np.testing.assert_allclose(margins, S[a, n] - S[a, f], atol=1e-9)
    np.testing.assert_array_equal(learner.predict(triplets), np.where(margins > 0, 1, -1))
    right = np.where(margins == 0, 0.5, margins > 0)  # a tie counts one half
    assert learner.score(triplets) == right.mean()
    weights = np.arange(len(triplets)) % 3
    expected = np.average(right, weights=weights)
    assert learner.score(triplets, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match="preprocessor"):
        TripletHDSL().fit(triplets)


def test_metadata_is_routed():
    import sklearn

    X, y = planted()
    with sklearn.config_context(enable_metadata_routing=True):
        valid = dict(X_val=X[:50], y_val=y[:50])
        classifier = HDSLClassifier(scale=[1, 20], max_iter=10)
        pipeline = make_pipeline(classifier.set_fit_request(X_val=True, y_val=True))
        pipeline.fit(X, y, **valid)
        direct = HDSLClassifier(scale=[1, 20], max_iter=10).fit(X, y, **valid)
        np.testing.assert_array_equal(pipeline[-1].similarity(X), direct.similarity(X))


def test_classifiers_from_triplets():
    X, y = planted()
    triplets = mine_triplets(X, y)
    given = HDSLClassifier(scale=20, max_iter=20).fit_triplets(X, triplets, y=y)
    mined = HDSLClassifier(scale=20, max_iter=20).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), mined.predict(X))
    with pytest.raises(ValueError, match="classes for"):
        HDSLClassifier().fit_triplets(X, triplets, y=y[:-1])


def test_folds_of_triplets_share_no_anchor():
    rng = np.random.default_rng(0)
    triplets = rng.integers(0, 40, (500, 3))
    for splitter in [AnchorKFold(4), AnchorKFold(4, shuffle=True, random_state=1)]:
        seen = []
        for train, test in splitter.split(triplets):
            assert not set(triplets[train, 0]) & set(triplets[test, 0])
            assert len(train) + len(test) == 500 and len(test) > 60
            seen.extend(test)
        assert sorted(seen) == list(range(500))
        assert splitter.get_n_splits() == 4
    with pytest.raises(ValueError, match="anchors"):
        list(AnchorKFold(41).split(triplets))
    with pytest.raises(ValueError, match="n_splits"):
        AnchorKFold(1)


def test_the_same_rows_under_sparse_blocks():
    X, y = planted()
    learned = HDSL(scale=20, max_iter=20).fit(sp.csr_array(X), y)
    block = learned.similarity(X[:5], X[5:9], dense_output=False)
    assert sp.issparse(block) and block.shape == (5, 4)
