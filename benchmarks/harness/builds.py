"""Two builds of a program on the same data: shared by compare_speed, compare_objectives and compare_errors."""

import argparse
import tempfile
from pathlib import Path

import data
from context import Context

KEPT = Path(tempfile.gettempdir()) / "hdsl-compare-speed"


def parser(script, description, program, cases, repeats=None):
    """The arguments that all scripts have; `program` is the name of the program that is built."""
    made = argparse.ArgumentParser(
        prog=f"benchmarks/{script}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("old", metavar=f"OLD_{program}", type=Path, help="the program before a change")
    made.add_argument("new", metavar=f"NEW_{program}", type=Path, help="the program after it")
    made.add_argument("--only", metavar="CASE,...", help=f"some of {', '.join(cases)}")
    if repeats:
        told = f"runs of each build; medians are compared ({repeats})"
        made.add_argument("--repeats", type=int, default=repeats, metavar="N", help=told)
    made.add_argument("--data", type=Path, default=data.REAL, metavar="FOLDER", help="folder of real data")
    made.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER", help=f"where data is made ({KEPT})")
    return made


def parsed(parser, cases):
    asked = parser.parse_args()
    asked.cases = asked.only.split(",") if asked.only else list(cases)
    if unknown := [name for name in asked.cases if name not in cases]:
        parser.error(f"there is no case {unknown[0]}, only {', '.join(cases)}")
    if getattr(asked, "repeats", 1) < 1:
        parser.error("--repeats must be at least 1")
    for program in [asked.old, asked.new]:
        if not program.is_file():
            parser.error(f"{program}: there is no such program")
    return asked


def prepared(asked, tools):
    """The context of `benchmarks/run`, with data in a folder of its own, made by the first tool that exists."""
    data.REAL = asked.data.resolve()
    context = Context(quick=False, repeats=getattr(asked, "repeats", 1))
    context.folder = asked.kept.resolve()
    context.folder.mkdir(parents=True, exist_ok=True)
    context.tool = next((tool.resolve() for tool in tools if tool.is_file()), tools[-1])
    return context


def in_turn(builds, repeats, run):
    """The runs of each build, old new, new old and so on: a machine that gets busier slows both down."""
    runs = [[] for _ in builds]
    for repeat in range(repeats):
        for at in range(len(builds)) if repeat % 2 == 0 else reversed(range(len(builds))):
            runs[at].append(run(builds[at]))
    return runs
