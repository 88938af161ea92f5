"""A program that measures frames of every kind on the embedded engine, and prints what came back as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
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


def kind(frame: Any) -> str:
    return type(frame).__module__.partition(".")[0]


def frames(folder: Path) -> dict[str, Any]:
    rows = comments()
    pq.write_table(rows, folder / "rows.parquet", row_group_size=300)
    pyarrow.csv.write_csv(rows, folder / "rows.csv")
    given = {
        "pandas": rows.to_pandas(),
        "pandas nullable": rows.to_pandas().convert_dtypes(),
        "pandas of Arrow": rows.to_pandas(types_mapper=pd.ArrowDtype),
        "arrow": rows,
        "arrow chunks": pa.concat_tables([rows.slice(0, 7), rows.slice(7)]),
        "duckdb": duckdb.sql(f"SELECT * FROM '{folder}/rows.parquet'"),
        "parquet": folder / "rows.parquet",
        "csv": str(folder / "rows.csv"),
    }
    if find_spec("polars"):
        given["polars"] = import_module("polars").from_arrow(rows)
    return given


def measure_kinds(folder: Path) -> dict[str, Any]:
    given = frames(folder)
    measured = {name: biasspark.bias_metrics(frame, **SUITE) for name, frame in given.items()}
    measured["spark"] = biasspark.bias_metrics(biasspark.local().read.parquet(str(folder / "rows.parquet")), **SUITE)
    return {
        name: {"kind": kind(metrics), "bits": bits(metrics), "drawn": read_texts(biasspark.plot.intervals(metrics))}
        for name, metrics in measured.items()
    }


def read_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def call_functions(df: Any, metrics: Any) -> dict[str, Any]:
    measured = biasspark.measure(df, **SUITE, templates="template", thresholds=[0.5])
    groups = {**SUITE, "models": ["score"]}
    return {
        "measure": measured.model_summary(),
        "bias_metrics": biasspark.bias_metrics(df, narrow=True, **SUITE),
        "model_summary": biasspark.model_summary(df, **ROWS, models=["score", "other"]),
        "MeasuredCorpus.template_scores": measured.template_scores(),
        "template_scores": biasspark.template_scores(df, template="template", **SUITE),
        "label_balance": biasspark.label_balance(df, length="length", **SUITE),
        "pinned_skew": biasspark.pinned_skew(df, identity="male", trials=3, **groups),
        "pinned_skew of a term": biasspark.pinned_skew(df, identity="en", trials=3, **groups | TERMS),
        "model_comparisons": biasspark.model_comparisons(df, baseline="score", **SUITE),
        "side_by_side": biasspark.side_by_side(metrics, "score", "other"),
        "example_attributions": biasspark.example_attributions(df, **ATTRIBUTED),
        "loss_by_segment": biasspark.loss_by_segment(df, segments={"long": "length > 100"}, **ATTRIBUTED),
        "attribution_correlations": biasspark.attribution_correlations(df, **ATTRIBUTED),
        "attribution_segments": biasspark.attribution_segments(df, numeric=["length"], **ATTRIBUTED),
        "pair_segments": biasspark.pair_segments(df, numeric=["length"], **ATTRIBUTED),
        "named_pairs": biasspark.named_pairs(
            df, pairs_of={"p": {"negatives": "length > 100", "positives": "true"}}, **ATTRIBUTED
        ),
        "auc_crosses": biasspark.auc_crosses(df, groupings={"by": "language"}, **ATTRIBUTED),
    }


def compare_functions() -> dict[str, Any]:
    rows = comments()
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(rows, f"{folder}/rows.parquet")
        corpus = biasspark.local().read.parquet(f"{folder}/rows.parquet")
        of_spark = call_functions(corpus, biasspark.bias_metrics(corpus, **SUITE))
        expected = {name: sorted(zip(*bits(frame), strict=True)) for name, frame in of_spark.items()}
        shown = {name: biasspark.metric_table(frame).html.count("<tr>") for name, frame in of_spark.items()}
    df = rows.to_pandas()
    of_pandas = call_functions(df, biasspark.bias_metrics(df, **SUITE))
    return {
        name: {
            "kind": kind(frame),
            "rows": len(frame),
            "equal": sorted(zip(*bits(frame), strict=True)) == expected[name],
            "shown": (biasspark.metric_table(frame).html.count("<tr>"), shown[name]),
        }
        for name, frame in of_pandas.items()
    }


def measure_twice_used() -> dict[str, bool]:
    """A column that is a score and an annotation, and a copy of it that is the score alone: are the tables equal?"""
    df = comments().to_pandas().fillna({"male": 0.0, "female": 0.0})
    df["copy"] = df["male"]
    calls: dict[str, Callable[[dict[str, str]], Any]] = {
        "template_scores": lambda models: biasspark.template_scores(
            df, template="template", **SUITE | {"models": models}
        ),
        "windows": lambda models: biasspark.bias_metrics(df, engine="windows", **SUITE | {"models": models}),
    }
    models = {"score": "score", "male": "male"}
    rows = {
        name: [sorted(zip(*bits(call(models | {"male": male})), strict=True)) for male in ("male", "copy")]
        for name, call in calls.items()
    }
    return {name: twice_used == once for name, (twice_used, once) in rows.items()}


_OF_SCORE = (pc.field("model") == "score") & (pc.field("slice") == "all")


def measure_narrow(folder: Path) -> dict[str, Any]:
    """The columns of narrow frames of one model and of two in slices; whether values are those of the wide frame."""
    path = folder / "rows.parquet"
    one = biasspark.bias_metrics(path, narrow=True, **SUITE | {"models": "score"})
    measured = biasspark.measure(path, **SUITE, slices={"long": "length > 100"})
    several, wide = measured.bias_metrics(narrow=True), measured.bias_metrics()
    return {
        "one": one.column_names,
        "several": several.column_names,
        "wide": wide.column_names,
        "equal": several.equals(wide.select(several.column_names)),
        "overall": biasspark.model_summary(path, **ROWS, models="score")["auc"].to_pylist(),
        "overall of identities": measured.model_summary().filter(_OF_SCORE)["auc"].to_pylist(),
    }


def stand_side_by_side(folder: Path) -> dict[str, Any]:
    metrics = biasspark.bias_metrics(folder / "rows.parquet", **SUITE)
    sizes = metrics.filter(pc.field("model") == "score").select(["identity", "subgroup_size"]).to_pylist()
    least = max(row["subgroup_size"] for row in sizes)
    both = biasspark.side_by_side(metrics, "score", "other", min_rows=least)
    values = wide = biasspark.side_by_side(metrics, "score", "other")
    for end, value in (("low", 0.1), ("high", 0.9)):
        name = f"bpsn_auc_second_{end}"
        wide = wide.set_column(wide.column_names.index(name), name, pa.array([value] * len(wide)))
    return {
        "large": both["identity"].to_pylist(),
        "expected": [row["identity"] for row in sizes if row["subgroup_size"] >= least],
        "marked": [biasspark.metric_table(one).html.count(">◦ ") for one in (values, wide)],
    }


def draw(folder: Path) -> dict[str, Any]:
    df = comments().rename_columns([SCRIPT if name == "male" else name for name in comments().column_names]).to_pandas()
    asked = SUITE | {"identities": [SCRIPT, "female"]}
    parts: dict[str, Any] = {"thresholds": [0.5], "label_balance": {"length": "length"}, "templates": "template"}
    plain = biasspark.bias_report(df, out=folder / "report.html", title=SCRIPT, **asked)
    whole = biasspark.measure(df, **asked, histograms=20, **parts).bias_report()
    metrics = biasspark.bias_metrics(df, **asked)
    df.to_parquet(folder / "named.parquet")
    of_spark = biasspark.local().read.parquet(str(folder / "named.parquet"))
    same_rows = (of_spark, folder / "named.parquet")
    return {
        "same": [biasspark.bias_report(one, title=SCRIPT, **asked).html == plain.html for one in same_rows],
        "plain": plain.html,
        "whole": whole.html,
        "saved": (folder / "report.html").read_text("utf-8") == plain.html,
        "shown": plain._repr_html_(),
        "metrics": biasspark.metric_table(metrics).html,
        "table": biasspark.metric_table(biasspark.u_statistics(df, **asked)).html,
    }


def damage_page(file: Path) -> None:
    """Overwrite the header of a page of the scores, so that no reader takes it for one."""
    group, content = pq.read_metadata(file).row_group(0), bytearray(file.read_bytes())
    scores = next(group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == "score")
    start = scores.dictionary_page_offset or scores.data_page_offset
    content[start : start + 60] = b"\xff" * 60
    file.write_bytes(content)


def measure_odd_columns(folder: Path) -> dict[str, Any]:
    """Measure a frame with a column of objects, which nothing names, by bands of lengths; a path from ~."""
    df = comments().to_pandas()
    bands = pd.cut(df["length"], [-1, int(df["length"].median()), 1000])
    odd = df.assign(thing=[object()] * len(df), band=bands)
    df.to_parquet(folder / "home.parquet")
    os.environ["HOME"] = str(folder)
    by_band = biasspark.bias_metrics(odd, **SUITE | {"identities": {"categorical": ["band"]}})
    return {
        "equal": bits(biasspark.bias_metrics(odd, **SUITE)) == bits(biasspark.bias_metrics("~/home.parquet", **SUITE)),
        "bands": dict(zip(by_band["identity"], map(int, by_band["subgroup_size"]), strict=True)),
        "sizes": {f"band={band}": int(size) for band, size in bands.value_counts().items()},
    }


def raise_faults(folder: Path) -> dict[str, str]:
    df = comments().to_pandas()
    dated = df.assign(until=[date(9999, 12, 31), *[date(2026, 1, 1)] * (len(df) - 1)])
    objects = df.assign(thing=[object()] * len(df))
    (folder / "text.parquet").write_text("no Parquet", "utf-8")
    (folder / "x.tsv").write_text(df.head(3).to_csv(sep="\t", index=False), "utf-8")
    for name in ("damaged", "logged/_delta_log", "types"):
        (folder / name).mkdir(parents=True)
    df.to_parquet(folder / "logged" / "a.parquet")
    for number, kind in enumerate(("int32", "float64")):
        df.assign(length=df["length"].astype(kind)).to_parquet(folder / "types" / f"{number}.parquet")
    for name in ("a", "b"):
        df.to_parquet(folder / "damaged" / f"{name}.parquet")
    damage_page(folder / "damaged" / "b.parquet")
    calls: dict[str, Callable[[], Any]] = {
        "empty": lambda: biasspark.bias_metrics(df.head(0), **SUITE),
        "no such column": lambda: biasspark.bias_metrics(df, **SUITE | {"label": "toxic"}),
        "no such file": lambda: biasspark.bias_metrics(folder / "none.parquet", **SUITE),
        "no Parquet": lambda: biasspark.bias_metrics(folder / "text.parquet", **SUITE),
        "a damaged page": lambda: biasspark.bias_metrics(folder / "damaged", **SUITE),
        "a table of Delta": lambda: biasspark.bias_metrics(folder / "logged", **SUITE),
        "tabs": lambda: biasspark.bias_metrics(folder / "x.tsv", **SUITE),
        "other types": lambda: biasspark.bias_metrics(folder / "types", **SUITE),
        "objects": lambda: biasspark.bias_metrics(objects, **SUITE, slices={"a": "length > 9", "b": "thing > 1"}),
        "no such folder": lambda: biasspark.bias_report(df, out=folder / "none" / "x.html", **SUITE),
        "no metrics": lambda: biasspark.metric_table(df),
        "no slice": lambda: biasspark.metric_table(biasspark.bias_metrics(df, **SUITE), "short"),
        "twice": lambda: biasspark.bias_metrics(df.assign(SCORE=1.0), **SUITE),
        "text as boolean": lambda: biasspark.bias_metrics(df, **SUITE, slices={"a": "length > 9", "b": "NOT language"}),
        "dates and times": lambda: biasspark.bias_metrics(dated, **SUITE, slices={"a": "TRUE", "b": "until < now()"}),
    }
    faults = {}
    for name, call in calls.items():
        try:
            call()
        except BiasSparkError as error:
            faults[name] = f"{type(error).__name__}: {error}"
    return faults


if __name__ == "__main__":
    work = Path(sys.argv[1])
    printed = {
        "kinds": measure_kinds(work),
        "functions": compare_functions(),
        "twice used": measure_twice_used(),
        "narrow": measure_narrow(work),
        "side by side": stand_side_by_side(work),
        "report": draw(work),
        "odd": measure_odd_columns(work),
        "faults": raise_faults(work),
        "left": [path.name for path in Path(tempfile.gettempdir()).glob("biasspark-*")],
    }
    (work / "printed.json").write_text(json.dumps(printed), "utf-8")
