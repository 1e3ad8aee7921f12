"""The command line: `python -m experiments all`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

#: Modules of this package, in the order of the report. Each has TITLE, `cells(setting)` and `report(found, page)`; the
#: modules that its cells name as their task have `run(cell, context)`.
EXPERIMENTS = [
    "table2", "table3", "table4", "figure1", "figure2", "figure3", "growth", "convergence", "text", "ranking",
    "tuning", "calibration", "folds", "base",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]

EPILOG = """
settings:
  (none)     the full run: all four datasets, five seeds, every grid; some hours on two cores
  --quick    the same systems with two seeds and coarse grids; minutes
  --tiny     planted data made on the fly; seconds. Tests that everything works, and nothing else

Finished cells are kept, so that a run that was stopped, killed or extended goes on where it was. The full run keeps them
in experiments/results and writes experiments/RESULTS.md; the others keep and write under target/experiments.

examples:
  python -m experiments --list                             what there is
  python -m experiments table3 --quick                     one experiment, a first look
  python -m experiments table3 --systems hdsl,diag_l1 --datasets dexter
  python -m experiments all --jobs 2                       everything; again after a stop to go on
  python -m experiments all --report                       only write the report again

experiments/run does the same in an environment that it makes itself. Status 1 if a cell failed, 2 for a bad command.
"""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Runs the paper's experiments and writes a report of them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run, or `all`")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", const="quick", dest="size", help="two seeds, coarse grids")
    size.add_argument("--tiny", action="store_const", const="tiny", dest="size", help="planted data, seconds")
    parser.add_argument("--jobs", type=_whole, metavar="N", help="cells side by side, one thread each [all cores]")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the datasets are [../shared/data]")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results, figures and the report go")
    parser.add_argument("--datasets", type=_names, metavar="A,B", help="only these")
    parser.add_argument("--systems", type=_names, metavar="A,B", help="only these")
    parser.add_argument("--seeds", type=_names, metavar="0,1", help="only these")
    parser.add_argument("--metric-learn", metavar="PYTHON", help="a Python that has metric-learn, for LMNN and SCML")
    parser.add_argument("--report", action="store_true", help="run nothing, write the report from what is kept")
    parser.add_argument("--tidy", action="store_true", help="drop kept cells that the present settings do not ask for")
    parser.add_argument("--list", action="store_true", help="list the experiments and how many of their cells are done")
    return parser


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number from 1")
    return int(text)


def _names(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def stop(message: str) -> None:
    print(f"python -m experiments: {message}", file=sys.stderr)
    raise SystemExit(2)


def check_environment() -> None:
    """What has to be installed, told at once."""
    missing = []
    for module, package in [
        ("numpy", "numpy"), ("scipy", "scipy"), ("sklearn", "scikit-learn"), ("matplotlib", "matplotlib"),
        ("rich", "rich"),
    ]:  # fmt: skip
        try:
            importlib.import_module(module)
        except ImportError:
            missing.append(package)
    if missing:
        stop(
            f"{', '.join(missing)} not installed; `pip install -r experiments/requirements.txt`, or use experiments/run, "
            "which makes an environment of its own"
        )
    try:
        importlib.import_module("hdsl")
    except ImportError as error:
        stop(f"hdsl cannot be imported ({error}); `pip install .` in the project's folder, or use experiments/run")


def main(words: list[str] | None = None) -> int:
    parser = arguments()
    asked = parser.parse_args(words)
    if not asked.names and not asked.list:
        parser.print_help()
        return 2
    chosen = EXPERIMENTS if "all" in asked.names or not asked.names else list(dict.fromkeys(asked.names))
    for name in chosen:
        if name not in EXPERIMENTS:
            stop(f"no experiment is called {name!r}; there are: {', '.join(EXPERIMENTS)}, and `all`")
    check_environment()
    return _run(asked, chosen)


def _run(asked: argparse.Namespace, chosen: list[str]) -> int:
    from experiments import data
    from experiments.cells import SETTINGS, Cell, Context
    from experiments.report import write_report
    from experiments.runner import Run
    from experiments.store import Store

    setting = SETTINGS[asked.size or "full"]
    usual = ROOT / "experiments" if asked.size is None else ROOT / "target" / "experiments" / setting.name
    home = asked.results or usual
    folder = (asked.data or data.BESIDE).resolve()
    store = Store(home / "results")
    modules: dict[str, ModuleType] = {name: importlib.import_module(f"experiments.{name}") for name in EXPERIMENTS}
    cells: dict[str, list[Cell]] = {name: module.cells(setting) for name, module in modules.items()}

    wanted = {cell: None for name in chosen for cell in cells[name]}
    for option, attribute in [("datasets", "dataset"), ("systems", "system"), ("seeds", "seed")]:
        only = getattr(asked, option)
        if only is not None:
            there = sorted({str(getattr(cell, attribute)) for cell in wanted})
            for one in only:
                if one not in there:
                    stop(f"--{option}: {one!r} is in none of these experiments; there are: {', '.join(there)}")
            wanted = {cell: None for cell in wanted if str(getattr(cell, attribute)) in only}

    fingerprints, gone = {}, []
    for name in sorted({cell.dataset for several in cells.values() for cell in several}):
        missing = data.DATASETS[name].missing(folder)
        if missing:
            gone += [(name, missing)]
        else:
            fingerprints[name] = data.DATASETS[name].fingerprint(folder)
    needed = {cell.dataset for cell in wanted}
    lacking = [f"  {name}: no {path}" for name, paths in gone if name in needed for path in paths]

    if asked.list:
        for name in chosen:
            there = [cell for cell in cells[name] if cell.dataset in fingerprints]
            done = sum(store.result(cell, fingerprints[cell.dataset]) is not None for cell in there)
            print(f"{name:12} {done:4} of {len(cells[name]):4} cells done  {modules[name].TITLE}")
        return 0
    if lacking and not asked.report:
        stop(
            "some data is not there; say where with --data DIR, or leave it out with --datasets:\n" + "\n".join(lacking)
        )

    failures = 0
    if not asked.report:
        todo = [
            (cell, fingerprints[cell.dataset])
            for cell in wanted
            if store.result(cell, fingerprints[cell.dataset]) is None
        ]
        # A first seed of everything comes before the second of anything: a run that is stopped has a whole table.
        todo.sort(key=lambda pair: pair[0].seed)
        print(f"{len(wanted)} cells, {len(wanted) - len(todo)} of them done before", file=sys.stderr)
        context = Context(folder, asked.metric_learn or os.environ.get("HDSL_METRIC_LEARN_PYTHON"))
        jobs = asked.jobs or os.cpu_count() or 1
        try:
            failures = Run(todo, store, context, jobs).go()
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
            return 130
    if asked.tidy:
        every = [cell for several in cells.values() for cell in several if cell.dataset in fingerprints]
        dropped = store.tidy((cell, fingerprints[cell.dataset]) for cell in every)
        print(f"{dropped} lines dropped", file=sys.stderr)
    path = write_report(modules, cells, setting, store, fingerprints, home)
    print(f"wrote {path}", file=sys.stderr)
    if failures:
        print(f"{failures} {'cell' if failures == 1 else 'cells'} failed, see above and the report", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
