"""The example for Airflow in the real Airflow, which runs its tasks by the real spark-submit and the zip.

The Python of the jobs has what a platform has, and matplotlib: biasspark and Jinja2 are in the zip alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.dev.zip_package import write_zip
from tests.harness.running_jobs import ask
from tests.harness.submitting import MODEST, PLATFORM, ROOT, make_python, run_program
from tests.processes.lake_runs import FORMATS, SPARK, read_conf

CONFIG = """
corpus = {{ name = "civil", path = "{folder}/corpus" }}
label = {{ column = "toxic" }}
models = {{ one = "score" }}
identities = {{ columns = ["male"] }}
gate = {{ rule = [{{ name = "floor", metric = "subgroup_auc", min = {floor} }}] }}
{output}
"""
COPIES = 50
"""Of four rows of each class of the subgroup, enough for an interval around its AUC of 0.75."""
CORPUS = {
    "toxic": [False, False, True, True, False, False, True, True] * COPIES,
    "male": [True, True, True, True, False, False, False, False] * COPIES,
    "score": [0.2, 0.6, 0.4, 0.8, 0.1, 0.3, 0.2, 0.7] * COPIES,
}
PASSES, FAILS = 0.5, 0.99


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine on which Airflow submits: the jobs, the zip, a Python for both, and a corpus."""
    folder = tmp_path_factory.mktemp("airflow")
    shutil.copytree(ROOT / "jobs", folder / "biasspark" / "jobs")
    write_zip(ROOT / "biasspark", folder / "biasspark" / "dist" / "biasspark.zip", ("jinja2", "markupsafe"))
    make_python(folder / "python", *PLATFORM, "matplotlib")
    (folder / "corpus").mkdir()
    pq.write_table(pa.table(CORPUS), folder / "corpus" / "part.parquet")
    return folder


def check_dag(folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Run scripts/dev/check_dag where nothing but the zip brings biasspark."""
    done = run_program(
        ROOT / "scripts" / "dev" / "check_dag",
        path,
        cwd=folder,
        SPARK_CONF_DIR=str(ROOT / "conf"),
        PYSPARK_PYTHON=str(folder / "python" / "bin" / "python"),
        AIRFLOW__LOGGING__LOGGING_LEVEL="INFO",
    )
    if "the packages cannot be had" in done.stderr:
        pytest.skip("Airflow cannot be installed here: no package index answers")
    if "unresolved dependency" in done.stdout + done.stderr:
        pytest.skip("the jars of conf/lake-iceberg.conf cannot be had here: no repository of Maven answers")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def run_tasks(folder: Path, name: str, floor: float, output: str, settings: dict[str, str]) -> dict[str, Any]:
    """Run the tasks of a run in order; give what each ended with."""
    config, path = folder / f"{name}.toml", folder / f"{name}.json"
    config.write_text(CONFIG.format(folder=folder, floor=floor, output=output), encoding="utf-8")
    constants = {
        "BIASSPARK": str(folder / "biasspark"),
        "CONFIG": str(config),
        "SPARK": MODEST | settings,
    }
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    path.write_text(json.dumps({"constants": constants, "connection": connection, "ds": "2026-01-15"}), "utf-8")
    ended: dict[str, Any] = json.loads(check_dag(folder, path).stdout.splitlines()[-1])
    return ended


def read_report(folder: Path) -> str:
    (page,) = folder.glob("run_date=2026-01-15/r*.html")
    return page.read_text("utf-8")


def read_iceberg_settings(folder: Path) -> dict[str, str]:
    """Give the settings of conf/lake-iceberg.conf with its two paths in a folder."""
    paths = {"uri": f"jdbc:sqlite:{folder}/lake.db", "warehouse": f"{folder}/lake"}
    return read_conf("iceberg") | {f"spark.sql.catalog.lake.{name}": path for name, path in paths.items()}


@pytest.mark.slow
def test_all_tasks_run_in_order_on_a_path(folder: Path) -> None:
    ended = run_tasks(folder, "path", PASSES, f'output = {{ path = "{folder}/warehouse" }}', {})
    assert ended == {"measure": 0, "gate": None, "maintain": 0, "report": 0}
    assert next(iter(ended)) == "measure"
    assert ask(folder / "warehouse", "SELECT job, status FROM bias_runs") == [("bias_metrics", "accepted")]
    assert "<svg" in read_report(folder / "warehouse" / "reports")


@pytest.mark.slow
@pytest.mark.skipif("iceberg" not in FORMATS, reason=f"Iceberg has no runtime for Spark {SPARK}")
def test_all_tasks_run_in_order_on_a_catalog_also_when_the_gate_fails(folder: Path) -> None:
    output = (
        f'output = {{ catalog = "lake.bias", format = "iceberg" }}\nreport = {{ path = "{folder}/reports of lake" }}'
    )
    ended = run_tasks(folder, "iceberg", FAILS, output, read_iceberg_settings(folder))
    assert ended == {"measure": 5, "gate": "AirflowFailException", "maintain": 0, "report": 0}
    assert "The gate failed" in read_report(folder / "reports of lake")
