"""The program ``hdsl``: the command that the package installs, and ``python -m hdsl``."""

from __future__ import annotations

import signal
import sys

from hdsl._core import run_command


def main() -> int:
    """Run the program with the words of the command line, and return its exit status."""
    # The program handles Ctrl-C by itself. Python's handler would only be called after its end.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
