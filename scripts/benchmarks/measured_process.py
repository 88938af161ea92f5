"""Run a command, and measure its time and the memory of each of its processes. For Linux."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_SECONDS = 0.25
PAGES_SHARE = 0.02
"""Of one core, at most, goes to counting pages: the kernel walks them, 30 ms for 1.6 GB, and stalls the process."""
_AFTER_COLLECTION = re.compile(r"\d+M->(\d+)M\(\d+M\)")
_TICKS = os.sysconf("SC_CLK_TCK")


class CandidateError(Exception):
    """A candidate that failed."""


@dataclass(frozen=True)
class Measured:
    """Time and memory of a process and its descendants."""

    seconds: float
    cpu_seconds: float
    """Of all processes, as last sampled."""
    peak_mb: float
    """The largest sampled memory of all processes together, shared pages counted once; at least the peak of the largest
    process."""
    worker_mb: float
    """Peak resident memory of the largest Python worker of Spark; 0 without any."""
    java_mb: float
    """That of the largest Java process."""
    heap_mb: int | None
    """The largest Java heap after a collection, with garbage in old regions; None without Java."""


@dataclass
class Watch:
    """Peaks of the processes of one session, sampled from /proc."""

    session: int
    peak_mb: float = 0.0
    processes: dict[int, tuple[str, float]] = field(default_factory=dict)
    cpu_ticks: dict[int, int] = field(default_factory=dict)
    next_pages: float = 0.0

    def sample(self) -> None:
        """Sample every process of the session. One that has ended, or ends meanwhile, is skipped."""
        started = time.perf_counter()
        counts_pages, held = started >= self.next_pages, 0.0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self._sample_process(folder) and counts_pages:
                    held += _megabytes(folder / "smaps_rollup", "Pss")
            except (OSError, ValueError, LookupError):
                continue
        self.peak_mb = max(self.peak_mb, held)
        if counts_pages:
            ended = time.perf_counter()
            self.next_pages = ended + (ended - started) / PAGES_SHARE

    def _sample_process(self, folder: Path) -> bool:
        """Sample the time and the peak memory of a process; return whether it is of the session."""
        # The name, in brackets, may hold blanks.
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        if int(fields[3]) != self.session:
            return False
        pid = int(folder.name)
        self.cpu_ticks[pid] = int(fields[11]) + int(fields[12])
        command = (folder / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")
        self.processes[pid] = command, _megabytes(folder / "status", "VmHWM")
        return True

    def largest(self, pattern: str) -> float:
        """Return the peak of the largest process whose command matches."""
        return max((peak for command, peak in self.processes.values() if re.search(pattern, command)), default=0.0)


def run_measured(command: Sequence[str], root: Path, log: Path, heap_log: Path) -> Measured:
    """Run a command to its end, at the checkout `root` of the project, and its output in the file `log`.

    If it starts Java, `heap_log` is the log of its collections, in megabytes. Raises `CandidateError`, with the end of
    its output, if its exit code is not 0.
    """
    done = threading.Event()
    started = time.perf_counter()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=root,  # a Python worker imports from there first
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        watch = Watch(process.pid)
        watcher = threading.Thread(target=_sample_until, args=(watch, done))
        watcher.start()
        try:
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, 15)
            raise
        finally:
            seconds = time.perf_counter() - started
            done.set()
            watcher.join()
    if code:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise CandidateError(f"{' '.join(command)}\nended with exit code {code}. The end of {log}:\n{tail}")
    return Measured(
        seconds=seconds,
        cpu_seconds=sum(watch.cpu_ticks.values()) / _TICKS,
        peak_mb=max(watch.peak_mb, watch.largest("")),
        worker_mb=watch.largest(r"pyspark\.daemon"),
        java_mb=watch.largest(r"^\S*java "),
        heap_mb=_heap_after_collection(heap_log),
    )


def _megabytes(path: Path, name: str) -> float:
    """Return an amount of memory of a process. Raises LookupError for a finished one."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    amounts = [line for line in lines if line.startswith(f"{name}:")]
    return float(amounts[0].split()[1]) / 1024


def _sample_until(watch: Watch, done: threading.Event) -> None:
    while not done.wait(SAMPLE_SECONDS):
        watch.sample()


def _heap_after_collection(log: Path) -> int | None:
    """Return the largest heap after a collection in a log of java -Xlog:gc."""
    if not log.exists():
        return None
    return max((int(left) for left in _AFTER_COLLECTION.findall(log.read_text(encoding="utf-8"))), default=None)
