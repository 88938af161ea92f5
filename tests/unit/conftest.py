"""A made-up night and its report, which several modules here look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from biasspark.report.facts import NightFacts


@pytest.fixture(scope="session")
def facts() -> NightFacts:
    from tests.report_rows import night_facts

    return night_facts()


@pytest.fixture(scope="session")
def page(facts: NightFacts) -> str:
    from biasspark.report.page import write_page

    return write_page(facts)
