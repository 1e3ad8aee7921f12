"""Shared by all sections: progress, processes with their time and peak memory, our programs, and baselines."""

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "benchmarks"
BASELINES = Path(__file__).resolve().parent / "baselines"
# Every library that would otherwise take all cores.
THREAD_VARIABLES = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"]


class LeftOut(Exception):
    """A measurement that is not possible here, and the reason."""


class Context:
    def __init__(self, quick, repeats):
        self.quick = quick
        self.repeats = repeats
        self.started = time.monotonic()
        self.left_out = []
        self.hdsl = ROOT / "target" / "release" / "hdsl"
        self.tool = ROOT / "target" / "release" / "hdsl-benchmarks"
        self.folder = TARGET / ("quick" if quick else "full")
        self.folder.mkdir(parents=True, exist_ok=True)

    def step(self, text):
        elapsed = int(time.monotonic() - self.started)
        print(f"[{elapsed // 60:3d}:{elapsed % 60:02d}] {text}", file=sys.stderr, flush=True)

    def leave_out(self, what, why):
        why = str(why).strip()
        self.step(f"left out: {what}: {why}")
        self.left_out.append({"what": what, "why": why})

    def attempt(self, what, work):
        """The result of work, or None if it is not possible here."""
        try:
            return work()
        except LeftOut as reason:
            self.leave_out(what, reason)
            return None

    def build(self):
        # Separately: built together, the program would include the feature of the benchmarks.
        for package in ["hdsl-cli", "hdsl-benchmarks"]:
            self.step(f"building {package}")
            command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", package]
            if subprocess.run(command, cwd=ROOT).returncode != 0:
                sys.exit(f"benchmarks/run: {' '.join(command)} failed")

    def run(self, command, timeout=None, threads=None):
        """Runs a command; its output, seconds and peak memory (VmHWM) in bytes."""
        environment = dict(os.environ)
        if threads is not None:
            environment.update({name: str(threads) for name in THREAD_VARIABLES})
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            words = [str(word) for word in command]
            process = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=out, stderr=errors)
            peak = 0
            # The high-water mark never decreases, so the last reading counts.
            while process.poll() is None:
                peak = max(peak, high_water_mark(process.pid))
                if timeout is not None and time.monotonic() - started > timeout:
                    process.kill()
                    process.wait()
                    raise LeftOut(f"took more than {timeout} s")
                time.sleep(0.02)
            seconds = time.monotonic() - started
            out.seek(0)
            errors.seek(0)
            said, complaints = out.read(), errors.read()
        if process.returncode != 0:
            complaints = complaints.strip().splitlines() or [f"ended with status {process.returncode}"]
            raise LeftOut(complaints[-1])
        return said, seconds, peak

    def train(self, data, triplets, scale, iterations, threads=1, extra=()):
        """Our training: milliseconds per iteration, over several runs."""
        model = self.folder / "model.hdsl"
        command = [
            relative(self.hdsl), "train", relative(data), "--triplets", triplets, "--scale", str(scale),
            "--max-iter", str(iterations), *extra, "--threads", str(threads),
            "--quiet", "--json", "-o", relative(model),
        ]  # fmt: skip
        runs, peaks = [], []
        for _ in range(self.repeats):
            out, _, peak = self.run(command)
            runs.append(json.loads(out))
            peaks.append(peak)
        each = [1000 * run["train_seconds"] / max(run["iterations"], 1) for run in runs]
        return {
            "ms": statistics.median(each),
            "fastest": min(each),
            "slowest": max(each),
            "peak_bytes": max(peaks),
            "threads": threads,
            "mine_seconds": statistics.median(run["mine_seconds"] for run in runs),
            "command": shlex.join(map(str, command)),
            **{key: runs[-1][key] for key in ["iterations", "n_triplets", "n_rows", "n_atoms", "objective", "stop"]},
        }

    def ours(self, *arguments):
        """The output of our measuring program."""
        return json.loads(self.run([self.tool, *arguments])[0])

    def baseline(self, script, python=None, timeout=None, threads=1, **arguments):
        """The output of a baseline, in a process of its own with so many threads."""
        command = [python or sys.executable, BASELINES / f"{script}.py", json.dumps(arguments, default=str)]
        return json.loads(self.run(command, timeout=timeout, threads=threads)[0].splitlines()[-1])


def high_water_mark(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def relative(path):
    """A path relative to the project's folder."""
    return os.path.relpath(path, ROOT)
