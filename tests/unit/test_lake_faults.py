"""The faults of a session that lacks a table format, given only its version and settings."""

from __future__ import annotations

from typing import Any

import pytest

from biasspark.errors import ConfigError, Fault
from biasspark.tables.lake import DeltaStore, IcebergStore, LakeStore
from tests.harness.least_configuration import raised_fault

EXTENSIONS = {store.provider: {"spark.sql.extensions": store.extension} for store in (DeltaStore, IcebergStore)}


class FakeSession:
    """A session with only a version and settings."""

    def __init__(self, version: str, settings: dict[str, str]) -> None:
        self.version, self.conf = version, settings


def fault_of(store: LakeStore, version: str, settings: dict[str, str]) -> Fault:
    return raised_fault(ConfigError, store.check, FakeSession(version, settings), [])


@pytest.mark.parametrize(
    ("store", "version", "words"),
    [
        (IcebergStore("lake.bias"), "4.1.4", ("conf/lake-iceberg.conf", "iceberg-spark-runtime-4.1")),
        (IcebergStore("lake.bias"), "4.0.1", ("iceberg-spark-runtime-4.0",)),
        (IcebergStore("lake.bias"), "4.2.1", ("pyspark==4.1.*", 'format = "parquet"')),
        (DeltaStore("bias"), "4.3.0", ("pyspark==4.1.*", 'format = "parquet"')),
    ],
)
def test_the_runtime_of_the_version_is_named_or_that_there_is_none(
    store: LakeStore, version: str, words: tuple[str, ...]
) -> None:
    fault = fault_of(store, version, {})
    assert (fault.path, fault.value) == (("output", "format"), store.provider)
    assert version in str(fault.rule)
    assert [word for word in words if word not in str(fault.fix)] == []
    assert ("conf/lake" in str(fault.fix)) == (version != "4.0.1")


def test_a_catalog_that_the_session_lacks_is_named() -> None:
    settings = EXTENSIONS["iceberg"] | {"spark.sql.catalog.lake": "x", "spark.sql.catalog.lake.type": "jdbc"}
    fault = fault_of(IcebergStore("laek.bias"), "4.1.4", settings)
    assert (fault.path, fault.value) == (("output", "catalog"), "laek.bias")
    assert "spark.sql.catalog.laek" in str(fault.fix)


def test_databricks_has_delta_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")
    session: Any = FakeSession("3.5.0", {})
    DeltaStore("main.bias").check(session, [])
