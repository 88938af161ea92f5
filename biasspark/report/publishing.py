"""Where the documents of a report go: files that are named, or a folder beside the tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from biasspark.config import show_value
from biasspark.errors import ConfigError
from biasspark.report.facts import NightFacts
from biasspark.tables.store import PathStore, Store

FOLDER = "reports"
_DRAWN_BY = ("jinja2", "matplotlib")


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where documents are wanted.

    Attributes
    ----------
    page, model_card
        Files, None where the document is not wanted.
    beside
        The folder of reports beside the tables, None where nothing is published.
    """

    page: Path | None = None
    model_card: Path | None = None
    beside: Path | None = None

    def __post_init__(self) -> None:
        """Refuse to write nothing, or without the libraries that draw.

        Raises
        ------
        ConfigError
            In either case.
        """
        if not (self.page or self.model_card or self.beside):
            raise ConfigError("--out: missing. A report needs a place. Give --out, --publish or --model-card.")
        if missing := [name for name in _DRAWN_BY if find_spec(name) is None]:
            raise ConfigError(
                f"report: no {' and no '.join(missing)} here. Reports are drawn by {' and '.join(_DRAWN_BY)}. Install "
                "biasspark with its extra report."
            )


def locate_reports(store: Store) -> Path:
    """Return the folder of reports beside the tables.

    Raises
    ------
    ConfigError
        If the tables lie in a catalog, or on a file system that this machine does not see as its own.
    """
    folder = store.local_folder if isinstance(store, PathStore) else None
    if folder is None:
        raise ConfigError(
            f"--publish: the tables are in {show_value(store.root)}. A report is written beside tables in a folder of "
            "this machine. Write it with --out, and copy it."
        )
    return folder / FOLDER


def write_documents(facts: NightFacts, places: Places) -> list[Path]:
    """Write what is wanted of a report, and return the files.

    A page beside the tables is ``reports/run_date=D/R.html``. A later page of the same run replaces it: it may say
    more, once attribution is there or a person has accepted the run.

    Raises
    ------
    ConfigError
        If a file cannot be written.
    """
    written = []
    if places.page or places.beside:
        page = _writer("page", "write_page")(facts)
        if places.page:
            write_out(places.page, page)
            written.append(places.page)
        if places.beside:
            own = f"run_date={facts.run_date.isoformat()}", f"{facts.run['run_id']}.html"
            written.append(_publish(places.beside.joinpath(*own), page))
    if places.model_card:
        write_out(places.model_card, _writer("model_card", "write_model_card")(facts))
        written.append(places.model_card)
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


def _publish(path: Path, page: str) -> Path:
    """Write a page whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(page, encoding="utf-8", newline="")
        unfinished.replace(path)
    except OSError as error:
        raise ConfigError(
            f"--publish: {show_value(str(path))}, {error.strerror or error}. It could not be written. Mend the cause, "
            "then run again."
        ) from None
    return path
