"""The scripts explain themselves, and refuse unknown arguments before they make or start anything."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.harness.documents import headings_of
from tests.harness.submitting import run_program

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMMANDS = [
    str(path.relative_to(SCRIPTS))
    for path in (*SCRIPTS.iterdir(), *(SCRIPTS / "dev").iterdir())
    if path.is_file() and not path.suffix
]
SUPPORTING = sorted(
    path
    for folder in ("dev", "simulations")
    for path in (SCRIPTS / folder).iterdir()
    if path.suffix in ("", ".py") and path.is_file() and path.name != "__init__.py"
)


def run(name: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run_program(SCRIPTS / name, *arguments, cwd=cwd or SCRIPTS)


def test_scripts_are_those_of_users_and_contributors() -> None:
    users, contributors = {"demo", "submit", "package"}, {"test", "check", "fix", "docs", "bench", "paper"}
    assert {name for name in COMMANDS if "/" not in name} <= users | contributors
    assert {"dev/matrix", "dev/plan"} < set(COMMANDS)


@pytest.mark.parametrize("path", SUPPORTING, ids=lambda path: path.name)
def test_a_script_says_what_rests_on_it(path: Path) -> None:
    """Either a page of the docs, at a heading of it, or another script."""
    [named] = re.findall(r"^(?:# )?(?:Supports|Used by) ([\w./-]+\w)((?:#[\w-]+)?)", path.read_text("utf-8"), re.M)
    target = SCRIPTS.parent / named[0]
    assert target.is_file()
    assert not named[1] or named[1][1:] in headings_of(target)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_works_from_anywhere(name: str, tmp_path: Path) -> None:
    done = run(name, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: scripts/{name}")


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("check", ["biasspark"], "biasspark"),
        ("docs", ["tables"], "tables"),
        ("fix", ["biasspark"], "biasspark"),
        ("package", ["dist"], "dist"),
        ("package", ["--out"], "--out"),
        ("dev/check_dag", ["dags"], "dags"),
        ("dev/build_class_data_archive", ["now"], "now"),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: list[str], named: str) -> None:
    done = run(name, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"scripts/{name}: ")
    assert named in done.stderr


def run_bash(
    command: str, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with the functions of scripts/env.sh, without variables that name a Spark or a Java."""
    named = ("SPARK_", "MASTER", "JAVA_HOME", "BIASSPARK_JAVA")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(named)}
    bash = ["bash", "-euc", f'source "{SCRIPTS}/env.sh"; {command}', "bash", *arguments]
    return subprocess.run(bash, cwd=cwd, env=kept | (env or {}), capture_output=True, text=True, check=False)


def java_options(folder: Path, **environment: str) -> str:
    """Return the options that scripts give to Java if the class data archive is in a folder."""
    command = f'class_archive="{folder}/classes"; use_project_settings; echo "${{SPARK_SUBMIT_OPTS:-}}"'
    return run_bash(command, env=environment).stdout.strip()


def test_a_class_data_archive_is_used_if_there_is_one_and_a_user_sets_nothing(tmp_path: Path) -> None:
    logging = f'-Dlog4j2.configurationFile="{SCRIPTS.parent}/conf/log4j2.properties"'
    assert java_options(tmp_path) == logging
    (tmp_path / "classes").touch()
    assert java_options(tmp_path).startswith(f'{logging} -XX:SharedArchiveFile="{tmp_path}/classes" ')
    assert java_options(tmp_path, SPARK_CONF_DIR="/etc/spark") == ""
    assert java_options(tmp_path, SPARK_SUBMIT_OPTS="-Dmine=1") == "-Dmine=1"


@pytest.mark.parametrize(
    ("options", "environment", "address"),
    [
        ([], {}, "127.0.0.1"),
        (["--master", "local[2]"], {"SPARK_CONF_DIR": "cluster"}, "127.0.0.1"),
        ([], {"SPARK_CONF_DIR": "cluster"}, ""),
        ([], {"SPARK_CONF_DIR": "memory"}, "127.0.0.1"),
        (["--engine", "spark", "--master", "spark://head:7077"], {}, ""),
    ],
)
def test_spark_listens_on_loopback_if_the_master_is_local(
    options: list[str], environment: dict[str, str], address: str, tmp_path: Path
) -> None:
    for folder, setting in (
        ("cluster", "spark.master yarn"),
        ("memory", "# spark.master yarn\nspark.driver.memory 2g"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "spark-defaults.conf").write_text(setting)
    done = run_bash('use_loopback "$@"; echo "${SPARK_LOCAL_IP:-}"', *options, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, address)


def test_java_is_not_asked_for_the_module_that_it_warns_of(tmp_path: Path) -> None:
    """Nor where a script runs another one, which finds the Java that the first one found, nor with JAVA_HOME alone."""
    java = tmp_path / "java"
    java.write_text("""#!/bin/sh\n[ "$1" != -version ] || echo 'java version "17.0.1"'\nprintf '%s\\n' "$@"\n""")
    java.chmod(0o755)
    command = "find_java; find_java; for lost in _ BIASSPARK_JAVA; do "
    command += 'env --unset $lost "$JAVA_HOME/bin/java" -cp "a b" --add-modules=jdk.incubator.vector x; done'
    done = run_bash(command, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.stdout.splitlines() == ["-cp", "a b", "x"] * 2


def test_an_environment_whose_python_does_not_run_is_left_as_it_is(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(tmp_path / "nowhere")
    done = run_bash(f'venv="{tmp_path}"; python="{python}"; install_packages')
    assert done.returncode == 2
    assert str(python) in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_scripts_install_one_after_the_other(tmp_path: Path) -> None:
    install = f'install() {{ mkdir "{tmp_path}/installing" && sleep 0.1 && rmdir "{tmp_path}/installing"; }}'
    done = run_bash(f"{install}; under_lock install & under_lock install; wait $!")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow  # a run of the main job, once for an installation
def test_java_loads_its_classes_from_the_archive(tmp_path: Path) -> None:
    assert run("dev/build_class_data_archive").returncode == 0
    program = tmp_path / "count.py"
    program.write_text(
        "from pyspark.sql import SparkSession\nprint(SparkSession.builder.getOrCreate().range(3).count())\n"
    )
    log = tmp_path / "classes.log"
    done = run("submit", "--driver-java-options", f"-Xlog:class+load:file={log}", str(program))
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert log.read_text().count("source: shared objects file (top)") > 5000
