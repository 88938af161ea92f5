"""A made-up report, which several modules here look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from biasspark.report.report_data import ReportData


@pytest.fixture(scope="session")
def report() -> ReportData:
    from tests.fixtures.made_up_report import make_report

    return make_report()


@pytest.fixture(scope="session")
def page(report: ReportData) -> str:
    from biasspark.report.page import write_page

    return write_page(report)
