"""The time, shuffle and spill of the tasks of a Spark application, from its event log."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

READING, PLACING = "reading", "after a shuffle"
SPARK_TAGS = ("spark-session-", "broadcast exchange ")
"""Beginnings of the tags that Spark gives a job itself: of its session and query, and of a broadcast table."""


def log_into(folder: Path) -> dict[str, str]:
    """Return the settings with which Spark writes the log that `read_tasks` reads."""
    plain = dict.fromkeys(("spark.eventLog.compress", "spark.eventLog.rolling.enabled"), "false")
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri(), **plain}


def read_tasks(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Return totals over tasks by job tag, and by whether they read files or shuffled blocks.

    They are ``tasks``; ``task_seconds``, including their Python workers; ``shuffled_mb``, written for a shuffle,
    compressed; and ``spilled_mb``, written to disk.
    """
    tags: dict[int, str] = {}
    totals: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for event in _events(folder):
        if event["Event"] == "SparkListenerStageSubmitted":
            tags[event["Stage Info"]["Stage ID"]] = _case_tag(event.get("Properties", {}).get("spark.job.tags", ""))
        elif event["Event"] == "SparkListenerTaskEnd" and (tag := tags.get(event["Stage ID"])):
            metrics = event["Task Metrics"]
            fetched = metrics["Shuffle Read Metrics"]
            is_placing = fetched["Local Blocks Fetched"] + fetched["Remote Blocks Fetched"] > 0
            stage = totals[tag][PLACING if is_placing else READING]
            stage["tasks"] += 1
            stage["task_seconds"] += metrics["Executor Run Time"] / 1e3
            stage["shuffled_mb"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] / 1e6
            stage["spilled_mb"] += metrics["Disk Bytes Spilled"] / 1e6
    return {
        tag: {kind: {name: round(amount, 3) for name, amount in amounts.items()} for kind, amounts in stages.items()}
        for tag, stages in totals.items()
    }


def _case_tag(tags: str) -> str:
    """Return the tag that is not one of Spark."""
    return next((tag for tag in tags.split(",") if not tag.startswith(SPARK_TAGS)), "")


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for log in sorted(folder.iterdir()):
        with log.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)
