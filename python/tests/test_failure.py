"""Interrupted fits, checkpoints, and damaged input."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import planted
from sklearn.model_selection import cross_val_score

from hdsl import HDSL, HDSLClassifier


def interrupt_after(n):
    """A callback that sends SIGINT to this process in iteration `n`."""

    def callback(facts):
        if facts["iteration"] == n:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_is_not_swallowed_by_cross_validation():
    X, y = planted(200, 500)
    learner = HDSLClassifier(scale=10, max_iter=10**7, step_rule="forward", callback=interrupt_after(20))
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(learner, X, y, cv=2)


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("loss", ["smoothed-hinge", "logistic"])
def test_an_interrupted_fit_goes_on_from_its_checkpoint(tmp_path, loss):
    X, y = planted(200, 500)
    file = tmp_path / "fit.checkpoint"
    settings = {"scale": 10, "max_iter": 120, "loss": loss}
    whole = HDSL(**settings).fit(X, y)
    learner = HDSL(**settings, checkpoint=(file, 0.0), callback=interrupt_after(50))
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, y)
    assert file.exists() and 50 <= learner.n_iter_ < 120
    seen = []
    again = HDSL(**settings, checkpoint=(file, 0.0), callback=lambda facts: seen.append(facts["iteration"])).fit(X, y)
    assert again._model == whole._model and seen == list(range(1, 121))
    assert not file.exists()


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    X, y = planted(100, 200)
    file = tmp_path / "fit.checkpoint"
    file.write_text("my own file")
    with pytest.raises(ValueError, match="in the way"):
        HDSL(scale=10, max_iter=5, checkpoint=file).fit(X, y)
    assert file.read_text() == "my own file"
    for bad in [(file,), (file, -1.0), (1, 2)]:
        with pytest.raises(ValueError, match="checkpoint"):
            HDSL(scale=10, max_iter=5, checkpoint=bad).fit(X, y)


def broken_matrices():
    good = sp.csr_array(np.eye(6))
    for place, value in [(2, 1000), (2, -5), (6, 1000), (3, 1)]:
        bad = good.copy()
        bad.indptr[place] = value
        yield bad
    for value in (-1, 6, 2**30):
        bad = good.copy()
        bad.indices[3] = value
        yield bad


@pytest.mark.parametrize("bad", list(broken_matrices()))
def test_arrays_that_do_not_fit_together_are_refused(bad):
    with pytest.raises(ValueError, match="do not fit together"):
        HDSL().fit(bad, [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("bad", list(broken_matrices()))
def test_a_fitted_estimator_refuses_them_too(bad):
    learner = HDSLClassifier(scale=10, max_iter=5, n_neighbors=1).fit(np.eye(6), [0, 1, 0, 1, 0, 1])
    for use in [learner.predict, learner.transform, learner.kneighbors]:
        with pytest.raises(ValueError, match="do not fit together"):
            use(bad)


def test_limits():
    X, y = planted(60, 100)
    with pytest.raises(ValueError, match="n_jobs is 5000"):
        HDSL(scale=10, n_jobs=5000).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators"):
        HDSL(scale=10, n_estimators=10**9).fit(X, y)
    huge = X * 1e80
    with pytest.raises(ValueError, match="1e50"):
        HDSL(scale=10, preprocess="none").fit(huge, y)


DAMAGE = """
import pickle, random, sys, warnings
warnings.simplefilter("ignore")
text, n, seed = open(sys.argv[1], "rb").read(), int(sys.argv[2]), int(sys.argv[3])
draw, outcomes = random.Random(seed), {"refused": 0, "loaded": 0}
for _ in range(n):
    bytes_ = bytearray(text)
    for _ in range(draw.choice([1, 1, 2, 5])):
        bytes_[draw.randrange(len(bytes_))] ^= 1 << draw.randrange(8)
    try:
        learner = pickle.loads(bytes(bytes_))
        learner.kneighbors(learner._fit_X[:3])
        outcomes["loaded"] += 1
    except (Exception, KeyboardInterrupt):
        outcomes["refused"] += 1
print(outcomes["loaded"], outcomes["refused"])
"""


def test_a_damaged_pickle_is_told_by_its_checksum():
    X, y = planted(60, 100)
    learner = HDSL(scale=10, max_iter=20).fit(X, y)
    whole = pickle.dumps(learner)
    damaged = bytearray(whole)
    sealed = learner.__getstate__()["_arrays"][1]
    damaged[whole.index(sealed) + len(sealed) // 2] ^= 1
    with pytest.raises(ValueError, match="the pickle is damaged"):
        pickle.loads(bytes(damaged))
    # All but arrays is left to the pickler: that of joblib takes functions, too.
    learner.callback = learner.function_ = lambda _: None
    state = learner.__getstate__()
    assert callable(state["callback"]) and callable(state["function_"]) and "_fit_X" not in state
    assert callable(copy.deepcopy(learner).function_)
    assert copy.copy(learner)._fit_X is learner._fit_X


def test_damaged_pickles_raise_and_do_not_crash(tmp_path):
    X, y = planted(60, 100)
    file = tmp_path / "learner.pickle"
    file.write_bytes(pickle.dumps(HDSL(scale=10, max_iter=20).fit(X, y)))
    n = int(os.environ.get("HDSL_DAMAGED_PICKLES", "300"))
    # In a process of its own: a crash ends that process, and not the tests.
    run = subprocess.run(
        [sys.executable, "-c", DAMAGE, str(file), str(n), "1"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    loaded, refused = map(int, run.stdout.split())
    assert loaded + refused == n and refused > 0


def test_signals_in_another_thread_do_not_matter():
    X, y = planted(60, 100)
    found = []
    thread = threading.Thread(target=lambda: found.append(HDSL(scale=10, max_iter=20).fit(X, y)))
    thread.start()
    thread.join()
    assert found[0].n_iter_ > 0
