"""What the tasks of a Spark application took, read from its event log."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

READING, PLACING = "reading", "after a shuffle"
SPARKS_OWN = ("spark-session-", "broadcast exchange ")
"""How tags begin that Spark gives a job: of its session and query, and of a table that it sends to all executors."""


def log_into(folder: Path) -> dict[str, str]:
    """Return the settings with which Spark writes what `read_tasks` reads."""
    plain = dict.fromkeys(("spark.eventLog.compress", "spark.eventLog.rolling.enabled"), "false")
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri(), **plain}


def read_tasks(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Return by job tag, and by whether they read files or shuffled blocks, what all its tasks took together.

    Returns
    -------
    dict
        ``tasks``; ``task_seconds``, from start to end, with what their Python workers do; megabytes ``shuffled``
        (written for a shuffle, compressed) and ``spilled`` to disk.
    """
    tags: dict[int, str] = {}
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for event in _events(folder):
        if event["Event"] == "SparkListenerStageSubmitted":
            tags[event["Stage Info"]["Stage ID"]] = _own_tag(event.get("Properties", {}).get("spark.job.tags", ""))
        elif event["Event"] == "SparkListenerTaskEnd" and (tag := tags.get(event["Stage ID"])):
            metrics = event["Task Metrics"]
            fetched = metrics["Shuffle Read Metrics"]
            is_placing = fetched["Local Blocks Fetched"] + fetched["Remote Blocks Fetched"] > 0
            stage = found[tag][PLACING if is_placing else READING]
            for name, amount in _amounts(metrics).items():
                stage[name] += amount
    return {tag: {kind: _rounded(amounts) for kind, amounts in stages.items()} for tag, stages in found.items()}


def _own_tag(tags: str) -> str:
    """Return the tag that is not one of Spark's own."""
    return next((tag for tag in tags.split(",") if not tag.startswith(SPARKS_OWN)), "")


def _amounts(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {
        "tasks": 1,
        "task_seconds": metrics["Executor Run Time"] / 1e3,
        "shuffled_mb": metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] / 1e6,
        "spilled_mb": metrics["Disk Bytes Spilled"] / 1e6,
    }


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for log in sorted(folder.iterdir()):
        with log.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)


def _rounded(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(amount, 3) for name, amount in amounts.items()}
