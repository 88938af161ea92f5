"""Frames of every kind on the embedded engine, without a session: test_frames.py runs it in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import biasspark
from biasspark.errors import BiasSparkError
from tests.harness.main_job import make_rows

SCRIPT = "<script>alert(1)</script>"
ROWS: dict[str, Any] = {"label": "target", "label_threshold": 0.5}
SUITE: dict[str, Any] = ROWS | {"models": ["score", "other"], "identities": ["male", "female"]}
TERMS = {"identities": {"terms": {"column": "language", "list": ["en"]}}}
ATTRIBUTED: dict[str, Any] = ROWS | {"id": "id", "models": ["score"]}


def comments() -> pa.Table:
    rows = make_rows()
    rows["other"] = [-score for score in rows["score"]]
    rows["template"] = [f"t{number % 40}" for number in range(len(rows["id"]))]
    rows["language"] = [("en", "de", "fr")[number % 3] for number in range(len(rows["id"]))]
    return pa.table(rows)


def to_table(frame: Any) -> pa.Table:
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    if hasattr(frame, "sparkSession"):
        return pa.Table.from_pylist([row.asDict() for row in frame.collect()])
    return frame if isinstance(frame, pa.Table) else frame.to_arrow()


def bits(frame: Any) -> list[list[str]]:
    """Every value by column: of numbers all bits."""
    columns = to_table(frame).to_pydict().values()
    return [[value.hex() if isinstance(value, float) else str(value) for value in column] for column in columns]


def rows_of(frame: Any) -> list[tuple[str, ...]]:
    return sorted(zip(*bits(frame), strict=True))


def kind(frame: Any) -> str:
    return type(frame).__module__.partition(".")[0]


def read_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The comments in files, and a folder to write to."""
    folder = tmp_path_factory.mktemp("frames")
    pq.write_table(comments(), folder / "rows.parquet", row_group_size=300)
    pyarrow.csv.write_csv(comments(), folder / "rows.csv")
    return folder


@pytest.fixture
def df() -> pd.DataFrame:
    return pd.DataFrame(comments().to_pandas())


def objects(df: pd.DataFrame) -> Any:
    """Return a column that Arrow cannot hold."""
    return [object()] * len(df)


def read_by_spark(folder: Path) -> Any:
    return biasspark.local().read.parquet(str(folder / "rows.parquet"))


KINDS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "pandas": ("pandas", lambda _: comments().to_pandas()),
    "pandas nullable": ("pandas", lambda _: comments().to_pandas().convert_dtypes()),
    "pandas of Arrow": ("pandas", lambda _: comments().to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": ("polars", lambda _: pytest.importorskip("polars").from_arrow(comments())),
    "arrow": ("pyarrow", lambda _: comments()),
    "arrow chunks": ("pyarrow", lambda _: pa.concat_tables([comments().slice(0, 7), comments().slice(7)])),
    "duckdb": ("pyarrow", lambda folder: duckdb.sql(f"SELECT * FROM '{folder}/rows.parquet'")),
    "parquet": ("pyarrow", lambda folder: folder / "rows.parquet"),
    "csv": ("pyarrow", lambda folder: str(folder / "rows.csv")),
}
"""The library of the results, and what makes the frame."""


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_the_same_bits_and_comes_back(folder: Path, name: str) -> None:
    library, make = KINDS[name]
    metrics, of_spark = (biasspark.bias_metrics(rows, **SUITE) for rows in (make(folder), read_by_spark(folder)))
    assert (kind(metrics), kind(of_spark)) == (library, "pyspark")
    assert bits(metrics) == bits(of_spark)
    drawn = read_texts(biasspark.plot.intervals(metrics))
    assert {"male", "female", "BPSN AUC"} < set(drawn)
    assert drawn == read_texts(biasspark.plot.intervals(of_spark))


def test_a_csv_keeps_its_texts_and_rejects_its_malformed_lines_as_in_a_job(tmp_path: Path) -> None:
    lines = [f"{n:03},{n % 2},0.{n},{('007', '7', 'NA')[n % 3]},{n}\n" for n in range(10, 40)]
    (tmp_path / "rows.csv").write_text("".join(["id,toxic,score,zip,age\n", *lines, "bad\n"]), "utf-8")
    asked: dict[str, Any] = {"models": "score", "label": "toxic", "slices": {"old": "age > 9"}}
    measured = biasspark.measure(tmp_path / "rows.csv", identities={"categorical": ["zip"]}, **asked)
    sizes = measured.bias_metrics().select(["slice", "identity", "subgroup_size"]).to_pydict().values()
    names = ("zip=007", "zip=7", "zip=NA")
    assert [*zip(*sizes, strict=True)] == [(part, name, 10) for part in ("all", "old") for name in names]
    assert measured.rejects == {"malformed_row": 1}
    rows = biasspark.example_attributions(tmp_path / "rows.csv", id="id", **asked)
    assert rows["row_id"][0].as_py() == "010"


def test_a_deep_expression_is_computed(df: pd.DataFrame) -> None:
    plain = "length % 2 = 0"
    predicates = {"plain": plain, "deep": f"{'NOT ' * 800}({plain})"}
    metrics = biasspark.bias_metrics(df, models="score", identities={"predicates": predicates}, **ROWS)
    of_plain, of_deep = (metrics[metrics.identity == name].drop(columns="identity") for name in predicates)
    assert bits(of_plain) == bits(of_deep)


def call_functions(rows: Any) -> dict[str, Any]:
    measured = biasspark.measure(rows, **SUITE, templates="template", thresholds=[0.5])
    metrics, groups = measured.bias_metrics(), {**SUITE, "models": ["score"]}
    return {
        "measure": measured.model_summary(),
        "bias_metrics": biasspark.bias_metrics(rows, narrow=True, **SUITE),
        "model_summary": biasspark.model_summary(rows, **ROWS, models=["score", "other"]),
        "MeasuredCorpus.template_scores": measured.template_scores(),
        "template_scores": biasspark.template_scores(rows, template="template", **SUITE),
        "label_balance": biasspark.label_balance(rows, length="length", **SUITE),
        "pinned_skew": biasspark.pinned_skew(rows, identity="male", trials=3, **groups),
        "pinned_skew of a term": biasspark.pinned_skew(rows, identity="en", trials=3, **groups | TERMS),
        "model_comparisons": biasspark.model_comparisons(rows, baseline="score", **SUITE),
        "side_by_side": biasspark.side_by_side(metrics, "score", "other"),
        "example_attributions": biasspark.example_attributions(rows, **ATTRIBUTED),
        "loss_by_segment": biasspark.loss_by_segment(rows, segments={"long": "length > 100"}, **ATTRIBUTED),
        "attribution_correlations": biasspark.attribution_correlations(rows, **ATTRIBUTED),
        "attribution_segments": biasspark.attribution_segments(rows, numeric=["length"], **ATTRIBUTED),
        "pair_segments": biasspark.pair_segments(rows, numeric=["length"], **ATTRIBUTED),
        "named_pairs": biasspark.named_pairs(
            rows, pairs_of={"p": {"negatives": "length > 100", "positives": "true"}}, **ATTRIBUTED
        ),
        "auc_crosses": biasspark.auc_crosses(rows, groupings={"by": "language"}, **ATTRIBUTED),
    }


def test_every_function_gives_pandas_for_pandas(folder: Path, df: pd.DataFrame) -> None:
    expected = call_functions(read_by_spark(folder))
    for name, frame in call_functions(df).items():
        assert kind(frame) == "pandas", name
        assert rows_of(frame) == rows_of(expected[name]) != [], name
        shown = biasspark.metric_table(frame).html.count("<tr>")
        assert shown == biasspark.metric_table(expected[name]).html.count("<tr>") > 1, name


@pytest.mark.parametrize("function", ["template_scores", "bias_metrics"])
def test_a_score_may_be_an_annotation_as_well(df: pd.DataFrame, function: str) -> None:
    """As a copy of the column would be that is the score alone."""
    df = df.fillna({"male": 0.0, "female": 0.0}).assign(copy=lambda rows: rows["male"].fillna(0.0))
    options = {"template": "template"} if function == "template_scores" else {"engine": "windows"}
    once, twice = (
        getattr(biasspark, function)(df, **SUITE | {"models": {"score": "score", "male": column}} | options)
        for column in ("copy", "male")
    )
    assert rows_of(once) == rows_of(twice)


def test_a_narrow_frame_has_the_columns_of_the_notebook(folder: Path) -> None:
    """Of one model, and of two in slices."""
    path = folder / "rows.parquet"
    names = ["identity", "subgroup_size", "subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg"]
    assert biasspark.bias_metrics(path, narrow=True, **SUITE | {"models": "score"}).column_names == names
    measured = biasspark.measure(path, **SUITE, slices={"long": "length > 100"})
    narrow, wide = measured.bias_metrics(narrow=True), measured.bias_metrics()
    assert narrow.column_names == ["model", "slice", *names]
    assert narrow.equals(wide.select(narrow.column_names))
    assert {"slice", "bpsn_auc_low", "bpsn_auc_reason", "n_background_positive", "bias_size"} < set(wide.column_names)
    assert len(wide.column_names) < 40
    alone = biasspark.model_summary(path, **ROWS, models="score")["auc"].to_pylist()  # without identities
    of_score = (pc.field("model") == "score") & (pc.field("slice") == "all")
    assert len(alone) == 1
    assert alone == measured.model_summary().filter(of_score)["auc"].to_pylist()


def test_two_models_side_by_side_leave_out_small_identities(folder: Path) -> None:
    metrics = biasspark.bias_metrics(folder / "rows.parquet", **SUITE)
    sizes = metrics.filter(pc.field("model") == "score").select(["identity", "subgroup_size"]).to_pylist()
    least = max(row["subgroup_size"] for row in sizes)
    large = biasspark.side_by_side(metrics, "score", "other", min_rows=least)["identity"].to_pylist()
    assert large == [row["identity"] for row in sizes if row["subgroup_size"] >= least]


def test_a_report_of_any_kind_of_rows_is_the_file(folder: Path) -> None:
    """Its title is a script. It names the keywords of what is not measured."""
    path = folder / "rows.parquet"
    pages = {
        biasspark.bias_report(rows, out=folder / "report.html", title=SCRIPT, **SUITE).html
        for rows in (comments().to_pandas(), biasspark.local().read.parquet(str(path)), path)
    }
    assert pages == {(folder / "report.html").read_text("utf-8")}
    (page,) = pages
    assert SCRIPT not in page
    (line,) = re.findall("<dt>Not measured</dt>.*", page)
    assert re.findall(r"the keyword <code>(\w+)</code>", line) == ["thresholds", "templates", "label_balance"]


def test_bands_are_identities_and_objects_that_nothing_names_are_left_out(
    folder: Path, df: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a path may begin with ~."""
    bands = pd.cut(df["length"], [-1, int(df["length"].median()), 1000])
    odd = df.assign(thing=objects(df), band=bands)
    monkeypatch.setenv("HOME", str(folder))
    assert bits(biasspark.bias_metrics(odd, **SUITE)) == bits(biasspark.bias_metrics(df, **SUITE))
    assert rows_of(biasspark.bias_metrics("~/rows.parquet", **SUITE)) == rows_of(biasspark.bias_metrics(df, **SUITE))
    by_band = biasspark.bias_metrics(odd, **SUITE | {"identities": {"categorical": ["band"]}})
    sizes = dict(zip(by_band["identity"], map(int, by_band["subgroup_size"]), strict=True))
    assert sizes == {f"band={band}": int(size) for band, size in bands.value_counts().items()}


def damage_page(file: Path) -> None:
    """Overwrite the header of a page of the scores, so that no reader takes it for one."""
    group, content = pq.read_metadata(file).row_group(0), bytearray(file.read_bytes())
    scores = next(group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == "score")
    start = scores.dictionary_page_offset or scores.data_page_offset
    content[start : start + 60] = b"\xff" * 60
    file.write_bytes(content)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that cannot be read, or only ambiguously."""
    folder, df = tmp_path_factory.mktemp("damaged"), comments().to_pandas()
    (folder / "x.tsv").write_text(df.head(3).to_csv(sep="\t", index=False), "utf-8")
    df.head(3).to_csv(folder / "index.csv")
    for name in ("page", "logged/_delta_log", "types"):
        (folder / name).mkdir(parents=True)
    df.to_parquet(folder / "logged" / "a.parquet")
    for number, length in enumerate(("int32", "float64")):
        df.assign(length=df["length"].astype(length)).to_parquet(folder / "types" / f"{number}.parquet")
    for name in ("a", "b"):
        df.to_parquet(folder / "page" / f"{name}.parquet")
    damage_page(folder / "page" / "b.parquet")
    return folder


FILES = {
    "page": "InputError.*page/b.parquet",
    "logged": r"InputError.*logged is the folder of a Delta table.*Arrow",
    "x.tsv": "InputError.*another format.*pandas",
    "types": "InputError.*pandas.*Column: length",
    "index.csv": "InputError.*index=False.*index.csv",
}
FRAMES: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "empty": (lambda df: biasspark.bias_metrics(df.head(0), **SUITE), "NoRows|InputError"),
    "objects": (
        lambda df: biasspark.bias_metrics(
            df.assign(thing=objects(df)), **SUITE, slices={"a": "length > 9", "b": "thing > 1"}
        ),
        r'InputError: df\["thing"\]: Arrow ',
    ),
    "text as boolean": (
        lambda df: biasspark.bias_metrics(df, **SUITE, slices={"a": "length > 9", "b": "NOT language"}),
        r'InputError: slices\["b"\] = "NOT language".*type',
    ),
    "dates and times": (
        lambda df: biasspark.bias_metrics(
            df.assign(until=[date(9999, 12, 31), *[date(2026, 1, 1)] * (len(df) - 1)]),
            **SUITE,
            slices={"a": "TRUE", "b": "until < now()"},
        ),
        r'InputError: slices\["b"\] = "until < now\(\)".*dates',
    ),
}


def assert_fault(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(BiasSparkError) as caught:
        call()
    text = f"{type(caught.value).__name__}: {caught.value}"
    assert re.search(words, text, re.DOTALL), text
    assert not any(word in text for word in ("canary", "[corpus]"))


@pytest.mark.parametrize(("name", "words"), FILES.items())
def test_faults_of_files_name_them(damaged: Path, name: str, words: str) -> None:
    assert_fault(lambda: biasspark.bias_metrics(damaged / name, **SUITE), words)


@pytest.mark.parametrize("name", FRAMES)
def test_faults_name_what_is_wrong(df: pd.DataFrame, name: str) -> None:
    call, words = FRAMES[name]
    assert_fault(lambda: call(df), words)
