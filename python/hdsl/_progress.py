"""A progress bar on standard error, or in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

#: The width of the bar at most, and of the whole line.
WIDTH, COLUMNS = 25, 79


def describe(facts: dict[str, Any], max_iter: int) -> str:
    """One line of less than 80 columns: progress, objective, number of features. Large numbers take the place of the bar.

    >>> facts = {"iteration": 40, "objective": 0.25, "n_features": 12, "scale": 10.0, "valid_error": 0.05}
    >>> describe(facts, 100)
    '[##########               ] 40/100  objective 0.25, 12 features, error 5.0%'
    >>> describe({**facts, "iteration": 400_000, "objective": 1.234e-5, "n_features": 1_355_191}, 1_000_000)
    '[####       ] 400000/1000000  objective 1.234e-05, 1355191 features, error 5.0%'
    """
    line = f"{facts['iteration']}/{max_iter}  objective {facts['objective']:.4g}"
    line += f", {facts['n_features']} features"
    if facts["valid_error"] is not None:
        line += f", error {facts['valid_error']:.1%}"
    done = min(1.0, facts["iteration"] / max(1, max_iter))
    return with_bar(done, WIDTH, line)


def with_bar(done: float, width: int, line: str) -> str:
    """The line after a bar of which a share is done: as wide as there is place for, none if there is hardly any."""
    width = min(width, COLUMNS - len(line) - len("[] "))
    if width < 5:
        return line[:COLUMNS]
    return f"[{'#' * round(done * width):<{width}}] {line}"


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
        return describe(facts, self.max_iter)

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
