"""Where the documents of a report go: files that are named, or a folder that any file system of Spark may have."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from biasspark.config import Config, redact, show_value
from biasspark.errors import BiasSparkError, ConfigError
from biasspark.files import replace_file
from biasspark.report.facts import NightFacts
from biasspark.tables.contract import find_cause

FOLDER = "reports"
_DRAWN_BY = ("jinja2", "matplotlib")
_OF_THE_SETTINGS = re.compile(
    r"Mkdirs failed|[Pp]ermission denied|AccessControl|AccessDenied|Read-only|not permitted|UnknownHost|NoSuchBucket"
    r"|No (?:Abstract)?FileSystem|ClassNotFound|NotADirectory|Not a directory|is a file|is not a directory"
)
"""What of Java's messages says that no later try of the same job will write there."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where documents are wanted.

    Attributes
    ----------
    page, model_card
        Files, None where the document is not wanted.
    folder
        The folder of published reports, None where nothing is published.
    """

    page: Path | None = None
    model_card: Path | None = None
    folder: str | None = None

    def __post_init__(self) -> None:
        """Refuse to write nothing, or without the libraries that draw.

        Raises
        ------
        ConfigError
            In either case.
        """
        if not (self.page or self.model_card or self.folder):
            raise ConfigError("--out: missing. A report needs a place. Give --out, --publish or --model-card.")
        if missing := [name for name in _DRAWN_BY if find_spec(name) is None]:
            raise ConfigError(
                f"report: no {' and no '.join(missing)} here. Reports are drawn by {' and '.join(_DRAWN_BY)}. Install "
                "biasspark with its extra report."
            )


def locate_reports(config: Config) -> str:
    """Return the folder of published reports: that of ``[report]``, by default ``reports`` beside the tables.

    Raises
    ------
    ConfigError
        If the tables are in a catalog, and ``[report]`` names no folder.
    """
    if config.report.path:
        return config.report.path.rstrip("/")
    if config.output.path:
        return f"{config.output.path.rstrip('/')}/{FOLDER}"
    raise ConfigError(
        f"--publish: [output] catalog = {show_value(config.output.catalog)}, and no [report] path. A catalog has no "
        'folder for reports. Add [report] path = "...", a folder or a URI that Spark can write, or write to a file '
        "with --out."
    )


def write_documents(spark: SparkSession, facts: NightFacts, places: Places) -> list[str]:
    """Write what is wanted of a report, and return the files.

    A published page is ``run_date=D/R.html``. A later page of the same run replaces it: it may say more, once
    attribution is there or a person has accepted the run.

    The session must be running, also where nothing is published: this imports the libraries that draw, and a session
    that stops removes the zips of ``--py-files``.

    Raises
    ------
    ConfigError
        If a file cannot be written.
    BiasSparkError
        If a page cannot be published for a reason that a later try may not find, such as a network that is down.
    """
    written = []
    if places.page or places.folder:
        page = _writer("page", "write_page")(facts)
        if places.page:
            write_out(places.page, page)
            written.append(str(places.page))
        if places.folder:
            folder = f"{places.folder}/run_date={facts.run_date.isoformat()}"
            written.append(_publish(spark, folder, f"{facts.run['run_id']}.html", page))
    if places.model_card:
        write_out(places.model_card, _writer("model_card", "write_model_card")(facts))
        written.append(str(places.model_card))
    return written


def write_out(path: Path, text: str) -> None:
    """Write text to a file as it stands, in UTF-8, in place of what was in it.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise ConfigError(
            f"out: {show_value(str(path))}, {error.strerror or error}. It could not be written. Name another file."
        ) from None


def _writer(module: str, name: str) -> Callable[[NightFacts], str]:
    """Return what writes a document; imported now, since what draws is an extra."""
    write: Callable[[NightFacts], str] = getattr(import_module(f"biasspark.report.{module}"), name)
    return write


def _publish(spark: SparkSession, folder: str, name: str, page: str) -> str:
    """Write a page whole or not at all."""
    place = redact(f"{folder}/{name}")
    try:
        replace_file(spark, folder, name, page.encode())
    except BiasSparkError:
        raise
    except OSError as error:
        fault = f"{error.strerror or error}. It could not be written."
        raise ConfigError(f"--publish: {show_value(place)}, {fault} Fix the cause, then run again.") from None
    except Exception as error:
        cause = redact(find_cause(error))
        kind = ConfigError if _OF_THE_SETTINGS.search(cause) else BiasSparkError
        raise kind(
            f"--publish: {show_value(place)}, {cause}. It could not be written. Fix the cause, then run again."
        ) from error
    return place
