"""The scripts explain themselves and refuse what they do not know, before they make or start anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMMANDS = [
    "bench",
    "check",
    "check_dag",
    "demo",
    "docs",
    "drill",
    "fix",
    "matrix",
    "package",
    "plan",
    "quicken",
    "submit",
    "survived",
    "test",
]


def run(name: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPTS / name, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_given_from_anywhere(name: str, tmp_path: Path) -> None:
    done = run(name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: scripts/{name}")
    assert done.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_script_can_be_run(name: str) -> None:
    assert os.access(SCRIPTS / name, os.X_OK)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("demo", ["--rows", "1e6"], "scripts/demo: --rows 1e6. It must be a whole number above 0, in digits alone."),
        ("demo", ["--rows", "0"], "scripts/demo: --rows 0. It must be a whole number above 0, in digits alone."),
        ("demo", ["--rows"], "scripts/demo: --rows needs a value."),
        ("demo", ["--out", ""], "scripts/demo: --out needs a value."),
        ("demo", ["fast"], "scripts/demo: unknown argument fast. Known: --rows N, --out DIR."),
        ("check", ["biasspark"], "scripts/check: only --all is taken, got: biasspark"),
        ("docs", ["tables"], "scripts/docs: no arguments are taken, got: tables"),
        ("fix", ["biasspark"], "scripts/fix: no arguments are taken, got: biasspark"),
        ("check_dag", ["dags"], "scripts/check_dag: dags: no such file."),
        ("quicken", ["now"], "scripts/quicken: no arguments are taken, got: now"),
        ("package", ["dist"], "scripts/package: unknown argument dist. Known: --environment, --out DIR."),
        ("package", ["--out"], "scripts/package: --out needs a value."),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: list[str], message: str) -> None:
    done = run(name, *arguments)
    assert (done.returncode, done.stderr.strip()) == (2, message)


def java_options(folder: Path, **environment: str) -> str:
    """Return what the scripts have Spark give to Java, were its classes kept in a folder."""
    asked = f'source "{SCRIPTS}/env.sh"; classes="{folder}/classes"; use_own_settings; echo "${{SPARK_SUBMIT_OPTS:-}}"'
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run(["bash", "-euc", asked], env=kept | environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_kept_classes_are_used_where_there_are_any(tmp_path: Path) -> None:
    logging = f'-Dlog4j2.configurationFile="{SCRIPTS.parent}/conf/log4j2.properties"'
    assert java_options(tmp_path) == logging
    (tmp_path / "classes").touch()
    assert java_options(tmp_path).startswith(f'{logging} -XX:SharedArchiveFile="{tmp_path}/classes" ')


def test_settings_of_a_user_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "classes").touch()
    assert java_options(tmp_path, SPARK_CONF_DIR="/etc/spark") == ""
    assert java_options(tmp_path, SPARK_SUBMIT_OPTS="-Dmine=1") == "-Dmine=1"


@pytest.mark.slow  # a night, once for an installation
def test_quicken_has_java_load_its_classes_from_one_file(tmp_path: Path) -> None:
    assert run("quicken").returncode == 0
    program = tmp_path / "count.py"
    program.write_text(
        "from pyspark.sql import SparkSession\nprint(SparkSession.builder.getOrCreate().range(3).count())\n"
    )
    log = tmp_path / "classes.log"
    done = run("submit", "--driver-java-options", f"-Xlog:class+load:file={log}", str(program))
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert log.read_text().count("source: shared objects file (top)") > 5000
