"""The experiments of the paper (Section 4) and current alternatives, run and reported with one command.

`python -m experiments --help` tells how; README.md in this folder tells how the parts fit together.
"""
