"""The jobs on the embedded engine: in the session of the tests, and as users start them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from errno import ENOSPC, ESTALE
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.corpus.encoding import Encoding
from biasspark.session import engines
from biasspark.windows.sketch import RangeBoundaries, SketchHeader, sketch_rows
from tests.harness.main_job import N_ROWS, RUN_DATE, closed, make_rows, write_config, write_parquet
from tests.harness.running_jobs import Done, ask
from tests.harness.running_jobs import refuse_embedded as refuse
from tests.harness.running_jobs import run_embedded as run
from tests.harness.running_jobs import run_embedded_well as run_well
from tests.harness.submitting import run_python

pytestmark = [pytest.mark.embedded, pytest.mark.usefixtures("spark_session")]


def test_an_interrupted_or_lost_engine_is_there_at_the_next_call(tmp_path: Path) -> None:
    """Else its session is reused. It is hidden from the network."""
    write_parquet(tmp_path / "corpus", make_rows())
    script = tmp_path / "calls.py"
    script.write_text(f"""
import os, signal, threading, time
import pyarrow.parquet as pq
import biasspark
from biasspark.session import engines

rows = pq.read_table({str(tmp_path / "corpus")!r})
measure = lambda df: biasspark.bias_metrics(
    df, label="target", label_threshold=0.5, models=["score"], identities=["male"]
)
first = measure(rows)
assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
spark = biasspark.local()
assert biasspark.local() is spark
assert spark.client.host == "127.0.0.1"
frame = spark.read.parquet({str(tmp_path / "corpus")!r})
try:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        measure(frame)
except KeyboardInterrupt:
    assert measure(rows).equals(first)
    assert biasspark.local() is spark
*_, server = engines._servers.values()
server.stop()
begun = time.monotonic()
try:
    measure(frame)
except Exception as error:
    assert time.monotonic() - begun < 10, error
assert measure(rows).equals(first)
assert biasspark.local() is not spark
""")
    done = run_python(script, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_engine_starts_whatever_the_proxy_and_the_master_of_the_environment() -> None:
    script = "import biasspark; assert biasspark.local().range(3).count() == 3"
    done = run_python("-c", script, http_proxy="http://127.0.0.1:9", MASTER="local[2]")
    assert done.returncode == 0, done.stderr


def configure(folder: Path, **tables: Any) -> tuple[object, ...]:
    """Write a configuration; return the flags of a run with it."""
    return "--config", write_config(folder, **tables), "--run-date", RUN_DATE


def test_a_plan_names_the_tables_that_a_run_writes(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    parts: dict[str, dict[str, Any]] = {"pinned_auc": {}, "thresholds": {"at": [0.5]}, "state": {"keep": True}}
    parts["gate"] = {"rule": [{"name": "floor", "metric": "auc", "min": 0.1}]}
    for asked in ({}, parts, {"rejects": {"max_rows": 0}}):
        flags = configure(tmp_path, **asked)
        plan = run("measure", *flags, "--dry-run")
        assert "\nsession:  embedded\n" in plan.out
        (line,) = [line for line in plan.out.splitlines() if line.startswith("tables:")]
        planned = set(line.removeprefix("tables:").replace(" ", "").split(","))
        measured = run_well("measure", *flags)
        assert planned == {*measured["tables"], "bias_runs"}
        assert ("rejected_rows" in planned) is ("rejects" not in asked)
        assert measured["engine"] == plan.summary["engine"] == "embedded"


def test_a_dry_run_lists_the_dates_to_measure(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows(200))
    flags = configure(tmp_path, corpus={"run_date_column": "day"})
    run_well("measure", *flags)
    range_of_dates = (*flags, "--run-date", f"2026-01-14..{RUN_DATE}", "--dry-run")
    for only_missing, dates in (((), ["2026-01-14", RUN_DATE]), (("--only-missing",), ["2026-01-14"])):
        plan = run("measure", *range_of_dates, *only_missing)
        assert (plan.summary["to_measure"], plan.summary["already_published"]) == (dates, [RUN_DATE])
        assert f" {', '.join(dates)}\n" in plan.out


def test_rules_on_a_baseline_are_left_to_the_comparison(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    rule = {"name": "keeps", "metric": "auc", "baseline": "m", "max_drop": 0.5}
    two_models: dict[str, Any] = {"models": {"n": "length"}, "compare": {"baseline": "m"}}
    for gate in (None, {"rule": [rule]}):
        flags = configure(tmp_path, **two_models, gate=gate)
        planned = run("compare", *flags, "--dry-run").out
        assert ("comparison_alerts" in planned) == bool(gate)
    measured = run("measure", *flags)
    assert (measured.code, "applying" in measured.err) == (0, False), measured.err


def test_models_that_score_most_rows_alike_are_attributed(tmp_path: Path) -> None:
    """One has equal scores, so no tree splits; another has two scores."""
    rows = make_rows()
    rows["constant"] = [0.5] * len(rows["id"])
    rows["coarse"] = [float(score > 0.5) for score in rows["score"]]
    rows["language"] = [("en", "de", None)[number % 3] for number in range(len(rows["id"]))]
    write_parquet(tmp_path / "corpus", rows)
    attribution = {
        "write_examples": True,
        "numeric": ["length"],
        "categorical": ["language"],
        "groupings": {"language": "language"},
        "segments": {"long": "length > 100", "none": "length < 0"},
        "compare": [["coarse", "constant"], ["constant", "coarse"]],
        "targets": ["auc", "cross_entropy", "gini"],
        **{"tree": {"max_depth": 2}, "pairs": {}, "slice_search": {"max_predicates": 2}},
    }
    models = {"m": None, "constant": "constant", "coarse": "coarse"}
    flags = configure(tmp_path, models=models, slices={"short": "length < 100"}, attribution=attribution)
    done = run_well("attribute", *flags)
    assert (done["status"], done["n_rows"]) == ("published", len(rows["id"]))

    def query(table: str, columns: str, where: str) -> list[tuple[Any, ...]]:
        return ask(tmp_path / "warehouse", f"SELECT {columns} FROM latest_{table} WHERE {where} ORDER BY ALL")

    constant, nodes = "model = 'constant'", "attribution_segments"
    assert query("auc_crosses", "DISTINCT auc", f"{constant} AND n_pairs > 0") == [(0.5,)]
    assert query("example_attributions", "DISTINCT normalized_attribution", constant) == [(0.25,)]
    whole = f"{constant} AND target = 'auc' AND baseline_model = ''"
    assert query(nodes, "node_id, is_leaf, mean_honest", whole) == [(1, True, 0.25)] * 2
    assert query("attribution_slices", "*", constant) == []
    assert query("pair_segments", "node_id, mean_honest", constant) == [(1, 0.5)] * 2
    forth = query(nodes, "slice, rule, round(mean_honest, 12)", "baseline_model = 'constant'")
    assert forth == query(nodes, "slice, rule, round(-mean_honest, 12)", "baseline_model = 'coarse'")
    assert len(forth) > 2
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    run_well("report", *flags, "--out", page, "--model-card", card)
    assert "Groups against groups" in page.read_text(encoding="utf-8")  # without a run of the suite
    assert "coarse minus constant" in card.read_text(encoding="utf-8")


@pytest.mark.parametrize("nan", [float("nan"), -float("nan")], ids=["as it is written", "with a sign"])
def test_nan_beside_one_value_is_no_number(tmp_path: Path, nan: float) -> None:
    """In the statistics of the file the column has only 0.5. Infinity less infinity has a sign on most processors."""
    rows = make_rows()
    rows["male"] = [0.5 if number % 2 else nan for number in range(len(rows["id"]))]
    write_parquet(tmp_path / "corpus", rows, files=1)
    run_well("measure", *configure(tmp_path, slices={"high": "male > 0.4"}))
    sizes = "SELECT n_subgroup_positive + n_subgroup_negative FROM latest_bias_metrics WHERE identity = 'male'"
    assert ask(tmp_path / "warehouse", sizes) == [(len(rows["id"]) // 2,)] * 2
    totals = "SELECT n_negative + n_positive FROM latest_model_summary WHERE slice = 'high'"
    assert ask(tmp_path / "warehouse", totals) == [(len(rows["id"]),)]


def test_a_run_of_partitions_of_which_one_has_no_date(tmp_path: Path) -> None:
    rows = make_rows()
    del rows["day"]
    for folder in (f"day={RUN_DATE}", "day=2026-01-16", "day=__HIVE_DEFAULT_PARTITION__"):
        write_parquet(tmp_path / "corpus" / folder, rows)
    for corpus in ({"run_date_column": "day"}, {"filter": "day IS NULL"}, {"filter": "day != '2026-01-16'"}):
        assert run_well("measure", *configure(tmp_path, corpus=corpus))["n_rows"] == len(rows["id"])
    err = refuse("measure", *configure(tmp_path, corpus={"run_date_column": "day"})[:2], "--run-date", "2026-01-20")
    assert "nearest is 2026-01-16" in err


def test_files_of_other_dates_are_neither_inspected_nor_read(tmp_path: Path) -> None:
    """Nor do they stop the other dates of a range, even of the first."""
    rows, corpus = make_rows(), tmp_path / "corpus"
    del rows["day"]
    write_parquet(corpus / f"day={RUN_DATE}", rows)
    write_parquet(corpus / "day=2026-01-14", rows | {"score": ["0.5"] * N_ROWS})
    (corpus / "day=2026-01-14" / "cut.parquet").write_bytes(b"PAR1")
    (corpus / "day=2026-01-14" / "link.parquet").symlink_to("nothing")
    flags = configure(tmp_path, corpus={"run_date_column": "day"})
    assert run_well("measure", *flags)["n_rows"] == N_ROWS
    done = run("measure", *flags[:2], "--run-date", f"2026-01-14..{RUN_DATE}")
    assert (done.code, [published["run_date"] for published in done.summary["published"]]) == (3, [RUN_DATE])


def test_a_schema_need_not_name_the_partitions(tmp_path: Path) -> None:
    rows = make_rows()
    del rows["day"]
    write_parquet(tmp_path / "corpus" / f"day={RUN_DATE}", rows)
    corpus = {"run_date_column": "day", "schema": "id STRING, target DOUBLE, score DOUBLE, male DOUBLE, female DOUBLE"}
    assert run_well("measure", *configure(tmp_path, corpus=corpus))["n_rows"] == N_ROWS


@pytest.mark.parametrize("damaged", [slice(4, None), slice(4, 400)], ids=["all", "pages"])
def test_the_file_of_a_relative_link_is_named(tmp_path: Path, damaged: slice) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    content = bytearray((tmp_path / "corpus" / "part-1.parquet").read_bytes())
    content[damaged] = bytes(len(content[damaged]))
    (tmp_path / "store.parquet").write_bytes(content)
    (tmp_path / "corpus" / "part-2.parquet").symlink_to("../store.parquet")
    assert str(tmp_path / "store.parquet") in refuse("measure", *configure(tmp_path))


def test_a_copy_that_hadoop_is_still_writing_is_ignored(tmp_path: Path) -> None:
    (write_parquet(tmp_path / "corpus", make_rows()) / "part-2.parquet._COPYING_").write_bytes(b"PAR1")
    assert run_well("measure", *configure(tmp_path))["n_rows"] == N_ROWS


def write_other_types(folder: Path) -> None:
    write_parquet(folder, make_rows())
    rows = pa.table(make_rows())
    place = rows.column_names.index("score")
    pq.write_table(rows.set_column(place, "score", rows["score"].cast(pa.string())), folder / "part-2.parquet")


def write_bytes(folder: Path, content: bytes) -> None:
    """Write two files, one of which has this content."""
    write_parquet(folder, make_rows())
    (folder / "part-1.parquet").write_bytes(content)


@pytest.mark.parametrize("name", [".", "part-1.parquet", "day=2026-01-15"])
def test_a_path_that_may_not_be_read_is_named(name: str, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "corpus", make_rows()) / name
    (tmp_path / "corpus" / "day=2026-01-15").mkdir()
    with closed(path):
        err = refuse("measure", *configure(tmp_path))
    assert f"Path: {path}." in err
    assert "permission" in err


def test_why_a_path_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = configure(tmp_path)
    (tmp_path / "corpus").mkdir()
    monkeypatch.setattr(os, "scandir", mock.Mock(side_effect=OSError(ESTALE, "Stale file handle")))
    err = refuse("measure", *flags)
    assert ("Stale file handle" in err, "nothing" in err) == (True, False), err


def write_score_twice(folder: Path) -> None:
    rows = pa.table(make_rows())
    pq.write_table(rows.append_column("score", rows["score"]), write_parquet(folder, make_rows()) / "a.parquet")


def write_link(folder: Path, leads_to: str) -> None:
    (write_parquet(folder, make_rows()) / "link").symlink_to(leads_to)


def write_partitions(folder: Path, *names: str) -> None:
    for name in names:
        write_parquet(folder / name, make_rows())


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda folder: None, ""),
    "empty": (Path.mkdir, ""),
    "corrupt": (lambda folder: write_bytes(folder, b"PAR1" + bytes(100) + b"PAR1"), ""),
    "no bytes": (lambda folder: write_bytes(folder, b""), ""),
    "other types": (write_other_types, ""),
    "a link to itself": (lambda folder: folder.symlink_to(folder), ""),
    "a link to nothing": (lambda folder: write_link(folder, "nothing"), "/link"),
    "a link to its folder": (lambda folder: write_link(folder, "."), "/link"),
    "columns that differ in case": (lambda folder: write_parquet(folder, make_rows() | {"SCORE": [1.0] * N_ROWS}), ""),
    "two columns of one name": (write_score_twice, "a.parquet"),
    "other partition columns": (lambda folder: write_partitions(folder, "day=1", "lang=en"), "different columns"),
}
"""What writes the corpus, and what else the message has."""


def test_columns_that_differ_in_case_and_are_not_in_the_schema(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows() | {"x": [1.0] * 2_000, "X": [1.0] * 2_000})
    schema = "id STRING, target DOUBLE, score DOUBLE, male DOUBLE, female DOUBLE, length BIGINT"
    run_well("measure", *configure(tmp_path, corpus={"schema": schema}))


@pytest.mark.parametrize("name", BROKEN)
def test_broken_input_ends_as_on_spark(name: str, tmp_path: Path) -> None:
    write, words = BROKEN[name]
    write(tmp_path / "corpus")
    err = refuse("measure", *configure(tmp_path))
    assert all(part in err for part in (str(tmp_path / "corpus"), words)), err
    assert "permission" not in err
    assert not (tmp_path / "warehouse" / "bias_runs").exists()


@pytest.mark.parametrize(
    ("fault", "changes"),
    [
        ("[corpus] options", {"corpus": {"format": "csv", "options": {"encoding": "UTF-16"}}}),
        ("[corpus] schema", {"corpus": {"format": "csv", "schema": "id STRING, score DOUBLE"}}),
        ("[corpus] format", {"corpus": {"format": "json"}}),
        ("[corpus] format", {"corpus": {"format": "cvs"}}),
        ("[corpus] table", {"corpus": {"path": None, "table": "lake.comments"}}),
        ("[corpus] options", {"corpus": {"options": {"modifiedAfter": "2026-01-01T00:00:00"}}}),
        ("[corpus] path", {"corpus": {"path": "s3a://bucket/corpus"}}),
        ("[output] catalog", {"output": {"path": None, "catalog": "lake.bias"}}),
        ("[output] path", {"output": {"path": "s3a://bucket/warehouse"}}),
    ],
)
def test_what_the_engine_cannot_do_is_refused(fault: str, changes: dict[str, Any], tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    err = refuse("measure", *configure(tmp_path, **changes), code=2)
    assert err.count(": error: ") == err.count(f": error: {fault} = ") == 1, err
    assert ("Did you mean csv?" in err) == (changes == {"corpus": {"format": "cvs"}})


@pytest.mark.parametrize(("name", "models"), [("measure", "2 models"), ("attribute", "3 models")])
def test_rows_that_do_not_fit_the_memory_are_refused(
    name: str, models: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison is ranked like one more model."""
    monkeypatch.setattr("biasspark.session.engines.available_memory", lambda: 1)
    write_parquet(tmp_path / "corpus", make_rows())
    attribution = {"numeric": ["length"], "tree": {}, "compare": [["m", "n"]]}
    err = refuse(name, *configure(tmp_path, models={"n": "length"}, attribution=attribution))
    assert f"{models} need about " in err
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(("keep", "ranking"), [(False, "rank"), (True, "sort_examples")])
def test_counts_that_do_not_fit_the_driver_are_refused_before_the_ranking(
    keep: bool, ranking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biasspark.ranking.counts.MAX_COUNTS", 10)
    monkeypatch.setattr(f"biasspark.workflows.corpus_steps.{ranking}", None)
    write_parquet(tmp_path / "corpus", make_rows())
    assert "The driver " in refuse("measure", *configure(tmp_path, state={"keep": keep}), code=2)


def test_sketches_of_any_number_of_models(spark_session: SparkSession) -> None:
    encoding = Encoding(models=tuple(map(str, range(600))), slices=("(all)",), sources=())
    header = SketchHeader(
        rules={},
        types={},
        values={},
        members=(),
        n_rows=0,
        max_range_rows=0,
        extremes=None,
        quantiles=(),
        is_single=False,
        ranges=0,
        skewed=False,
    )
    ranked = spark_session.createDataFrame([], "model INT, slice INT, score_range INT, chunk INT, data BINARY")
    rows = sketch_rows(ranked, encoding, [header] * 600, [RangeBoundaries(np.array([0.5]), 0)] * 600)
    assert rows.select("model").distinct().count() == 600


def test_unsigned_and_old_times_are_read_as_spark_does(tmp_path: Path) -> None:
    rows = pa.table(make_rows())
    lengths = pa.array(np.arange(len(rows), dtype=np.uint32))
    times = pa.array(np.full(len(rows), np.datetime64("2026-01-15T10:00", "us")))
    rows = rows.set_column(rows.column_names.index("length"), "length", lengths)
    rows = rows.set_column(rows.column_names.index("day"), "day", times)
    (tmp_path / "corpus").mkdir()
    for number, arrow in enumerate((True, False)):  # in whose schema the times have no zone
        file = tmp_path / "corpus" / f"{number}.parquet"
        pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=arrow)
    flags = configure(tmp_path, corpus={"run_date_column": "day", "filter": "length >= 500"})
    assert run_well("measure", *flags)["n_rows"] == 2 * (len(rows) - 500)


def test_categories_are_read_as_their_values(tmp_path: Path) -> None:
    """Categories of texts and numbers as pandas writes them, in one of two files."""
    rows = pa.table(make_rows())
    kinds, codes = (pa.array([each, None] * (len(rows) // 2)) for each in ("a", 7))
    (tmp_path / "corpus").mkdir()
    for number, (kind, code) in enumerate([(kinds, codes), (kinds.dictionary_encode(), codes.dictionary_encode())]):
        pq.write_table(
            rows.append_column("kind", kind).append_column("code", code), tmp_path / f"corpus/{number}.parquet"
        )
    identities = {"columns": None, "categorical": ["kind", "code"]}
    run_well("measure", *configure(tmp_path, identities=identities, slices={"known": "kind = 'a' AND code > 6"}))
    query = "SELECT slice, identity, subgroup_size FROM bias_metrics ORDER BY ALL"
    assert ask(tmp_path / "warehouse", query) == [
        (part, name, len(rows)) for part in ("all", "known") for name in ("code=7", "kind=a")
    ]


@pytest.mark.parametrize("schema", [None, "id STRING, target DOUBLE, score DOUBLE, male DOUBLE, female DOUBLE"])
def test_files_whose_columns_differ_in_case(schema: str | None, tmp_path: Path) -> None:
    """The first file has no scores if the schema declares them."""
    rows = pa.table(make_rows())
    (tmp_path / "corpus").mkdir()
    pq.write_table(rows.drop_columns(["score"]) if schema else rows, tmp_path / "corpus/0.parquet")
    pq.write_table(rows.rename_columns([name.title() for name in rows.column_names]), tmp_path / "corpus/1.parquet")
    summary = run_well("measure", *configure(tmp_path, corpus={"schema": schema}))
    assert (summary["n_rows"], summary["rejects"]) == (2 * N_ROWS, {"null_score": N_ROWS} if schema else {})
    n_male = sum(share is not None and share >= 0.5 for share in rows["male"].to_pylist())
    sizes = ask(tmp_path / "warehouse", "SELECT subgroup_size FROM bias_metrics WHERE identity = 'male'")
    assert sizes == [(n_male * (1 if schema else 2),)]


def test_types_that_only_arrow_has_are_read_as_those_of_spark(tmp_path: Path) -> None:
    """Columns such as an embedding, as Arrow and Polars write them: each row has the value that was written."""
    rows = pa.table(make_rows())
    n = len(rows)
    columns = {
        "embedding[1] = 2": pa.array([[1, 2]] * n, pa.list_(pa.float32(), 2)),
        "category.of = 'x'": pa.StructArray.from_arrays([pa.array(["x"] * n).dictionary_encode()], ["of"]),
        "unsigned.of = 7": pa.array([{"of": 7}] * n, pa.struct([("of", pa.uint32())])),
        "map['k'] = 5": pa.array([[("k", 5)]] * n, pa.map_(pa.large_string(), pa.uint16())),
        "day_64 = DATE '2026-01-15'": pa.array([date(2026, 1, 15)] * n, pa.date64()),
        "length(large) = 2": pa.array([b"ab"] * n, pa.large_binary()),
        "nothing IS NULL": pa.nulls(n),
    }
    if hasattr(pa, "decimal32"):
        columns["length(view) = 1"] = pa.array([b"a"] * n, pa.binary_view())
        columns["digits > 1"] = pa.array([Decimal("1.5")] * n, pa.decimal32(5, 2))
        columns["json = '{}'"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * n))
    for predicate, column in columns.items():
        rows = rows.append_column(re.findall(r"[a-z]\w+", predicate.removeprefix("length"))[0], column)
    (tmp_path / "corpus").mkdir()
    pq.write_table(rows, tmp_path / "corpus/a.parquet")
    identities = {"columns": ["nothing"], "predicates": {name: name for name in columns}}
    run_well("measure", *configure(tmp_path, identities=identities))
    query = "SELECT DISTINCT identity, subgroup_size FROM bias_metrics WHERE slice = 'all' ORDER BY ALL"
    assert ask(tmp_path / "warehouse", query) == sorted([("nothing", 0), *((name, n) for name in columns)])


def write_csv(folder: Path, *lines: str) -> None:
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "x.csv").write_bytes("".join(lines).encode())


def measure_csv(folder: Path) -> Done:
    asked = {"corpus": {"format": "csv"}, "identities": {"columns": ["male"]}, "slices": {"long": "length > 9"}}
    return run("measure", *configure(folder, **asked))


def test_csv_with_lines_of_other_lengths(tmp_path: Path) -> None:
    """Quotes, line ends and separators in a text; a short and a long line, each with its id."""
    lines = [f'c{n},{n % 2},{n / 50},{n % 3},{n},"say ""{n}"",\r\nor not"\r\n' for n in range(40)]
    broken = ["short,1\r\n", f"long,1,1,1,1,{'text' * 50_000},more\r\n"]
    write_csv(tmp_path, "id,target,score,male,length,comment_text\r\n", *lines, *broken)
    measured = measure_csv(tmp_path).summary
    assert (measured["n_rows"], measured["rejects"]) == (42, {"malformed_row": 2})
    rejected = ask(tmp_path / "warehouse", "SELECT row_id, reason FROM rejected_rows ORDER BY row_id")
    assert rejected == [("long", "malformed_row"), ("short", "malformed_row")]
    query = "SELECT n_negative + n_positive FROM latest_model_summary WHERE slice = 'long'"
    assert ask(tmp_path / "warehouse", query) == [(30,)]


def test_csv_whose_header_lines_differ_in_case(tmp_path: Path) -> None:
    lines = [f"00{n},{n % 2},{n / 50},1,{n},a\n" for n in range(8)]
    header = "id,target,score,male,length,comment_text\n"
    write_csv(tmp_path, header, *lines[:4])
    (tmp_path / "corpus" / "y.csv").write_text("".join([header.title(), *lines[4:]]))
    asked = {"corpus": {"format": "csv"}, "identities": {"columns": ["male"], "categorical": ["id"]}}
    run_well("measure", *configure(tmp_path, **asked))
    identities = ask(
        tmp_path / "warehouse", "SELECT DISTINCT identity FROM bias_metrics WHERE identity LIKE 'id%' ORDER BY ALL"
    )
    assert identities == [(f"id=00{n}",) for n in range(8)]


def test_compressed_csv(tmp_path: Path) -> None:
    lines = [f"c{n},{n % 2},0.{n % 9},{n % 3 % 2},{5 * n},a\n" for n in range(30)]
    write_csv(tmp_path, "id,target,score,male,length,comment_text\n", *lines)
    metrics = "SELECT * EXCLUDE (run_id) FROM latest_u_statistics ORDER BY ALL"
    assert measure_csv(tmp_path).code == 0
    of_text = ask(tmp_path / "warehouse", metrics)
    file = tmp_path / "corpus" / "x.csv"
    text = file.read_bytes()
    file.unlink()
    for kind in ("gz", "bz2", "zst"):
        compressed = file.with_suffix(f".csv.{kind}")
        with pa.output_stream(compressed) as stream:  # compresses by the name
            stream.write(text)
        assert measure_csv(tmp_path).code == 0
        assert ask(tmp_path / "warehouse", metrics) == of_text
        compressed.write_bytes(compressed.read_bytes()[:-9])
        done = measure_csv(tmp_path)
        assert (done.code, str(compressed) in done.err) == (3, True), done.err
        compressed.unlink()


def test_csv_that_does_not_fit_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["id,target,score,male,length,comment_text\n", *[f"{99 * n},{n % 2},0.5,1,5,a\n" for n in range(99)]]
    (tmp_path / "corpus").mkdir()
    n_bytes = len("".join(lines))
    for kind in ("", ".gz"):
        file = tmp_path / "corpus" / f"x.csv{kind}"
        with pa.output_stream(file) as stream:  # compresses by the name
            stream.write("".join(lines).encode())
        for available, code in ((2 * n_bytes - 1, 3), (2 * n_bytes, 0)):
            monkeypatch.setattr("biasspark.corpus.local_csv.available_memory", lambda available=available: available)
            done = measure_csv(tmp_path)
            assert done.code == code, done.err
            assert (f"x.csv{kind} in memory" in done.err) == (code == 3)
        file.unlink()


def list_copies() -> list[Path]:
    return sorted(Path(folder.name, name) for folder in engines._folders for name in os.listdir(folder.name))


def test_a_full_temporary_folder_is_named(tmp_path: Path) -> None:
    write_csv(tmp_path, "id,target,score,male,length,comment_text\n", "c,1,0.5,1,5,a\n")
    full = OSError(ENOSPC, "No space left on device")
    before = list_copies()
    with mock.patch("biasspark.corpus.local_files.pq.ParquetWriter", side_effect=full):
        done = measure_csv(tmp_path)
    assert (done.code, "TMPDIR" in done.err) == (1, True)
    assert list_copies() == before


def test_a_long_header_line_whose_quote_has_no_end(tmp_path: Path) -> None:
    write_csv(tmp_path, f'id,target,score,male,length,"comment_text{"x" * 200_000}\n', "c,1,0.5,1,5,a\n")
    done = measure_csv(tmp_path)
    assert done.code == 3, done.err


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "line",
    ['c,1,0.5,1,5,"a"b\n', 'c,1,0.5,1,5,a "b" c\n', "c,1,0.5,1,5,a{other}", "c,1,0.5,1,5,\udcff\n"],
    ids=["after a quote", "within a text", "another line end", "no UTF-8"],
)
def test_csv_on_which_parsers_disagree(line: str, end: str, tmp_path: Path) -> None:
    write_csv(tmp_path, f"id,target,score,male,length,comment_text{end}", f"b,0,0.1,1,5,a{end}")
    line = line.replace("{other}", "\r\n" if end == "\n" else "\n")
    with (tmp_path / "corpus" / "x.csv").open("ab") as file:
        file.write(line.encode("utf-8", "surrogateescape"))
    done = measure_csv(tmp_path)
    assert done.code == 3
    assert str(tmp_path / "corpus" / "x.csv") in done.err


def test_a_zero_with_a_sign_is_zero(tmp_path: Path) -> None:
    rows = make_rows()
    rows["target"] = [-0.0 if target > 0.5 else 1.0 for target in rows["target"]]
    write_parquet(tmp_path / "corpus", rows)
    label = {"threshold": None, "positive": [0]}
    slices = {"zero": "target IN (0)", "another": "target NOT IN (0)"}
    run_well("measure", *configure(tmp_path, label=label, slices=slices))
    query = "SELECT n_negative, n_positive FROM latest_model_summary ORDER BY slice"
    n_zero = rows["target"].count(0.0)
    n_others = len(rows["id"]) - n_zero
    assert ask(tmp_path / "warehouse", query) == [(n_others, n_zero), (n_others, 0), (0, n_zero)]


def test_floats_as_names_are_refused(tmp_path: Path) -> None:
    rows = make_rows()
    rows["code"] = [float(number % 3) for number in range(len(rows["id"]))]
    write_parquet(tmp_path / "corpus", rows)
    by_code = {"columns": None, "categorical": ["code"]}
    run_well("measure", *configure(tmp_path, identities=by_code))
    rows["code"][0] = 1e9
    write_parquet(tmp_path / "corpus", rows)
    for changes in ({"identities": by_code}, {"corpus": {"id": "code"}}):
        assert "embedded engine" in refuse("measure", *configure(tmp_path, **changes))


def test_a_filter_that_applies_a_function_to_elements_is_refused(tmp_path: Path) -> None:
    """The engine computes ``exists(...)`` in slices, and fails on it where a filter reaches the files."""
    text = "exists(split(comment_text, ' '), word -> word = 'a')"
    write_parquet(tmp_path / "corpus", make_rows())
    err = refuse("measure", *configure(tmp_path, corpus={"filter": text}, slices={"some": text}), "--dry-run")
    assert ("[corpus] filter" in err, "[slices]" in err) == (True, False), err


@pytest.mark.parametrize(
    ("job", "parts"),
    [("measure", {}), ("compare", {"models": {"n": "length"}, "compare": {"baseline": "m"}})],
)
def test_a_filter_that_fails_is_named_while_repeated_ids_are_listed(
    tmp_path: Path, job: str, parts: dict[str, Any]
) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    corpus = {"duplicates": "reject", "filter": "length % (length - length) = 0"}
    assert "[corpus] filter" in refuse(job, *configure(tmp_path, corpus=corpus, **parts))


def test_models_are_measured_without_identities(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    parts: dict[str, Any] = {
        "models": {"n": "length"},
        "label_balance": {},
        "histograms": {},
        "compare": {"baseline": "m"},
    }
    flags = configure(tmp_path, **parts, identities=None)
    done = run("measure", *flags)
    n_rows = done.summary["tables"]
    expected = {"u_statistics", "bias_metrics", "model_summary", "label_balance", "score_histograms", "rejected_rows"}
    assert n_rows.keys() == expected
    assert (n_rows["u_statistics"], n_rows["bias_metrics"], n_rows["model_summary"]) == (2, 0, 2)
    assert done.out.startswith("overall AUC:\n")
    run_well("measure", *configure(tmp_path, **parts, output={"path": str(tmp_path / "other")}))
    aucs = "SELECT model, slice, auc, auc_low, auc_high FROM latest_model_summary ORDER BY ALL"
    assert ask(tmp_path / "warehouse", aucs) == ask(tmp_path / "other", aucs)
    nulls = "SELECT count(*) FROM latest_model_summary WHERE bpsn_auc_min IS NULL AND bpsn_auc_power_mean IS NULL"
    assert ask(tmp_path / "warehouse", nulls) == [(2,)]
    assert run_well("compare", *flags)["tables"] == {"model_comparisons": 1}
    run_well("report", *flags, "--out", tmp_path / "report.html")
    assert "[identities]: missing" in refuse("measure", *flags, "--set", "pinned_skew.identity=male", code=2)


def test_a_run_is_accepted_once(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows(2_000))
    flags = configure(tmp_path)
    run_id = run_well("measure", *flags)["run_id"]
    refuse("accept", *flags, "--reason", "seen", "--run-id", "")
    refuse("accept", *flags, "--reason", " ", code=2)
    first = run("accept", *flags, "--reason", "seen", "--by", "Ada")
    assert first.summary["status"] == "accepted"
    assert "gate" in first.out.splitlines()[1]  # it has no gate
    again = run("accept", *flags, "--reason", "seen again", "--by", "Grace")
    outcome = again.summary
    assert (outcome["status"], outcome["accepted_run_id"], outcome["by"]) == ("already_accepted", run_id, "Ada")
    assert all(part in again.out for part in (run_id, "Ada", outcome["accepted_at"][:19], "seen\n"))
    accepted = "SELECT accepted_by, acceptance_note FROM bias_runs WHERE job = 'accept_run'"
    assert ask(tmp_path / "warehouse", accepted) == [("Ada", "seen")]


def test_a_run_of_the_skew_experiment_alone_has_a_report(tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    flags = configure(tmp_path, pinned_skew={"identity": "male", "trials": 3})
    assert "bias_metrics" in refuse("report", *flags, "--out", tmp_path / "report.html")
    experiment = run_well("pinned-skew", *flags)
    drawn = run_well("report", *flags, "--out", tmp_path / "report.html", "--model-card", tmp_path / "card.md")
    assert (drawn["run_id"], drawn["outcome"]) == (experiment["run_id"], None)
    assert "Why not: an experiment that drops rows of" in (tmp_path / "report.html").read_text("utf-8")
    assert "were dropped at random" in (tmp_path / "card.md").read_text("utf-8")


def test_labels_are_balanced_without_models(tmp_path: Path) -> None:
    rows = make_rows()
    rows["target"][0] = None
    write_parquet(tmp_path / "corpus", rows)
    balance = {"length": "length"}
    flags = configure(tmp_path, label_balance=balance, models=None)
    done = run_well("measure", *flags)
    assert set(done["tables"]) == {"label_balance", "rejected_rows"}
    other = run_well("measure", *configure(tmp_path, label_balance=balance, output={"path": str(tmp_path / "other")}))
    for warnings in (done["warnings"], other["warnings"]):
        assert any("label_balance" in warning for warning in warnings)  # some are shorter than all buckets
    query = "SELECT * EXCLUDE (run_id) FROM latest_label_balance ORDER BY ALL"
    assert ask(tmp_path / "warehouse", query) == ask(tmp_path / "other", query)
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    run_well("report", *flags, "--out", page, "--model-card", card)
    assert "Share of positives by length" in page.read_text()
    assert "AUC" not in page.read_text().partition('id="definitions"')[0]
    assert "Share of positives" in card.read_text()
    err = refuse("side-by-side", *flags, "--models", "a", "b")
    assert ("bias_metrics: run" in err, "gone" in err) == (True, False)
