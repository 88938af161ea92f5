"""Faults at the start of Spark, and versions of lake runtimes. In tests/processes, real sessions start."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError

from biasspark.errors import BiasSparkError
from biasspark.session.job_session import find_runtime_fault, list_jars, start_faults

ROOT = Path(__file__).resolve().parents[2]
LAKES = sorted((ROOT / "conf").glob("lake-*.conf"))


def test_another_cause_is_said_without_secrets() -> None:
    message = (
        "An error occurred while calling x.\n: org.x: outer\n\tat x\nCaused by: no host in sc://a:secret@h.\n\tat y"
    )
    with pytest.raises(BiasSparkError, match="no host in") as caught, start_faults():
        raise PySparkRuntimeError(message)
    assert caught.value.exit_code == 1
    assert "secret" not in str(caught.value)


def test_where_spark_should_have_started_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://a:secret@h")
    with pytest.raises(BiasSparkError, match=r"SPARK_REMOTE = sc://\(redacted\)@h: .*master"), start_faults():
        raise PySparkRuntimeError(
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat"
        )


@pytest.mark.parametrize("lake", LAKES, ids=lambda path: path.stem)
@pytest.mark.parametrize("version", ["4.3.0", "3.5.9", "4.10.0", "4.0.5.dev0"])
def test_the_runtimes_of_the_lake_configurations_are_for_one_spark(lake: Path, version: str) -> None:
    (packages,) = re.findall(r"^spark.jars.packages +(\S+)", lake.read_text("utf-8"), re.MULTILINE)
    jars = list_jars(SparkConf(loadDefaults=False).set("spark.jars.packages", packages))
    assert find_runtime_fault(jars, "4.1.4") is None
    fault = find_runtime_fault(jars, version)
    assert fault
    assert {"4.1", version} <= {*re.findall(r"Spark (\d[\w.]*\w)", fault)}


@pytest.mark.parametrize(
    ("jars", "version", "wanted"),
    [
        ("", "4.3.0", None),
        ("org.xerial:sqlite-jdbc:3.50.3.0", "4.3.0", None),
        ("io.delta:delta-spark_2.12:3.3.2", "3.5.9", None),
        ("io.delta:delta-spark_2.12:3.3.2", "4.1.4", "3.5"),
        ("io.delta:delta-spark_2.13:4.0.0", "4.0.5", None),
        ("io.delta:delta-spark_2.13:4.0.0", "4.1.4", "4.0"),
        ("io.delta:delta-spark_2.13:4.1.0", "4.2.0", None),  # does not name a version of Spark
        ("x:y:1,org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0", "4.1.4", "3.5"),
        ("/opt/iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "4.1.4-amzn-0", None),
        ("/opt/iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "4.2.1", "4.1"),
    ],
)
def test_a_runtime_for_another_spark(jars: str, version: str, wanted: str | None) -> None:
    fault = find_runtime_fault(jars, version)
    assert (fault is None) == (wanted is None)
    assert fault is None or {wanted, version} <= {*re.findall(r"Spark (\d[\w.]*\w)", fault)}


@pytest.mark.parametrize("extra", ["spark", "connect"])
def test_pip_brings_the_spark_of_the_lake_configurations(extra: str) -> None:
    """The newest version that the extra allows, which pip installs, is that of the runtimes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (spark,) = map(Requirement, project["optional-dependencies"][extra])
    for lake in LAKES:
        (major, minor) = map(int, re.findall(r"spark\S*[-_](\d+)\.(\d+)_2\.13:", lake.read_text("utf-8"))[0])
        assert spark.specifier.contains(f"{major}.{minor}.99")
        assert not spark.specifier.contains(f"{major}.{minor + 1}.0")
        assert not spark.specifier.contains(f"{major + 1}.0.0")
