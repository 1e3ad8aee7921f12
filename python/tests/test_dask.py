"""`hdsl.dask` on a cluster of processes: the same model as in one process, lost workers, inference by block."""

from __future__ import annotations

import gzip
import gc
import os
import pickle
import shutil
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import local_cluster, planted
from sklearn.datasets import dump_svmlight_file

import hdsl

pytest.importorskip("distributed", reason="dask and distributed are not installed")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
from distributed import Client  # noqa: E402

import hdsl.dask  # noqa: E402
from hdsl.dask._blocks import as_blocks, classes_and_codes, keep  # noqa: E402
from hdsl.dask._cluster import Cluster, Source  # noqa: E402

#: Blocks of uneven sizes, one of them of a single row.
CUTS = [0, 30, 31, 90, 120, 200]


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def mortal_cluster():
    """For tests that kill workers. Dask starts new ones in their place."""
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def mortal(mortal_cluster):
    with Client(mortal_cluster, set_as_default=False) as client:
        wait_for_workers(client, 2)
        yield client


def workers(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def wait_for_workers(client, n):
    while len(workers(client)) != n:
        time.sleep(0.05)


def blocks(X, cuts=CUTS):
    return [X[a:b] for a, b in zip(cuts, cuts[1:])]


def lazy(X, cuts=CUTS):
    return [dask.delayed(block) for block in blocks(X, cuts)]


def as_array(X, cuts=CUTS):
    parts = [
        da.from_delayed(dask.delayed(b), shape=b.shape, dtype=float, meta=type(X)((0, X.shape[1])))
        for b in blocks(X, cuts)
    ]
    return da.concatenate(parts)


def assert_same(found, expected):
    """The same atoms and path, and weights equal to 1e-9."""
    (i, j, weights), signs = found._model.atoms()
    (i_2, j_2, weights_2), signs_2 = expected._model.atoms()
    np.testing.assert_array_equal([i, j, signs], [i_2, j_2, signs_2])
    np.testing.assert_allclose(weights, weights_2, rtol=1e-9, atol=1e-12)
    assert found.scale_ == pytest.approx(expected.scale_, rel=1e-9)
    assert found.base_ == pytest.approx(expected.base_, rel=1e-9)
    assert found.preprocess_ == expected.preprocess_
    assert (found.n_triplets_, found.n_iter_, found.stop_) == (expected.n_triplets_, expected.n_iter_, expected.stop_)
    path, path_2 = found.path_, expected.path_
    assert len(path) == len(path_2)
    for name in path.dtype.names:
        if name == "objective" or name == "gap":
            np.testing.assert_allclose(path[name], path_2[name], rtol=1e-8, atol=1e-10)
        else:
            np.testing.assert_array_equal(path[name], path_2[name])


def counts(n_rows=200, n_features=300, seed=1):
    """Word counts of three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    X = sp.random(n_rows, n_features, density=0.03, random_state=rng, format="lil")
    X[np.arange(n_rows), 5 * y + rng.integers(0, 5, n_rows)] = 2.0
    X = sp.csr_array(X)
    X.data = np.ceil(3 * X.data)
    return X, y


CASES = {
    "random": dict(scale=10, triplets="random:10"),
    "neighbors": dict(scale=10, triplets="knn:2:3"),
    "base": dict(scale=3, base="auto", triplets="random:5"),
    "given base": dict(scale=3, base=0.5, triplets="knn:2:3", preprocess="unit"),
    "exact search": dict(scale=10, triplets="random:5", search="exact", max_iter=10),
    "forward steps": dict(scale=10, triplets="random:5", step_rule="forward"),
    "squared hinge": dict(scale=10, triplets="random:5", loss="squared-hinge"),
    "logistic": dict(scale=10, triplets="random:5", loss="logistic"),
    "mining rounds": dict(scale=10, triplets="random:5", mining_rounds=2, max_iter=10),
    "mining rounds on a base": dict(scale=3, base=1.0, triplets="knn:2:3", mining_rounds=1, max_iter=10),
    "ensemble": dict(scale=10, triplets="random:5", n_estimators=2, max_iter=10),
    "subsample": dict(scale=10, triplets="knn:2:3", n_estimators=2, subsample=0.6, max_iter=10),
    "early stopping": dict(scale=10, triplets="knn:2:3", early_stopping=True, validation_fraction=0.3, eval_every=5),
    "grid": dict(scale=[1, 10], triplets="random:5", early_stopping=True, validation_fraction=0.3, eval_every=5),
    "early stopping with a cosine": dict(
        scale=10, triplets="knn:2:3", early_stopping=True, normalization="cosine", eval_every=5, vote="weighted"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_one_process(client, case):
    X, y = planted()
    params = {"max_iter": 20, "random_state": 3, **CASES[case]}
    expected = hdsl.HDSL(**params).fit(X, y)
    found = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client)
    assert_same(found, expected)
    assert found.valid_error_ == expected.valid_error_
    assert found.chosen_iter_ == expected.chosen_iter_


@pytest.mark.parametrize("preprocess", ["none", "max", "unit", "max+unit", "tfidf", "bm25"])
def test_every_preprocessing_is_fitted_by_a_reduction(client, preprocess):
    X, y = counts()
    params = dict(scale=5, triplets="random:5", max_iter=8, preprocess=preprocess)
    expected = hdsl.HDSL(**params).fit(X, y)
    found = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client, n_shards=3)
    assert_same(found, expected)
    assert (found.preprocess_rows(X) != expected.preprocess_rows(X)).nnz == 0


def test_one_to_four_workers_and_the_same_bytes_for_a_number_of_shards():
    X, y = planted(seed=5)
    params = dict(scale=10, triplets="random:10", base="auto", max_iter=25)
    expected = hdsl.HDSL(**params).fit(X, y)
    of_three = set()
    with local_cluster(1) as growing, Client(growing, set_as_default=False) as client:
        for n in (1, 2, 3, 4):
            growing.scale(n)
            wait_for_workers(client, n)
            found = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client)
            assert found.distributed_["n_shards"] == n
            assert_same(found, expected)
            if n != 3:
                found = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client, n_shards=3)
            of_three.add(found._model.to_bytes())
    assert len(of_three) == 1


def test_what_is_left_open_is_chosen_as_in_one_process(client):
    X, y = counts()
    expected = hdsl.HDSL(max_iter=60).fit(X, y)
    found = hdsl.dask.HDSL(max_iter=60).fit(lazy(X), y, client=client)
    assert found.choice_ == expected.choice_
    assert_same(found, expected)


def test_the_base_alone(client):
    X, y = counts()
    params = dict(max_iter=0, preprocess="unit")
    expected = hdsl.HDSLClassifier(**params).fit(X, y)
    found = hdsl.dask.HDSLClassifier(**params).fit(lazy(X), y, client=client)
    assert found.stop_ == expected.stop_
    np.testing.assert_array_equal(found.predict(lazy(X)).compute(), expected.predict(X))


def test_validation_rows(client):
    X, y = planted()
    X_val, y_val = planted(seed=9)
    params = dict(scale=[1, 10], triplets="knn:2:3", max_iter=10, eval_every=5, n_neighbors=5)
    expected = hdsl.HDSL(**params).fit(X, y, X_val=X_val, y_val=y_val)
    for given in (lazy(X_val, [0, 50, 200]), X_val):
        found = hdsl.dask.HDSL(**params).fit(lazy(X), y, X_val=given, y_val=y_val, client=client)
        assert_same(found, expected)
        assert found.valid_error_ == expected.valid_error_
        assert found.scale_results_ == expected.scale_results_ or found.scale_ == expected.scale_


def test_given_triplets(client):
    X, y = planted()
    rng = np.random.default_rng(2)
    triplets = hdsl.mine_triplets(X, y, triplets="random:4")
    triplets = triplets[rng.permutation(len(triplets))]  # not in the order of anchors
    weights = rng.integers(1, 4, len(triplets)).astype(float)
    for params in (
        dict(scale=10, max_iter=15),
        dict(scale=3, base="auto", max_iter=15),
        dict(scale=10, max_iter=20, early_stopping=True, validation_fraction=0.3, eval_every=5),
        dict(scale=10, max_iter=5, n_estimators=2, subsample=0.5),
        dict(max_iter=15),
    ):
        expected = hdsl.HDSL(**params).fit_triplets(X, triplets, weights)
        found = hdsl.dask.HDSL(**params).fit_triplets(lazy(X), triplets, weights, client=client, n_shards=3)
        assert_same(found, expected)
        assert found.valid_error_ == pytest.approx(expected.valid_error_, abs=1e-12)
    expected = hdsl.TripletHDSL(preprocessor=X, scale=10, max_iter=10).fit(triplets)
    found = hdsl.dask.TripletHDSL(preprocessor=lazy(X), scale=10, max_iter=10).fit(triplets, client=client)
    assert_same(found, expected)
    np.testing.assert_allclose(
        found.decision_function(triplets), expected.decision_function(triplets), rtol=1e-9, atol=1e-9
    )
    assert found.score(triplets) == pytest.approx(expected.score(triplets))


def test_a_warm_start_continues(client):
    X, y = planted()
    params = dict(scale=10, triplets="random:5", max_iter=8, warm_start=True)
    expected = hdsl.HDSL(**params).fit(X, y).fit(X, y)
    found = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client).fit(lazy(X), y)
    assert_same(found, expected)


def test_every_kind_of_collection(client):
    X, y = planted()
    _, codes = np.unique(y, return_inverse=True)
    y_array = da.from_array(y, chunks=64)
    unknown = da.concatenate(
        [da.from_delayed(part, shape=(np.nan, X.shape[1]), dtype=float) for part in lazy(X)],
        allow_unknown_chunksizes=True,
    )
    bag = db.from_delayed([dask.delayed(lambda block=block: [block])() for block in blocks(X)])
    for rows, labels in (
        (as_array(X), y_array),
        (as_array(sp.csr_array(X)), y.tolist()),
        (da.from_array(X.toarray(), chunks=(70, -1)), y_array),
        (bag, y),
        (client.scatter(blocks(X)), db.from_sequence(y.tolist(), npartitions=3)),
        (lazy(sp.csc_matrix(X).tocsr()), lazy(y)),
        (unknown, lazy(y)),
        (lazy(X.astype(np.float64).tocoo().tocsr()), y.astype(str)),
    ):
        gathered = as_blocks(client, rows).gather()
        assert (sp.csr_matrix(gathered) != X).nnz == 0
        np.testing.assert_array_equal(classes_and_codes(client, labels, len(y))[1], codes)
    params = dict(scale=10, triplets="random:5", max_iter=3)
    expected = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client, n_shards=2)._model.to_bytes()
    for rows, labels in ((as_array(X), y_array), (bag, lazy(y))):
        assert hdsl.dask.HDSL(**params).fit(rows, labels, n_shards=2)._model.to_bytes() == expected


def test_bad_input_is_refused(client):
    X, y = planted()
    learner = hdsl.dask.HDSL(scale=10, triplets="random:5", max_iter=3)
    bad = sp.csr_matrix(X[31:90])
    bad.data = bad.data.copy()
    bad.data[5] = np.nan
    for rows, labels, error, message in (
        (X, y, TypeError, "expected a Dask array, a bag or a list of delayed blocks"),
        ([X], y, TypeError, "expected delayed blocks or futures"),
        (da.from_array(X.toarray(), chunks=(100, 100)), y, ValueError, r"4 blocks of columns.*rechunk\(\{1: -1\}\)"),
        (lazy(X), y[:-1], ValueError, "y has 199 labels, expected 200"),
        (lazy(X), lazy(y[:190], [0, 90, 190]), ValueError, "y has 190 labels in 2 blocks, expected 200"),
        ([*lazy(X)[:2], dask.delayed(X[:3, :7])], y, ValueError, "block 2 of X has 7 columns, expected 400"),
        ([*lazy(X)[:2], dask.delayed(bad)], y, ValueError, "block 2 of X contains NaN"),
        ([dask.delayed(np.array([["a", "b"]]))], y, ValueError, "block 0 of X has values of the type <U1"),
        ([dask.delayed(np.zeros(3))], y, ValueError, r"block 0 of X has the shape \(3,\)"),
        (lazy(X), np.zeros(200), ValueError, "at least 2 classes"),
        (lazy(X), np.arange(200), ValueError, "no two rows share a label"),
        (lazy(X), None, ValueError, "y is None"),
    ):
        with pytest.raises(error, match=message):
            learner.fit(rows, labels, client=client)
    negative = hdsl.dask.HDSL(scale=10, preprocess="tfidf", max_iter=3)
    with pytest.raises(ValueError, match="row 31 has the value -1"):
        negative.fit([*lazy(X)[:2], dask.delayed(-abs(X[31:32]).sign()), dask.delayed(X[32:])], y, client=client)
    with pytest.raises(ValueError, match="hdsl.tune"):
        hdsl.dask.HDSL(scale="auto").fit(lazy(X), y, client=client)
    with pytest.raises(ValueError, match="class_weight cannot be used on a cluster"):
        hdsl.dask.HDSL(scale=10, class_weight="balanced").fit(lazy(X), y, client=client)
    with pytest.raises(ValueError, match="names row 200"):
        learner.fit_triplets(lazy(X), [[0, 1, 200]], client=client)
    with pytest.raises(ValueError, match="triplets"):
        hdsl.dask.HDSL(scale=1, triplets="nearest").fit(lazy(X), y, client=client)


def test_files_by_pattern(client, tmp_path):
    X, y = planted()
    X = X.tolil()
    X[:, 0] = 0.0
    X[150, 0] = 1.0  # an index 0 in the last file only
    X = sp.csr_matrix(X)
    X.data = np.round(X.data, 3)  # the writer keeps 16 digits, not all bits
    X.eliminate_zeros()
    for at, (a, b) in enumerate(zip(CUTS, CUTS[1:])):
        with gzip.open(tmp_path / f"part-{at}.svm.gz", "wb") as file:
            dump_svmlight_file(X[a:b], y[a:b], file, zero_based=True)
    rows, labels = hdsl.dask.read_svmlight(str(tmp_path / "part-*.svm.gz"), client=client)
    width = X.indices.max() + 1
    assert rows.shape == (200, width) and rows.chunks[0] == tuple(np.diff(CUTS))
    np.testing.assert_array_equal(labels.compute(), y)
    assert (rows.compute() != X[:, :width]).nnz == 0
    wide, _ = hdsl.dask.read_svmlight(sorted(tmp_path.glob("part-*")), n_features=400, zero_based=True, client=client)
    found = hdsl.dask.HDSL(scale=10, triplets="random:5", max_iter=8).fit(wide, labels)
    assert_same(found, hdsl.HDSL(scale=10, triplets="random:5", max_iter=8).fit(X, y))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        hdsl.dask.read_svmlight(str(tmp_path / "nothing-*"), client=client)
    with pytest.raises(FileNotFoundError, match="missing.svm"):
        hdsl.dask.read_svmlight(tmp_path / "missing.svm", client=client)
    (tmp_path / "bad.svm").write_text("1 3:1 5:2\n1 x:7\n")
    with pytest.raises(ValueError, match=r"bad.svm:2: "):
        hdsl.dask.read_svmlight([tmp_path / "bad.svm"], client=client)
    with pytest.raises(ValueError, match=r"bad.svm|part-"):
        hdsl.dask.read_svmlight(str(tmp_path / "part-*.svm.gz"), n_features=20, client=client)


# -- inference ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        dict(),
        dict(base=1.0, normalization="cosine", vote="weighted"),
        dict(vote="squared", n_components=3),
        dict(vote="class-mean"),
        dict(vote="class-mean", normalization="cosine", base=0.5),
    ],
)
def test_inference_is_that_of_the_local_estimator(client, params):
    X, y = planted()
    names = np.array(["a", "b", "c", "d"])[y]
    Z, y_new = planted(seed=4)
    params = dict(scale=10, triplets="random:5", max_iter=4, **params)
    found = hdsl.dask.HDSLClassifier(**params).fit(lazy(X), names, client=client)
    local = found.to_local(rows=True)
    assert type(local) is hdsl.HDSLClassifier
    queries = as_array(Z, [0, 77, 200])
    predicted, probable = found.predict(queries), found.predict_proba(queries)
    mapped = found.transform(queries)
    assert all(isinstance(lazily, da.Array) for lazily in (predicted, probable, mapped))
    assert predicted.shape == (200,) and mapped.shape == local.transform(Z).shape
    np.testing.assert_array_equal(predicted.compute(), local.predict(Z))
    np.testing.assert_allclose(probable.compute(), local.predict_proba(Z), rtol=1e-9, atol=1e-12)
    assert (mapped.compute() != local.transform(Z)).nnz == 0
    for given in (queries, None, Z):
        scores, rows = found.kneighbors(given, 7)
        expected = local.kneighbors(None if given is None else Z, 7)
        if given is not Z:
            scores, rows = dask.compute(scores, rows)
        np.testing.assert_array_equal(scores, expected[0])
        np.testing.assert_array_equal(rows, expected[1])
    assert found.score(queries, da.from_array(np.array(["a", "b", "c", "d"])[y_new], chunks=90)) == local.score(
        Z, np.array(["a", "b", "c", "d"])[y_new]
    )
    with pytest.raises(ValueError, match="n_samples_fit = 199"):
        found.kneighbors(n_neighbors=200)


def test_the_local_estimator_and_the_model_file(client, tmp_path):
    X, y = planted()
    found = hdsl.dask.HDSLClassifier(scale=10, triplets="random:5", max_iter=15).fit(lazy(X), y, client=client)
    local = found.to_local()
    np.testing.assert_array_equal(local.classes_, found.classes_)
    assert (local.transform(X) != found.transform(lazy(X)).compute()).nnz == 0
    with pytest.raises(ValueError, match="without the rows"):
        local.predict(X)
    found.save(tmp_path / "model.hdsl")
    again = hdsl.HDSLClassifier.load(tmp_path / "model.hdsl", X, y)
    np.testing.assert_array_equal(again.predict(X), found.predict(lazy(X)).compute())
    assert found.at(iteration=3).chosen_iter_ == 3
    np.testing.assert_array_equal(
        found.at(iteration=3).predict(lazy(X)).compute(), again.at(iteration=3).predict(X)
    )
    unpickled = pickle.loads(pickle.dumps(found))
    assert_same(unpickled, found)
    with pytest.raises(ValueError, match="no fitted rows on a cluster"):
        unpickled.kneighbors()
    assert found.client is client


# -- faults -------------------------------------------------------------------------------------------------------------------


def kill(client, address):
    os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)


class Killer:
    """Kills a worker that has a shard, in the middle of a fit."""

    def __init__(self, client, at):
        self.client, self.at, self.killed = client, at, []

    def __call__(self, facts):
        if facts["iteration"] in self.at:
            having = self.client.who_has()
            holders = {a for key, places in having.items() if str(key).startswith("hdsl-shard") for a in places}
            self.killed.append(sorted(holders)[len(self.killed) % len(holders)])
            kill(self.client, self.killed[-1])


def tasks_of(client):
    """The tasks of the package on the scheduler."""

    def tasks(dask_scheduler):
        return sorted(str(key) for key in dask_scheduler.tasks if "hdsl-" in str(key))

    return set(client.run_on_scheduler(tasks))


def left_since(client, before):
    """The tasks and shards that are left on the cluster, besides those from before."""
    gc.collect()  # estimators and exceptions in reference cycles keep their futures
    deadline = time.monotonic() + 10
    while tasks_of(client) - before and time.monotonic() < deadline:
        time.sleep(0.1)
    return tasks_of(client) - before


@pytest.mark.parametrize("case", ["random", "neighbors with validation", "mining rounds", "files"])
def test_a_killed_worker_does_not_change_the_model(mortal, tmp_path, case):
    client = mortal
    X, y = planted()
    params = dict(scale=10, triplets="random:10", max_iter=15)
    if case == "neighbors with validation":
        params |= dict(triplets="knn:2:3", early_stopping=True, validation_fraction=0.3, eval_every=5)
    if case == "mining rounds":
        params |= dict(mining_rounds=1, max_iter=12)
    rows = lazy(X)
    if case == "files":
        for at, block in enumerate(blocks(X)):
            dump_svmlight_file(block, y[CUTS[at] : CUTS[at + 1]], str(tmp_path / f"{at}.svm"), zero_based=False)
        rows, _ = hdsl.dask.read_svmlight(str(tmp_path / "*.svm"), n_features=400, zero_based=False, client=client)
    expected = hdsl.HDSL(**params).fit(X, y)
    killer = Killer(client, [7])
    found = hdsl.dask.HDSL(**params, callback=killer).fit(rows, y, client=client, n_shards=2, timeout=30)
    assert len(killer.killed) == 1 and found.distributed_["recoveries"] >= 1
    assert_same(found, expected)


def test_tasks_that_no_worker_can_run_are_given_up(client):
    shards = Cluster(client, None, None, Source("random", (1,)), classes=None, options={}, n_shards=1, timeout=0.1)
    # Longer than the timeout, but a worker is at it.
    shards._await([client.submit(time.sleep, 0.6, pure=False)])
    stuck = client.submit(int, resources={"which no worker has": 1}, key="stuck", pure=False)
    with pytest.raises(hdsl.dask.WorkerLost, match="no worker has worked on stuck for 0.1 s"):
        shards._await([stuck])


def test_futures_are_kept_until_a_task_is_done_or_given_up(client):
    before = tasks_of(client)
    no_worker = {"resources": {"which no worker has": 1}}
    for after, options in ((False, {}), (True, no_worker)):
        needed = client.submit(int, 1, key="hdsl-needed", pure=False)
        task = keep([needed], client.submit(abs, needed, key="hdsl-task", pure=False, **options))
        del needed
        time.sleep(0.25)
        assert ("hdsl-needed" in client.refcount) == after  # still needed?
        del task
        assert left_since(client, before) == set()


def test_lost_data_is_named_and_the_best_model_so_far_is_kept(mortal):
    client = mortal
    X, y = planted()
    first, second = workers(client)[:2]
    parts = [
        client.scatter(block, workers=[place], hash=False)
        for block, place in zip(blocks(X), [first, second, first, second, first])
    ]
    killed = []

    def kill_second(facts):
        if facts["iteration"] == 9:
            killed.append(second)
            kill(client, second)

    learner = hdsl.dask.HDSL(scale=10, triplets="random:10", max_iter=30, callback=kill_second)
    try:
        learner.fit(parts, y, client=client, timeout=30)
    except hdsl.dask.DataLost as lost:
        assert "block 1 of X" in str(lost) or "block 3 of X" in str(lost)
    else:
        # Dask had copied the blocks to the other worker: nothing was lost.
        assert killed and learner.distributed_["recoveries"] >= 1
        return
    assert killed
    best = learner.best_so_far_
    assert type(best) is hdsl.HDSL and 8 <= best.n_iter_ <= 10
    expected = hdsl.HDSL(scale=10, triplets="random:10", max_iter=30).fit(X, y)
    (i, j, weights), _ = best._model.atoms()
    (i_2, j_2, weights_2), _ = expected.at(iteration=best.n_iter_)._model.atoms()
    np.testing.assert_array_equal([i, j], [i_2, j_2])
    np.testing.assert_allclose(weights, weights_2, rtol=1e-9)
    assert learner.to_local() is best


def test_a_fit_that_does_not_fit_is_refused_before_it_starts(client):
    X, y = planted()
    learner = hdsl.dask.HDSL(scale=10, triplets="random:1000000", max_iter=3, memory=10**7)
    with pytest.raises(MemoryError, match=r"needs about .* on worker tcp://.*, which has 10 MB left \(2 shards on 2 workers"):
        learner.fit(lazy(X), y, client=client)
    learner = hdsl.dask.HDSL(scale=10, triplets="random:20000000", max_iter=3)
    with pytest.raises(MemoryError, match="Add workers, mine fewer triplets"):
        learner.fit(lazy(X), y, client=client)
    assert not [key for key in client.who_has() if str(key).startswith("hdsl-shard")]


def test_a_client_that_disconnects_leaves_nothing_running(cluster, client):
    X, y = planted()
    before = tasks_of(client)
    reached, failed = threading.Event(), []
    own = Client(cluster, set_as_default=False)

    def each(facts):
        if facts["iteration"] == 5:
            reached.set()

    def fit():
        try:
            hdsl.dask.HDSL(scale=10, triplets="random:10", max_iter=100_000, callback=each).fit(
                lazy(X), y, client=own, timeout=5
            )
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=fit)
    thread.start()
    assert reached.wait(60)
    own.close()
    thread.join(60)
    assert not thread.is_alive() and failed
    assert left_since(client, before) == set()


def test_a_fit_goes_on_from_its_checkpoint(client, tmp_path):
    X, y = planted()
    params = dict(scale=10, triplets="random:10", max_iter=20, early_stopping=True, validation_fraction=0.3, eval_every=5)
    expected = hdsl.dask.HDSL(**params).fit(lazy(X), y, client=client, n_shards=2)
    path = tmp_path / "checkpoint"

    def interrupt(facts):
        if facts["iteration"] == 12:
            raise KeyboardInterrupt

    seen = []
    learner = hdsl.dask.HDSL(**params, checkpoint=(path, 0), callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(lazy(X), y, client=client, n_shards=2)
    assert path.exists()
    # On other shards, the sums of the same triplets differ by rounding errors.
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    on_three = hdsl.dask.HDSL(**params, checkpoint=(copy, 0)).fit(lazy(X), y, client=client, n_shards=3)
    assert_same(on_three, expected)
    learner.callback = lambda facts: seen.append(facts["seconds"])
    learner.fit(lazy(X), y, client=client, n_shards=2)
    assert len(seen) == expected.n_iter_ and not path.exists()
    learner.callback = learner.checkpoint = None
    np.testing.assert_array_equal(learner._model.atoms()[0][2], expected._model.atoms()[0][2])
    assert learner._model.to_bytes() == expected._model.to_bytes()
    # A checkpoint of other rows.
    learner.checkpoint, learner.callback = (path, 0), interrupt
    with pytest.raises(KeyboardInterrupt):
        learner.fit(lazy(X), y, client=client)
    learner.callback = None
    with pytest.raises(ValueError, match="of another training|does not belong to these triplets"):
        learner.fit(lazy(X[::-1]), y, client=client)


def test_progress_says_what_was_sent(client, capsys):
    X, y = planted()
    hdsl.dask.HDSL(scale=10, triplets="random:5", max_iter=5, verbose=1).fit(lazy(X), y, client=client)
    assert "5 iterations (max-iter)" in capsys.readouterr().err


def test_a_client_is_needed():
    with pytest.raises(ValueError, match="there is no Dask client|closed"):
        hdsl.dask.HDSL(scale=10).fit([dask.delayed(np.eye(3))], [0, 1, 1], client=_closed())


def _closed():
    client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None, set_as_default=False)
    client.close()
    return client


def test_nothing_is_left_of_an_estimator_that_is_gone(client):
    X, y = planted()
    before = tasks_of(client)
    learner = hdsl.dask.HDSL(scale=10, triplets="random:5", max_iter=5).fit(lazy(X), y, client=client)
    assert tasks_of(client) - before
    del learner
    assert left_since(client, before) == set()
