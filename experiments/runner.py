"""Runs cells in parallel processes of one thread each, and records every one that ends."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import platform
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from experiments.cells import Cell, Context, LeftOut
from experiments.store import Store

#: Every library that would otherwise take all cores.
THREADS = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS"]


def work(cell: Cell, context: Context) -> tuple[float, dict[str, Any]]:
    """Run one cell in a worker: its seconds and its outcome."""
    started, used = time.perf_counter(), processor_time()
    try:
        module = importlib.import_module(f"experiments.{cell.task}")
        outcome = {"result": module.run(cell, context)}
    except LeftOut as reason:
        outcome = {"left_out": str(reason)}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"
        outcome = {"failed": f"{type(error).__name__}: {error} ({place})"}
    outcome["processor_seconds"] = round(processor_time() - used, 3)
    outcome["versions"] = versions()
    return time.perf_counter() - started, outcome


def versions() -> str:
    """Versions of the packages, for the report; not part of the key."""
    names = ["hdsl", "numpy", "scipy", "scikit-learn"]
    modules = [importlib.import_module(name.replace("scikit-learn", "sklearn")) for name in names]
    told = [f"{name} {module.__version__}" for name, module in zip(names, modules)]
    return ", ".join([*told, f"Python {platform.python_version()}"])


def processor_time() -> float:
    """Processor time of this process and its children, which does not depend on other load."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def leave_with(parent: int) -> None:
    """End this worker when its parent is gone, so that a killed run leaves no processes behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Run:
    """A list of cells to run, and the store of their results."""

    def __init__(self, todo: Sequence[tuple[Cell, str]], store: Store, context: Context, jobs: int) -> None:
        self.todo, self.store, self.context, self.jobs = list(todo), store, context, jobs
        self.progress = progress(len(self.todo))
        self.failures = 0

    def go(self) -> int:
        """Run all cells; return the number of failures."""
        os.environ.update({name: "1" for name in THREADS})
        waiting = list(reversed(self.todo))
        died: dict[Cell, int] = {}
        with self.progress:
            while waiting:
                try:
                    self._with_pool(waiting, died)
                except BrokenProcessPool:
                    continue  # Running cells are back in `waiting`, or recorded as failed.
        return self.failures

    def _with_pool(self, waiting: list[tuple[Cell, str]], died: dict[Cell, int]) -> None:
        flying: dict[Future[Any], tuple[Cell, str]] = {}
        # A fork of a process with threads may hang; a new interpreter does not.
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.jobs, fresh, initializer=leave_with, initargs=(os.getpid(),)) as pool:
            try:
                while waiting or flying:
                    # After a crash, one cell at a time identifies the culprit.
                    while waiting and len(flying) < (1 if died else self.jobs):
                        # `submit` may raise if the pool is broken: the cell stays in the list until then.
                        cell, fingerprint = waiting[-1]
                        flying[pool.submit(work, cell, self.context)] = (cell, fingerprint)
                        waiting.pop()
                    self._tell(waiting, [cell for cell, _ in flying.values()])
                    for future in wait(flying, return_when=FIRST_COMPLETED).done:
                        seconds, outcome = future.result()
                        cell, fingerprint = flying.pop(future)
                        died.pop(cell, None)
                        self._note(cell, fingerprint, seconds, outcome)
            except BrokenProcessPool:
                for cell, fingerprint in flying.values():
                    died[cell] = died.get(cell, 0) + 1
                    if died[cell] > 1:
                        del died[cell]
                        self._note(cell, fingerprint, 0.0, {"failed": "its process was killed, possibly for lack of memory"})
                    else:
                        waiting.append((cell, fingerprint))
                raise
            except BaseException:
                # Ctrl-C: running cells are lost, finished ones are kept.
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _note(self, cell: Cell, fingerprint: str, seconds: float, outcome: dict[str, Any]) -> None:
        self.store.add(cell, fingerprint, seconds, **outcome)
        self.failures += "failed" in outcome
        self.progress.step(cell, seconds, outcome)

    def _tell(self, waiting: list[tuple[Cell, str]], flying: list[Cell]) -> None:
        left = sum(self._expected(cell) for cell, _ in waiting) + 0.5 * sum(map(self._expected, flying))
        self.progress.show(left / self.jobs, flying)

    def _expected(self, cell: Cell) -> float:
        """The expected seconds of a cell: the mean of similar cells, or of all."""
        like = self.store.seconds(cell)
        if like:
            return statistics.mean(like)
        return self.progress.mean


class Lines:
    """Progress for a pipe: one line per cell."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.spent = total, 0, 0.0
        self.left = 0.0
        self.started = time.monotonic()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    @property
    def mean(self) -> float:
        return self.spent / self.done if self.done else 0.0

    def step(self, cell: Cell, seconds: float, outcome: dict[str, Any]) -> None:
        self.done += 1
        self.spent += seconds
        self.line(f"[{self.done}/{self.total}, {clock(time.monotonic() - self.started)}] {describe(cell, seconds, outcome)}")

    def line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def show(self, left: float, flying: list[Cell]) -> None:
        if self.done and self.done % 20 == 0:
            self.line(f"about {clock(left)} left")


class Bar(Lines):
    """Progress for a terminal: a bar with the time left, and one line per failure."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}  {task.description}"),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task("", total=total, left="")

    def __enter__(self) -> Any:
        self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.bar.stop()

    def step(self, cell: Cell, seconds: float, outcome: dict[str, Any]) -> None:
        self.done += 1
        self.spent += seconds
        if "result" not in outcome:
            self.bar.console.print(describe(cell, seconds, outcome), markup=False, highlight=False)
        self.bar.advance(self.task)

    def show(self, left: float, flying: list[Cell]) -> None:
        told = f"about {clock(left)} left" if self.done else ""
        self.bar.update(self.task, left=told, description="; ".join(cell.name for cell in flying))


def progress(total: int) -> Lines:
    """A bar on a terminal, lines elsewhere."""
    return Bar(total) if sys.stderr.isatty() else Lines(total)


def describe(cell: Cell, seconds: float, outcome: dict[str, Any]) -> str:
    if "failed" in outcome:
        return f"{cell.name}: FAILED: {outcome['failed']}"
    if "left_out" in outcome:
        return f"{cell.name}: left out: {outcome['left_out']}"
    return f"{cell.name}: {seconds:.1f} s"


def clock(seconds: float) -> str:
    """1:02:03, or 2:03."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
