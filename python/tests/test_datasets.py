"""Fetching data sets, against a server on the loopback address with the layouts of the real ones."""

from __future__ import annotations

import bz2
import http.server
import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from hdsl import datasets

DEXTER = "archive.ics.uci.edu/static/public/168/dexter.zip"
LIBSVM = "www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without ranges, slowly if asked for, and keeps count."""

    requests: list[str] = []
    stalls = False

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.stalls:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"BZh" + bytes(1000))
            self.wfile.flush()
            time.sleep(20)
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path):
    """A folder that is served, and its address."""
    folder = tmp_path / "mirror"

    class Here(Handler):
        requests: list[str] = []

        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=os.fspath(folder), **kwargs)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Here)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.folder = folder
    server.handler = Here
    server.base = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()
    server.server_close()


def put(mirror, path: str, content: bytes) -> None:
    file = mirror.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def put_dexter(mirror) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("DEXTER/dexter_train.data", "1:5 7:3 \n2:1 20000:9 \n")
        archive.writestr("DEXTER/dexter_train.labels", "1\n-1\n")
        archive.writestr("DEXTER/dexter_valid.data", "7:1 \n2:4 \n1:1 2:1 \n")
        archive.writestr("dexter_valid.labels", "1\n-1\n-1\n")
        archive.writestr("DEXTER/dexter_test.data", "3:1 \n")
    put(mirror, DEXTER, packed.getvalue())


def test_a_challenge_set_is_read_from_its_zip(mirror, tmp_path):
    put_dexter(mirror)
    where = {"data_home": tmp_path / "cache", "base_url": mirror.base}
    bunch = datasets.fetch_dexter(**where)
    assert sp.issparse(bunch.data) and bunch.data.format == "csr" and bunch.data.shape == (2, 20000)
    assert bunch.data[0, 0] == 5 and bunch.data[1, 19999] == 9 and bunch.data.nnz == 4
    assert bunch.target.tolist() == [1, -1] and bunch.target_names.tolist() == [-1, 1]
    assert "NIPS 2003" in bunch.DESCR and Path(bunch.filenames[0]).is_file()
    X, y = datasets.fetch_dexter(subset="all", return_X_y=True, **where)
    assert X.shape == (5, 20000) and y.tolist() == [1, -1, 1, -1, -1]
    test = datasets.fetch_dexter(subset="test", **where)
    assert test.data.shape == (1, 20000) and test.target is None
    assert len(mirror.handler.requests) == 1, "the cache serves the second and third call"


def test_rows_are_those_that_scikit_learn_reads(mirror, tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random(30, 50, 0.2, format="csr", random_state=rng)
    lines = []
    for i in range(30):
        row = X[i]
        lines.append(" ".join([str(i % 3), *(f"{j + 1}:{float(v)!r}" for j, v in zip(row.indices, row.data))]))
    packed = bz2.compress("\n".join(lines).encode() + b"\n")
    put(mirror, f"{LIBSVM}/multiclass/sector/sector.bz2", packed)
    got, y = datasets.fetch_sector(data_home=tmp_path / "cache", base_url=mirror.base, return_X_y=True)
    want, classes = load_svmlight_file(io.BytesIO(bz2.decompress(packed)), n_features=55197)
    assert got.shape == want.shape and abs(got - want).max() == 0
    np.testing.assert_array_equal(y, classes)


def test_what_is_missing_is_named(mirror, tmp_path):
    home = tmp_path / "cache"
    with pytest.raises(FileNotFoundError, match=r"dexter\.zip is not in the cache, and downloads are disabled"):
        datasets.fetch_dexter(data_home=home, download_if_missing=False)
    with pytest.raises(OSError, match=r"cannot reach 127\.0\.0\.1:9: .* on another machine and save it as .*dexter\.zip"):
        datasets.fetch_dexter(data_home=home, base_url="http://127.0.0.1:9")
    with pytest.raises(OSError, match="answered 404"):
        datasets.fetch_real_sim(data_home=home, base_url=mirror.base)
    with pytest.raises(ValueError, match="unknown data set 'nonsense', expected one of dexter"):
        datasets.fetch("nonsense")
    with pytest.raises(ValueError, match="`subset` is 'tset', expected one of 'train', 'valid', 'test', 'all'"):
        datasets.fetch_dexter(subset="tset")
    assert not [p for p in home.rglob("*") if p.is_file() and p.name != ".lock"]


def test_damage_is_noticed_and_mended(mirror, tmp_path):
    put(mirror, f"{LIBSVM}/multiclass/sector/sector.bz2", bz2.compress(b"1 1:1\n-1 2:1\n"))
    where = {"data_home": tmp_path, "base_url": mirror.base}
    file = Path(datasets.fetch_sector(**where).filenames[0])
    file.write_bytes(bz2.compress(b"1 1:2\n"))
    with pytest.raises(OSError, match="has changed since it was fetched"):
        datasets.fetch_sector(**where)
    assert datasets.fetch_sector(again=True, **where).data.shape == (2, 55197)


def test_the_environment_says_where(mirror, tmp_path, monkeypatch):
    put(mirror, f"{LIBSVM}/multiclass/sector/sector.bz2", bz2.compress(b"1 1:1\n-1 2:1\n"))
    monkeypatch.setenv("HDSL_DATA", os.fspath(tmp_path / "elsewhere"))
    monkeypatch.setenv("HDSL_FETCH_BASE", mirror.base + "/")
    assert datasets.data_home() == os.fspath(tmp_path / "elsewhere")
    bunch = datasets.fetch("sector")
    assert bunch.filenames == [os.fspath(tmp_path / "elsewhere" / "sector" / "sector.bz2")]
    assert datasets.data_home("here") == "here"


def test_every_set_has_its_function():
    for name in datasets.names():
        function = getattr(datasets, "fetch_" + name.replace(".", "_").replace("-", "_"))
        assert function.__name__ in datasets.__all__
    assert sum(name.startswith("fetch_") for name in datasets.__all__) == len(datasets.names())


def test_progress_has_rate_and_time_left():
    stream = io.StringIO()
    show = datasets._Downloads(stream)
    show.in_place = True
    show({"file": "a", "done": 1_000_000, "total": 3_000_000})
    show.since = (show.since[0] - 1.0, 0)
    show({"file": "a", "done": 2_000_000, "total": 3_000_000})
    show.close()
    last = stream.getvalue().split("\r")[-2]
    assert "a: 2.0 of 3.0 MB, " in last and " MB/s, " in last and last.endswith(" s left")


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_ctrl_c_leaves_a_server_that_does_not_answer(mirror, tmp_path):
    mirror.handler.stalls = True
    code = (
        # Whoever runs the tests may ignore or block the signal, and children inherit that.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])\n"
        "from hdsl import datasets\n"
        f"datasets.fetch_real_sim(data_home={os.fspath(tmp_path)!r}, base_url={mirror.base!r})"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    part = tmp_path / "real-sim" / "real-sim.bz2.part"
    patience = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size >= 1000) and time.monotonic() < patience:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors and child.returncode != 0
    assert part.exists() and not (tmp_path / "real-sim" / "real-sim.bz2").exists()
