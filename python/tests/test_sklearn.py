"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdsl import OASIS, DiagonalSimilarity, HDSL, HDSLClassifier

# A row of weight 2 has twice the say as an anchor. A row that is there twice is, besides, its own nearest neighbor, and
# mining finds other triplets. The two cannot be the same for any learner that mines triplets among neighbors.
MINED = {
    "check_sample_weight_equivalence_on_dense_data": "a row given twice changes who is whose neighbor",
    "check_sample_weight_equivalence_on_sparse_data": "a row given twice changes who is whose neighbor",
}


@parametrize_with_checks(
    [
        HDSL(),
        HDSLClassifier(),
        HDSLClassifier(triplets="random:5", n_components=2),
        HDSLClassifier(vote="weighted", normalization="cosine"),
        HDSLClassifier(vote="class-mean"),
        DiagonalSimilarity(),
        DiagonalSimilarity(penalty="l2", positive=True),
        OASIS(),
        OASIS(finish="psd"),
    ],
    expected_failed_checks=lambda estimator: MINED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["HDSL", "HDSLClassifier", "TripletHDSL", "DiagonalSimilarity", "OASIS"])
def test_every_parameter_is_documented_and_checked(name):
    import hdsl

    estimator = getattr(hdsl, name)()
    for parameter in estimator.get_params():
        assert parameter in type(estimator).__doc__, parameter
        assert parameter in estimator._parameter_constraints, parameter
