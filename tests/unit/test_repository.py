"""The files that the repository's host reads, and the locks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import biasspark

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_run_what_there_is() -> None:
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values()]
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    programs = [word for line in commands for word in line.split() if re.match(r"(\.ci|scripts|tests)/", word)]
    assert ".ci/run" in programs
    assert [program for program in programs if not (ROOT / program).is_file()] == []


def test_the_citation_is_of_this_version_and_of_the_five_sources() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == biasspark.__version__
    assert len(citation["references"]) == 5
    assert all({"type", "title", "authors"} <= reference.keys() for reference in citation["references"])


def settings_of(name: str) -> dict[str, str]:
    lines = (ROOT / "conf" / name).read_text("utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line.startswith("spark."))


@pytest.mark.parametrize("name", ["lake-delta.conf", "lake-iceberg.conf", "openlineage.conf"])
def test_settings_that_replace_the_defaults_repeat_them(name: str) -> None:
    defaults = settings_of("spark-defaults.conf")
    assert settings_of(name) == settings_of(name) | defaults


def test_locks_agree() -> None:
    """All are installed into one environment."""
    pinned = [
        dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf-8"), re.MULTILINE))
        for path in sorted(ROOT.glob("requirements*.lock"))
    ]
    versions: dict[str, set[str]] = {}
    for lock in pinned:
        for name, version in lock.items():
            versions.setdefault(name, set()).add(version)
    assert {name: several for name, several in versions.items() if len(several) > 1} == {}
