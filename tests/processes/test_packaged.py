"""What scripts/package builds, on a standalone master with two workers on loopback that have no biasspark."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.sample_run import read_latest
from tests.harness.submitting import (
    PLATFORM,
    ROOT,
    Cluster,
    Standalone,
    clean_environment,
    make_cluster,
    make_python,
    standalone,
)

CONFIG = """
corpus = {{ name = "eight", path = "{folder}/corpus" }}
label = {{ column = "toxic" }}
models = {{ one = "score" }}
identities = {{ columns = ["male"] }}
output = {{ path = "{folder}/{warehouse}" }}
"""
# Within the subgroup 3 of 4 pairs are in order, of its negatives and the others' positives 2 of 4 and a tie.
EIGHT = {
    "toxic": [False, False, True, True, False, False, True, True],
    "male": [True, True, True, True, False, False, False, False],
    "score": [0.2, 0.6, 0.4, 0.8, 0.1, 0.3, 0.2, 0.7],
}
AUCS = "identity, n_subgroup_negative, subgroup_auc, bpsn_auc, bnsp_auc"
EXPECTED = [("male", 2, 0.75, 0.625, 1.0)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("packaged")
    (found / "corpus").mkdir()
    for part in range(2):
        pq.write_table(pa.table(EIGHT).slice(4 * part, 4), found / "corpus" / f"{part}.parquet")
    return found


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Cluster:
    return make_cluster(folder)


@pytest.fixture(scope="module")
def master(cluster: Cluster, folder: Path) -> Iterator[Standalone]:
    with standalone(cluster.home, folder) as found:
        yield found


def flags(folder: Path, warehouse: str) -> list[str]:
    config = folder / f"{warehouse}.toml"
    config.write_text(CONFIG.format(folder=folder, warehouse=warehouse), encoding="utf-8")
    return ["--config", str(config), "--run-date", "2026-01-15"]


def shipped(master: Standalone, name: str) -> set[str]:
    """Give the workers that had something shipped to them."""
    found = master.folder.glob(f"worker-*/*/app-*/*/{name}")
    return {path.relative_to(master.folder).parts[0] for path in found}


@pytest.mark.slow
def test_the_zip_is_all_that_a_standalone_cluster_needs(
    folder: Path, cluster: Cluster, master: Standalone, tmp_path: Path
) -> None:
    """The driver of the report reads Jinja2 and the templates from a copy of the zip, gone when Spark stops."""
    job = [str(ROOT / "jobs" / "bias_metrics.py"), *flags(folder, "zip")]
    code, printed = cluster.submit(*master.options, *job, cwd=tmp_path)
    assert code == 0, printed
    assert json.loads(printed.splitlines()[-1])["n_rows"] == 8
    assert shipped(master, "biasspark.zip") == {"worker-0", "worker-1"}
    assert read_latest(folder / "zip", AUCS) == EXPECTED

    driver = make_python(tmp_path / "driver", *PLATFORM, "matplotlib")
    report = [str(ROOT / "jobs" / "report.py"), *flags(folder, "zip"), "--publish", "--model-card", "card.md"]
    code, printed = cluster.submit("--master", "local[2]", *report, cwd=tmp_path, PYSPARK_DRIVER_PYTHON=str(driver))
    assert code == 0, printed
    (page,) = (folder / "zip" / "reports" / "run_date=2026-01-15").iterdir()
    assert "<svg" in page.read_text("utf-8")
    assert (tmp_path / "card.md").exists()


@pytest.mark.slow
def test_the_archive_is_all_that_a_standalone_cluster_needs(
    folder: Path, cluster: Cluster, master: Standalone, tmp_path: Path
) -> None:
    """The machines have a Python without any package; the driver runs the archive unpacked."""
    built = subprocess.run(
        [ROOT / "scripts" / "package", "--environment", "--out", tmp_path], capture_output=True, text=True, check=False
    )
    if "the packages cannot be had" in built.stderr:
        pytest.skip("the archive cannot be built here: no package index answers")
    assert built.returncode == 0, built.stderr
    archive = tmp_path / "environment.tar.gz"
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="fully_trusted")

    def submit(job: str, *more: str) -> None:
        command = [str(cluster.home / "bin" / "spark-submit"), *master.options]
        command += ["--archives", f"{archive}#environment", str(ROOT / "jobs" / job), *flags(folder, "archive"), *more]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=clean_environment(
                SPARK_HOME=str(cluster.home),
                SPARK_CONF_DIR=str(ROOT / "conf"),
                PYSPARK_PYTHON="./environment/bin/python",
                PYSPARK_DRIVER_PYTHON=str(tmp_path / "unpacked" / "bin" / "python"),
                PATH=f"{make_python(tmp_path / job).parent}:/usr/bin:/bin",
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    submit("bias_metrics.py")
    assert shipped(master, "environment/bin/python") == {"worker-0", "worker-1"}
    assert read_latest(folder / "archive", AUCS) == EXPECTED
    submit("report.py", "--out", "report.html")
    assert "<svg" in (tmp_path / "report.html").read_text("utf-8")
