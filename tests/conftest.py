"""What tests share: one Spark session for the whole run, started by the first test that asks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
UNFINISHED = {"spark.sql.timeType.enabled": "false", "spark.sql.timestampNanosTypes.enabled": "false"}
"""Types that Spark turns on for its own tests, by SPARK_TESTING, which here only gives a Connect server a free port."""

hypothesis.settings.register_profile("any speed", deadline=None)
hypothesis.settings.load_profile("any speed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Keep modules whole, and in one process all that may ask for the session, so that there is one in a run."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSession(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return "spark" if may_use_spark(module) else module

    return OneSession(config, log)


@cache
def may_use_spark(module: str) -> bool:
    """Say whether tests of a module may ask for the session: they do in these folders, or say of which type it is.

    Those of tests/processes start a Spark of their own instead, beside the one of the session.
    """
    if module.startswith(("tests/spark/", "tests/published/", "tests/faults/")):
        return True
    return ": SparkSession" in (ROOT / module).read_text("utf-8")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that hold an address: every process has its own, and those of one run must agree on all tests."""
    if addressed := [item.nodeid for item in items if re.search(r"\b0x[0-9a-f]{6,}", item.nodeid)]:
        raise pytest.UsageError(f"names of tests that differ from process to process: {addressed}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked as for a classic session alone where the session is one of Spark Connect."""
    if (marker := item.get_closest_marker("classic")) and os.environ.get("SPARK_REMOTE"):
        pytest.skip(marker.args[0])


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of `scripts/submit` with two threads; under Spark Connect when SPARK_REMOTE is set.

    Tests ask for `spark`.
    """
    from biasspark.session import build_session

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nothing listens to the network
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))
    settings = {"spark.sql.shuffle.partitions": "2"} | UNFINISHED
    remote = os.environ.get("SPARK_REMOTE", "")
    if not remote.startswith("sc://"):  # a server that runs already has its static settings
        settings |= {
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
        }
    if not remote:
        settings["spark.master"] = "local[2]"
    session = build_session("biasspark tests", settings)
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Give the shared session, and take away what the test left in it: cached frames and temporary views."""
    yield spark_session
    spark_session.catalog.clearCache()
    if not has_views(spark_session):
        return
    for view in spark_session.sql("SHOW VIEWS").collect():
        if view.isTemporary:
            spark_session.catalog.dropTempView(view.viewName)


def has_views(spark: SparkSession) -> bool:
    """Say whether there may be temporary views. To list them is a query, and few tests make any."""
    from biasspark.session import is_connect

    return is_connect(spark) or spark._jsparkSession.sessionState().catalog().listLocalTempViews("*").size() > 0


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder of the real data, which lies beside the project and not in it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real data is not here: {SHARED_DATA}")
    return SHARED_DATA
