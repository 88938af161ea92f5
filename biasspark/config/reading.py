"""From TOML's tables to a checked configuration, all faults found at once."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from biasspark.config.compare import JACKKNIFE
from biasspark.config.faults import Faults
from biasspark.config.further import FURTHER, read_further
from biasspark.config.gate import read_gate
from biasspark.config.identities import Identities, read_identities
from biasspark.config.model import (
    DUPLICATES,
    ENGINES,
    MOST_RANGES,
    OUTPUT_FORMATS,
    Config,
    Corpus,
    Intervals,
    Label,
    Maintenance,
    Measures,
    Output,
    RankingSettings,
    Rejects,
    StateSettings,
    plain_value,
)
from biasspark.config.redaction import redact
from biasspark.config.report import read_report
from biasspark.config.section import Section, guess, is_finite_number, keys_of
from biasspark.config.source import apply_overrides, is_within, locate, read_toml, say_no_place
from biasspark.config.wording import quote, show_key
from biasspark.errors import ConfigError

MEASURED = ("label", "models", "identities", "slices", "ranking", "intervals", *FURTHER)
CONFIGURED = ("corpus", *MEASURED, "gate", "rejects", "state", "output", "report", "maintenance")
LONGEST_DAYS = 36_500
USUAL_BINS, MOST_BINS = 4096, 65_536
TWO_NAMES = re.compile(r"[\w-]+\.[\w-]+")
_LOSING = {("mode", "DROPMALFORMED"), ("ignorecorruptfiles", "TRUE"), ("ignoremissingfiles", "TRUE")}
"""Options of Spark's readers by which rows are lost in silence."""

Read = TypeVar("Read")


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration file and what the command line changes in it.

    Parameters
    ----------
    path
        A TOML file. Relative paths in it are looked up beside it, then in the working folder; an output that exists
        in neither is made in the working folder.
    overrides
        ``table.key=value``, a dotted TOML key and a TOML value (what is none is text), set before anything is checked.

    Returns
    -------
    Config

    Raises
    ------
    ConfigError
        With every fault, one per line. If the file cannot be read or is not TOML, with that alone.
    """
    faults = Faults()
    table = apply_overrides(read_toml(Path(path)), overrides, faults)
    return _finish(_read_config(table, Path(path).parent, faults), faults)


def parse_config(table: Mapping[str, Any], base: Path) -> Config:
    """Check a whole configuration that was read already.

    Parameters
    ----------
    table
        The configuration as TOML gives it: a dict of tables. A key whose value is None counts as absent.
    base
        The folder in which relative paths are looked up first.

    Raises
    ------
    ConfigError
        With every fault, one per line.
    """
    faults = Faults()
    return _finish(_read_config(table, base, faults), faults)


def parse_measures(table: Mapping[str, Any], base: Path | None = None, *, scored: bool = True) -> Measures:
    """Check what is measured, without a corpus to read or an output: for functions that are given a DataFrame.

    Parameters
    ----------
    table
        The tables of a configuration that ``MEASURED`` names. ``models`` may be a list of columns, ``identities`` a
        list of columns or an ``Identities``. A key whose value is None counts as absent.
    base
        The folder in which a relative term file is looked up first; the working folder if None.
    scored
        Whether there are models; without, only labels can be counted.

    Raises
    ------
    ConfigError
        With every fault, one per line.
    """
    faults = Faults()
    _refuse_unknown_tables(table, MEASURED, faults)
    return _finish(Measures(**_read_measures(table, base or Path.cwd(), faults, scored)), faults)


def parse_identities(value: object, base: Path | None = None) -> Identities:
    """Check identities: a list of columns, the table ``[identities]`` as a dict, or an ``Identities``.

    Raises
    ------
    ConfigError
        With every fault, one per line.
    """
    faults = Faults()
    return _finish(_read_identities({"identities": value}, base or Path.cwd(), faults), faults)


def _finish(read: Read, faults: Faults) -> Read:
    if faults:
        raise ConfigError(*faults)
    return read


def _read_config(table: Mapping[str, Any], base: Path, faults: Faults) -> Config:
    _refuse_unknown_tables(table, CONFIGURED, faults)
    corpus = _read_corpus(table.get("corpus"), base, faults)
    measures = _read_measures(table, base, faults)
    if measures["attribution"] and not corpus.id and "id" not in (table.get("corpus") or {}):
        faults.note(
            "corpus",
            '[corpus] id: missing. [attribution] splits and samples by it. Write, for example, id = "row_id".',
        )
    if measures["compare"] and measures["compare"].method == JACKKNIFE and not corpus.id:
        faults.note(
            "corpus",
            '[corpus] id: missing. The jackknife of [compare] groups by it. Write, for example, id = "row_id".',
        )
    gate = read_gate(table.get("gate"), measures, faults)
    if gate and gate.paired and not corpus.id:
        faults.note("corpus", '[corpus] id: missing. [gate] paired groups by it. Write, for example, id = "row_id".')
    output = _read_output(table.get("output"), base, faults)
    if output.path and (fault := say_no_place(output.path)):
        faults.note("output", f"[output] path = {quote(redact(output.path))}. {fault}")
    elif corpus.path and output.path and is_within(output.path, corpus.path):
        faults.note(
            "output",
            f"[output] path = {quote(redact(output.path))}. It lies in the path of [corpus], and the tables of a night "
            "would be rows of the next. Name a folder beside it.",
        )
    return Config(
        corpus=corpus,
        **measures,
        gate=gate,
        rejects=_read_rejects(table.get("rejects"), faults),
        state=_read_state(table.get("state"), measures, faults),
        output=output,
        report=read_report(table.get("report"), corpus.path, base, faults),
        maintenance=_read_maintenance(table.get("maintenance"), faults),
    )


def _read_measures(table: Mapping[str, Any], base: Path, faults: Faults, scored: bool = True) -> dict[str, Any]:
    measures: dict[str, Any] = {
        "label": _read_label(table.get("label"), faults),
        "models": _read_models(table.get("models"), faults) if scored else {},
        "identities": _read_identities(table, base, faults),
        "slices": _read_slices(table.get("slices"), faults),
        "ranking": _read_ranking(table.get("ranking"), faults),
        "intervals": _read_intervals(table.get("intervals"), faults),
    }
    return measures | read_further(table, measures, faults)


def _read_identities(table: Mapping[str, Any], base: Path, faults: Faults) -> Identities:
    """Read the identities; attribution alone needs none."""
    given = table.get("identities")
    if given is None and table.get("attribution") is not None:
        return Identities()
    return read_identities(plain_value(given) if isinstance(given, Identities) else given, base, faults)


def _read_corpus(value: object, base: Path, faults: Faults) -> Corpus:
    section = Section("[corpus]", value, keys_of(Corpus), faults, '[corpus] name = "civil", path = "data/civil"')
    section.require_one_of("path", "table", 'path = "data/civil"')
    if "schema" in section.table and "table" in section.table:
        section.refuse("schema", "A catalog table has its own schema.", "Remove the line.")
    return Corpus(
        name=section.text("name", "civil"),
        path=locate(section.optional_text("path"), base),
        table=section.optional_text("table"),
        format=section.optional_text("format") or Corpus.format,
        options=_read_options(section.table.get("options"), faults),
        schema=section.optional_text("schema", multiline=True),
        filter=section.optional_text("filter", multiline=True),
        run_date_column=section.optional_text("run_date_column"),
        id=section.optional_text("id"),
        duplicates=_read_duplicates(section),
    )


def _read_duplicates(section: Section) -> str:
    chosen = section.choice("duplicates", DUPLICATES)
    if "id" in section.table or chosen == "allow":
        return chosen
    if section.table.get("duplicates") == chosen:
        section.refuse(
            "duplicates",
            "Without an id nothing can be compared.",
            'Name the id column, id = "...", or remove the line.',
        )
    return "allow"


def _read_options(value: object, faults: Faults) -> dict[str, str]:
    """Read the reader's options; no message shows a value, since some are secrets."""
    section = Section("[corpus.options]", value, (), faults)
    options: dict[str, str] = {}
    for name, option in section.table.items():
        if not isinstance(name, str) or not name.strip():
            section.complain(show_key(name), "this is an option's name. It must be text and not empty. Rename it.")
        elif not isinstance(option, str | bool) and not is_finite_number(option):
            section.complain(
                show_key(name),
                "its value has the wrong type. It must be text, a number, true or false. Put it in quotes.",
            )
        elif name.lower() == "mode" and isinstance(option, str) and option.strip().upper() == "FAILFAST":
            section.complain(
                name, 'FAILFAST is refused. Its error prints the record, text and all. Use "PERMISSIVE", the default.'
            )
        elif (name.lower(), str(option).strip().upper()) in _LOSING:
            lost = "Rows would be left out, and nobody would know how many. Remove the line."
            section.complain(name, f"{str(option).strip().upper()} is refused. {lost}")
        elif name.lower() in map(str.lower, options):
            section.complain(show_key(name), "given twice. Spark ignores case in the names of options. Remove one.")
        else:
            options[name] = str(option).lower() if isinstance(option, bool) else str(option)
    return options


def _read_label(value: object, faults: Faults) -> Label:
    section = Section("[label]", value, keys_of(Label), faults, '[label] column = "target", threshold = 0.5')
    column = section.text("column", "target")
    threshold, span = section.optional_number("threshold"), section.span("range")
    positive = _read_positive(section)
    if "threshold" in section.table and "positive" in section.table:
        section.complain("", "threshold and positive are both given. A label is decided by one of them. Remove one.")
    if span and positive and isinstance(positive[0], str):
        section.refuse(
            "range", "Only a label that is a number has a range, and positive holds text.", "Remove the line."
        )
    section.check_inside(threshold, span)
    return Label(column=column, threshold=threshold, positive=positive, range=span)


def _read_positive(section: Section) -> tuple[str | bool | int | float, ...] | None:
    given = section.table.get("positive")
    if given is None:
        return None
    values = tuple(given) if isinstance(given, list | tuple) else (given,)
    if any(values and all(isinstance(value, kind) for value in values) for kind in (str, bool)):
        return values
    if values and all(map(is_finite_number, values)):
        return tuple(int(value) if isinstance(value, numbers.Integral) else float(value) for value in values)
    rule = "It must be a list of values of one kind: text, finite numbers, or true and false."
    section.refuse("positive", rule, 'Write, for example, positive = ["Charged Off"].')
    return None


def _read_models(value: object, faults: Faults) -> dict[str, str]:
    so_far = len(faults)
    if isinstance(value, list | tuple):
        listed = Section("[models]", {"columns": value}, (), faults)
        columns = listed.names("columns")
        listed.refuse_repeated("", columns, "Models must differ. Remove one.")
        value = {column: column for column in columns}
    section = Section("[models]", value, (), faults, '[models] toxicity = "toxicity"')
    if not section.table and len(faults) == so_far:
        section.complain("", 'no model is named. At least one is required. Write, for example, toxicity = "toxicity".')
    return section.texts_by_name("a model's name", "the score column")


def _read_slices(value: object, faults: Faults) -> dict[str, str]:
    section = Section("[slices]", value, (), faults)
    if "all" in section.table:
        section.refuse(
            "all", "The slice all is always there and holds every row.", "Remove the line, or rename the slice."
        )
    return section.texts_by_name("a slice's name", "the predicate", multiline=True)


def _read_ranking(value: object, faults: Faults) -> RankingSettings:
    section = Section("[ranking]", value, keys_of(RankingSettings), faults)
    engine, bins = section.choice("engine", ENGINES), section.whole("bins", USUAL_BINS, MOST_BINS, least=2)
    if engine != "binned" and "bins" in section.table and "engine" not in section.refused:
        section.refuse(
            "bins", f'The engine is "{engine}", which has no bins.', 'Write engine = "binned", or remove it.'
        )
    ranges = section.whole("ranges", RankingSettings.ranges, MOST_RANGES)
    return RankingSettings(engine=engine, ranges=ranges, bins=bins if engine == "binned" else None)


def _read_intervals(value: object, faults: Faults) -> Intervals:
    section = Section("[intervals]", value, keys_of(Intervals), faults)
    return Intervals(level=section.fraction("level", Intervals.level))


def _read_rejects(value: object, faults: Faults) -> Rejects:
    section = Section("[rejects]", value, keys_of(Rejects), faults)
    max_share = section.optional_number("max_share")
    if max_share is not None and not 0 <= max_share <= 1:
        section.refuse("max_share", "It must lie between 0 and 1.", "Write, for example, max_share = 0.5.")
    return Rejects(
        max_rows=section.whole("max_rows", Rejects.max_rows),
        max_share=max_share,
        allow_missing_models=section.flag("allow_missing_models", Rejects.allow_missing_models),
    )


def _read_state(value: object, measures: Mapping[str, Any], faults: Faults) -> StateSettings | None:
    section = Section("[state]", value, keys_of(StateSettings), faults)
    if not section.flag("keep", False):
        return None
    if (engine := measures["ranking"].engine) != ENGINES[0]:
        rule = f'The engine is "{engine}", which sorts no blocks.'
        section.refuse("keep", rule, 'Set [ranking] engine = "blocks", or keep none.')
    if measures["privacy"]:
        faults.note(
            "privacy",
            "[privacy] and [state] are both given. The state is the score, label and identities of every row, those of "
            "small groups too. Keep it by a configuration of its own, where few may read, and write [privacy] in that "
            "of the windows.",
        )
    return StateSettings(keep=True)


def _read_output(value: object, base: Path, faults: Faults) -> Output:
    section = Section("[output]", value, keys_of(Output), faults, '[output] path = "warehouse"')
    section.require_one_of("path", "catalog", 'path = "warehouse"')
    catalog, views = section.optional_text("catalog"), section.optional_text("views")
    for key, name in (("catalog", catalog), ("views", views)):
        if name is not None and not TWO_NAMES.fullmatch(name):
            rule = "It must be catalog.schema, two names of letters, digits, _ and -."
            section.refuse(key, rule, f'Write, for example, {key} = "spark_catalog.bias".')
    path, chosen = locate(section.optional_text("path"), base), section.choice("format", OUTPUT_FORMATS)
    if path is not None and chosen == "iceberg":
        section.refuse("format", "Iceberg keeps its tables in a catalog.", 'Write catalog = "lake.bias" for path.')
    if path is not None and views is not None:
        section.refuse("views", "A path has its views in files beside the tables.", "Remove the line.")
    return Output(path=path, catalog=catalog, format=chosen, views=views)


def _read_maintenance(value: object, faults: Faults) -> Maintenance:
    section = Section("[maintenance]", value, keys_of(Maintenance), faults)
    return Maintenance(
        keep_days=section.whole("keep_days", Maintenance.keep_days, LONGEST_DAYS),
        grace_hours=section.whole("grace_hours", Maintenance.grace_hours, 24 * LONGEST_DAYS, least=1),
        compact=section.flag("compact", Maintenance.compact),
    )


def _refuse_unknown_tables(table: Mapping[str, Any], known: Sequence[str], faults: Faults) -> None:
    listed = ", ".join(f"[{name}]" for name in known)
    for name in table:
        if name not in known:
            text = f"[{show_key(name)}]: there is no such table. The tables are {listed}. {guess(name, known)}"
            faults.note("", text)
