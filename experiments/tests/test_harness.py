"""The harness on its own: keys, the store, and what happens to cells that fail or die."""

from __future__ import annotations

import os
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from experiments import data, runner
from experiments.__main__ import main
from experiments.cells import Context, LeftOut, cell
from experiments.runner import Run, work
from experiments.store import Store


def made_up(seed: int, **parameters):
    return cell("made_up", "planted_2", "one", seed, 1, **parameters)


def test_a_key_goes_by_all_that_a_result_depends_on():
    keys = {
        one.key(fingerprint)
        for one, fingerprint in [
            (made_up(0), "a"),
            (made_up(1), "a"),
            (made_up(0), "b"),
            (made_up(0, grid=[1, 2]), "a"),
            (cell("made_up", "planted_2", "one", 0, 2), "a"),
            (cell("made_up", "planted_2", "two", 0, 1), "a"),
            (cell("made_up", "planted_4", "one", 0, 1), "a"),
            (cell("other", "planted_2", "one", 0, 1), "a"),
        ]
    }
    assert len(keys) == 8
    assert made_up(0, grid=[1, 2]) == made_up(0, grid=(1, 2))
    assert made_up(0, a=1, b=2).key("a") == made_up(0, b=2, a=1).key("a")


def test_the_store_survives_a_line_that_was_cut_off(tmp_path):
    store = Store(tmp_path)
    store.add(made_up(0), "a", 1.0, result={"error": 0.5})
    file = tmp_path / "made_up.jsonl"
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole + whole[:cut])
        again = Store(tmp_path)
        assert again.result(made_up(0), "a") == {"error": 0.5}
        again.add(made_up(1), "a", 1.0, result={"error": 0.25})
        assert Store(tmp_path).result(made_up(0), "a") == {"error": 0.5}
        assert Store(tmp_path).result(made_up(1), "a") == {"error": 0.25}


def test_failures_are_noted_and_tried_again(tmp_path):
    store = Store(tmp_path)
    store.add(made_up(0), "a", 0.1, failed="ValueError: no")
    assert store.result(made_up(0), "a") is None
    store.add(made_up(0), "a", 0.1, result={"error": 0})
    assert Store(tmp_path).result(made_up(0), "a") == {"error": 0}


def test_tidying_keeps_what_is_asked_for(tmp_path):
    store = Store(tmp_path)
    for seed in (3, 1, 2):
        store.add(made_up(seed), "a", 0.1, result={"error": seed})
    assert store.tidy([(made_up(1), "a"), (made_up(3), "a")]) == 1
    assert [Store(tmp_path).result(made_up(seed), "a") for seed in (1, 2, 3)] == [{"error": 1}, None, {"error": 3}]


def test_a_cell_that_raises_is_an_outcome(monkeypatch, tmp_path):
    module = types.ModuleType("experiments.made_up")

    def run(one, context):
        if one.seed == 1:
            raise ValueError("no rows")
        if one.seed == 2:
            raise LeftOut("not installed")
        return {"seed": one.seed}

    module.run = run
    monkeypatch.setitem(sys.modules, "experiments.made_up", module)
    outcomes = [work(made_up(seed), Context(tmp_path))[1] for seed in range(3)]
    assert outcomes[0]["result"] == {"seed": 0}
    assert outcomes[1]["failed"].startswith("ValueError: no rows (test_harness.py:")
    assert outcomes[2]["left_out"] == "not installed"


def test_a_worker_that_dies_takes_only_its_own_cell_along(monkeypatch, tmp_path):
    # Workers are fresh interpreters: what they are to run must be importable there.
    package = tmp_path / "extra"
    package.mkdir()
    (package / "deadly.py").write_text(
        "import os\ndef run(cell, context):\n    if cell.seed == 1:\n        os._exit(9)\n    return {'seed': cell.seed}\n"
    )
    (package / "sitecustomize.py").write_text(
        f"import experiments\nexperiments.__path__.append({str(package)!r})\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), root, os.environ.get("PYTHONPATH", "")]))
    several = [cell("deadly", "planted_2", "one", seed, 1) for seed in range(4)]
    store = Store(tmp_path / "results")
    assert Run([(one, "a") for one in several], store, Context(tmp_path), jobs=2).go() == 1
    assert [store.result(one, "a") for one in several] == [{"seed": 0}, None, {"seed": 2}, {"seed": 3}]
    assert "killed" in store.record(several[1], "a")["failed"]


def test_a_cell_that_a_broken_pool_refuses_is_not_lost(monkeypatch, tmp_path):
    refusals = iter([False, True])

    class Refusing(ThreadPoolExecutor):
        """Found broken when the second cell is handed to it, as a pool is whose worker died a moment before."""

        def __init__(self, jobs, *_, **__):
            super().__init__(jobs)

        def submit(self, *args):
            if next(refusals, False):
                raise BrokenProcessPool
            return super().submit(*args)

    module = types.ModuleType("experiments.made_up")
    module.run = lambda one, context: {"seed": one.seed}
    monkeypatch.setitem(sys.modules, "experiments.made_up", module)
    monkeypatch.setattr(runner, "ProcessPoolExecutor", Refusing)
    store = Store(tmp_path)
    assert Run([(made_up(seed), "a") for seed in range(3)], store, Context(tmp_path), jobs=2).go() == 0
    assert [store.result(made_up(seed), "a") for seed in range(3)] == [{"seed": 0}, {"seed": 1}, {"seed": 2}]


@pytest.mark.parametrize("name", ["planted_2", "planted_4"])
def test_preprocess_is_learned_on_training_rows_only(name, tmp_path):
    raw = data.DATASETS[name].cut(tmp_path, 0)
    parts = data.scaled(raw)
    most = raw.train.X.max(axis=0).toarray().ravel()
    for part, before in [(parts.train, raw.train), (parts.valid, raw.valid), (parts.test, raw.test)]:
        assert part.X.min() >= 0 and part.X.max() <= 1
        expected = before.X.toarray() / [m if m > 0 else 1 for m in most]
        assert abs(part.X.toarray() - expected.clip(max=1)).max() < 1e-12


def test_parts_share_no_row():
    parts = data.DATASETS["planted_4"].cut(None, 3)
    rows = data.planted(4, 0)
    assert len(parts.train) + len(parts.valid) + len(parts.test) == len(rows)
    together = {tuple(row) for part in (parts.train, parts.valid, parts.test) for row in part.X.toarray()}
    assert together == {tuple(row) for row in rows.X.toarray()}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table9"], "no experiment is called 'table9'"),
        (["table2", "--data", "/nowhere"], "dexter: no /nowhere/dexter/train.svm.bz2"),
        (["table2", "--tiny", "--datasets", "dexter"], "'dexter' is in none of these experiments"),
    ],
)
def test_bad_commands_are_told_and_end_with_status_2(words, told, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err
