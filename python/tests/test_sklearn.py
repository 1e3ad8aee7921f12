"""scikit-learn's own checks."""

import inspect
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import hdsl
from hdsl import OASIS, DiagonalSimilarity, HDSL, HDSLClassifier

EVERY = ["HDSL", "HDSLClassifier", "TripletHDSL", "PairHDSL", "DiagonalSimilarity", "OASIS"]


@parametrize_with_checks(
    [
        HDSL(),
        HDSL(normalization="cosine", scale=10),
        HDSLClassifier(),
        HDSLClassifier(triplets="random:5", n_components=2),
        HDSLClassifier(vote="weighted", normalization="cosine"),
        HDSLClassifier(vote="class-mean"),
        HDSLClassifier(scale=10, class_weight="balanced"),
        DiagonalSimilarity(),
        DiagonalSimilarity(penalty="l2", positive=True),
        OASIS(),
        OASIS(finish="psd"),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", EVERY)
def test_every_parameter_is_documented_and_checked(name):
    estimator = getattr(hdsl, name)()
    for parameter in estimator.get_params():
        assert parameter in type(estimator).__doc__, parameter
        assert parameter in estimator._constraints, parameter


@pytest.mark.parametrize("name", EVERY)
def test_a_wrong_argument_is_an_error_of_the_class_that_was_called(name):
    cls = getattr(hdsl, name)
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got an unexpected keyword argument 'colour'"):
        cls(colour=1)

    class Mine(cls):
        pass

    with pytest.raises(TypeError, match=r"Mine\.__init__\(\) got an unexpected keyword argument 'colour'"):
        Mine(colour=1)
    assert inspect.signature(Mine) == inspect.signature(cls)
    assert Mine().get_params().keys() == cls().get_params().keys()


def test_no_attribute_makes_an_estimator_look_like_a_pipeline():
    for name in EVERY:
        assert not hasattr(getattr(hdsl, name)(), "steps")


def test_only_public_parts_of_scikit_learn_are_imported():
    for file in Path(hdsl.__file__).parent.rglob("*.py"):
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:1] == ["from"] and words[1].split(".")[0] == "sklearn":
                names = line.split(" import ")[1].replace("(", "").split(",")
                private = [part for part in [*words[1].split("."), *map(str.strip, names)] if part.startswith("_")]
                assert not private, f"{file.name}: {line}"
