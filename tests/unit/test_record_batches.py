"""Frames of any library as record batches: their types, and the faults of what does not become rows. No session."""

from __future__ import annotations

import datetime
import decimal
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from biasspark.api.frame_kinds import like
from biasspark.api.keywords import Keywords
from biasspark.api.record_batches import collect_columns, list_columns, read_once, read_rows
from biasspark.errors import InputError
from tests.harness.least_configuration import raised_fault
from tests.harness.submitting import run_python

NAME_OF_A_PERSON = "Vilhelmina"
NAT = datetime.datetime(2026, 1, 15, 3, 4, 5, 678901)


def read(df: Any) -> pa.Table:
    return read_rows(df).checked().read_all()


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        (pd.Series(["a", None, float("nan")], dtype=object), pa.string(), ["a", None, None]),
        (pd.Series([True, float("nan"), None], dtype=object), pa.bool_(), [True, None, None]),
        (pd.Series([True, None], dtype="boolean"), pa.bool_(), [True, None]),
        (pd.Series([2**53 + 1, None], dtype="Int64"), pa.int64(), [2**53 + 1, None]),
        (pd.Series([0.5, None], dtype="Float32"), pa.float32(), [0.5, None]),
        (pd.Series([0.5, float("nan")]), pa.float64(), [0.5, None]),
        (pd.Series([0.1], dtype="float16"), pa.float32(), [float(np.float16(0.1))]),
        (pd.Series(["a", None], dtype="string"), pa.string(), ["a", None]),
        (pd.Series(["a", None, "a"], dtype="category"), pa.string(), ["a", None, "a"]),
        (pd.Series([3, 4], dtype="category"), pa.int64(), [3, 4]),
        (pd.Series([2**64 - 1], dtype="uint64"), pa.decimal128(20), [decimal.Decimal(2**64 - 1)]),
        (pd.Series([255], dtype="uint8"), pa.int16(), [255]),
        (pd.Series([NAT, None]), pa.timestamp("us"), [NAT, None]),
        (pd.Series([None, None], dtype=object), pa.int32(), [None, None]),
        (pd.Series([decimal.Decimal("1.50")]), pa.decimal128(3, 2), [decimal.Decimal("1.50")]),
        (pd.Series([], dtype="float64"), pa.float64(), []),
        (pd.Series([pd.Period("2026-01"), pd.NaT], dtype="period[M]"), pa.string(), ["2026-01", None]),
        (pd.cut(pd.Series([3, 40, 99]), [0, 30, 60]), pa.string(), ["(0, 30]", "(30, 60]", None]),
        (pd.Series(pd.arrays.IntervalArray.from_breaks([0.5, 1.5])), pa.string(), ["(0.5, 1.5]"]),
        (pd.Series(pd.arrays.SparseArray(np.array([0.5, np.nan]))), pa.float64(), [0.5, None]),
    ],
)
def test_columns_of_pandas(column: Any, kind: pa.DataType, values: list[Any]) -> None:
    rows = read(pd.DataFrame({"x": column}))
    assert rows.schema == pa.schema([("x", kind)])
    assert rows["x"].to_pylist() == values


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(["a", None]).dictionary_encode(), pa.string()),
        (pa.array(["a", None], pa.large_string()), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array([b"a", None], pa.large_binary()), pa.binary()),
        (pa.array([1, None], pa.uint32()), pa.int64()),
        (pa.array([1, None], pa.timestamp("ns", "Europe/Berlin")), pa.timestamp("us", "Europe/Berlin")),
        (pa.array([1, None], pa.timestamp("s")), pa.timestamp("us")),
        (pa.array([0, None], pa.date64()), pa.date32()),
        (pa.array([decimal.Decimal(1), None], pa.decimal256(20, 2)), pa.decimal128(20, 2)),
        (pa.array([[1], None]), pa.list_(pa.int64())),
        (pa.array([["a"], None], pa.large_list(pa.string_view())), pa.list_(pa.string())),
        (pa.array([["a"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))), pa.list_(pa.string())),
        (pa.array([["a"], None], pa.list_(pa.large_string(), 1)), pa.list_(pa.string())),
        (pa.array([{"a": "b"}, None], pa.struct([("a", pa.string_view())])), pa.struct([("a", pa.string())])),
        (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.uint8())), pa.map_(pa.string(), pa.int16())),
        (pa.nulls(2), pa.int32()),
    ],
)
def test_columns_of_arrow(column: pa.Array, kind: pa.DataType) -> None:
    rows = read(pa.table({"x": column}))
    assert rows.schema.field("x").type == kind
    assert rows["x"].is_valid().to_pylist() == column.is_valid().to_pylist()


def test_the_index_is_no_column() -> None:
    rows = read_rows(pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="id")))
    assert rows.checked().schema.names == ["x"]
    assert "reset_index" in str(rows.hints["id"])
    assert not read_rows(pd.DataFrame({"x": [1]})).hints


def test_relations_of_duckdb_and_streams_are_read() -> None:
    rows = read(duckdb.sql("SELECT 1::UTINYINT AS x, 'a' AS y FROM range(3)"))
    assert rows.to_pydict() == {"x": [1, 1, 1], "y": ["a", "a", "a"]}
    assert read(pa.table({"x": [1]}).to_reader()).num_rows == 1


def test_columns_of_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"text": ["a", None], "count": [1, 2], "score": [0.5, None]}).with_columns(
        category=pl.col("text").cast(pl.Categorical), level=pl.col("text").cast(pl.Enum(["a", "b"]))
    )
    rows = read(
        frame.with_columns(
            count=pl.col("count").cast(pl.UInt32), groups=pl.Series([["a"], []], dtype=pl.List(pl.Categorical))
        )
    )
    texts = [pa.string(), pa.string(), pa.list_(pa.string())]
    assert rows.schema.types == [pa.string(), pa.int64(), pa.float64(), *texts]
    assert rows["level"].to_pylist() == ["a", None]
    with pytest.raises(TypeError, match=r"^df: .*collect"):
        read(frame.lazy())
    with pytest.raises(TypeError, match=r"^df: "):
        read(frame["text"])


def test_csv_is_read_by_its_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('toxic,score,text,group\ntrue,0.5,"a, ""b""\nc",\n,,"",NA\nfalse,1,x,null\n', "utf-8")
    rows = read(path)
    assert rows.to_pydict() == {
        "toxic": [True, None, False],
        "score": [0.5, None, 1.0],
        "text": ['a, "b"\nc', "", "x"],
        "group": [None, None, "null"],
    }


def test_the_frame_of_the_user_stays_as_it_is() -> None:
    frame = pd.DataFrame({"x": pd.cut([3, 40, 99], [0, 30, 60]), "y": [1, 2, 3]})
    part = frame[frame["y"] > 1]  # pandas warns of a change to a part
    kinds = dict(part.dtypes)
    assert read(part)["x"].to_pylist() == ["(30, 60]", None]
    assert dict(part.dtypes) == kinds


def test_a_path_may_begin_with_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.csv").write_text("a\n1\n", "utf-8")
    assert read("~/x.csv").to_pydict() == {"a": [1]}


BANDS = pa.DictionaryArray.from_arrays([0], pa.StructArray.from_arrays([[0]], ["left"]))
"""A dictionary of structs, which Arrow does not cast."""


@pytest.mark.parametrize(
    "df",
    [
        pd.DataFrame({"x": [object()], "y": [1]}),
        pd.DataFrame({"x": [1j], "y": [1]}),
        pd.DataFrame({"x": np.ones(1, np.longdouble), "y": [1]}),
        pd.DataFrame({"x": [1, NAME_OF_A_PERSON], "y": [1, 1]}),
        pa.table({"x": pa.array([1], pa.time64("us")), "y": [1]}),
        pa.table({"x": BANDS, "y": [1]}),
    ],
)
def test_columns_that_are_not_read_do_not_stop_others(df: Any) -> None:
    rows = read_rows(df)
    assert rows.batches.read_all()["y"].to_pylist() == [1] * len(df)
    assert re.fullmatch(r'df\["x"\]: .* Convert it.*\.', Keywords({}).describe(rows.unreadable["x"]))
    assert NAME_OF_A_PERSON not in str(rows.unreadable)


def test_types_that_only_polars_has_do_not_stop_other_columns() -> None:
    pl = pytest.importorskip("polars")
    columns = [pl.Series("x", [object()], dtype=pl.Object), pl.Series("wide", [1], dtype=pl.Int128)]
    rows = read_rows(pl.DataFrame({"y": [1]}).with_columns(columns))
    assert rows.batches.read_all().to_pydict() == {"y": [1]}
    assert list(rows.unreadable) == ["x", "wide"]


@pytest.mark.parametrize("df", [pd.DataFrame(index=[0]), "", " "])
def test_a_frame_without_columns_and_an_empty_path_are_refused(df: Any) -> None:
    assert raised_fault(InputError, read, df).path == ("df",)


@pytest.mark.parametrize(
    ("df", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), [": x.", "duplicated()"]),
        (pd.DataFrame({"Score": [1], "score": [2], "y": [3]}), ["Score, score"]),
        (pa.table([[1], [2]], names=["x", "x"]), [": x."]),
        (pd.DataFrame({"x": [1, NAME_OF_A_PERSON], "y": [1, 2]}), ["x"]),
        (pa.table({"x": pa.array([1], pa.time64("us"))}), ["x", "time64[us]"]),
        (pd.DataFrame({"x": pd.to_timedelta([1])}), ["x", "duration[ns]"]),
        (pa.table({"x": pa.array([decimal.Decimal(1)], pa.decimal256(50))}), ["x", "decimal256(50, 0)"]),
    ],
)
def test_columns_that_do_not_become_rows_are_named(df: Any, words: list[str]) -> None:
    fault = raised_fault(InputError, read, df)
    assert fault.path[0] == "df"
    assert all(word in str(fault) for word in words)
    assert fault.fix
    assert NAME_OF_A_PERSON not in str(fault)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", f"a,b\n1,2\n{NAME_OF_A_PERSON}\n".encode()),
        ("x.csv", b""),
        ("x.csv", b"a,b\n\xff\xfe,1\n"),
        ("x.csv.gz", b"a,b\n1,2\n"),
        ("x.parquet", NAME_OF_A_PERSON.encode()),
        ("x.csv", None),
        ("x.parquet", None),
        ("_delta_log", b""),
    ],
)
def test_files_that_cannot_be_read_are_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    path = tmp_path if name == "_delta_log" else path
    fault = raised_fault(InputError, read, str(path))
    assert fault.value == str(path)
    assert NAME_OF_A_PERSON not in str(fault)
    assert (content is None) == ("nothing at this path" in str(fault))


def test_a_faulty_file_after_the_first_of_a_folder_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert "Parquet" in str(caught.value)


def test_a_file_gives_the_types_of_its_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": pd.Series([1, None], dtype="Int64"), "c": pd.Series(["a", "b"], dtype="category")})
    frame.to_parquet(tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet").equals(read(frame))
    assert pq.read_schema(tmp_path / "x.parquet").field("c").type != read(frame).schema.field("c").type


def test_libraries_that_are_not_used_are_not_loaded() -> None:
    program = (
        "import sys, pyarrow as pa; from biasspark.api.record_batches import read_rows; "
        "read_rows(pa.table({'x': [1]})).checked().read_all(); print(*sorted({'polars', 'duckdb'} & set(sys.modules)))"
    )
    done = run_python("-c", program)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_files_are_read_once(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    rows = read_once(str(file), "df")
    file.unlink()
    assert list_columns(rows) == ["a"]
    assert read(rows).to_pylist() == [{"a": 1}]


def test_integers_beyond_64_bits_are_given_as_decimals_that_are_read_again() -> None:
    wide = pa.decimal128(38, 0)
    sums = pa.table({"n": pa.array([1, None], wide), "squares": pa.array([10**19, None], wide)})
    given = like(pd.DataFrame())(sums, StructType())
    assert str(given["n"].dtype) == "Int64"
    assert collect_columns(given, sums.schema, "df").equals(sums)


def test_collected_columns_may_be_categories_and_have_one_name_each() -> None:
    schema = pa.schema([("model", pa.string()), ("note", pa.string())])
    for texts in (pa.string(), pa.string_view()):  # the latter from Polars
        model = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint32()), pa.array(["a", "b"], texts))
        rows = collect_columns(pa.table({"model": model, "other": [1, 2]}), schema, "table")
        assert rows.to_pydict() == {"model": ["a", "b"], "note": [None, None]}
    twice = pa.table([["a"], ["b"]], names=["model", "Model"])
    assert "same name" in str(raised_fault(InputError, collect_columns, twice, schema, "table"))
