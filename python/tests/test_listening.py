"""Callbacks, progress, Ctrl-C and the interpreter lock."""

import io
import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import hdsl._callbacks
import hdsl._core
from conftest import planted
from hdsl import HDSL, OASIS, DiagonalSimilarity, HDSLClassifier
from hdsl._progress import Progress, Rate, describe
from hdsl._search import describe as describe_search


def test_a_callable_hears_of_every_iteration():
    X, y = planted()
    heard = []
    learned = HDSL(scale=20, max_iter=25, callback=heard.append).fit(X, y)
    assert [facts["iteration"] for facts in heard] == list(range(1, 26))
    np.testing.assert_array_equal([facts["objective"] for facts in heard], learned.path_["objective"][1:])
    np.testing.assert_array_equal([facts["n_features"] for facts in heard], learned.path_["n_features"][1:])
    assert learned._model == HDSL(scale=20, max_iter=25).fit(X, y)._model  # listening changes nothing


def test_a_callable_may_stop_the_run():
    X, y = planted()
    learned = HDSL(scale=20, max_iter=25, callback=lambda facts: facts["n_features"] >= 6).fit(X, y)
    assert learned.stop_ == "interrupted"
    assert learned.n_active_features_ >= 6 > learned.at(iteration=learned.n_iter_ - 1).n_active_features_


def test_what_a_callable_raises_comes_out():
    X, y = planted()

    def fail(facts):
        raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        HDSL(scale=20, callback=fail).fit(X, y)


@pytest.mark.skipif(not hdsl._callbacks.HAS_CALLBACKS, reason="this scikit-learn has no callbacks")
def test_scikit_learn_callbacks():
    class Recorder:
        def __init__(self):
            self.events, self.scores = [], []

        def setup(self, estimator, context):
            self.events.append("setup")

        def teardown(self, estimator, context):
            self.events.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.events.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            self.events.append(("end", context.task_name))
            if context.task_name == "iteration":
                self.scores.append(fitted_estimator.similarity(X))
                return len(self.scores) == 5

    X, y = planted()
    recorder = Recorder()
    learned = HDSL(scale=20, max_iter=25).set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", ("begin", "fit")] and recorder.events[-1] == "teardown"
    assert recorder.events.count(("end", "iteration")) == 5 == learned.n_iter_
    for iteration, scores in enumerate(recorder.scores, start=1):
        np.testing.assert_allclose(scores, learned.at(iteration=iteration).similarity(X), atol=1e-9)


def test_progress_is_shown():
    X, y = planted()
    stream = io.StringIO()
    bar = Progress(10, stream)
    bar({"iteration": 5, "objective": 0.5, "n_features": 3, "valid_error": None})
    bar.close("done")
    assert stream.getvalue() == "done\n"  # no terminal, no bar
    stream.isatty = lambda: True
    bar = Progress(10, stream)
    bar({"iteration": 5, "objective": 0.5, "n_features": 3, "valid_error": 0.25})
    assert "5/10  objective 0.5, 3 features, error 25.0%" in stream.getvalue()


@pytest.mark.parametrize("iterations", [1, 1000, 10**6, 10**9, 10**15])
@pytest.mark.parametrize("n_features", [1, 10**7, 10**12])
def test_lines_of_progress_fit_in_80_columns(iterations, n_features):
    facts = {"objective": 1.2345e-100, "n_features": n_features, "valid_error": 1.0}
    for iteration in (0, iterations // 2, iterations):
        line = describe({**facts, "iteration": iteration}, iterations)
        assert len(line) < 80 and f"{iteration}/{iterations}  objective 1.234e-100" in line
        # The bar says what the numbers say.
        bar = line[1 : line.find("]")] if line.startswith("[") else ""
        assert abs(bar.count("#") - len(bar) * iteration / iterations) <= 0.5
    search = {"trials": iterations, "best": (1.0, "any"), "reference": 1.0, "training": None, "seconds": 1e6}
    for limit in (None, 1.0, 1e6, 1e12):
        assert len(describe_search(search, limit)) < 80
        assert len(describe_search({**search, "training": n_features}, limit)) < 80


@pytest.mark.parametrize("columns", [0, 1, 10, 39, 40, 79, 120, 200])
def test_lines_of_progress_are_not_wider_than_the_terminal(columns):
    facts = {"objective": 0.25, "n_features": 12, "valid_error": 0.5, "iteration": 40}
    search = {"trials": 10, "best": (1.0, "any"), "reference": 1.0, "training": None, "seconds": 31.0}
    for rate in (None, 0.01, 123.0):
        assert len(describe(facts, 100, columns, rate)) <= columns
    for limit in (None, 125.0):
        assert len(describe_search(search, limit, columns)) <= columns


def test_steps_rate_and_time_left_agree():
    rate = Rate()
    assert rate(0, 0.0) is None and rate(1, 0.1) is None
    assert rate(20, 1.0) == 20
    line = describe({"objective": 0.25, "n_features": 12, "valid_error": None, "iteration": 20}, 100, 120, rate(20, 1.0))
    assert "20/100  20/s, 0:04 left" in line
    # Only the last ten seconds count, and a smaller iteration is another run.
    for second in range(2, 31):
        latest = rate(20 + second, float(second))
    assert 0.9 < latest < 1.1
    assert rate(0, 31.0) is None and rate(5, 32.0) == 5
    search = {"trials": 10, "best": None, "reference": None, "training": None, "seconds": 31.9}
    assert "0:31 of 2:05, 1:34 left" in describe_search(search, 125.0)


def test_the_last_line_of_progress_is_the_end(monkeypatch):
    lines = []
    monkeypatch.setattr(Progress, "__call__", lambda self, facts: lines.append(self.describe(facts)))
    X, y = planted(400, 4000)
    learned = HDSL(scale=20, max_iter=400, mining_rounds=2, last_round_iter=40, verbose=1).fit(X, y)
    assert learned.n_iter_ <= 840 and all("/840  " in line for line in lines)



def test_verbose_sums_up(capfd):
    X, y = planted()
    HDSL(max_iter=5, verbose=1).fit(X, y)
    assert "5 iterations (max-iter)" in capfd.readouterr().err
    HDSL(max_iter=5).fit(X, y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_what_was_learned():
    X, y = planted(1000, 20_000)
    begun = threading.Event()

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    learner = HDSLClassifier(
        scale=100, max_iter=10**8, loss="logistic", triplets="random:10", callback=lambda facts: begun.set()
    )
    with pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        learner.fit(X, y)
    assert learner.stop_ == "interrupted" and learner.n_iter_ > 0
    assert learner.predict(X).shape == y.shape


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("learner", [HDSL(), DiagonalSimilarity(), OASIS()], ids=lambda each: type(each).__name__)
def test_ctrl_c_while_mining_raises(learner, monkeypatch):
    # Neighbors that take a minute to find, so that the signal surely comes before that is done.
    rng = np.random.default_rng(0)
    n_rows, each = 60_000, 60
    columns = 50 * np.arange(each) + rng.integers(0, 50, (n_rows, each))
    starts = np.arange(0, n_rows * each + 1, each)
    X = sp.csr_array((rng.uniform(0.1, 1, n_rows * each), columns.ravel(), starts), shape=(n_rows, 50 * each))
    begun, heard = threading.Event(), []

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    def announced(work):
        return lambda *args, **kwargs: (begun.set(), work(*args, **kwargs))[1]

    for name in ("train", "fit_baseline"):
        monkeypatch.setattr(hdsl._core, name, announced(getattr(hdsl._core, name)))
    threading.Thread(target=interrupt).start()
    learner = clone(learner).set_params(callback=heard.append, triplets="knn:3:5")
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, rng.integers(0, 2, n_rows))
    assert heard == [] and not hasattr(learner, "n_iter_")


def test_other_threads_run_meanwhile():
    X, y = planted(2000, 20_000)
    fitting, ticks = threading.Event(), []

    def tick():
        fitting.wait()
        while fitting.is_set():
            ticks.append(None)
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    fitting.set()
    HDSL(max_iter=10**9, time=1, loss="logistic").fit(X, y)
    during = len(ticks)
    fitting.clear()
    ticker.join()
    # Had the fit kept the interpreter to itself, there would be one before it and none after.
    assert during > 5
