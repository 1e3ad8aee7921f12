"""One build of the program: which flags and values it accepts, and its answers as JSON."""

import hashlib
import json
import re
import subprocess
from pathlib import Path


class Failed(Exception):
    """A call that gave no result, and why."""


class Program:
    """Calls are written in the spelling of the first version compared. `names` lists, for each word of it that has
    other spellings, all of them in the order of preference; the help texts decide which one this build accepts."""

    def __init__(self, path, names):
        self.path = Path(path).resolve()
        self.names = names
        self.helps = {}

    def hash(self):
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]

    def call(self, line, folder):
        """The answer to a call, given as words without `--json`."""
        words = [*self.translated(line), "--quiet", "--json"]
        done = subprocess.run([self.path, *words], cwd=folder, text=True, capture_output=True)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise Failed(f"{' '.join(words[:1])}: {last[0]}")
        try:
            return Answer(json.loads(done.stdout), words[0], self.names["keys"])
        except json.JSONDecodeError as error:
            raise Failed(f"{words[0]}: no JSON: {error}") from error

    def translated(self, line):
        """The words of a call as this build spells them."""
        command = self.spelled("commands", line[0], self.blocks(None), "command")
        flags = self.blocks(command)
        words, block = [command], ""
        for word in line[1:]:
            if re.match(r"--?[a-z]", word):
                word = self.spelled("flags", word, flags, f"flag of `{command}`")
                block = flags[word]
            elif block:
                word = ",".join(self.value(part, block) for part in word.split(","))
                block = ""
            words.append(word)
        return words

    def value(self, word, block):
        if word not in self.names["values"]:
            return word
        # A value begins a line of its flag's help, or stands in a list; elsewhere the same word may be prose.
        place = r"(?:^\s*(?:- )?|[,:] ){}(?=[\s,:\]]|$)"
        spellings = self.names["values"][word]
        return next((s for s in spellings if re.search(place.format(re.escape(s)), block, re.MULTILINE)), word)

    def spelled(self, kind, word, accepted, what):
        spellings = self.names[kind].get(word, [word])
        for spelling in spellings:
            if spelling in accepted:
                return spelling
        raise Failed(f"no {what} is called {' or '.join(spellings)}")

    def blocks(self, command):
        """The help text of each flag of a command, or of each command, by name."""
        if command not in self.helps:
            words = [self.path, *([command] if command else []), "--help"]
            text = subprocess.run(words, text=True, capture_output=True).stdout
            blocks, names = {}, []
            for line in text.splitlines():
                if command:
                    flag = re.match(r" {2,6}(?:(-\w)(?:, )?)?(--[a-z][\w-]*)?(?= |$)", line)
                    found = [name for name in flag.groups() if name] if flag else []
                else:
                    entry = re.match(r"  ([a-z][\w-]*)  ", line)
                    found = [entry[1]] if entry else []
                names = found or names
                for name in names:
                    blocks[name] = blocks.get(name, "") + line + "\n"
            self.helps[command] = blocks
        return self.helps[command]


class Answer:
    """A JSON object whose keys may have other spellings; `a.b` means b in the object a."""

    def __init__(self, value, what, names):
        self.value, self.what, self.names = value, what, names

    def __getitem__(self, key):
        spellings = self.names.get(key, [key])
        for spelling in spellings:
            found = self.value
            for part in spelling.split("."):
                found = found.get(part, Failed) if isinstance(found, dict) else Failed
            if found is not Failed:
                return found
        raise Failed(f"the answer of {self.what} has no key {' or '.join(spellings)}")

    def each(self, key):
        """The entries of a list of objects."""
        return [Answer(entry, f"{self.what} ({key})", self.names) for entry in self[key]]
