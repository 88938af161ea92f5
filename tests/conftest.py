"""What tests share: one session of each engine for the whole run, started by the first test that asks for it."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling

    from biasspark.tables.store import CatalogStore

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
UNFINISHED = {"spark.sql.timeType.enabled": "false", "spark.sql.timestampNanosTypes.enabled": "false"}
"""Types that Spark turns on for its own tests, by SPARK_TESTING, which here only gives a Connect server a free port."""

# A job in the background of a shell ignores Ctrl-C, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# To look for garbage among all that is imported takes a tenth of the time of unit tests.
gc.set_threshold(50_000, 20)

hypothesis.settings.register_profile("thorough", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=50)
hypothesis.settings.load_profile("thorough")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of engines. Spark is what remains where the other is not installed, or a server is named."""
    is_embedded = find_spec("pysail") is not None and "SPARK_REMOTE" not in os.environ
    help_text = "run tests that do not need Spark on this engine, or on both; default: %(default)s"
    default = "embedded" if is_embedded else "spark"
    parser.addoption("--engine", choices=("embedded", "spark", "both"), default=default, help=help_text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses a session on the engines that are asked for, and on Spark alone if it is marked so."""
    if "spark_session" not in metafunc.fixturenames:
        return
    asked = metafunc.config.getoption("engine")
    engines = ["embedded", "spark"] if asked == "both" else [asked]
    if any(metafunc.definition.get_closest_marker(marker) for marker in ("spark", "classic")):
        engines = ["spark"]
    elif metafunc.definition.get_closest_marker("embedded"):
        engines = ["embedded"] if find_spec("pysail") else []
    metafunc.parametrize("spark_session", engines, indirect=True, scope="session")


LONGEST_FIRST = ("spark", "tests/processes/", "embedded", "tests/browser/", "tests/docs/", "tests/embedded/", "")
"""The beginnings of scopes, in the order in which processes take them: what is short fills both to the end."""
TOGETHER = "tests/unit/test_report"
"""The beginning of modules that look at the same page, which takes seconds to draw."""


def scope_of(nodeid: str) -> str:
    """Return what runs in one process: all tests of an engine, so that each has one session in a run, or a module.

    Modules of one page count as one.
    """
    engine = re.search(r"\[(embedded|spark)[-\]]", nodeid)
    module = TOGETHER if nodeid.startswith(TOGETHER) else nodeid.partition("::")[0]
    return engine[1] if engine else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Hand out the scopes in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSessionEach(LoadScopeScheduling):  # type: ignore[misc]  # which has no types
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False
    return OneSessionEach(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, and refuse names that hold an address.

    Every process has its own addresses, and those of one run must agree on all tests.
    """
    if addressed := [item.nodeid for item in items if re.search(r"\b0x[0-9a-f]{6,}", item.nodeid)]:
        raise pytest.UsageError(f"names of tests that differ from process to process: {addressed}")
    items.sort(
        key=lambda item: next(n for n, first in enumerate(LONGEST_FIRST) if scope_of(item.nodeid).startswith(first))
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked as for a classic session alone where the session is one of Spark Connect."""
    if (marker := item.get_closest_marker("classic")) and os.environ.get("SPARK_REMOTE"):
        pytest.skip(marker.args[0])


@pytest.fixture(scope="session")
def spark_session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the embedded engine, or that of `scripts/submit` with two threads.

    The latter is one of Spark Connect when SPARK_REMOTE is set. Tests ask for `spark`.
    """
    from biasspark.session import build_session, local
    from biasspark.session_request import SessionRequest

    if request.param == "embedded":
        session = local()
        yield session
        session.stop()
        return
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nothing listens to the network
    if "PYSPARK_SUBMIT_ARGS" not in os.environ:  # by which scripts/test names the settings, as scripts/submit does
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
    session = build_session("biasspark tests", settings, SessionRequest(engine="spark"))
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Give the shared session, and take away what the test left in it: cached frames and temporary views."""
    from biasspark.session import is_connect, is_embedded

    yield spark_session
    if is_embedded(spark_session):
        return
    spark_session.catalog.clearCache()
    # To list views is a query, and few tests make any.
    if not is_connect(spark_session):
        session_catalog = spark_session._jsparkSession.sessionState().catalog()
        if not session_catalog.listLocalTempViews("*").size():
            return
    for view in spark_session.sql("SHOW VIEWS").collect():
        if view.isTemporary:
            spark_session.catalog.dropTempView(view.viewName)


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[CatalogStore]:
    """Give a schema of its own to a test, in the catalog of the session."""
    from biasspark.tables.store import CatalogStore

    store = CatalogStore(f"spark_catalog.bias_{uuid4().hex[:8]}")
    yield store
    spark.sql(f"DROP SCHEMA IF EXISTS {store.schema} CASCADE")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder of the real data, which lies beside the project and not in it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real data is not here: {SHARED_DATA}")
    return SHARED_DATA
