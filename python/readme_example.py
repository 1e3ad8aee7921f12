"""Run the Python example of the README as it is written there, on the reviews of `hdsl demo --text`, in the working folder.

Only what the wheel installs is used: the command `hdsl` makes the reviews.
"""

import csv
import re
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

# The package as it is installed, not its source beside this file.
del sys.path[0]
readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
section = readme[readme.index("\n## Python\n") :]
example = re.search(r"```python\n(.*?)```", section, re.DOTALL)
assert example, "README.md has no Python example"

command = str(Path(sysconfig.get_path("scripts")) / "hdsl")
for program in ([command], [sys.executable, "-m", "hdsl"]):
    subprocess.run([*program, "--version"], check=True)
subprocess.run([command, "demo", "--text", "--dir", ".", "-q"], check=True, stdout=subprocess.DEVNULL)


def columns(file):
    with open(file, newline="", encoding="utf-8") as lines:
        records = list(csv.DictReader(lines))
    return [record["review"] for record in records], [record["verdict"] for record in records]


texts, classes = columns("reviews.csv")
new_texts, new_classes = columns("new.csv")
names = {"texts": texts, "classes": classes, "new_texts": new_texts}
exec(compile(example[1], "README.md", "exec"), names)

# The example ends with a model of the program, which has predicted the classes of the new texts.
predicted = names["model"].predict(new_texts)
error = sum(one != other for one, other in zip(predicted, new_classes)) / len(new_classes)
assert error < 0.1, error
assert Path("sparse.hdsl").stat().st_size > 0
pandas = "with" if find_spec("pandas") else "without"
print(f"README example: done {pandas} pandas, {error:.1%} of {len(new_texts):,} new texts misclassified")
