"""What makes a Spark of tests quick: settings for a few rows, and less ado between Python, Java and the disk."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What is inferred about columns saves rows, of which there are few; and nobody looks at the plan of every query.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
}

HURRIED_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
)
"""Of Java's two compilers the quick one alone, with room for all that it makes: by default it has so little that code
is thrown away and made again. The collector that takes no other thread's time. And processes that begin in half the
time: Hadoop starts one for every file and folder that it makes on this machine, to set who may read it."""

_LOCAL_FILES = "biasspark.tests.LocalFiles"

_LOCAL_FILES_IN_JAVA = """
package biasspark.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFileSystem() {
            public void setPermission(Path path, FsPermission allowed) throws IOException {
                Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(allowed.toString()));
            }
        });
    }
}
"""


class _Acknowledging(socket.socket):
    """A socket that tells the other side at once what has come.

    Py4J's Java writes an answer of more than 8 kB, such as the schema of a table of many columns, in pieces, and what
    follows the first waits until that is acknowledged: by default 44 ms.
    """

    __slots__ = ()

    def recv_into(self, *arguments: Any) -> int:
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # the next byte that is sent would end it
        return super().recv_into(*arguments)


def hurry_python() -> None:
    """Change PySpark and Py4J in this process, for all sessions."""
    acknowledge_at_once()
    remember_members()
    keep_pickled()
    forget_callers()


def acknowledge_at_once() -> None:
    from py4j.clientserver import ClientServerConnection

    connect = ClientServerConnection.connect_to_java_server

    def connect_and_acknowledge(connection: ClientServerConnection) -> None:
        connect(connection)
        connection.socket.__class__ = _Acknowledging

    ClientServerConnection.connect_to_java_server = connect_and_acknowledge


def remember_members() -> None:
    """Ask Java once what is called `col`. Py4J asks at every call of a function, which is a fourth of what it asks."""
    from py4j.java_gateway import JavaClass, JavaMember

    ask = JavaClass.__getattr__
    known: dict[tuple[str, str], JavaMember] = {}

    def remember(of: JavaClass, name: str) -> object:
        if member := known.get((of._fqn, name)):
            return member
        found = ask(of, name)
        if isinstance(found, JavaMember):
            known[of._fqn, name] = found
        return found

    JavaClass.__getattr__ = remember


def keep_pickled() -> None:
    """Have Java take the rows of `createDataFrame` as they were pickled.

    At every scan of them PySpark has Python workers read them and pickle them again, in batches of another size.
    """
    from pyspark import RDD
    from pyspark.serializers import BatchedSerializer

    pickle_anew = RDD._pickled

    def pickle_once(rows: RDD[object]) -> RDD[object]:
        return rows if isinstance(rows._jrdd_deserializer, BatchedSerializer) else pickle_anew(rows)

    RDD._pickled = pickle_once  # type: ignore[method-assign]  # that is the purpose


def forget_callers() -> None:
    """Have PySpark not look for the line that asks for a query's rows: it goes through the source of all callers."""
    from pyspark.traceback_utils import SCCallSiteSync

    for name in ("__init__", "__enter__", "__exit__"):
        setattr(SCCallSiteSync, name, lambda *_: None)


def hurry_java(spark: SparkSession) -> None:
    """Change Java's part of a session, for this thread and those that inherit its properties."""
    quicken_files(spark)
    forget_creators(spark)
    forget_defaults(spark)


def quicken_files(spark: SparkSession) -> None:
    """Have Hadoop set by itself who may read a file.

    Without its native library it starts a process of `chmod` for it, 15 of them for a Parquet file of one row: half the
    time that it takes. The class is compiled by what compiles Spark's queries, and kept where Hadoop looks for the file
    systems that it has made.
    """
    java: Any = spark._jvm
    settings = spark._jsc.hadoopConfiguration()
    loader = settings.getClassLoader()
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_LOCAL_FILES_IN_JAVA)
    file_systems = java.org.apache.hadoop.fs.FileSystem
    file_systems.closeAll()
    settings.setClassLoader(compiler.getClassLoader())
    settings.set("fs.file.impl", _LOCAL_FILES)
    file_systems.getLocal(settings)
    settings.unset("fs.file.impl")
    settings.setClassLoader(loader)


def forget_creators(spark: SparkSession) -> None:
    """Say once who makes what, which Spark otherwise looks for on the stack, of every RDD."""
    for form in ("short", "long"):
        spark.sparkContext.setLocalProperty(f"callSite.{form}", "tests")


def forget_defaults(spark: SparkSession) -> None:
    """Take away Hadoop's defaults for a cluster and for S3, half of those that every reading and writing task is sent.

    Without them a query of a hundred rows takes 67 ms, not 80.
    """
    settings: Any = spark._jsc.hadoopConfiguration()
    for prefix in ("yarn.", "fs.s3a."):
        for name in list(settings.getPropsWithPrefix(prefix)):
            settings.unset(prefix + name)
