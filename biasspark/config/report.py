"""The part ``[report]`` of a configuration: where published reports go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from biasspark.config.faults import Faults
from biasspark.config.redaction import redact
from biasspark.config.section import Section, keys_of
from biasspark.config.source import is_within, locate
from biasspark.config.wording import quote


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Where ``jobs/report.py --publish`` writes reports.

    Attributes
    ----------
    path
        Folder or URI of the reports, on any file system that Spark can write: ``s3a://``, ``hdfs://``, ``file:/``;
        without a scheme on Spark's default file system, most often the disks of the driver. A relative path is taken as
        that of ``[output]``. By default the folder ``reports`` in the ``path`` of ``[output]``; with a ``catalog``
        there is no default.
    """

    path: str | None = None


def read_report(value: object, corpus_path: str | None, base: Path, faults: Faults) -> ReportSettings:
    """Read ``[report]``; ``corpus_path`` is where the corpus is read, in which no report may be."""
    section = Section("[report]", value, keys_of(ReportSettings), faults)
    path = locate(section.optional_text("path", 'path = "reports"'), base)
    if path and corpus_path and is_within(path, corpus_path):
        faults.note(
            "report",
            f"[report] path = {quote(redact(path))}. It lies in the path of [corpus], and the next night would read "
            "the reports as rows. Name a folder beside it.",
        )
    return ReportSettings(path=path)
