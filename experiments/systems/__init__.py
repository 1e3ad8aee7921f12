"""Every system under one interface, by name, in the order of the tables. A family of systems is a file."""

from __future__ import annotations

from experiments.systems import diagonal, metrics, pairs, plain, projections, svm
from experiments.systems.base import System

SYSTEMS: dict[str, System] = {
    system.name: system
    for family in (plain, projections, diagonal, metrics, pairs, svm)
    for system in family.SYSTEMS
}
#: Columns of Table 3: whatever ranks, and lets the nearest vote.
SIMILARITIES = [name for name in SYSTEMS if not name.startswith("svm_")]
#: Columns of Table 4 besides HDSL.
MACHINES = [name for name in SYSTEMS if name.startswith("svm_")]
