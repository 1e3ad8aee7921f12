"""Every experiment from end to end on planted data, as CI runs it."""

from __future__ import annotations

import pytest

from experiments.__main__ import EXPERIMENTS, main


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("tiny")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_runs_and_is_reported(name, home, capsys):
    assert main([name, "--tiny", "--jobs", "2", "--results", str(home)]) == 0
    assert "FAILED" not in capsys.readouterr().err


def test_nothing_is_run_twice(home, capsys):
    before = {file: file.read_bytes() for file in (home / "results").glob("*.jsonl")}
    assert main(["all", "--tiny", "--results", str(home)]) == 0
    assert {file: file.read_bytes() for file in (home / "results").glob("*.jsonl")} == before
    page = (home / "RESULTS.md").read_text()
    assert "Not run yet" not in page
    assert "nan" not in page
