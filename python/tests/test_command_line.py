"""The package and the program `hdsl` make and read the same models."""

import json
import shlex
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import planted
from hdsl import HDSL, HDSLClassifier, TripletHDSL


@pytest.fixture
def files(tmp_path):
    X, y = planted()
    write(tmp_path, "train", X, y)
    return tmp_path, X, y


def write(folder, name, X, y):
    sp.save_npz(folder / f"{name}.npz", X)
    (folder / f"{name}.labels").write_text("\n".join(map(str, y)) + "\n")


def run(program, *args):
    out = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return out.stdout


CASES = {
    "as it comes": ([], {}),
    "random triplets": (["--triplets", "random:7", "--seed", 5], dict(triplets="random:7", random_state=5)),
    "other loss and steps": (
        ["--loss", "squared-hinge", "--steps", "pairwise"],
        dict(loss="squared-hinge", step_rule="pairwise"),
    ),
    "batches": (["--batch", 200, "--preprocess", "unit"], dict(batch=200, preprocess="unit")),
    "exact to a tolerance": (
        ["--search", "exact", "--tol", 0.01, "--certify"],
        dict(search="exact", tol=0.01, certify=True),
    ),
    "another decision": (
        ["-k", 5, "--vote", "weighted", "--normalization", "cosine", "--holdout", 0.2, "--patience", 100],
        dict(n_neighbors=5, vote="weighted", normalization="cosine", early_stopping=True, validation_fraction=0.2),
    ),
    "class means": (
        ["--vote", "class-mean", "--holdout", 0.2, "--patience", 100],
        dict(vote="class-mean", early_stopping=True, validation_fraction=0.2),
    ),
    "few features": (["--max-features", 9], dict(max_features=9)),
    "several scales, rows held out": (
        ["--scale", "1,10,100", "--holdout", 0.3, "--patience", 20, "--seed", 2],
        dict(
            scale=[1, 10, 100],
            early_stopping=True,
            validation_fraction=0.3,
            n_iter_no_change=20,
            random_state=2,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_problem_gives_the_same_bytes(case, files, program):
    folder, X, y = files
    flags, params = CASES[case]
    scale = [] if "--scale" in flags else ["--scale", 20]
    run(program, "train", folder / "train.npz", *scale, "--max-iter", 60, *flags, "-o", folder / "m.hdsl")
    learned = HDSL(**{"scale": 20, "max_iter": 60, **params}).fit(X, y)
    learned.save(folder / "python.hdsl")
    assert (folder / "python.hdsl").read_bytes() == (folder / "m.hdsl").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_the_line_of_a_model_trains_it_again(case, files, program):
    folder, X, y = files
    learned = HDSL(**{"scale": 20, "max_iter": 60, **CASES[case][1]}).fit(X, y)
    names = {"hdsl": program, "TRAIN": folder / "train.npz", "MODEL": folder / "again.hdsl"}
    run(*(names.get(word, word) for word in shlex.split(learned._model.command_line)))
    assert (folder / "again.hdsl").read_bytes() == learned._model.to_bytes()


def test_the_line_of_a_model_of_given_triplets(files, program):
    folder, X, y = files
    triplets = np.array([[0, 4, 1], [4, 0, 2], [1, 5, 3]])
    TripletHDSL(preprocessor=X, scale=20, max_iter=10).fit(triplets).save(folder / "first.hdsl")
    first = HDSL.load(folder / "first.hdsl")
    np.savetxt(folder / "triplets.txt", triplets, fmt="%d")
    sp.save_npz(folder / "rows.npz", X)
    names = {"hdsl": program, "TRAIN": folder / "rows.npz", "MODEL": folder / "again.hdsl"}
    names["TRIPLETS"] = folder / "triplets.txt"
    run(*(names.get(word, word) for word in shlex.split(first._model.command_line)))
    again = HDSL.load(folder / "again.hdsl")
    difference = sp.csr_matrix(again.transform(X)) - sp.csr_matrix(first.transform(X))
    assert abs(difference).max() == 0


def test_a_warm_start_has_no_line(files):
    _, X, y = files
    learned = HDSL(scale=20, max_iter=5, warm_start=True).fit(X, y).fit(X, y)
    assert learned._model.command_line is None


@pytest.mark.parametrize("labels", [["b", "a", "d", "c"], ["10", "9", "-1", "x"], ["1.5", "2", "3", "+4"]])
def test_labels_come_in_the_same_order(labels, files, program):
    folder, X, y = files
    names = np.array(labels)[y]
    write(folder, "named", X, names)
    run(program, "train", folder / "named.npz", "--scale", 20, "--max-iter", 20, "--triplets", "random:5", "-o", folder / "m.hdsl")
    learned = HDSL(scale=20, max_iter=20, triplets="random:5").fit(X, names)
    assert learned._model.to_bytes() == (folder / "m.hdsl").read_bytes()


def test_validation_rows_in_a_file_of_their_own(files, program):
    folder, X, y = files
    X_val, y_val = planted(80, seed=9)
    write(folder, "valid", X_val, y_val)
    run(
        program, "train", folder / "train.npz", "--valid", folder / "valid.npz", "--scale", "5,50", "--max-iter", 40,
        "-k", 1, "--eval-every", 5, "-o", folder / "m.hdsl",
    )  # fmt: skip
    learned = HDSL(scale=[5, 50], max_iter=40, n_neighbors=1, eval_every=5)
    learned.fit(X, y, X_val=X_val, y_val=y_val)
    assert learned._model.to_bytes() == (folder / "m.hdsl").read_bytes()


def test_the_program_uses_a_model_of_the_package(files, program):
    folder, X, y = files
    classifier = HDSLClassifier(scale=20, max_iter=40).fit(X, y)
    classifier.set_feature_names([f"word{n}" for n in range(X.shape[1])])
    classifier.save(folder / "m.hdsl")
    X_test, y_test = planted(100, seed=4)
    write(folder, "test", X_test, y_test)
    told = json.loads(
        run(program, "evaluate", folder / "m.hdsl", "--train", folder / "train.npz", folder / "test.npz", "--json")
    )
    np.testing.assert_allclose(told["error"], 1 - classifier.score(X_test, y_test))
    assert "word" in run(program, "explain", folder / "m.hdsl", "--top", 3)
    run(program, "transform", folder / "m.hdsl", folder / "test.npz", "-o", folder / "z.npz")
    np.testing.assert_array_equal(
        sp.load_npz(folder / "z.npz").toarray(), classifier.transform(X_test).toarray()
    )


@pytest.mark.parametrize("normalization", ["dot", "cosine"])
@pytest.mark.parametrize("vote", ["majority", "weighted", "squared", "class-mean"])
def test_classes_are_decided_alike(vote, normalization, files, program):
    folder, X, y = files
    names = np.array(["10", "9", "b", "a"])[y]  # not the order of letters in a file
    write(folder, "named", X, names)
    X_test = sp.vstack([planted(100, seed=4)[0], sp.csr_array((1, X.shape[1]))], format="csr")  # nothing: all tie
    write(folder, "test", X_test, ["a"] * 101)
    data = ["--train", folder / "named.npz", folder / "test.npz"]
    flags = ["-k", 4, "--vote", vote, "--normalization", normalization]
    run(program, "train", folder / "named.npz", "--scale", 20, "--max-iter", 40, *flags, "-o", folder / "m.hdsl")
    loaded = HDSLClassifier.load(folder / "m.hdsl", X, names)
    assert (loaded.n_neighbors, loaded.vote, loaded.normalization) == (4, vote, normalization)
    predicted = run(program, "predict", folder / "m.hdsl", *data).split()
    assert list(loaded.predict(X_test)) == predicted
    loaded.save(folder / "again.hdsl")
    assert (folder / "again.hdsl").read_bytes() == (folder / "m.hdsl").read_bytes()
    scores, near = loaded.kneighbors(X_test)
    lines = [line.split("\t") for line in run(program, "neighbors", folder / "m.hdsl", *data, "-k", 4).splitlines()]
    assert [int(fields[2]) for fields in lines] == list(near.ravel())
    assert [float(fields[3]) for fields in lines] == list(scores.ravel())
    # A decision that is changed after fitting is saved, too.
    other = loaded.set_params(n_neighbors=2, vote="weighted", normalization="cosine")
    other.save(folder / "other.hdsl")
    assert list(other.predict(X_test)) == run(program, "predict", folder / "other.hdsl", *data).split()


def test_the_package_uses_a_model_of_the_program(files, program):
    folder, X, y = files
    run(program, "train", folder / "train.npz", "--scale", 20, "--max-iter", 40, "-o", folder / "m.hdsl")
    X_test, _ = planted(100, seed=4)
    write(folder, "test", X_test, np.zeros(100, dtype=int))
    predicted = run(program, "predict", folder / "m.hdsl", "--train", folder / "train.npz", folder / "test.npz")
    loaded = HDSLClassifier.load(folder / "m.hdsl", X, y)
    assert [str(c) for c in loaded.predict(X_test)] == predicted.split()
    assert loaded.scale == 20 and loaded.stop_ == "max-iter" and loaded.n_iter_ == 40
