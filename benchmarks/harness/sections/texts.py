"""From texts to rows."""

import statistics

import numpy as np
from context import relative
from text import commands, compared, memory, paragraph, ratio, seconds, table

TITLE = "From texts to rows"

VOCABULARY = 100_000


def documents(context):
    """Made-up documents of 8 to 21 words, as plain text and as the quoted column of a CSV file."""
    n = 10_000 if context.quick else 1_000_000
    plain, csv = context.folder / f"documents-{n}.txt", context.folder / f"documents-{n}.csv"
    if not csv.exists():
        context.step(f"making {plain.name} and {csv.name}")
        random = np.random.default_rng(0)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(random.choice(letters, random.integers(3, 10)))] = None
        known = np.array(list(words))
        # The word of rank r is drawn in proportion to 1 / r.
        sums = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
        with open(plain, "w") as texts, open(csv, "w") as records:
            records.write("label,text\n")
            for length in random.integers(8, 22, n):
                drawn = np.searchsorted(sums, random.random(length) * sums[-1]).clip(max=VOCABULARY - 1)
                text = " ".join(known[drawn]).capitalize() + "."
                texts.write(text + "\n")
                records.write(f'{"ab"[length % 2]},"{text}"\n')
    return plain, csv


def measure(context):
    rows, calls = [], []
    plain, csv = documents(context)
    context.step("texts: scikit-learn")
    baseline = context.attempt(
        "CountVectorizer", lambda: context.baseline("texts", file=plain, repeats=context.repeats)
    )
    for name, file in [("one document per line", plain), ("a column of a CSV file", csv)]:
        context.step(f"texts: {name}")
        row = {"name": name, "bytes": file.stat().st_size}
        for threads in [1, 2]:
            ours = ["read", relative(file), "--repeats", context.repeats, "--threads", threads]
            found = context.ours(*ours)
            row[f"ours_{threads}"] = statistics.median(found["seconds"])
            calls.append(" ".join(map(str, [relative(context.tool), *ours])))
        once = [context.tool, "read", file, "--repeats", "1", "--threads", "2"]
        row["peak"] = context.run(once)[2]
        row["rows"] = 12 * found["values"] + 8 * (found["rows"] + 1)
        row["sklearn"] = statistics.median(baseline["seconds"]) if baseline else None
        if baseline and [found["features"], found["values"]] != baseline["shape"]:
            raise AssertionError(f"{found} of hdsl, {baseline['shape']} of scikit-learn")
        rows.append(row)
    return {"rows": rows, "commands": calls}


def glance(result):
    for row in result["rows"]:
        yield compared(f"texts to rows ({row['name']}), one thread", row["ours_1"], "scikit-learn `CountVectorizer`", row["sklearn"])


def render(result):
    text = paragraph(
        "Made-up documents of 8 to 21 words out of 100,000, in the cache of the system; medians. `hdsl` reads the file and counts the words;",
        "`CountVectorizer` counts the words of a list of strings, with one thread. Both find the same words and counts.",
        "*Memory* is the peak of the process, divided by the size of the rows.",
    )
    head = ["documents", "size", "hdsl, 1 thread", "2 threads", "scikit-learn", "ratio, 1 thread", "2 threads", "memory"]
    text += table(
        head,
        [
            [
                row["name"],
                f"{row['bytes'] / 1e6:.0f} MB",
                seconds(row["ours_1"]),
                seconds(row["ours_2"]),
                seconds(row["sklearn"]),
                f"**{ratio(row['ours_1'], row['sklearn'])}**",
                f"**{ratio(row['ours_2'], row['sklearn'])}**",
                f"{memory(row['peak'])}, {row['peak'] / row['rows']:.2f} ×",
            ]
            for row in result["rows"]
        ],
        right={1, 2, 3, 4, 5, 6, 7},
    )
    return text + "\n" + commands(result["commands"])
