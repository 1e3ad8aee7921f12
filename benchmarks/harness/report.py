"""BENCHMARKS.md from the stored results."""

from text import table

BEGINNING = """# Benchmarks

What `hdsl` costs, and what one would use instead costs on the same data, on the same machine, in one run. Written by
[`benchmarks/run`](benchmarks/run); do not edit, except for the remarks of [`benchmarks/explanations.md`](\
benchmarks/explanations.md), which it takes in.

A ratio above 1 means that `hdsl` is so many times faster. Times on a machine that others use vary by some tens of
per cent; whether a change made a kernel slower is told by instruction counts instead
([CONTRIBUTING.md](CONTRIBUTING.md#speed)).
"""


def render(results, sections, plots):
    """The report of all sections with results; `plots` is the relative path of the figures."""
    have = [(name, module) for name, module in sections.items() if any(facts(results, name).values())]
    text = BEGINNING
    rows = [row for name, module in have for row in module.glance(results[name]["result"])]
    if rows:
        text += "\n## At a glance\n\n"
        head = ["what", "hdsl", "instead", "takes", "ratio"]
        text += table(head, [[*row[:4], f"**{row[4]}**"] for row in rows], right={1, 3, 4})
    text += "\n## How it was measured\n\n" + conditions([results[name] for name, _ in have])
    for name, module in have:
        body = module.render(results[name]["result"]).replace("{plots}", plots)
        text += f"\n## {module.TITLE}\n\n{body}"
    missing = [module.TITLE for name, module in sections.items() if name not in results]
    left_out = [f"{fact['what']}: {fact['why']}" for found in results.values() for fact in found["left_out"]]
    left_out += [f"{title}: not measured in this run" for title in missing]
    if left_out:
        text += "\n## Left out\n\n" + "".join(f"- {line}\n" for line in left_out)
    return text


def facts(results, name):
    return results[name]["result"] if name in results else {}


def conditions(results):
    """Machine, versions, commit and command; all of them if sections differ."""
    text = ""
    groups = {}
    for result in results:
        key = (result["command"], result["date"], result["commit"])
        groups.setdefault(key, []).append(result)
    for (command, date, commit), of in groups.items():
        machine = of[0]["machine"]
        which = "" if len(groups) == 1 else f" ({', '.join(result['name'] for result in of)})"
        text += table(
            ["", f"measured{which}"],
            [
                ["command", f"`{command}`"],
                ["date, commit", f"{date}, {commit}"],
                [
                    "machine",
                    f"{machine['processor']}, {machine['cores']} cores ({machine['threads_a_core']} threads per core), "
                    f"{machine['memory_gb']} GB, {machine['system']}",
                ],
                ["load before", machine["load_before"]],
                ["versions", ", ".join(machine["versions"])],
                ["repeats", f"{of[0]['repeats']}; figures are medians"],
            ],
        )
        text += "\n"
    return text.rstrip("\n") + "\n"
