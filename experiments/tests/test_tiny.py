"""Every experiment from end to end on planted data, as CI runs it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.__main__ import EXPERIMENTS, main
from experiments.cells import SETTINGS


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    # One run for all: starting workers takes longer than their work.
    assert main(["all", "--tiny", "--jobs", "2", "--results", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_runs_and_is_reported(name, home):
    module = importlib.import_module(f"experiments.{name}")
    assert module.cells(SETTINGS["tiny"])
    section = (home / "RESULTS.md").read_text().split(f"## {module.TITLE}\n")[1].split("\n## ")[0]
    assert "|" in section
    for word in ("Not run yet", "Failed", "nan"):
        assert word not in section
    for line in section.splitlines():
        if line.startswith("!["):
            assert (home / line.split("(")[1].rstrip(")")).read_text().endswith("</svg>\n")


def test_nothing_is_run_twice_and_the_report_is_the_same_to_the_byte(home):
    def contents():
        return {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}

    before = contents()
    assert main(["all", "--tiny", "--jobs", "1", "--results", str(home)]) == 0
    assert contents() == before


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    command = [sys.executable, "-m", "experiments", "table4", "--tiny", "--jobs", "1", "--results", str(tmp_path)]
    process = subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2], stderr=subprocess.DEVNULL)
    file = tmp_path / "results" / "classify.jsonl"
    while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < 3):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = file.read_bytes()
    assert before.count(b"\n") >= 3
    assert main(command[3:]) == 0
    # What was finished is as it was, and no cell is there twice.
    after = file.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == len(importlib.import_module("experiments.table4").cells(SETTINGS["tiny"]))
