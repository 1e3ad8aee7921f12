"""Small problems with known structure, and the way to real data where there is any."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[2]


def planted(n_rows=200, n_features=400, seed=0):
    """Rows of four classes. Each class has three marker columns of which a row has one; the rest is noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n_rows)
    X = sp.random(n_rows, n_features, density=0.02, random_state=rng, format="lil")
    X[np.arange(n_rows), 3 * y + rng.integers(0, 3, n_rows)] = 1.0
    return sp.csr_matrix(X), y


def local_cluster(n_workers, **options):
    """A Dask cluster of processes on this machine, which start as copies of one that has imported everything."""
    import dask
    from distributed import LocalCluster

    if "forkserver" in multiprocessing.get_all_start_methods():
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(["distributed", "hdsl.dask"])
        forkserver.ensure_running()  # with this list: Dask sets its own before a worker starts
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, **options)


@pytest.fixture
def problem():
    """Rows and classes to learn from."""
    return planted()


@pytest.fixture(scope="session")
def program():
    """The command line's program, if it has been built."""
    named = os.environ.get("HDSL_PROGRAM")
    places = [named] if named else [str(ROOT / "target" / "release" / "hdsl"), shutil.which("hdsl")]
    found = next((place for place in places if place and Path(place).is_file()), None)
    if found is None:
        pytest.skip("the program `hdsl` is not built (cargo build --release), or HDSL_PROGRAM does not name it")
    return found


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data beside the project, if there is one."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("there is no folder of real data beside the project")
    return folder


@pytest.fixture
def heeds_ctrl_c():
    """Programs that a shell starts in the background are started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
