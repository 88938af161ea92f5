"""The faults of a session that lacks a table format, given only its version and settings."""

from __future__ import annotations

from typing import Any

import pytest

from biasspark.errors import ConfigError, Fault
from biasspark.tables.lake import DeltaStore, IcebergStore, LakeStore
from tests.harness.least_configuration import raised_fault


class FakeSession:
    """A session with only a version and settings."""

    def __init__(self, version: str, settings: dict[str, str]) -> None:
        self.version, self.conf = version, settings


def fault_of(store: LakeStore, version: str, settings: dict[str, str]) -> Fault:
    return raised_fault(ConfigError, store.check, FakeSession(version, settings), [])


@pytest.mark.parametrize("store", [IcebergStore("lake.bias"), DeltaStore("bias")])
def test_the_settings_of_the_runtime_are_named(store: LakeStore) -> None:
    fault = fault_of(store, "4.0.1", {})
    assert (fault.path, fault.value) == (("output", "format"), store.provider)
    assert all(part in str(fault.rule) for part in ("4.0.1", "spark.sql.extensions and spark.sql.catalog."))
    assert f"conf/lake-{store.provider}.conf" in str(fault.fix)


def test_a_catalog_that_the_session_lacks_is_named() -> None:
    settings = {"spark.sql.catalog.lake": "x", "spark.sql.catalog.lake.type": "jdbc"}
    settings["spark.sql.extensions"] = IcebergStore.extension
    fault = fault_of(IcebergStore("laek.bias"), "4.1.4", settings)
    assert (fault.path, fault.value) == (("output", "catalog"), "laek.bias")
    assert "spark.sql.catalog.laek" in str(fault.fix)


def test_databricks_has_delta_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")
    session: Any = FakeSession("3.5.0", {})
    DeltaStore("main.bias").check(session, [])
