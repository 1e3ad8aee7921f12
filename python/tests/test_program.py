"""The command that the package installs: the same output, files and exit statuses as the program."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import hdsl

#: A folder with a planted problem is made by the first call, and used by the others.
CALLS = {
    "version": "--version",
    "help": "--help",
    "help of a command": "train -h",
    "no command": "",
    "demo": "demo --dir d",
    "train": "train d/train.svm --valid d/valid.svm --lambda 10 --max-iter 40 -o m.hdsl -v",
    "evaluate": "evaluate m.hdsl --train d/train.svm d/test.svm --json",
    "predict": "predict m.hdsl --train d/train.svm d/test.svm --threads 1",
    "explain": "explain m.hdsl --top 3",
    "report": "report m.hdsl --train d/train.svm -o r.html --threads 1",
    "completions": "completions bash",
    "standard input": "inspect -",
    "a missing file": "train missing.svm -o m.hdsl",
    "an unknown option": "train --missing",
    "a bad value": "train d/train.svm --lambda -1 -o m.hdsl",
    "a folder that cannot be written": "train d/train.svm --lambda 1 -o missing/m.hdsl",
}


def command():
    """The command as it was installed beside this interpreter."""
    place = Path(sysconfig.get_path("scripts")) / ("hdsl.exe" if os.name == "nt" else "hdsl")
    if not place.is_file():
        pytest.skip("the package was not installed, so there is no command `hdsl`")
    return [str(place)]


WAYS = {"the command": command, "python -m": lambda: [sys.executable, "-m", "hdsl"]}


def environment():
    # The package under test for `python -m`, wherever it is; no colors, and one width for help texts.
    return {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(Path(hdsl.__file__).parents[1])}


def results(prefix, folder):
    """Status, standard output and standard error of every call, and all files afterwards."""
    folder.mkdir()
    outcomes = {}
    for name, words in CALLS.items():
        out = subprocess.run(
            [*prefix, *words.split()],
            cwd=folder,
            env=environment(),
            input=b"1 1:1 2:1\n-1 3:1\n",
            capture_output=True,
        )
        outcomes[name] = (out.returncode, timeless(out.stdout), timeless(out.stderr))
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    # The demo's report has its training time.
    assert files.pop(Path("d/report.html"))
    return outcomes, files


def timeless(text):
    """Text without the numbers of seconds."""
    text = re.sub(rb'("\w*seconds": )[0-9.e-]+', rb"\1TIME", text)
    return re.sub(rb"\d+\.\d+ s\b", b"TIME s", text)


@pytest.fixture(scope="module")
def of_program(program, tmp_path_factory):
    return results([program], tmp_path_factory.mktemp("program") / "here")


@pytest.mark.parametrize("way", WAYS)
def test_same_output_files_and_status_as_the_program(way, of_program, tmp_path):
    outcomes, files = of_program
    here, here_files = results(WAYS[way](), tmp_path / "here")
    for name in CALLS:
        assert here[name] == outcomes[name], name
    assert {status for status, _, _ in outcomes.values()} == {0, 2}
    assert here_files.keys() == files.keys()
    for path in files:
        assert here_files[path] == files[path], path
    assert Path("m.hdsl") in files and Path("r.html") in files


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_that_goes_away_is_no_error(way, tmp_path):
    prefix = WAYS[way]()
    running = subprocess.Popen(
        [*prefix, "completions", "zsh"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    running.stdout.close()
    assert (running.wait(60), running.stderr.read()) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on Unix")
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_keeps_the_model_so_far(way, tmp_path, heeds_ctrl_c):
    prefix = WAYS[way]()
    demo = [*prefix, "demo", "--dir", "d"]
    demo = subprocess.run(demo, cwd=tmp_path, env=environment(), capture_output=True)
    assert demo.returncode == 0, demo.stderr
    endless = "train d/train.svm --valid d/valid.svm --lambda 10 --max-iter 100000000 --steps forward -v -o m.hdsl"
    running = subprocess.Popen(
        [*prefix, *endless.split()], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    line = b""
    while b"iteration " not in line:
        line = running.stderr.readline()
        assert line, "ended before the first iteration"
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 0, said
    assert b"stopping; the best model so far" in said
    assert (tmp_path / "m.hdsl").stat().st_size > 0


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on Unix")
def test_ctrl_c_ends_commands_without_a_handler(tmp_path, heeds_ctrl_c):
    # `inspect -` waits for standard input; Python's own handler would wait for it, too.
    running = subprocess.Popen(
        [*WAYS["python -m"](), "inspect", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 128 + signal.SIGINT


def test_the_command_starts_without_importing_scikit_learn():
    code = "import sys, hdsl.__main__; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert out.stdout == "[]\n", out.stderr


def test_every_public_name_can_be_imported():
    for name in hdsl.__all__:
        assert getattr(hdsl, name) is not None
    assert set(hdsl.__all__) <= set(dir(hdsl))
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        hdsl.missing
