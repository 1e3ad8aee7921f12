"""Triplets, clicks and judgments instead of labels: early stopping and files."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import planted
from hdsl import HDSL, TripletHDSL, datasets, metrics, mine_triplets
from test_command_line import run


def noisy_triplets(n=6):
    """Rows and triplets of them, one in ten of which is the wrong way round."""
    X, y = planted()
    triplets = mine_triplets(X, y, triplets=f"random:{n}")
    wrong = np.random.default_rng(0).random(len(triplets)) < 0.1
    triplets[wrong] = triplets[wrong][:, [0, 2, 1]]
    return X, triplets


def test_early_stopping_on_held_out_triplets():
    X, triplets = noisy_triplets()
    parameters = dict(max_iter=400, early_stopping=True, validation_fraction=0.25, n_iter_no_change=20, eval_every=5)
    learner = HDSL(scale=100, **parameters).fit_triplets(X, triplets)
    assert learner.stop_ == "patience" and learner.n_iter_ == learner.chosen_iter_ + 20
    assert learner.valid_measure_ == "triplet-error"
    assert learner.n_triplets_ == 150 * 6  # all triplets of three quarters of the anchors
    errors = learner.path_["valid_error"]
    assert learner.valid_error_ == np.nanmin(errors) < 0.4
    assert learner.chosen_iter_ == np.nanargmin(errors)
    samples = TripletHDSL(X, scale=100, **parameters).fit(triplets)
    assert samples.valid_error_ == learner.valid_error_
    np.testing.assert_array_equal(samples.similarity(X), learner.similarity(X))
    several = TripletHDSL(X, scale=[0.1, 100], **parameters).fit(triplets)
    assert several.valid_error_ == min(result["valid_error"] for result in several.scale_results_)


def test_the_validation_error_is_that_of_anchors_that_were_not_learned_from():
    # Anchors 0 and 1 disagree about everything: whichever is learned from, the other is all wrong.
    X = sp.csr_matrix(np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]))
    triplets = [[0, 2, 3], [1, 3, 2]]
    learner = HDSL(scale=2, max_iter=20, early_stopping=True, validation_fraction=0.5).fit_triplets(X, triplets)
    assert learner.n_triplets_ == 1 and learner.valid_error_ == 1
    # Without the held-out triplet, learning is the same.
    learned = [HDSL(scale=2, max_iter=20).fit_triplets(X, [triplet]) for triplet in triplets]
    at = [one.at(iteration=learner.chosen_iter_).similarity(X) for one in learned]
    assert any(np.array_equal(learner.similarity(X), similarity) for similarity in at)


def test_the_program_holds_out_the_same_anchors(program, tmp_path):
    X, triplets = noisy_triplets(3)
    sp.save_npz(tmp_path / "rows.npz", X)
    np.savetxt(tmp_path / "t.txt", triplets, fmt="%d")
    learner = HDSL(
        scale=100, max_iter=60, early_stopping=True, validation_fraction=0.2, n_iter_no_change=None, random_state=7
    ).fit_triplets(X, triplets)
    options = ["--lambda", 100, "--max-iter", 60, "--holdout", 0.2, "--seed", 7, "--json"]
    model = tmp_path / "m.hdsl"
    told = json.loads(
        run(program, "train", tmp_path / "rows.npz", "--triplets", tmp_path / "t.txt", *options, "-o", model)
    )
    assert told["valid_error"] == learner.valid_error_ and told["valid_measure"] == "triplet-error"
    np.testing.assert_array_equal(HDSL.load(model).similarity(X), learner.similarity(X))
    told = json.loads(
        run(program, "evaluate", model, tmp_path / "rows.npz", "--triplets", tmp_path / "t.txt", "--json")
    )
    score = TripletHDSL.load(model, X).score(triplets)
    np.testing.assert_allclose(told["triplet_accuracy"], score)


def test_the_program_computes_the_same_measures(program, tmp_path):
    X, y = planted()
    sp.save_npz(tmp_path / "rows.npz", X)
    rng = np.random.default_rng(1)
    lines = [(q, d, int(2 * (y[q] == y[d]) + (d % 7 == 0))) for q in range(30) for d in rng.choice(170, 15, False) + 30]
    file = tmp_path / "qrels.txt"
    np.savetxt(file, lines, fmt="%d")
    judgments = datasets.read_judgments(file)
    learner = HDSL(scale=100, max_iter=20).fit_triplets(X, judgments.triplets)
    learner.save(tmp_path / "m.hdsl")
    told = json.loads(
        run(program, "evaluate", tmp_path / "m.hdsl", tmp_path / "rows.npz", "--triplets", f"judgments:{file}", "--json")
    )
    scores = learner.score_pairs(X, judgments.query, judgments.document)
    every = np.unique(judgments.document)
    gains = np.zeros((30, len(every)))
    gains[judgments.query, np.searchsorted(every, judgments.document)] = judgments.gain
    both = {
        "judged": (judgments.gain, scores, dict(qid=judgments.query)),
        "all": (gains, learner.similarity(X[:30], X[every]), {}),
    }
    for which, (gain, score, qid) in both.items():
        expected = {
            "ndcg_at_10": metrics.ndcg_score(gain, score, **qid),
            "map": metrics.average_precision(gain, score, **qid),
            "recall_at_10": metrics.recall_at_k(gain, score, **qid),
            "recall_at_100": metrics.recall_at_k(gain, score, k=100, **qid),
            "mrr": metrics.reciprocal_rank(gain, score, **qid),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(told["rankings"][which][name], value, err_msg=f"{which} {name}", rtol=1e-6)


def test_files_are_read_as_the_program_reads_them(tmp_path):
    file = tmp_path / "f.txt"
    file.write_text("0 1 2\n# none\n3,4,5\n")
    triplets, weight = datasets.read_triplets(file, n_rows=6)
    np.testing.assert_array_equal(triplets, [[0, 1, 2], [3, 4, 5]])
    assert weight is None and triplets.dtype == np.int64
    file.write_text("0 1 2\n3 4 5 2\n0 1 2 4\n")
    triplets, weight = datasets.read_clicks(str(file))
    np.testing.assert_array_equal(triplets, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(weight, [5, 2])
    file.write_text("7 1 -1\n2 0 3\n7 4 2\n7 5 2\n")
    judgments = datasets.read_judgments(file)
    np.testing.assert_array_equal(judgments.query, [7, 7, 7, 2])
    np.testing.assert_array_equal(judgments.document, [1, 4, 5, 0])
    np.testing.assert_array_equal(judgments.grade, [-1, 2, 2, 3])
    np.testing.assert_array_equal(judgments.gain, [0, 2, 2, 3])
    np.testing.assert_array_equal(judgments.triplets, [[7, 4, 1], [7, 5, 1]])
    low = datasets.read_judgments(file, lower_is_better=True)
    np.testing.assert_array_equal(low.gain, [5, 2, 2, 1])
    np.testing.assert_array_equal(low.triplets, [[7, 1, 4], [7, 1, 5]])


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (datasets.read_triplets, "0 1 2\n0 1 9\n", "f.txt:2: row `9` is missing"),
        (datasets.read_triplets, "0 1\n", "f.txt:1: 2 fields, expected `anchor near far"),
        (datasets.read_clicks, "0 1 2 0.5\n", "f.txt:1: count `0.5`"),
        (datasets.read_judgments, "0 1 2\n0 1 3\n", "f.txt:2: document 1 has grade 3 for query 0, but grade 2 on line 1"),
    ],
)
def test_bad_files_are_named_with_their_line(read, text, message, tmp_path):
    (tmp_path / "f.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "f.txt", n_rows=5)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing.txt")
