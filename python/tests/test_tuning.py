"""Searching for the best similarity: `hdsl.tune`, and `scale="auto"`."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import hdsl
import hdsl._core
import hdsl._search
from conftest import planted
from hdsl import HDSL, HDSLClassifier, TripletHDSL


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    """A search of seconds, not of minutes."""
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", 12)


@pytest.fixture
def two_folds(monkeypatch):
    """Not fifteen, where a test is about the estimator and not about the search."""
    tune = hdsl._core.tune
    few = lambda settings, *args, **more: tune({**settings, "cv": settings["cv"] or 2}, *args, **more)  # noqa: E731
    monkeypatch.setattr(hdsl._core, "tune", few)


@pytest.fixture(scope="module")
def small():
    return planted(90, 60)


@pytest.fixture(scope="module")
def valid():
    return planted(50, 60, seed=3)


def write(folder, name, X, y):
    sp.save_npz(folder / f"{name}.npz", X)
    (folder / f"{name}.labels").write_text("\n".join(map(str, y)) + "\n")


def run(program, *args, cwd):
    out = subprocess.run([program, *map(str, args)], capture_output=True, text=True, cwd=cwd)
    assert out.returncode == 0, out.stderr
    return out.stdout


def records(board):
    """The lines of a leaderboard as the library gives them: what a reference does not have is None, not NaN."""
    return [{name: None if value != value else value for name, value in line.items()} for line in board.to_dict("records")]


CASES = {
    "folds": (["--cv", 3], dict(cv=3)),
    "the paper's recipe": (["--cv", 2, "--preset", "paper", "--seed", 4], dict(cv=2, preset="paper", random_state=4)),
    "few features": (["--cv", 3, "--max-features", 8], dict(cv=3, max_features=8)),
    "few atoms": (["--cv", 3, "--max-atoms", 5], dict(cv=3, max_atoms=5)),
    "validation rows": (["--valid", "valid.npz"], dict()),
    "validation rows kept apart": (["--valid", "valid.npz", "--no-refit"], dict(refit=False)),
    "nothing to learn": (["--cv", 2], dict(cv=2)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_program_finds_the_same(case, small, valid, tmp_path, program):
    flags, params = CASES[case]
    if case == "nothing to learn":  # the only feature of a row is its class
        small = sp.csr_matrix(np.eye(4)[small[1]]), small[1]
    write(tmp_path, "train", *small)
    write(tmp_path, "valid", *valid)
    if "--valid" in flags:
        params = {**params, "X_val": valid[0], "y_val": valid[1]}
    told = json.loads(
        run(program, "tune", "train.npz", *flags, "--round-iter", 12, "--json", "-o", "m.hdsl", cwd=tmp_path)
    )
    best = hdsl.tune(*small, **params)
    theirs = (tmp_path / "m.hdsl").read_bytes()
    assert best._model.to_bytes() == theirs
    best.save(tmp_path / "python.hdsl")
    assert (tmp_path / "python.hdsl").read_bytes() == theirs
    for name in (
        "expected_error", "expected_error_deviation", "reference_error", "learned", "n_validation", "n_models", "n_rows",
        "finished", "refitted",
    ):  # fmt: skip
        assert getattr(best.tuning_, name) == told[name], name
    board = [{"n_neighbors": line.pop("k"), "scale": line.pop("lambda"), **line} for line in told["leaderboard"]]
    assert board == records(best.leaderboard_)
    assert best.leaderboard_["reference"].notna().any()

    # The line that makes it again says what the parameters say, and does what they do.
    words = told["command"].split()
    assert best.tuning_.learned == ("--base 1 --max-iter 0" not in told["command"])
    assert not (best.tuning_.learned and case == "nothing to learn")
    for flag, name in [
        ("--lambda", "scale"), ("--base", "base"), ("--triplets", "triplets"), ("--preprocess", "preprocess"), ("--max-iter", "max_iter"),
        ("--vote", "vote"), ("--normalization", "normalization"), ("--mining-rounds", "mining_rounds"), ("--last-round-iter", "last_round_iter"), ("--loss", "loss"),
        ("--n-estimators", "n_estimators"),
    ]:  # fmt: skip
        ours = best.get_params()[name]
        if flag in words:
            assert type(ours)(words[words.index(flag) + 1]) == ours, flag
        else:
            # With a scale, the defaults are those of the paper.
            default = {"preprocess": "max", "base": 0}.get(name, HDSL().get_params()[name])
            assert ours == default, flag
    (tmp_path / "m.hdsl").unlink()
    run(program, *words[1:], cwd=tmp_path)
    assert (tmp_path / "m.hdsl").read_bytes() == theirs


@pytest.mark.usefixtures("two_folds")
@pytest.mark.parametrize("refit", [True, False])
def test_a_clone_on_the_same_rows_is_the_same(refit, small, valid):
    best = hdsl.tune(*small, X_val=valid[0], y_val=valid[1], refit=refit, random_state=np.random.RandomState(1))
    X, y = small
    if refit:
        X, y = sp.vstack([X, valid[0]], format="csr"), np.concatenate([y, valid[1]])
    again = clone(best).fit(X, y)
    # The model of the search records that its rows are those of two sets, which a fit to one matrix does not know.
    ours, theirs = (json.loads(model.config) for model in (again._model, best._model))
    assert ours | {"added_rows": refit} == theirs
    for ours, theirs in zip(again._model.matrix(), best._model.matrix(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for name in best.path_.dtype.names:
        np.testing.assert_array_equal(again.path_[name], best.path_[name])
    assert best._fit_X.shape == X.shape and best.tuning_.n_rows == X.shape[0]
    test = planted(40, 60, seed=8)[0]
    np.testing.assert_array_equal(again.predict(test), best.predict(test))
    np.testing.assert_array_equal(again.predict_proba(test), best.predict_proba(test))
    assert not hasattr(again, "tuning_")


def test_threads_change_nothing(small):
    one, two = (hdsl.tune(*small, cv=2, n_jobs=n) for n in (1, 2))
    assert one._model == two._model
    assert one.leaderboard_.equals(two.leaderboard_)


@pytest.mark.usefixtures("two_folds")
def test_auto_is_tune_in_fit(small, valid):
    X, y = small
    best = hdsl.tune(X, y, max_features=40)  # a limit excludes plain similarities
    # Nothing of this is what the search finds.
    auto = HDSLClassifier(scale="auto", n_neighbors=2, vote="majority", normalization="dot", max_iter=3, max_features=40)
    before = auto.get_params()
    assert auto.fit(X, y) is auto and auto.get_params() == before
    assert auto._model == best._model
    assert auto.tuned_params_ == best.tuned_params_ and auto.scale_ == best.scale
    assert HDSLClassifier(**auto.tuned_params_).fit(X, y)._model == best._model
    np.testing.assert_array_equal(auto.predict(valid[0]), best.predict(valid[0]))
    np.testing.assert_array_equal(auto.predict_proba(valid[0]), best.predict_proba(valid[0]))
    for ours, theirs in zip(auto.kneighbors(valid[0]), best.kneighbors(valid[0])):
        np.testing.assert_array_equal(ours, theirs)
    assert HDSL(scale="auto", max_features=40).fit(X, y)._model == best._model
    # Another fit forgets what was found.
    auto.set_params(scale=10).fit(X, y)
    assert not hasattr(auto, "tuned_params_")
    assert auto.kneighbors(valid[0])[1].shape[1] == 2


@pytest.mark.usefixtures("two_folds")
def test_auto_with_validation_rows(small, valid):
    best = hdsl.tune(*small, X_val=valid[0], y_val=valid[1], max_features=10)
    auto = HDSLClassifier(scale="auto", max_features=10).fit(*small, X_val=valid[0], y_val=valid[1])
    assert auto._model == best._model
    assert auto.n_active_features_ <= 10
    np.testing.assert_array_equal(auto.predict(valid[0]), best.predict(valid[0]))


@pytest.mark.usefixtures("two_folds")
def test_the_decision_found_is_saved_and_loaded(small, valid, tmp_path, monkeypatch):
    tune = hdsl._core.tune

    def decided(*args, **kwargs):  # whatever this data would have chosen
        model, facts, found = tune(*args, **kwargs)
        found["params"] |= {"n_neighbors": 5, "vote": "weighted", "normalization": "cosine"}
        return model, facts, found

    monkeypatch.setattr(hdsl._core, "tune", decided)
    auto = HDSLClassifier(scale="auto").fit(*small)
    assert auto.kneighbors(valid[0])[0].shape[1] == 5
    assert abs(auto.kneighbors(valid[0])[0]).max() <= 1 + 1e-12  # cosines
    auto.save(tmp_path / "m.hdsl")
    loaded = HDSLClassifier.load(tmp_path / "m.hdsl", *small)
    assert (loaded.n_neighbors, loaded.vote, loaded.normalization) == (5, "weighted", "cosine")
    np.testing.assert_array_equal(loaded.predict(valid[0]), auto.predict(valid[0]))
    given = HDSLClassifier(n_neighbors=5, vote="weighted", normalization="cosine")
    given.__dict__ |= {k: v for k, v in auto.__dict__.items() if k.startswith("_") or k == "classes_"}
    del given._found_decision
    np.testing.assert_array_equal(given.predict_proba(valid[0]), auto.predict_proba(valid[0]))


@pytest.mark.usefixtures("two_folds")
def test_pickled_and_copied(small, valid):
    limit = {"max_features": 40}  # excludes plain similarities, which have no iterates
    for learner in (hdsl.tune(*small, cv=2, **limit), HDSLClassifier(scale="auto", **limit).fit(*small)):
        again = pickle.loads(pickle.dumps(learner))
        np.testing.assert_array_equal(again.predict(valid[0]), learner.predict(valid[0]))
        assert again.tuned_params_ == learner.tuned_params_
        assert again.tuning_.leaderboard.equals(learner.leaderboard_)
        assert again.tuning_.expected_error == learner.tuning_.expected_error
        early = learner.at(iteration=1)
        assert early.predict(valid[0]).shape == valid[1].shape


@pytest.mark.usefixtures("two_folds")
def test_in_pipelines_and_grids(small):
    X, y = small
    names = np.array(["a", "b", "c", "d"])[y]
    fitted = make_pipeline(MaxAbsScaler(), HDSLClassifier(scale="auto", time=60)).fit(X, names)
    assert fitted.score(X, names) > 0.9
    grid = GridSearchCV(HDSLClassifier(scale="auto", time=60), {"max_features": [4, None]}, cv=2).fit(X, names)
    assert grid.best_estimator_.tuned_params_["max_features"] == grid.best_params_["max_features"]


def test_names_of_a_frame_are_kept(small):
    pandas = pytest.importorskip("pandas")
    X, y = small
    table = pandas.DataFrame(X.toarray(), columns=[f"word{n}" for n in range(X.shape[1])])
    best = hdsl.tune(table, y, cv=2)
    assert all(name.startswith("word") for name in best.explain().features["name"])
    assert clone(best).fit(table, y)._model == best._model


@pytest.mark.usefixtures("two_folds")
def test_classes_that_only_validation_rows_have(small, valid):
    X, y = small
    known = y != 3
    best = hdsl.tune(X[known], y[known], X_val=valid[0], y_val=valid[1])
    assert list(best.classes_) == [0, 1, 2, 3]
    assert best.predict(valid[0]).shape == valid[1].shape


def test_without_pandas_and_polars_the_leaderboard_is_a_table(small, monkeypatch):
    frame = hdsl._search._frame

    def without_pandas(lines):  # scikit-learn itself may want to look for it
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "pandas", None)
            patch.setitem(sys.modules, "polars", None)
            return frame(lines)

    board = hdsl.tune(*small, cv=2).leaderboard_
    monkeypatch.setattr(hdsl._search, "_frame", without_pandas)
    assert hdsl.tune(*small, cv=2).leaderboard_.rows() == records(board)


@pytest.mark.usefixtures("two_folds")
def test_feedback_after_a_search(small):
    X, y = small
    auto = HDSLClassifier(scale="auto", max_features=40).fit(X, y)
    found = auto.tuned_params_
    auto.partial_fit_triplets(X, [[0, 1, 2]], max_iter=2)
    assert auto.scale_ == found["scale"] and auto.tuned_params_ == found
    assert auto.predict(X).shape == y.shape


def test_rounds_mine_again(small):
    X, y = small
    once = HDSL(scale=20, max_iter=10).fit(X, y)
    thrice = HDSL(scale=20, max_iter=10, mining_rounds=2, last_round_iter=4).fit(X, y)
    assert once.n_iter_ == 10 and thrice.n_iter_ == 24
    assert thrice.n_triplets_ >= once.n_triplets_
    np.testing.assert_array_equal(thrice.path_["n_atoms"][:11], once.path_["n_atoms"])  # the first round is the same


def test_rounds_are_those_of_the_program(small, tmp_path, program):
    write(tmp_path, "train", *small)
    flags = ["--scale", 20, "--max-iter", 10, "--mining-rounds", 2, "--last-round-iter", 4]
    run(program, "train", "train.npz", *flags, "-o", "m.hdsl", cwd=tmp_path)
    learned = HDSL(scale=20, max_iter=10, mining_rounds=2, last_round_iter=4).fit(*small)
    assert learned._model.to_bytes() == (tmp_path / "m.hdsl").read_bytes()
    assert HDSL.load(tmp_path / "m.hdsl").mining_rounds == 2


def test_a_mean_is_that_of_its_members_and_the_program_s(small, tmp_path, program):
    write(tmp_path, "train", *small)
    flags = ["--triplets", "random:3", "--scale", 20, "--max-iter", 10, "--mining-rounds", 1, "--n-estimators", 3, "--seed", 4]
    run(program, "train", "train.npz", *flags, "-o", "m.hdsl", cwd=tmp_path)
    settings = dict(triplets="random:3", scale=20, max_iter=10, mining_rounds=1)
    mean = HDSL(**settings, n_estimators=3, random_state=4).fit(*small)
    assert mean._model.to_bytes() == (tmp_path / "m.hdsl").read_bytes()
    loaded = HDSL.load(tmp_path / "m.hdsl")
    assert loaded.n_estimators == 3 and np.isnan(loaded.objective_)
    members = [HDSL(**settings, random_state=4 + i).fit(*small).get_bilinear_matrix() for i in range(3)]
    np.testing.assert_allclose(mean.get_bilinear_matrix().toarray(), (sum(members) / 3).toarray(), atol=1e-12)
    assert mean.at(n_features=4).n_active_features_ <= 4


def test_parts_can_be_left_out_and_each_is_told_the_worth_of(small):
    parts = ["ensembles", "random", "losses"]
    best = hdsl.tune(*small, cv=2, ablate=parts)
    board = best.leaderboard_
    assert set(board["n_estimators"]) == {1} and set(board["triplets"]) == {"knn:3:5"} and set(board["loss"]) == {"smoothed-hinge"}
    told = best.tuning_.ablations.set_index("part")
    assert not set(told.index) & set(parts)
    without = {
        "base": told["base"] == 0,
        "cosine": told["normalization"] == "dot",
        "mining-rounds": told["mining_rounds"] == 0,
        "neighbors": told["triplets"] != "knn:3:5",
        "term-weights": ~told["preprocess"].isin(["tfidf", "bm25"]),
        "unit": told["preprocess"] == "max",
        "votes": (told["n_neighbors"] == 3) & (told["vote"] == "majority"),
    }
    assert set(told.index) == set(without)
    for part, holds in without.items():  # plain similarities are there without any part
        assert holds[part] or told.loc[part, "reference"], part
    # Nothing to learn from is left without neighbors, too.
    assert told.loc["neighbors", "reference"] and told.loc["neighbors", "max_iter"] == 0
    assert (told["expected_error"] >= 0).all()


def test_triplets_take_the_place_of_labels(small):
    X, y = small
    triplets = hdsl.mine_triplets(X, y, triplets="random:6", random_state=3)
    weights = np.linspace(1.0, 2.0, len(triplets))
    best = hdsl.tune(X, triplets=triplets, sample_weight=weights, cv=3)
    assert best.tuning_.measure == "1 - accuracy of triplets"
    assert best.tuning_.n_validation == len(np.unique(triplets[:, 0]))
    assert best.tuning_.learned and best.tuning_.expected_error <= best.tuning_.reference_error
    anchors, near, far = triplets.T
    margins = best.pair_score(np.c_[anchors, near]) - best.pair_score(np.c_[anchors, far])
    assert hdsl.metrics.triplet_accuracy(margins) > 0.9
    again = clone(best).fit_triplets(X, triplets, weights)
    assert (again.get_bilinear_matrix() != best.get_bilinear_matrix()).nnz == 0
    with pytest.raises(ValueError, match="no classes"):
        best.predict(X)
    # The classes predict, and have no part in the search.
    labeled = hdsl.tune(X, y, triplets=triplets, sample_weight=weights, cv=3)
    assert labeled._model == best._model and labeled.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(triplets=[[0, 1]]), r"\(1, 2\), expected \(n_triplets, 3\)"),
        (dict(triplets=[[0, 1, 10**6]]), r"triplets\[:, 2\]"),
        (dict(triplets=[[0, 1, 2]], X_val=np.ones((2, 60)), y_val=[0, 1]), "X_val cannot be used with triplets"),
        (dict(sample_weight=[1.0]), "there are none"),
        (dict(y=None), "y is None"),
        (dict(ablate=["luck"]), "ablate"),
        (dict(ablate=["random", "neighbors"]), "triplets (to )?come from"),
        (dict(cv=1), "'cv' parameter of tune"),
        (dict(cv=1000), "."),
        (dict(time=0), "'time' parameter of tune"),
        (dict(time=-3.0), "'time' parameter of tune"),
        (dict(max_features=1), "'max_features' parameter of tune"),
        (dict(max_atoms=0), "'max_atoms' parameter of tune"),
        (dict(preset="good"), "'preset' parameter of tune"),
        (dict(journal=3), "'journal' parameter of tune"),
        (dict(X_val=np.ones((2, 60))), "together"),
        (dict(X_val=np.ones((2, 60)), y_val=[0, 1], cv=3), "cv and X_val"),
        (dict(X_val=np.ones((2, 59)), y_val=[0, 1]), "59 features"),
    ],
)
def test_bad_arguments_are_named(params, message, small):
    with pytest.raises(ValueError, match=message):
        hdsl.tune(small[0], **{"y": small[1], **params})


def test_more_time_than_a_clock_can_tell_is_no_limit(small):
    assert hdsl.tune(*small, cv=2, time=1.5e19)._model == hdsl.tune(*small, cv=2, time=None)._model


def test_too_few_rows_are_refused(small):
    with pytest.raises(ValueError, match="no two rows share a label"):
        hdsl.tune(small[0][:2], [0, 1])


def test_one_class_cannot_be_tuned(small):
    with pytest.raises(ValueError, match="only 1 class"):
        hdsl.tune(small[0], np.zeros(90))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda X, y: HDSL(scale="auto", class_weight="balanced").fit(X, y), "class_weight .* scale='auto'"),
        (lambda X, y: HDSL(scale="auto", warm_start=True).fit(X, y), "warm_start .* scale='auto'"),
        (lambda X, y: HDSL(scale="auto", callback=print).fit(X, y), "callback .* scale='auto'"),
        (lambda X, y: HDSL(scale="auto").fit_triplets(X, [[0, 1, 2]]), "needs labels"),
        (lambda X, y: HDSL(scale="auto").partial_fit_triplets(X, [[0, 1, 2]]), "'scale' parameter"),
        (lambda X, y: HDSL(scale="best").fit(X, y), "'scale' parameter"),
        (lambda X, y: TripletHDSL(X, scale="auto").fit([[0, 1, 2]]), "'scale' parameter"),
        (lambda X, y: HDSL(mining_rounds=1).fit_triplets(X, [[0, 1, 2]]), "mining_rounds needs labels"),
        (lambda X, y: HDSL(mining_rounds=-1).fit(X, y), "'mining_rounds' parameter"),
        (lambda X, y: HDSL(last_round_iter=0).fit(X, y), "'last_round_iter' parameter"),
        (lambda X, y: HDSL(n_estimators=0).fit(X, y), "'n_estimators' parameter"),
        (lambda X, y: HDSL(n_estimators=2, max_features=9).fit(X, y), "no max_features"),
    ],
)
def test_what_does_not_go_together_is_said(act, message, small):
    with pytest.raises(ValueError, match=message):
        act(*small)


@parametrize_with_checks([HDSLClassifier(scale="auto", time=60)])
def test_scikit_learn_check(estimator, check, monkeypatch):
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", 5)
    tune = hdsl._core.tune

    def smaller(settings, *args, **more):  # these check an estimator, not a search
        left_out = ["mining-rounds", "ensembles", "losses", "random", "term-weights"]
        return tune({**settings, "cv": 3, "ablate": left_out}, *args, **more)

    monkeypatch.setattr(hdsl._core, "tune", smaller)
    check(estimator)


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize(("kind", "round_iter"), [("best", 300), ("reference", 10**7)])
def test_ctrl_c_keeps_the_best_so_far(kind, round_iter, tmp_path, monkeypatch):
    # A search of very many iterations, of which the signal comes after the first setting has been judged.
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", round_iter)
    X, y = planted(600, 3000)
    judged, tune = threading.Event(), hdsl._core.tune

    def interrupt():
        judged.wait()
        os.kill(os.getpid(), signal.SIGINT)

    def told(facts):
        if facts[kind] is not None:
            judged.set()

    monkeypatch.setattr(hdsl._core, "tune", lambda *args, **more: tune(*args, **{**more, "progress": told}))
    threading.Thread(target=interrupt).start()
    with pytest.warns(ConvergenceWarning, match="Ctrl-C"):
        best = hdsl.tune(X, y, time=None)
    assert not best.tuning_.finished and best.tuning_.n_models > 0
    if kind == "reference":  # a plain similarity is an answer, too
        assert not best.tuning_.learned and best.max_iter == 0 and best.n_active_features_ == 0
        assert clone(best).fit(X, y)._model == best._model
        best.save(tmp_path / "m.hdsl")
        assert clone(HDSLClassifier.load(tmp_path / "m.hdsl")).fit(X, y)._model == best._model
    assert best.predict(X).shape == y.shape


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_before_there_is_anything_raises(monkeypatch):
    tune = hdsl._core.tune

    def told(facts):  # as a signal would, at the first look
        raise KeyboardInterrupt

    monkeypatch.setattr(hdsl._search, "ROUND_ITER", 10**7)
    monkeypatch.setattr(hdsl._core, "tune", lambda *args, **more: tune(*args, **{**more, "progress": told}))
    learner = HDSLClassifier(scale="auto", max_features=50)  # which no plain similarity keeps to
    with pytest.raises(KeyboardInterrupt):
        learner.fit(*planted(600, 3000))
    assert not hasattr(learner, "tuning_")


def test_a_journal_is_gone_on_with_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", 150)
    X, y = planted(400, 2000)
    journal, tune, seen = tmp_path / "search.tune", hdsl._core.tune, []

    def told(facts):  # what a kill would leave behind
        if facts["training"] is None and journal.exists():
            seen.append(journal.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(hdsl._core, "tune", lambda *args, **more: tune(*args, **{**more, "progress": told}))
        whole = hdsl.tune(X, y, cv=2, journal=journal)
    assert not journal.exists()
    assert seen[-1].count(b"\n") > 1
    journal.write_bytes(seen[-1][:-5])
    with pytest.raises(ValueError, match="search.tune: is the journal of another search"):
        hdsl.tune(X, y, cv=3, journal=journal)
    again = hdsl.tune(X, y, cv=2, journal=str(journal))
    assert again._model == whole._model and again.leaderboard_.equals(whole.leaderboard_)
    assert not journal.exists()


def test_a_search_sums_itself_up(small, capfd):
    hdsl.tune(*small, cv=2, verbose=1)
    told = capfd.readouterr()
    assert "best of" in told.err and "of 60 features" in told.err and told.out == ""
    hdsl.tune(*small, cv=2)
    assert capfd.readouterr() == ("", "")
