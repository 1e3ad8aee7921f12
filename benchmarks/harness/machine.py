"""What was measured on, with what."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from context import ROOT


def said(*command):
    try:
        return subprocess.run(command, cwd=ROOT, text=True, capture_output=True).stdout.strip()
    except OSError:
        return ""


def field(path, name):
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def facts():
    memory = field("/proc/meminfo", "MemTotal").split()
    threads_a_core = [line for line in said("lscpu").splitlines() if line.startswith("Thread(s) per core")]
    packages = ["numpy", "scipy", "scikit-learn", "faiss-cpu", "sparse-dot-topn"]
    older = os.environ.get("HDSL_METRIC_LEARN_PYTHON", "")
    probe = "from importlib.metadata import version as v; print('metric-learn', v('metric-learn'), " \
            "'on scikit-learn', v('scikit-learn'), 'and numpy', v('numpy'))"  # fmt: skip
    return {
        "processor": field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "threads_a_core": threads_a_core[0].split(":")[1].strip() if threads_a_core else "unknown",
        "memory_gb": round(int(memory[0]) / 2**20, 1) if memory[0].isdigit() else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "load_before": f"{os.getloadavg()[0]:.1f}",
        "versions": [
            said("rustc", "--version"),
            f"Python {platform.python_version()}",
            *(f"{name} {version(name)}" for name in packages if version(name)),
            *filter(None, [said(older, "-c", probe) if older else ""]),
        ],
    }


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def commit():
    changed = " with changes" if said("git", "status", "--porcelain", "--untracked-files=no") else ""
    return (said("git", "rev-parse", "--short=10", "HEAD") or "unknown") + changed
