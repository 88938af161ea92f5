"""YARN on loopback: a resource manager and two node managers, as Hadoop has them on machines of their own."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen
from xml.sax.saxutils import escape

import pytest

from tests.harness.submitting import Cluster, daemon, run_program

SERVER = "org.apache.hadoop.yarn.server"
NEEDED = ("org.bouncycastle:bcpkix-jdk18on:1.78.1", "javax.xml.bind:jaxb-api:2.3.1")
"""Libraries that YARN takes, and that are not in the jar with its classes, nor among those of Spark."""

MANAGER_ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
NODE_ADDRESSES = ("address", "localizer.address", "webapp.address")


@contextlib.contextmanager
def yarn(cluster: Cluster, folder: Path) -> Iterator[dict[str, str]]:
    """Start the three, which work in a folder; give the environment in which spark-submit finds them."""
    folder.mkdir()
    jars = find_jars(cluster.home, folder / "ivy")
    settings = {f"resourcemanager.{name}": address for name, address in free_addresses(*MANAGER_ADDRESSES).items()}
    settings |= {f"nodemanager.{name}": "127.0.0.1:0" for name in NODE_ADDRESSES} | {
        "resourcemanager.hostname": "127.0.0.1",
        "nodemanager.resource.memory-mb": "4096",
        "nodemanager.vmem-check-enabled": "false",  # of Java's address space most is never touched
        "nodemanager.disk-health-checker.enable": "false",  # which refuses a disk that is nine tenths full
        "scheduler.capacity.root.queues": "default",
        "scheduler.capacity.root.default.capacity": "100",
    }
    with contextlib.ExitStack() as stack:

        def start(name: str, role: str, **more: str) -> Path:
            directory = folder / name
            written = write_settings(folder / f"{name}-conf", settings | more)
            environment = {"HADOOP_CONF_DIR": str(written), "SPARK_DIST_CLASSPATH": f"{jars}/*"}
            return stack.enter_context(daemon(cluster.home, directory, f"{SERVER}.{role}", **environment))[1]

        log = start("manager", "resourcemanager.ResourceManager")
        for number in range(2):
            names = {"local-dirs": "work", "log-dirs": "logs"}
            directories = {f"nodemanager.{key}": str(folder / f"node-{number}" / name) for key, name in names.items()}
            start(f"node-{number}", "nodemanager.NodeManager", **directories)
        wait_for_nodes(settings["resourcemanager.webapp.address"], log)
        yield {"HADOOP_CONF_DIR": str(folder / "manager-conf"), "SPARK_CONF_DIR": str(write_defaults(cluster, folder))}


def wait_for_nodes(address: str, log: Path) -> None:
    """Wait until the manager says that it has both nodes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urlopen(f"http://{address}/ws/v1/cluster/metrics") as answer:
            if b'"activeNodes":2,' in answer.read():
                return
        time.sleep(0.2)
    pytest.fail(log.read_text("utf-8", errors="replace"))


def find_jars(home: Path, folder: Path) -> Path:
    """Have Spark fetch the classes of the same Hadoop that it brings; give the folder where they are."""
    [client] = home.glob("jars/hadoop-client-api-*.jar")
    version = client.stem.rpartition("-")[2]
    nothing = folder.with_suffix(".py")
    nothing.touch()
    packages = ",".join((f"org.apache.hadoop:hadoop-client-minicluster:{version}", *NEEDED))
    options = ("--packages", packages, "--conf", f"spark.jars.ivy={folder}", str(nothing))
    done = run_program(home / "bin" / "spark-submit", *options, cwd=folder.parent, SPARK_HOME=str(home))
    if "unresolved dependency" in done.stderr:
        pytest.skip("YARN cannot be had here: no repository of Maven answers")
    assert done.returncode == 0, done.stderr
    return folder / "jars"


def free_addresses(*names: str) -> dict[str, str]:
    """Give each name an address on loopback that nothing listens to."""
    with contextlib.ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in names}
        for found in sockets.values():
            found.bind(("127.0.0.1", 0))
        return {name: f"127.0.0.1:{found.getsockname()[1]}" for name, found in sockets.items()}


def write_settings(folder: Path, settings: dict[str, str]) -> Path:
    folder.mkdir()
    pairs = "".join(
        f"<property><name>yarn.{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>{pairs}</configuration>", "utf-8")
    return folder


def write_defaults(cluster: Cluster, folder: Path) -> Path:
    """Write Spark's own defaults on this cluster: its jars and Python are where they are, and nothing is copied."""
    place = folder / "spark-conf"
    place.mkdir()
    settings = {"spark.yarn.jars": f"local:{cluster.home}/jars/*", "spark.yarn.stagingDir": str(folder / "staging")}
    for scope in ("spark.yarn.appMasterEnv", "spark.executorEnv"):
        settings |= {f"{scope}.PYSPARK_PYTHON": str(cluster.python), f"{scope}.SPARK_LOCAL_IP": "127.0.0.1"}
    (place / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()), "utf-8")
    return place
