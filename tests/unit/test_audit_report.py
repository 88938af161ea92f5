"""What is said of an audit: how many packages were looked up in truth, and what was found."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.dev.audit_report import describe_audit

CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
SKIPPED = {"name": "duckdb", "skip_reason": "not found"}
FAULTY = {
    "name": "jinja2",
    "version": "3.1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.6"]}, {"id": "PYSEC-2", "fix_versions": []}],
}


@pytest.mark.parametrize(
    ("packages", "parts", "is_clean"),
    [
        ([CLEAN, SKIPPED], ["1 of 2"], True),
        ([SKIPPED, SKIPPED], ["not audited"], True),
        ([CLEAN, FAULTY], ["jinja2 3.1.0", "PYSEC-1", "3.1.6", "PYSEC-2"], False),
    ],
    ids=["clean", "unknown to the index", "vulnerable"],
)
def test_an_audit_says_what_was_looked_up(packages: list[dict[str, Any]], parts: list[str], is_clean: bool) -> None:
    text, found_clean = describe_audit(packages)
    assert [part for part in parts if part not in text] == []
    assert found_clean == is_clean
