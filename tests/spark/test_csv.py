"""CSV, and JSON by lines: which columns are numbers in SQL, and malformed records."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import MALFORMED
from biasspark.config import Measures, parse_config
from biasspark.corpus.csv_rows import TYPES_PASS
from biasspark.corpus.survey import survey_corpus
from biasspark.errors import InputError
from biasspark.session.spark_errors import translate_spark_errors
from biasspark.workflows.corpus_job import Plan, describe_plan
from tests.harness.least_configuration import changed
from tests.harness.small_corpora import count_and_reject, measures_of, read

pytestmark = pytest.mark.spark("how Spark reads CSV")

read_csv = partial(read, format="csv")


def write(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    return path


def kinds_of(rows: DataFrame) -> dict[str, str]:
    return {name: kind for name, kind in rows.dtypes if name != MALFORMED}


def rejects_of(rows: DataFrame, measures: Measures, duplicates: str = "allow") -> tuple[int, Counter[tuple[Any, ...]]]:
    """Return how many rows are read, and the rejected ones."""
    counts, rejects = count_and_reject(rows, measures, duplicates)
    assert counts.rejects == dict(Counter(reason for _, _, reason in rejects.elements()))
    return counts.n_rows, rejects


# ---- numbers in SQL

VALUES: dict[str, tuple[Sequence[str], str]] = {
    "age": (["9", " 10", "+3"], "bigint"),
    "value": (["100.5", "-.5", "1e3"], "double"),
    "mixed": (["1", "2.5", "0"], "double"),
    "zip": (["007", "1", "2"], "string"),
    "huge": (["9007199254740993", "-9223372036854775808", "0"], "bigint"),
    "huger": (["9223372036854775808", "1", "2"], "double"),
    "odd": (["NaN", "-Infinity", "inf"], "double"),
    "bad": (["1", "n/a", "2"], "string"),
    "hexed": (["1d", "2f", "3"], "string"),
    "flag": (["True", "false", ""], "boolean"),
    "yes": (["yes", "no", "1"], "string"),
    "empty": (["", "", ""], "string"),
    "gaps": (["1", "", "2"], "bigint"),
    "day": (["2026-01-15", "2026-01-16", ""], "string"),
    "whole group": (["1", "2", ""], "bigint"),
    "code group": (["01", "2", ""], "string"),
    "rate group": (["1.50", "2.0", ""], "string"),
    "flag group": (["True", "False", ""], "string"),
    "text": (["1", "2", "3"], "string"),
    "s": (["0.5", "1", "Infinity"], "double"),
    "t": (["true", "false", "true"], "string"),
    "u": (["0.5", "1", ""], "double"),
    "y": (["1", "0", "1"], "string"),
    "idle": (["1", "2", "3"], "string"),
}


def test_a_column_that_sql_names_is_of_the_type_of_its_values(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", {name: values for name, (values, _) in VALUES.items()})
    groups = [name for name in VALUES if name.endswith(" group")]
    measures = measures_of(
        models={"s": "s", "t": "t"},
        identities={"columns": ["u"], "categorical": groups},
        slices={f"slice of {name}": f"`{name}` IS NULL" for name in VALUES if name != "idle"},
        label_balance={"text": "text"},
    )
    rows = read_csv(spark, tmp_path, measures)
    assert kinds_of(rows) == {name: kind for name, (_, kind) in VALUES.items()}
    assert 9007199254740993 in [row.huge for row in rows.select("huge").collect()]
    plain = kinds_of(read_csv(spark, tmp_path, measures_of(models={"s": "s"})))
    assert set(plain.values()) == {"string"}  # nothing is guessed where no SQL asks
    schema = ", ".join(f"`{name}` STRING" for name in VALUES)
    assert set(kinds_of(read_csv(spark, tmp_path, measures, schema=schema)).values()) == {"string"}
    inferred = kinds_of(read_csv(spark, tmp_path, options={"InferSchema": "true"}))
    assert (inferred["idle"], inferred["zip"]) == ("int", "int")


def test_predicates_slices_and_the_filter_compare_numbers(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "id": ["007", "7", "8", "9"],
        "y": ["1", "0", "1", "0"],
        "s": ["0.1", "0.2", "1e0", "0.4"],
        "Age": ["9", "10", "100", "7"],
        "hours": ["10", "9", "20", "8"],
        "value": ["100.5", "99", "1000", "5"],
    }
    write(tmp_path / "rows.csv", columns)
    measures = measures_of(
        identities={"categorical": ["hours"], "predicates": {"long": "age > hours", "big": "value > 100"}}
    )
    rows = read_csv(spark, tmp_path, measures, id="id", filter="s < 0.5 OR s >= 1")
    compared = rows.select("id", F.expr("age > hours"), F.expr("value > 100")).collect()
    wanted = [("007", False, True), ("7", True, False), ("8", True, True), ("9", False, False)]
    assert sorted(map(tuple, compared)) == wanted
    assert survey_corpus(rows, measures).values == {"hours": ("8", "9", "10", "20")}
    assert rejects_of(rows, measures) == (4, Counter())
    assert [row.id for row in read_csv(spark, tmp_path, filter="age > hours AND value > 100").collect()] == ["8"]


def test_partitions_and_files_without_header_line(spark: SparkSession, tmp_path: Path) -> None:
    for part in ("01", "02"):
        write(tmp_path / f"parts/hour={part}/name=n{part}/a.csv", {"y": ["1"], "s": ["9"], "n": ["10"]})
    measures = measures_of(identities={"predicates": {"x": "s > n AND hour = 1 AND name = 'n01'"}})
    rows = read_csv(spark, tmp_path / "parts", measures)
    assert kinds_of(rows) == {"y": "string", "s": "bigint", "n": "bigint", "hour": "string", "name": "string"}
    assert rows.where("name = 'n01' AND hour = 1").count() == 1
    (tmp_path / "bare.csv").write_text("1,0.5,9\n0,0.25,10\n")
    measures = measures_of(label={"column": "_c0"}, models=["_c1"], identities={"predicates": {"x": "_c2 > 9"}})
    rows = read_csv(spark, tmp_path / "bare.csv", measures, options={"header": "false"})
    assert sorted(map(tuple, rows.drop(MALFORMED).collect())) == [("0", "0.25", 10), ("1", "0.5", 9)]


@pytest.mark.parametrize(
    ("corpus", "slices", "reads_types"),
    [({}, {}, False), ({}, {"x": "s > 1"}, True), ({"schema": "s INT"}, {"x": "s > 1"}, False)],
)
def test_the_plan_has_a_pass_for_the_types(corpus: dict[str, str], slices: dict[str, str], reads_types: bool) -> None:
    config = parse_config(changed(corpus={"format": "csv"} | corpus, slices=slices), Path())
    plan = describe_plan(Plan([], ()), config, "spark", {})
    assert (TYPES_PASS in plan) == reads_types


# ---- malformed records


def write_malformed(path: Path) -> tuple[Measures, Counter[tuple[Any, ...]]]:
    """Write seven good lines and four bad ones; return what is measured, and the rows that are rejected."""
    good = [f"g{n},{n % 2},{n / 8},x,{n}" for n in range(6)]
    bad = ["long,1,0.5,x,y,3", "short,1,0.5", "alone", 'g0,1,0.5,"x,y",1,2']
    path.write_text("\n".join(["id,y,s,g,n", *good, *bad, 'g6,1,0.5,"x, y\n z",7', ""]))
    measures = measures_of(identities={"categorical": ["g"], "predicates": {"big": "n > 2", "cast": "int(n) = 1"}})
    return measures, Counter((name, None, "malformed_row") for name in ("long", "short", "alone", "g0"))


def test_lines_with_too_many_or_too_few_fields_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    measures, wanted = write_malformed(tmp_path / "a.csv")
    rows = read_csv(spark, tmp_path, measures, id="id")
    assert kinds_of(rows)["n"] == "bigint"
    as_duplicates = wanted + Counter({("g0", None, "duplicate_id"): 1})
    assert rejects_of(rows, measures, "reject") == (11, as_duplicates)
    assert survey_corpus(rows, measures).values == {"g": ("x", "x, y\n z")}


@pytest.mark.slow
def test_they_are_rejected_whatever_the_filter_and_the_options(spark: SparkSession, tmp_path: Path) -> None:
    measures, wanted = write_malformed(tmp_path / "a.csv")
    assert rejects_of(read_csv(spark, tmp_path, measures, id="id", filter="n < 3"), measures) == (7, wanted)
    texts = read_csv(spark, tmp_path, schema="id STRING, y STRING, s STRING, g STRING, n STRING", id="id")
    assert rejects_of(texts, measures_of(identities={"categorical": ["g"]})) == (11, wanted)
    for options in ({"inferSchema": "true"}, {"multiLine": "false"}):
        n_rows, rejects = rejects_of(read_csv(spark, tmp_path, options=options, id="id"), measures)
        assert not wanted - rejects
        assert n_rows == 11 + ("multiLine" in options)


def test_malformed_lines_of_json_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{{"id": "{n}", "y": {str(n % 2 == 0).lower()}, "s": {n / 8}, "u": 1.0}}' for n in range(4)]
    (tmp_path / "a.json").write_text("\n".join([*lines, '{"id": "4", "y"', "plain"]))
    rows = read(spark, tmp_path, measures_of(), format="json", filter="u > 0.5", id="id")
    assert rejects_of(rows, measures_of()) == (6, Counter({(None, None, "malformed_row"): 2}))


# ---- quotes, names and bytes


def test_a_quote_of_its_own_is_doubled_within_quotes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,s,g\ntrue,0.5,'it''s, so'\nfalse,0.2,'say \"no\"'\n")
    texts = {row.g for row in read_csv(spark, tmp_path, options={"quote": "'"}).collect()}
    assert texts == {"it's, so", 'say "no"'}
    escaped = read_csv(spark, tmp_path, options={"Quote": "'", "escape": "\\"})
    assert "it's, so" not in {row.g for row in escaped.collect()}


@pytest.mark.parametrize("header", ["y,s,Y", ",y,s"])
def test_a_header_line_that_repeats_a_name_or_lacks_one(spark: SparkSession, tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\ntrue,1,0.5\n")
    with pytest.raises(InputError, match="repeats a name"), translate_spark_errors("corpus"):
        read_csv(spark, tmp_path).collect()
    assert read_csv(spark, tmp_path, options={"enforceSchema": "true"}).count() == 1
    (tmp_path / "a.csv").write_text("y0,y1,_c2\ntrue,1,0.5\n")
    assert read_csv(spark, tmp_path).drop(MALFORMED).columns == ["y0", "y1", "_c2"]


@pytest.mark.parametrize("codec", ["UTF-16", "UTF-16BE"])
def test_files_in_utf_16(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    (tmp_path / "a.csv").write_text("y,s\ntrue,0.5\n", encoding=codec)
    assert read_csv(spark, tmp_path, options={"encoding": codec}).drop(MALFORMED).columns == ["y", "s"]


def test_bytes_that_are_no_utf_8_are_warned_of(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("y,s,g\ntrue,0.5,café\nfalse,0.2,thé\n".encode("latin-1"))
    measures = measures_of(identities={"categorical": ["g"]})
    (warning,) = survey_corpus(read_csv(spark, tmp_path), measures).warnings
    assert 'encoding = "ISO-8859-1"' in warning
    latin = survey_corpus(read_csv(spark, tmp_path, options={"encoding": "ISO-8859-1"}), measures)
    assert (latin.values, latin.warnings) == ({"g": ("café", "thé")}, ())
