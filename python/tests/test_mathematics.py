"""What is learned is what the paper defines, whoever computes it."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import planted
from hdsl import HDSL, HDSLClassifier, mine_triplets


@pytest.fixture(params=["max", "unit", "max+unit", "tfidf", "bm25", "none"])
def learner(request):
    X, y = planted()
    return HDSL(scale=20, preprocess=request.param, max_iter=40).fit(X, y), X, y


def smoothed_hinge(m):
    return np.where(m >= 1, 0, np.where(m <= 0, 0.5 - m, 0.5 * (1 - m) ** 2))


def test_scores_are_bilinear_forms_of_scaled_rows(learner):
    learned, X, _ = learner
    M, Z = learned.get_bilinear_matrix(), learned.preprocess_rows(X)
    expected = (Z @ M @ Z.T).toarray()
    np.testing.assert_allclose(learned.similarity(X), expected, atol=1e-9)
    np.testing.assert_allclose(learned.similarity(X, dense_output=False).toarray(), expected, atol=1e-9)
    i, j = np.arange(50), np.arange(50, 100)
    np.testing.assert_allclose(learned.score_pairs(X, i, j), expected[i, j], atol=1e-9)
    np.testing.assert_allclose(learned.pair_score(np.c_[i, j]), expected[i, j], atol=1e-9)


def test_the_map_makes_scores_dot_products(learner):
    learned, X, _ = learner
    Z = learned.transform(X)
    assert sp.issparse(Z) and Z.shape == (X.shape[0], learned.n_atoms_)
    np.testing.assert_allclose((Z @ Z.T).toarray(), learned.similarity(X), atol=1e-9)


def test_orthogonal_coordinates_keep_the_similarity_if_there_are_enough(learner):
    learned, X, _ = learner
    learned.set_params(n_components=10_000)
    Z = learned.transform(X)
    np.testing.assert_allclose((Z @ Z.T).toarray(), learned.similarity(X), atol=1e-8)
    # The best two are no worse than any two atoms.
    full = learned.similarity(X)
    Z = learned.set_params(n_components=2).transform(X).toarray()
    assert Z.shape[1] == 2 == len(learned.get_feature_names_out())
    atoms = learned.set_params(n_components=None).transform(X).toarray()
    best = min(np.linalg.norm(full - atoms[:, [a]] @ atoms[:, [a]].T) for a in range(atoms.shape[1]))
    assert np.linalg.norm(full - Z @ Z.T) <= best * (1 + 1e-9)


def test_the_matrix_is_in_the_domain(learner):
    learned, _, _ = learner
    M = learned.get_bilinear_matrix()
    used = np.flatnonzero(abs(M).sum(axis=0))
    dense = M[used][:, used].toarray()
    assert len(used) == learned.n_active_features_
    np.testing.assert_allclose(dense, dense.T)
    np.testing.assert_allclose(np.trace(dense), 2 * 20, rtol=1e-9)  # every atom has trace 2 lambda
    assert np.linalg.eigvalsh(dense).min() > -1e-9 * 20


def test_the_objective_is_the_mean_loss_over_the_triplets(learner):
    learned, X, y = learner
    triplets = mine_triplets(X, y, preprocess=learned.preprocess)
    assert len(triplets) == learned.n_triplets_
    S = learned.similarity(X)
    anchor, near, far = triplets.T
    loss = smoothed_hinge(S[anchor, near] - S[anchor, far]).mean()
    np.testing.assert_allclose(learned.objective_, loss, rtol=1e-9)
    np.testing.assert_allclose(learned.path_["objective"][-1], loss, rtol=1e-9)


def test_triplet_weights_count_as_repetitions():
    X, y = planted()
    triplets = mine_triplets(X, y, triplets="random:3")
    weights = np.arange(len(triplets)) % 3
    weighted = HDSL(scale=20, max_iter=30).fit_triplets(X, triplets, sample_weight=weights)
    repeated = HDSL(scale=20, max_iter=30).fit_triplets(X, np.repeat(triplets, weights, axis=0))
    np.testing.assert_allclose(weighted.similarity(X), repeated.similarity(X), atol=1e-6)


def test_contributions_sum_to_the_score_and_name_what_each_row_has(learner):
    learned, X, _ = learner
    for i, j in [(0, 1), (3, 50), (7, 7), (20, 31)]:
        why = learned.explain_pair(X[i], X[j])
        score = learned.score_pairs(X, i, j)[0]
        np.testing.assert_allclose(why["contribution"].sum(), score, atol=1e-12)
        assert (why["contribution"] != 0).all()
        for row, names in [(i, why["feature_x"]), (j, why["feature_z"])]:
            assert {int(name[1:]) for name in names} <= set(X[row].indices)


def test_explanations_are_the_matrix(learner):
    learned, _, _ = learner
    M = learned.get_bilinear_matrix()
    told = learned.explain()
    assert len(told.features) == learned.n_active_features_
    for row in told.features.itertuples():
        np.testing.assert_allclose(M[row.feature, row.feature], row.weight)
    for row in told.pairs.itertuples():
        np.testing.assert_allclose(M[row.i, row.j], row.weight)
    assert M.nnz == len(told.features) + 2 * len(told.pairs)
    assert abs(told.pairs["weight"]).is_monotonic_decreasing


def test_points_of_the_path_are_the_runs_that_would_have_stopped_there():
    X, y = planted()
    learned = HDSL(scale=20, max_iter=40).fit(X, y)
    path = learned.path_
    assert list(path["iteration"]) == list(range(learned.n_iter_ + 1))
    assert (np.diff(path["objective"]) <= 1e-12).all()
    for iteration in [0, 1, 7, 39]:
        earlier = learned.at(iteration=iteration)
        assert earlier.n_atoms_ == path["n_atoms"][iteration]
        assert earlier.n_active_features_ == path["n_features"][iteration]
        if iteration > 0:
            again = HDSL(scale=20, max_iter=iteration).fit(X, y)
            np.testing.assert_array_equal(earlier.similarity(X), again.similarity(X))
    for most in [2, 5, 11]:
        sparse = learned.at(n_features=most)
        assert sparse.n_active_features_ <= most
        later = path["n_features"][sparse.chosen_iter_ + 1 :]
        assert (later > most).all()
        assert learned.at(n_atoms=most).n_atoms_ <= most
    assert learned.chosen_iter_ == learned.n_iter_


def test_neighbors_are_those_of_the_whole_block_of_scores(learner):
    learned, X, _ = learner
    S = learned.similarity(X)
    scores, rows = learned.kneighbors(X, n_neighbors=5)
    order = np.lexsort((np.broadcast_to(np.arange(len(S)), S.shape), -np.round(S, 9)))[:, :5]
    np.testing.assert_allclose(scores, np.take_along_axis(S, order, 1), atol=1e-9)
    np.fill_diagonal(S, -np.inf)
    scores, rows = learned.kneighbors(n_neighbors=3)
    assert (rows != np.arange(len(S))[:, None]).all()
    np.testing.assert_allclose(scores, -np.sort(-S, axis=1)[:, :3], atol=1e-9)


def test_votes_are_counted():
    X, y = planted()
    classifier = HDSLClassifier(scale=20, max_iter=6, n_neighbors=4).fit(X, y)
    near = classifier.kneighbors(X, return_similarity=False)
    votes = np.stack([(y[near] == c).sum(axis=1) for c in classifier.classes_], axis=1)
    np.testing.assert_allclose(classifier.predict_proba(X), votes / 4, atol=1e-8)
    predicted = classifier.predict(X)
    tied = np.sort(votes, axis=1)[:, -1] == np.sort(votes, axis=1)[:, -2]
    assert tied.any()
    for row in range(len(y)):
        best = votes[row] == votes[row].max()
        first = next(c for c in y[near[row]] if best[c])  # the class of the nearest among those that tie
        assert predicted[row] == first


@pytest.fixture(scope="module", params=["dot", "cosine"])
def formed(request):
    """A classifier, new rows, and its similarities to the fitted rows in its form, by numpy."""
    X, y = planted()
    classifier = HDSLClassifier(scale=20, max_iter=30, normalization=request.param, n_neighbors=6).fit(X, y)
    X_new = sp.vstack([planted(60, seed=3)[0], sp.csr_array((1, X.shape[1]))], format="csr")
    S = classifier.similarity(X_new, X)
    if request.param == "cosine":
        own = np.diag(classifier.similarity(X_new)), np.diag(classifier.similarity(X))
        lengths = np.sqrt(np.outer(*own))
        S = np.divide(S, lengths, out=np.zeros_like(S), where=lengths > 0)
    return classifier, X_new, y, S


def test_neighbors_are_ranked_by_the_form(formed):
    classifier, X_new, _, S = formed
    scores, rows = classifier.kneighbors(X_new)
    np.testing.assert_allclose(scores, np.take_along_axis(S, rows, 1), atol=1e-9)
    np.testing.assert_allclose(scores, -np.sort(-S, axis=1)[:, :6], atol=1e-9)


def test_weighted_votes_are_shares_of_similarity(formed):
    classifier, X_new, y, _ = formed
    classifier = clone_with(classifier, vote="weighted")
    scores, rows = classifier.kneighbors(X_new)
    weights = np.where(scores.max(axis=1, keepdims=True) > 0, np.maximum(scores, 0), 1)
    votes = np.stack([(weights * (y[rows] == c)).sum(axis=1) for c in classifier.classes_], axis=1)
    proba = classifier.predict_proba(X_new)
    np.testing.assert_allclose(proba, votes / votes.sum(axis=1, keepdims=True), atol=1e-8)
    np.testing.assert_array_equal(classifier.predict(X_new), classifier.classes_[proba.argmax(axis=1)])


def test_class_means_are_means_of_similarities(formed):
    classifier, X_new, y, S = formed
    classifier = clone_with(classifier, vote="class-mean", n_neighbors=10**6)  # which does not matter
    means = np.stack([S[:, y == c].mean(axis=1) for c in classifier.classes_], axis=1)
    proba, predicted = classifier.predict_proba(X_new), classifier.predict(X_new)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(predicted, classifier.classes_[proba.argmax(axis=1)])
    best = np.take_along_axis(means, np.searchsorted(classifier.classes_, predicted)[:, None], 1)
    np.testing.assert_allclose(best[:, 0], means.max(axis=1), atol=1e-9)
    # The logarithms differ as the means do, in one unit for all rows.
    ratios = np.log(proba) - np.log(proba).mean(axis=1, keepdims=True)
    centerd = means - means.mean(axis=1, keepdims=True)
    unit = (centerd**2).sum() / (ratios * centerd).sum()
    np.testing.assert_allclose(ratios * unit, centerd, atol=1e-6)
    np.testing.assert_allclose(proba[-1], 1 / len(classifier.classes_), atol=1e-8)  # a row of nothing


def clone_with(fitted, **params):
    """The same fitted estimator with other parameters."""
    return copy.copy(fitted).set_params(**params)


def test_the_noise_is_left_out():
    X, y = planted(400, 3000)
    X_test, y_test = planted(400, 3000, seed=1)
    classifier = HDSLClassifier(scale=100, max_iter=300, max_features=12).fit(X, y)
    used = set(classifier.explain().features["feature"])
    assert used == set(range(12))
    plain = HDSLClassifier(scale=100, max_iter=1).fit(X, y)
    assert classifier.score(X_test, y_test) > 0.95 > plain.score(X_test, y_test)


def test_warm_start_goes_on_where_it_was():
    X, y = planted()
    warm = HDSL(scale=20, max_iter=10, warm_start=True).fit(X, y)
    before = warm.objective_
    warm.fit(X, y)
    np.testing.assert_allclose(warm.path_["objective"][0], before, rtol=1e-9)
    assert warm.objective_ < before
    cold = HDSL(scale=20, max_iter=10).fit(X, y).fit(X, y)
    assert cold.objective_ == before


def test_new_feedback_is_learned_from_without_a_new_start():
    X, y = planted()
    learned = HDSL(scale=20, max_iter=20).fit(X, y)
    before = learned.similarity(X)
    # Somebody finds that rows with feature 200 belong together, whatever their class.
    holders = np.flatnonzero(X[:, [200]].toarray())
    others = np.setdiff1d(np.arange(X.shape[0]), holders)[: len(holders)]
    feedback = np.array([[a, b, c] for a in holders for b in holders if a != b for c in others])
    learned.partial_fit_triplets(X, feedback, max_iter=3)
    after = learned.similarity(X)
    a, b, c = feedback.T

    def agreeing(S):
        return (S[a, b] > S[a, c]).mean()

    assert agreeing(after) > agreeing(before)
    assert 1 < len(learned.path_) <= 4
    np.testing.assert_allclose(learned.at(iteration=0).similarity(X), before, atol=1e-9)


def test_validation_rows_choose_iterate_and_scale():
    X, y = planted(300, 2000)
    X_val, y_val = planted(200, 2000, seed=1)
    several = HDSLClassifier(scale=[1, 10, 100], max_iter=60).fit(X, y, X_val=X_val, y_val=y_val)
    errors = [point["valid_error"] for point in several.scale_results_]
    assert several.valid_error_ == min(errors)
    assert several.scale_ == [1, 10, 100][int(np.argmin(errors))]
    np.testing.assert_allclose(1 - several.score(X_val, y_val), several.valid_error_, atol=1e-12)
    path = several.path_
    assert np.nanmin(path["valid_error"]) == path["valid_error"][several.chosen_iter_]


def test_early_stopping_stops_early():
    X, y = planted(300, 2000)
    patient = HDSL(scale=10, max_iter=500).fit(X, y)
    hasty = HDSL(
        scale=10, max_iter=500, early_stopping=True, validation_fraction=0.3, n_iter_no_change=20
    ).fit(X, y)
    assert hasty.stop_ == "patience"
    assert hasty.n_iter_ < patient.n_iter_
    assert hasty.n_iter_ - hasty.chosen_iter_ >= 20


@pytest.mark.parametrize("loss", ["smoothed-hinge", "squared-hinge", "logistic", "exponential"])
@pytest.mark.parametrize("batch", [None, 100])
def test_threads_do_not_change_a_bit(loss, batch):
    X, y = planted()
    make = dict(scale=10, max_iter=15, loss=loss, batch=batch, triplets="random:4")
    one = HDSL(n_jobs=1, **make).fit(X, y)
    two = HDSL(n_jobs=2, **make).fit(X, y)
    assert one._model.to_bytes() == two._model.to_bytes()


def test_certificates_bound_the_distance_to_the_best():
    X, y = planted(100, 100)
    make = dict(scale=5, triplets="random:3")
    best = HDSL(max_iter=5000, tol=1e-4, **make).fit(X, y)
    assert best.stop_ == "tolerance" and best.gap_certified_
    early = HDSL(max_iter=20, certify=True, **make).fit(X, y)
    assert early.gap_certified_
    assert best.objective_ - 1e-12 <= early.objective_ <= best.objective_ + early.gap_
