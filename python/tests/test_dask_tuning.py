"""`hdsl.tune` with trials on the workers of a Dask cluster."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hdsl
import hdsl._core
import hdsl._remote_trials
import hdsl._search
from conftest import local_cluster, planted

distributed = pytest.importorskip("distributed", reason="dask is not installed")


ROUND_ITER = 12


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    """A search of seconds, not of minutes."""
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", ROUND_ITER)


@pytest.fixture(scope="module")
def client():
    with local_cluster(2, memory_limit=None) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def small():
    return planted(90, 60)


@pytest.fixture(scope="module")
def of_one_process(small):
    """The search with two folds, in one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdsl._search, "ROUND_ITER", ROUND_ITER)
        return hdsl.tune(*small, cv=2, time=None)


def same(one, other):
    """All that a search finds, to the last bit."""
    for name in hdsl._search.Tuning.__dataclass_fields__:
        if name not in ("seconds", "leaderboard", "ablations"):
            assert getattr(one.tuning_, name) == getattr(other.tuning_, name), name
    for name in ("leaderboard", "ablations"):
        assert pickle.dumps(lines(getattr(one.tuning_, name))) == pickle.dumps(lines(getattr(other.tuning_, name))), name
    assert one._model.to_bytes() == other._model.to_bytes()


def lines(table):
    return [repr(line) for line in (table if isinstance(table, list) else table.to_dict("records"))]


def executing(client):
    """The tasks that threads of workers are busy with."""
    busy = client.run(lambda dask_worker: list(dask_worker.active_threads.values()))
    return [key for keys in busy.values() for key in keys]


def idle(client, seconds=10):
    """Whether nothing is left on the cluster, after a while."""
    gc.collect()  # exceptions in reference cycles keep their futures
    tasks = ["?"]
    end = time.monotonic() + seconds
    while tasks and time.monotonic() < end:
        tasks = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)) + executing(client)
        time.sleep(0.05)
    return not tasks


def when_training(monkeypatch, act, after=1):
    """Do something, in a thread, soon after so many tasks were started."""
    started, start = [], hdsl._remote_trials.RemoteTrials.start

    def counted(self, task):
        started.append(task)
        if len(started) == after:
            threading.Timer(0.1, act).start()
        return start(self, task)

    monkeypatch.setattr(hdsl._remote_trials.RemoteTrials, "start", counted)
    return started


@pytest.mark.parametrize(
    "options",
    [{}, {"preset": "paper"}, {"X_val": True, "refit": False}, {"triplets": True, "max_features": 20}],
    ids=str,
)
def test_the_result_is_that_of_one_process(client, small, of_one_process, options):
    here = None if options else of_one_process
    options = {"cv": 2, **options}
    X, y = small
    if options.pop("X_val", False):
        del options["cv"]
        options["X_val"], options["y_val"] = planted(50, 60, seed=3)
    if options.pop("triplets", False):
        rng = np.random.default_rng(1)
        near = [rng.choice(np.flatnonzero(y == y[row])) for row in range(60)]
        far = [rng.choice(np.flatnonzero(y != y[row])) for row in range(60)]
        options["triplets"], y = np.column_stack([np.arange(60), near, far]), None
    here = here or hdsl.tune(X, y, time=None, **options)
    there = hdsl.tune(X, y, time=None, client=client, **options)
    assert there.tuning_.finished
    same(there, here)
    assert idle(client)


def test_a_trial_is_run_again_if_its_worker_is_killed(client, small, of_one_process, monkeypatch):
    X, y = small
    address, pid = next(iter(client.run(os.getpid).items()))
    when_training(monkeypatch, lambda: os.kill(pid, signal.SIGKILL), after=20)
    there = hdsl.tune(X, y, cv=2, time=None, client=client)
    same(there, of_one_process)
    assert address not in client.scheduler_info()["workers"]
    client.wait_for_workers(2, timeout=30)
    assert idle(client)


def test_rows_that_are_lost_with_all_workers_are_sent_again(client, small, of_one_process, monkeypatch):
    X, y = small
    pids = client.run(os.getpid).values()
    when_training(monkeypatch, lambda: [os.kill(pid, signal.SIGKILL) for pid in pids], after=20)
    there = hdsl.tune(X, y, cv=2, time=None, client=client)
    same(there, of_one_process)
    client.wait_for_workers(2, timeout=30)
    assert idle(client)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_the_best_so_far_and_ends_tasks(client, small, monkeypatch):
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", 10**7)
    # The references are done: six of them, on two folds.
    started = when_training(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT), after=20)
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="Ctrl-C"):
        best = hdsl.tune(*small, cv=2, time=None, client=client)
    assert len(started) >= 20 and not best.tuning_.finished
    assert best.tuning_.n_models > 0
    assert idle(client, seconds=3), executing(client)
    assert time.monotonic() - begun < 20


def test_a_time_limit_ends_tasks(client, small, monkeypatch):
    monkeypatch.setattr(hdsl._search, "ROUND_ITER", 10**7)
    begun = time.monotonic()
    best = hdsl.tune(*small, cv=2, time=1.5, client=client)
    assert not best.tuning_.finished and best.tuning_.n_models > 0
    assert idle(client, seconds=3), executing(client)
    assert time.monotonic() - begun < 15


def test_a_client_that_is_killed_leaves_nothing_running(client, small):
    program = """
import hdsl, hdsl._search, distributed, sys
import scipy.sparse as sp, numpy as np
hdsl._search.ROUND_ITER = 10**7
rng = np.random.default_rng(0)
X, y = sp.random(90, 60, density=0.2, random_state=0, format="csr"), rng.integers(0, 2, 90)
hdsl.tune(X, y, cv=2, time=None, client=distributed.Client(sys.argv[1]))
"""
    address = client.scheduler.address
    process = subprocess.Popen([sys.executable, "-c", program, address])
    try:
        end, training = time.monotonic() + 60, False
        while not training and process.poll() is None and time.monotonic() < end:
            training = any(str(key).startswith("train_trial") for key in executing(client))
        assert training
    finally:
        process.kill()
        process.wait()
    assert idle(client), executing(client)


def test_an_error_on_a_worker_is_raised_here(client, small, monkeypatch):
    monkeypatch.setattr(hdsl._remote_trials._core, "__version__", "0.0.1")
    with pytest.raises(RuntimeError, match=r"a Dask worker has hdsl .* and the client has hdsl 0\.0\.1"):
        hdsl.tune(*small, cv=2, time=None, client=client)
    assert not executing(client)


def test_arrays_may_begin_anywhere_in_a_message(small):
    X, y = small

    def moved(array):  # by one byte
        room = np.empty(array.nbytes + 1, dtype=np.uint8)
        room[1:] = array.view(np.uint8)
        return room[1:].view(array.dtype)

    data, indices, indptr = (moved(part) for part in (X.data, X.indices, X.indptr))
    assert not data.flags.aligned
    there = X.copy()
    there.data, there.indices, there.indptr = data, indices, indptr
    codes = moved(y.astype(np.int64))
    rows, (names, codes) = hdsl._remote_trials._aligned((there, (["a", "b"], codes)))
    assert all(part.flags.aligned for part in (rows.data, rows.indices, rows.indptr, codes))
    assert (rows != X).nnz == 0 and codes.tolist() == y.tolist() and names == ["a", "b"]


def test_what_is_no_client_is_refused(small):
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got str"):
        hdsl.tune(*small, client="tcp://127.0.0.1:8786")
