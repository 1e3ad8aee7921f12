"""Numbers, prose and tables as the report shows them."""

import textwrap


def number(value, digits=3):
    """A number with so many digits that count, and no exponent."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if size == 0:
        leading = -1
        scaled = abs(value)
        while scaled < 1:
            scaled *= 10
            leading += 1
        return f"{value:.{digits + leading}f}"
    return f"{value:,.{max(digits - size, 0)}f}"


def seconds(value):
    if value is None:
        return "–"
    return f"{number(1000 * value)} ms" if value < 1 else f"{number(value)} s"


def compared(what, ours, name, theirs):
    """A line of the overview: our seconds and those of another program."""
    return what, seconds(ours), name, seconds(theirs), ratio(ours, theirs)


def milliseconds(value):
    return seconds(value / 1000) if value is not None else "–"


def memory(value):
    return f"{number(value / 2**30)} GB" if value >= 2**30 else f"{number(value / 2**20)} MB"


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}%"


def ratio(ours, other):
    """How many times longer the other takes."""
    if not ours or not other:
        return "–"
    return f"{number(other / ours, 2)}×"


def paragraph(*sentences):
    """Prose, folded to the width of our pages."""
    folded = textwrap.fill(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False)
    return folded + "\n\n"


def table(head, rows, right=()):
    """A Markdown table; columns in `right` are set to the right."""
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|" + "|".join("---:" if column in right else "---" for column in range(len(head))) + "|")
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def commands(lines):
    """The commands behind a table, folded away."""
    body = "\n".join(dict.fromkeys(lines))
    return f"<details><summary>Commands</summary>\n\n```\n{body}\n```\n\n</details>\n"
