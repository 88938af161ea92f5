"""The machine and the versions of a benchmark."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("duckdb", "numpy", "pandas", "pyarrow", "pyspark", "scikit-learn", "scipy")


def describe_machine() -> dict[str, object]:
    """Return what the numbers depend on besides the code; nothing that identifies the machine or its user."""
    java = f"{os.environ['JAVA_HOME']}/bin/java" if os.environ.get("JAVA_HOME") else "java"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _first_value(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": os.cpu_count(),
        "cores_used": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_at_start": round(os.getloadavg()[0], 2),
        "os": platform.platform(),
        "java": _first_line(java, "-version"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "commit_is_clean": _git("status", "--porcelain", "--", ":/", ":/!scripts/benchmarks/results") == "",
    }


def _git(*arguments: str) -> str | None:
    root = Path(__file__).parents[2]
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def _first_value(path: Path, name: str) -> str | None:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).partition("\n")[0]
