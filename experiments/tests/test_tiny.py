"""Every experiment from end to end on planted data, as CI runs it."""

from __future__ import annotations

import importlib

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
