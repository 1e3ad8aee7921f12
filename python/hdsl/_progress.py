"""A progress bar on standard error, or in a notebook."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, TextIO

#: The width of the bar at most, and of the whole line where there is no terminal to ask.
WIDTH, COLUMNS = 25, 79


def describe(facts: dict[str, Any], max_iter: int, columns: int = COLUMNS, rate: float | None = None) -> str:
    """One line of at most so many columns: progress, rate, time left, objective, number of features.

    Large numbers take the place of the bar. On a narrow terminal, what comes last is cut.

    >>> facts = {"iteration": 40, "objective": 0.25, "n_features": 12, "scale": 10.0, "valid_error": 0.05}
    >>> describe(facts, 100)
    '[##########               ] 40/100  objective 0.25, 12 features, error 5.0%'
    >>> describe(facts, 100, rate=20.0)
    '[#####       ] 40/100  20/s, 0:03 left  objective 0.25, 12 features, error 5.0%'
    >>> describe(facts, 100, 40, rate=20.0)
    '40/100  20/s, 0:03 left  objective 0.25,'
    >>> describe({**facts, "iteration": 400_000, "objective": 1.234e-5, "n_features": 1_355_191}, 1_000_000)
    '[####       ] 400000/1000000  objective 1.234e-05, 1355191 features, error 5.0%'
    """
    line = f"{facts['iteration']}/{max_iter}"
    if rate is not None and rate > 0:
        # The time that the remaining iterations take at this rate.
        line += f"  {rate:.{_digits(rate)}f}/s, {clock(max(0, max_iter - facts['iteration']) / rate)} left"
    line += f"  objective {facts['objective']:.4g}"
    line += f", {facts['n_features']} features"
    if facts["valid_error"] is not None:
        line += f", error {facts['valid_error']:.1%}"
    done = min(1.0, facts["iteration"] / max(1, max_iter))
    return with_bar(done, WIDTH, line, columns)


def with_bar(done: float, width: int, line: str, columns: int = COLUMNS) -> str:
    """The line after a bar of which a share is done: as wide as there is place for, none if there is hardly any."""
    width = min(width, columns - len(line) - len("[] "))
    if width < 5:
        return line[: max(0, columns)]
    return f"[{'#' * round(done * width):<{width}}] {line}"


def clock(seconds: float) -> str:
    """Minutes and seconds, or hours, minutes and seconds.

    >>> clock(3), clock(125.9), clock(3725)
    ('0:03', '2:05', '1:02:05')
    """
    whole = int(max(0.0, seconds))
    minutes = f"{whole // 60 % 60}:{whole % 60:02}"
    return minutes if whole < 3600 else f"{whole // 3600}:{minutes:0>5}"


def columns_of(stream: TextIO) -> int:
    """The columns that a line may take: one less than the terminal has, since some begin a new line after the last one."""
    try:
        return os.get_terminal_size(stream.fileno()).columns - 1
    except (OSError, ValueError):
        return COLUMNS


def _digits(rate: float) -> int:
    return 0 if rate >= 10 else 1 if rate >= 1 else 3


class Rate:
    """Iterations per second, over the last ten seconds or so."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def __call__(self, iteration: int, now: float) -> float | None:
        """The rate at an iteration; None as long as it is not known. A smaller iteration begins a new run."""
        if self.seen and iteration < self.seen[-1][1]:
            self.seen.clear()
        self.seen.append((now, iteration))
        while len(self.seen) > 2 and now - self.seen[1][0] >= 10:
            del self.seen[0]
        (then, before), elapsed = self.seen[0], now - self.seen[0][0]
        # In the first moments it says little.
        return (iteration - before) / elapsed if elapsed >= 0.5 and iteration > before else None


class Progress:
    """Shows the state of a run.

    In a notebook an output cell is updated, in a terminal a line is overwritten, and elsewhere (a log file) a line is
    written every ten seconds.
    """

    def __init__(self, max_iter: int, stream: TextIO | None = None) -> None:
        self.max_iter = max_iter
        self.stream = sys.stderr if stream is None else stream
        self.handle: Any = None
        self.in_notebook = _in_notebook()
        self.on_terminal = not self.in_notebook and self.stream.isatty()
        self.last_line = ""
        self.last_log = time.monotonic()
        self.rate = Rate()

    @property
    def columns(self) -> int:
        """The columns that a line may take."""
        return columns_of(self.stream) if self.on_terminal else COLUMNS

    def __call__(self, facts: dict[str, Any]) -> None:
        self.last_line = self.describe(facts)
        if self.in_notebook:
            self._show_in_notebook()
        elif self.on_terminal:
            self.stream.write(f"\r\x1b[2K{self.last_line}")
            self.stream.flush()
        elif time.monotonic() - self.last_log >= 10:
            self.last_log = time.monotonic()
            print(self.last_line, file=self.stream)

    def describe(self, facts: dict[str, Any]) -> str:
        """The line to show now."""
        rate = self.rate(facts["iteration"], time.monotonic())
        return describe(facts, self.max_iter, self.columns, rate)

    def close(self, summary: str) -> None:
        """Replace the bar by a summary."""
        self.last_line = summary
        if self.in_notebook:
            self._show_in_notebook()
        elif self.on_terminal:
            self.stream.write(f"\r\x1b[2K{summary}\n")
        else:
            print(summary, file=self.stream)

    def _show_in_notebook(self) -> None:
        from IPython.display import display

        text = {"text/plain": self.last_line}
        if self.handle is None:
            self.handle = display(text, raw=True, display_id=True)
        else:
            self.handle.update(text, raw=True)


def _in_notebook() -> bool:
    """Whether this is a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"
