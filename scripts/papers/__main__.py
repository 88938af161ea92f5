"""Make every table and figure of a source, and print its values next to ours."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from biasspark.cli import Command, Outcome, run_job
from biasspark.config.declaration import guess
from biasspark.errors import ConfigError, InputWarning
from biasspark.session import job_session
from biasspark.text import show_value
from scripts.papers.attributing import ATTRIBUTING
from scripts.papers.exhibits import Exhibit, Source
from scripts.papers.mitigating import MITIGATING
from scripts.papers.notebook import NOTEBOOK
from scripts.papers.nuanced import NUANCED
from scripts.papers.pages import Shown, make_exhibit, write_lines, write_overview, write_page
from scripts.papers.pinned import PINNED

ROOT = Path(__file__).resolve().parents[2]
OVERVIEW = ROOT / "docs" / "papers.md"
SOURCES = {source.key: source for source in (NUANCED, ATTRIBUTING, PINNED, MITIGATING, NOTEBOOK)}
EXAMPLES = """\
examples:
  %(prog)s --all
  %(prog)s nuanced
  %(prog)s attributing table-4 figure-1
"""


def read_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Command(__doc__, EXAMPLES, (), main).parser("scripts/paper")
    parser.add_argument("source", nargs="?", help=", ".join(SOURCES))
    parser.add_argument("exhibits", nargs="*", metavar="exhibit", help="of the source only these, such as table-4")
    parser.add_argument("--all", action="store_true", help="all sources")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "papers", metavar="DIR", help="where pages go")
    parser.add_argument(
        "--docs",
        nargs="?",
        type=Path,
        const=OVERVIEW,
        metavar="FILE",
        help="write all numbers as Markdown (docs/papers.md)",
    )
    parser.add_argument(
        "--shared", type=Path, default=ROOT.parent / "shared", metavar="DIR", help="the data (../shared)"
    )
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Make the exhibits, print their values, and write the pages."""
    chosen = choose_exhibits(arguments)
    if missing := [name for name in ("data", "papers") if not (arguments.shared / name).is_dir()]:
        raise ConfigError(f"--shared {arguments.shared}: there is no {' and no '.join(missing)}. See docs/papers.md.")
    if arguments.docs and not arguments.docs.parent.is_dir():
        raise ConfigError(f"--docs {arguments.docs}: its folder does not exist. Name a file in an existing folder.")
    made: dict[str, tuple[Source, list[Shown]]] = {}
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--out {arguments.out}: it cannot be made, {error.strerror}. Name another folder."
        ) from error
    with job_session("biasspark papers"), warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of corpora that are peculiar by design
        for source, exhibits in chosen:
            shown: list[Shown] = []
            made[source.key] = source, shown
            if source.notes:
                print(f"{source.notes}\n")
            for exhibit in exhibits:
                shown.append(make_exhibit(exhibit, arguments.shared))
                print(write_lines(source, shown[-1]), flush=True)
            page = arguments.out / f"{source.key}.html"
            page.write_text(write_page(source, shown), "utf-8")
            print(f"The pictures: {page}\n", flush=True)
    if arguments.docs:
        arguments.docs.write_text(write_overview(made), "utf-8")
        print(f"The numbers: {arguments.docs}")
    return Outcome(summary={})


def choose_exhibits(arguments: argparse.Namespace) -> list[tuple[Source, list[Exhibit]]]:
    """Return the requested sources, each with its exhibits."""
    if arguments.all == bool(arguments.source):
        raise ConfigError("Name a source, or give --all, and not both.")
    if arguments.docs == OVERVIEW and not arguments.all:
        raise ConfigError("--docs: docs/papers.md has all sources. Give --all, or name another file: --docs FILE.")
    if arguments.all:
        return [(source, source.exhibits) for source in SOURCES.values()]
    if arguments.source not in SOURCES:
        advice = guess(arguments.source, SOURCES, f"The sources are {', '.join(SOURCES)}.")
        raise ConfigError(f"There is no source {show_value(arguments.source)}. {advice}")
    source = SOURCES[arguments.source]
    known = {exhibit.slug: exhibit for exhibit in source.exhibits}
    if unknown := [name for name in arguments.exhibits if name not in known]:
        advice = guess(unknown[0], known, f"It has {', '.join(known)}.")
        raise ConfigError(f"{source.key} has no {', '.join(map(show_value, unknown))}. {advice}")
    return [(source, [known[name] for name in arguments.exhibits] or source.exhibits)]


if __name__ == "__main__":
    sys.exit(run_job(main, read_parser()))
