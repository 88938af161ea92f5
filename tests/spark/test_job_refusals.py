"""What the main job refuses, with which exit code and in which words, and that it then leaves all as it was."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import job_parser, run_job
from biasspark.session import is_connect
from biasspark.tables.publish import publish
from biasspark.tables.store import PathStore
from jobs import bias_metrics as job
from tests.main_job import (
    CANARY,
    FOREIGN,
    NIGHT,
    assert_refused,
    make_rows,
    run,
    untouched,
    write_config,
    write_parquet,
)
from tests.sample_night import night_frames, record_of, start_run
from tests.spark_versions import say_part

COLUMNS = "It has: id, target, score, male, female, length, day, comment_text."
PREDICATE_RULE = f"It must be a Spark SQL predicate over the columns of the corpus. {COLUMNS} Correct it."
MORE_ROWS = "it looks at more than its own row, as aggregates, windows and generators do."


@pytest.fixture(scope="module")
def published(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a night that is published, which no failing run may touch."""
    folder = tmp_path_factory.mktemp("published")
    write_parquet(folder / "corpus", make_rows(100))
    publish(night_frames(spark_session), start_run("comments"), PathStore(f"{folder}/warehouse"), record_of())
    return folder


def test_a_wrong_configuration_ends_with_2_and_names_every_fault(published: Path) -> None:
    config = write_config(
        published,
        label={"column": "target", "threshold": "half", "colour": "red"},
        ranking={"engine": "fast"},
        slices={"all": "true"},
    )
    with untouched(published):
        done = run(config, "--set", "identities.threshold=lots", "--set", "nokey")
    assert_refused(
        done,
        2,
        '--set "nokey": this is not a dotted TOML key with a value. It must read table.key=value. Write, for example, '
        "--set label.threshold=0.5.",
        "[label] colour: there is no such key. The keys of [label] are column, threshold, positive, range. Did you "
        "mean column?",
        '[label] threshold = "half". It must be a number, not text. Correct it, or remove the line.',
        '[identities] threshold = "lots". It must be a number, not text. Remove the line to use the default, 0.5.',
        '[slices] all = "true". The slice all is always there and holds every row. Remove the line, or rename the '
        "slice.",
        '[ranking] engine = "fast". It must be one of "blocks", "windows", "binned". Remove the line to use the '
        'default, "blocks".',
    )
    assert "starting Spark" not in done.err


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--run-date", NIGHT], "the following arguments are required: --config"),
        (["--config", "x.toml"], "the following arguments are required: --run-date"),
        (
            ["--config", "x.toml", "--run-date", "15.1.2026"],
            'argument --run-date: "15.1.2026". It must be a date as YYYY-MM-DD, from 1900 on. Write, for example, '
            "2026-03-31.",
        ),
        (["--config", "x.toml", "--run-date", NIGHT, "--fast"], "unrecognized arguments: --fast"),
        (
            ["--config", "nowhere.toml", "--run-date", NIGHT],
            '"nowhere.toml": no such file or directory. The configuration is a TOML file. Name one by --config.',
        ),
    ],
    ids=["no config", "no date", "no such date", "no such flag", "no such file"],
)
def test_wrong_usage_ends_with_2(flags: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_job(job.main, job_parser("Measure."), flags) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].partition(": error: ")[2] == fault
    assert "Traceback" not in printed.err


def test_missing_and_mistyped_columns_end_with_3_all_at_once(published: Path) -> None:
    config = write_config(
        published,
        corpus={"id": "key", "run_date_column": "created", "filter": "lang = 'en'"},
        label={"column": "toxicity"},
        models={"m": "comment_text", "n": "Score"},
        identities={"columns": ["male", "jewish"], "categorical": ["race"], "array": "female"},
        slices={"a": "nope > 1", "b": "length", "c": "length >", "d": "max(length) > 1"},
    )
    with untouched(published):
        done = run(config)
    mend = "Name one that it has, or set `[corpus] options = { mergeSchema = true }` where only some files have it."
    rule = "It must be a Spark SQL predicate over the columns of the corpus."
    assert_refused(
        done,
        3,
        f'[corpus] run_date_column = "created": the corpus has no such column. {COLUMNS} Name one that it has, or '
        "remove the line to read all rows.",
        f"[corpus] filter = \"lang = 'en'\": a column that it names is not there. Column: `lang`. {rule} Did you mean "
        "'length'?",
        f"[corpus] id: the corpus has no column 'key'. {mend}",
        f"[label] column: the corpus has no column 'toxicity'. {mend}",
        "[models] n: the corpus has no column 'Score'. Did you mean 'score'?",
        f"[identities] columns: the corpus has no column 'jewish'. {mend}",
        f"[identities] categorical: the corpus has no column 'race'. {mend}",
        "[identities] array: column 'female' is of type double. It must be an array of strings. Name another column, "
        "or cast it.",
        f'[slices] a = "nope > 1": a column that it names is not there. Column: `nope`. {rule} Correct it.',
        '[slices] b = "length": it is of type bigint. It must be true or false. Compare it with a value.',
        f'[slices] c = "length >": this is not valid Spark SQL. {rule} Correct it.',
        f'[slices] d = "max(length) > 1": {MORE_ROWS} {rule} Correct it.',
    )
    assert done.err.count("\n") == 13  # and one line of progress: Spark's own warnings do not show


Damage = Callable[[Path], None]


def cut_short(folder: Path) -> None:
    os.truncate(folder / "part-1.parquet", 200)


def overwrite(text: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "part-1.parquet").write_text(text)

    return damage


def make_empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def corrupt_pages(folder: Path) -> None:
    """Zero the pages and keep the footer, so that the schema can be read."""
    file = folder / "part-1.parquet"
    whole = bytearray(file.read_bytes())
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    whole[4:-footer] = bytes(len(whole) - footer - 4)
    file.write_bytes(whole)


def change_type(folder: Path) -> None:
    rows = make_rows(100)
    rows["score"] = [CANARY] * 100
    pq.write_table(pa.table(rows), folder / "part-1.parquet")


def remove_rows(folder: Path) -> None:
    for file in folder.iterdir():
        pq.write_table(pq.read_table(file).slice(0, 0), file)


def score_nothing(folder: Path) -> None:
    rows = make_rows(100)
    rows["score"] = [math.nan] * 99 + [math.inf]
    write_parquet(folder, rows)


def add_twin(folder: Path) -> None:
    write_parquet(folder, make_rows(100) | {"Score": [0.5] * 100})


NO_ROWS = "corpus: no rows. The path, the filter and the run date leave nothing to measure. Check them."
CORRUPT = "a file cannot be read. It is corrupt or of another format. Replace it."
DAMAGES: list[tuple[str, Damage, str]] = [
    (
        "columns that differ in case",
        add_twin,
        "corpus: path {path}: two of its columns differ in case alone. Spark cannot tell them apart. Rename one. "
        "Column: score.",
    ),
    ("corrupt pages", corrupt_pages, f"corpus: {CORRUPT} File: {{path}}/part-1.parquet."),
]
OF_THE_CORPUS: list[tuple[str, Damage, str]] = [
    ("empty folder", make_empty, "corpus: path {path}: there are no data files here. Check the path and the format."),
    (
        "zero-byte file",
        overwrite(""),
        "corpus: path {path}: 1 file has no bytes. Data files are never empty: a copy has failed. Replace or remove "
        "{path}/part-1.parquet.",
    ),
    ("garbage", overwrite(f"{CANARY} is no Parquet" * 20), f"corpus: {CORRUPT} File: {{path}}/part-1.parquet."),
    ("truncated file", cut_short, f"corpus: {CORRUPT} File: {{path}}/part-1.parquet."),
    (
        "another type in one file",
        change_type,
        "corpus: a column has another type in one file than in others. Write those of the wrong type anew, or have "
        "Spark 4 read numbers as the wider type by a `schema`. "
        "Column: score, BINARY for double. File: {path}/part-1.parquet.",
    ),
    ("no rows", remove_rows, NO_ROWS),
    (
        "no usable row",
        score_nothing,
        "model m: none of its 100 scores in column 'score' can be used (nan_score 99, infinite_score 1). A model needs "
        "a usable score on at least one row with a label. Check the column, or remove the model from [models]. To "
        "publish the other models without it, set [rejects] allow_missing_models = true.",
    ),
]
"""What test_broken_input.py tries without a job."""


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        *(pytest.param(*case, id=name) for name, *case in DAMAGES),
        *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, *case in OF_THE_CORPUS),
    ],
)
def test_input_that_cannot_be_read_ends_with_3(
    spark: SparkSession, published: Path, tmp_path: Path, damage: Damage, fault: str
) -> None:
    path = write_parquet(tmp_path / "corpus", make_rows(100))
    damage(path)
    config = write_config(tmp_path, corpus={"path": str(path)}, output={"path": f"{published}/warehouse"})
    with untouched(published):
        done = run(config)
    assert_refused(done, 3, fault.format(path=path))


NO_SUCH_FILES = "Spark cannot open such a path. Check its scheme and host, and the jars of the session."
SOURCES: list[tuple[dict[str, Any], str]] = [
    ({"path": "nofs://x/y"}, f"corpus: path nofs://x/y: {NO_SUCH_FILES}"),
    (
        {"path": None, "table": "nowhere.comments"},
        "corpus: table nowhere.comments: there is no such table. Check `[corpus] table` and the catalogs of the "
        "session.",
    ),
    (
        {"filter": "length"},
        '[corpus] filter = "length": it is of type bigint. It must be true or false. Compare it with a value.',
    ),
    (
        {"filter": "comment_text RLIKE '('"},
        f"[corpus] filter = \"comment_text RLIKE '('\": a regular expression is invalid. Correct it.{FOREIGN}",
    ),
]
SOURCES_OF_THE_CORPUS: list[tuple[dict[str, Any], str]] = [
    ({"path": "/nowhere/at all"}, "corpus: path /nowhere/at all: there is nothing at this path. Check the path."),
    (
        {"format": "iceburg"},
        "corpus: path {path}: Spark knows no such format. Check `[corpus] format` and the jars of the session. "
        "Format: iceburg. Did you mean iceberg?",
    ),
    (
        {"format": "orc"},
        f'corpus: path {{path}}: {{path}}/part-{FOREIGN} `[corpus] format = "parquet"` if all files are '
        "Parquet; otherwise remove the file.",
    ),
    (
        {"format": "csv"},
        f'corpus: path {{path}}: {{path}}/part-{FOREIGN} `[corpus] format = "parquet"` if all files are '
        "Parquet; otherwise remove the file.",
    ),
    (
        {"run_date_column": "day", "filter": "day < '2026'"},
        f"corpus: no rows of {NIGHT}. [corpus] filter = \"day < '2026'\" leaves no row of any date. Correct it.",
    ),
    (
        {"run_date_column": "night"},
        f'[corpus] run_date_column = "night": the corpus has no such column. {COLUMNS} Name one that it has, or remove '
        "the line to read all rows.",
    ),
    (
        {"run_date_column": "score"},
        '[corpus] run_date_column = "score": it is of type double. It must be a date, a time, or a text that holds a '
        "date. Name another column, or cast it.",
    ),
    ({"filter": "length >"}, f'[corpus] filter = "length >": this is not valid Spark SQL. {PREDICATE_RULE}'),
    (
        {"filter": "nope"},
        f'[corpus] filter = "nope": a column that it names is not there. Column: `nope`. {PREDICATE_RULE}',
    ),
    (
        {"filter": "comment_text > 5"},
        '[corpus] filter = "comment_text > 5": a text cannot be cast to the requested type. Use try_cast.'
        + say_part("comment_text > 5"),
    ),
    (
        {"filter": "1 / (length - length) > 1"},
        '[corpus] filter = "1 / (length - length) > 1": something is divided by zero. Use try_divide.'
        + say_part("1 / (length - length)"),
    ),
    (
        {"filter": "split(comment_text, ' ')[7] = ''"},
        "[corpus] filter = \"split(comment_text, ' ')[7] = ''\": an array has no such place. Use get."
        + say_part("split(comment_text, ' ')[7]"),
    ),
    (
        {"filter": "raise_error(comment_text) is null"},
        '[corpus] filter = "raise_error(comment_text) is null": an error is raised. Correct the expression.',
    ),
]
"""What test_broken_input.py, test_schema_faults.py and test_sources.py try without a job."""


@pytest.mark.parametrize(
    ("corpus", "fault"),
    [*SOURCES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SOURCES_OF_THE_CORPUS)],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_source_that_does_not_fit_ends_with_3(
    spark: SparkSession, published: Path, corpus: dict[str, str], fault: str
) -> None:
    with untouched(published / "warehouse"):
        done = run(write_config(published, corpus=corpus))
    assert_refused(done, 3, fault.replace("{path}", f"{published}/corpus"))


def test_a_file_without_bytes_is_told_from_others_whatever_their_names(spark: SparkSession, tmp_path: Path) -> None:
    """Hive writes the colon of a partition's value as %3A, so such names are common."""
    part = write_parquet(tmp_path / "corpus" / "at=2026-01-15 03%3A00", make_rows(100))
    (part / "part-1.parquet").rename(part / "a%20b é.parquet")
    (part / "_SUCCESS").touch()
    assert run(write_config(tmp_path), "--dry-run").code == 0
    empty = part / "c d%20e.parquet"
    empty.touch()
    done = run(write_config(tmp_path), "--dry-run")
    assert_refused(
        done,
        3,
        f"corpus: path {tmp_path}/corpus: 1 file has no bytes. Data files are never empty: a copy has failed. Replace "
        f"or remove {empty}.",
    )


def test_passwords_in_paths_are_not_shown(spark: SparkSession, published: Path) -> None:
    secret = "nofs://key:hunter2@bucket/x"
    done = run(write_config(published, corpus={"path": secret}))
    assert_refused(done, 3, f"corpus: path nofs://(redacted)@bucket/x: {NO_SUCH_FILES}")
    assert "hunter2" not in done.err
    done = run(write_config(published, output={"path": secret}), "--dry-run")
    place = f"nofs://(redacted)@bucket/x{'/u_statistics' if is_connect(spark) else ''}"
    assert_refused(
        done, 1, f"{place}: could not be read, {FOREIGN}. Nothing was published. Mend the cause, then run again."
    )
    assert "hunter2" not in done.err


def test_a_night_without_rows_ends_with_3(spark: SparkSession, published: Path) -> None:
    config = write_config(published, corpus={"run_date_column": "day"})
    with untouched(published):
        done = run(config, run_date="2026-01-16")
    assert_refused(done, 3, f"corpus: no rows of 2026-01-16.{FOREIGN}")
    assert 'run_date_column = "day" has rows of 2026-01-15 only' in done.err


def test_a_failure_that_nobody_foresaw_ends_with_1_and_quotes_nothing(
    spark: SparkSession, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("biasspark.night.measure", fail)
    config = write_config(published)
    with untouched(published):
        done = run(config)
    assert_refused(
        done,
        1,
        f"unexpected ValueError in biasspark/night.py, line {FOREIGN}. Its message may quote data and is left out. Run "
        "again with --debug to see it.",
    )
