"""Pictures show the numbers they are about."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from conftest import planted  # noqa: E402
from hdsl import HDSLClassifier, plot  # noqa: E402


@pytest.fixture(scope="module")
def learned():
    X, y = planted()
    yield HDSLClassifier(scale=20, max_iter=30).fit(X, y), X, y
    plt.close("all")


def test_curves_are_the_path(learned):
    learner, _, _ = learned
    ax = plot.active_features(learner)
    features, atoms = ax.get_lines()
    np.testing.assert_array_equal(features.get_ydata(), learner.path_["n_features"])
    np.testing.assert_array_equal(atoms.get_ydata(), learner.path_["n_atoms"])
    given = plt.subplots()[1]
    ax = plot.objective(learner, ax=given)
    assert ax is given
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), learner.path_["objective"])


@pytest.mark.parametrize("zoom", [True, False])
def test_every_entry_of_the_matrix_is_a_dot_of_its_sign(learned, zoom):
    learner, _, _ = learned
    M = learner.get_bilinear_matrix().toarray()
    used = np.flatnonzero(np.diag(M))
    alike, unlike = plot.matrix(learner, zoom=zoom).collections
    for dots, expected in [(alike, M > 0), (unlike, M < 0)]:
        shown = np.zeros_like(expected)
        places = dots.get_offsets().astype(int)
        numbers = used[places] if zoom else places
        shown[numbers[:, 1], numbers[:, 0]] = True
        np.testing.assert_array_equal(shown, expected)


def test_names_stand_beside_the_dots(learned):
    learner, X, _ = learned
    names = [f"w{n}" for n in range(X.shape[1])]
    ax = plot.matrix(learner, names=names)
    used = np.flatnonzero(learner.get_bilinear_matrix().diagonal())
    assert [label.get_text() for label in ax.get_yticklabels()] == [names[f] for f in used]


def test_errors_are_those_of_the_points(learned):
    learner, X, y = learned
    ax = plot.error(learner, X, y, against="iteration", points=4, others={"chance": [(0, 0.75), (30, 0.75)]})
    curve, other = ax.get_lines()
    for iteration, error in zip(*curve.get_data()):
        assert error == 1 - learner.at(iteration=int(iteration)).score(X, y)
    assert other.get_label() == "chance" and curve.get_xdata()[-1] == 30
    with pytest.raises(ValueError, match="against"):
        plot.error(learner, X, y, against="time")
    with pytest.raises(ValueError, match="points"):
        plot.error(learner, X, y, points=0)
