"""Runs the sections, stores their results under target/benchmarks, and writes the report."""

import argparse
import datetime
import importlib
import json
import shlex
import sys

from context import ROOT, Context, LeftOut

SECTIONS = ["training", "scale", "growth", "limits", "reading", "texts", "mining", "neighbors", "index", "validation"]


def arguments():
    parser = argparse.ArgumentParser(
        prog="benchmarks/run",
        description="Measures hdsl and what one would use instead; writes BENCHMARKS.md and benchmarks/plots.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, once, into target/benchmarks/quick")
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, metavar="SECTION",
        help=f"run only this section, and keep the stored results of the others: {', '.join(SECTIONS)}",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of which the median is told (3; quick: 1)")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the report again")
    return parser.parse_args()


def main():
    asked = arguments()
    import machine
    import plots
    import report

    modules = {name: importlib.import_module(f"sections.{name}") for name in SECTIONS}
    context = Context(asked.quick, asked.repeats or (1 if asked.quick else 3))
    store = context.folder / "results"
    store.mkdir(exist_ok=True)
    facts = {
        "command": shlex.join(["benchmarks/run", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.facts(),
        "repeats": context.repeats,
    }
    if not asked.report:
        context.build()
        if not asked.only:
            # A full run reports no older results.
            for old in store.glob("*.json"):
                old.unlink()
        for name in asked.only or SECTIONS:
            context.left_out = []
            try:
                result = modules[name].measure(context)
            except LeftOut as reason:
                # The failure of one section must not lose the others.
                context.leave_out(modules[name].TITLE, reason)
                result = {}
            found = {"name": name, "result": result, "left_out": context.left_out, **facts}
            (store / f"{name}.json").write_text(json.dumps(found, indent=1))

    results = {path.stem: json.loads(path.read_text()) for path in store.glob("*.json")}
    page, pictures = ROOT / "BENCHMARKS.md", ROOT / "benchmarks" / "plots"
    if asked.quick:
        page, pictures = context.folder / "BENCHMARKS.md", context.folder / "plots"
    pictures.mkdir(exist_ok=True)
    for name, module in modules.items():
        if name in results and results[name]["result"] and hasattr(module, "plot"):
            module.plot(results[name]["result"], pictures, plots)
    page.write_text(report.render(results, modules, pictures.relative_to(page.parent).as_posix()))
    context.step(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
