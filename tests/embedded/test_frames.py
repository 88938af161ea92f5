"""Frames of every kind without a session, on the embedded engine: one process measures them all."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.civil import CivilRequest
from tests.embedded.measure_frames import SCRIPT
from tests.harness.documents import blocks_of
from tests.harness.submitting import run_python

pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")
GIVEN_BACK = {"pandas": "pandas", "polars": "polars", "spark": "pyspark"}
"""The library of results, by the first word of a kind; of all others it is pyarrow."""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("frames")
    done = run_python("-m", "tests.embedded.measure_frames", folder, cwd=folder, TMPDIR=str(folder))
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads((folder / "printed.json").read_text("utf-8"))
    return values


@pytest.mark.slow
def test_every_kind_has_the_same_bits_and_comes_back(printed: dict[str, Any]) -> None:
    kinds = printed["kinds"]
    assert len(kinds) >= 9
    assert {name: GIVEN_BACK.get(name.split()[0], "pyarrow") for name in kinds} == {
        name: of_kind["kind"] for name, of_kind in kinds.items()
    }
    assert [name for name, of_kind in kinds.items() if of_kind["bits"] != kinds["spark"]["bits"]] == []
    assert {"male", "female", "BPSN AUC"} < set(kinds["spark"]["drawn"])
    assert [name for name, of_kind in kinds.items() if of_kind["drawn"] != kinds["spark"]["drawn"]] == []


@pytest.mark.slow
def test_every_function_gives_pandas_for_pandas(printed: dict[str, Any]) -> None:
    functions = printed["functions"]
    assert {name for name, one in functions.items() if one["kind"] != "pandas" or not one["rows"]} == set()
    assert {name for name, one in functions.items() if not one["equal"]} == set()
    assert {name for name, one in functions.items() if len(set(one["shown"])) > 1 or one["shown"][0] < 2} == set()


@pytest.mark.slow
def test_a_score_may_be_an_annotation_as_well(printed: dict[str, Any]) -> None:
    assert printed["twice used"] == {"template_scores": True, "windows": True}


@pytest.mark.slow
def test_a_narrow_frame_has_the_columns_of_the_notebook(printed: dict[str, Any]) -> None:
    narrow = printed["narrow"]
    suite = ["subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg"]
    assert narrow["one"] == ["identity", "subgroup_size", *suite]
    assert narrow["several"] == ["model", "slice", *narrow["one"]]
    assert narrow["equal"]
    assert {"slice", "bpsn_auc_low", "bpsn_auc_reason", "n_background_positive", "bias_size"} < set(narrow["wide"])
    assert len(narrow["wide"]) < 40


@pytest.mark.slow
def test_two_models_side_by_side_leave_out_small_identities_and_mark_doubt(printed: dict[str, Any]) -> None:
    compared = printed["side by side"]
    assert compared["large"] == compared["expected"]
    assert compared["marked"][1] > compared["marked"][0]


@pytest.mark.slow
def test_a_summary_needs_no_identities(printed: dict[str, Any]) -> None:
    narrow = printed["narrow"]
    assert narrow["overall"] == narrow["overall of identities"]
    assert len(narrow["overall"]) == 1


@pytest.mark.slow
def test_nothing_is_left_in_the_temporary_folder(printed: dict[str, Any]) -> None:
    assert printed["left"] == []


@pytest.mark.slow
def test_the_page_has_what_was_asked_for_and_says_what_it_lacks(printed: dict[str, Any]) -> None:
    report = printed["report"]
    assert report["saved"]
    assert report["same"] == [True, True]
    (line,) = re.findall("<dt>Not measured</dt>.*", report["plain"])
    assert re.findall(r"the keyword <code>(\w+)</code>", line) == ["thresholds", "templates", "label_balance"]
    assert "Not measured" not in report["whole"]
    sections = re.findall(r'<section id="(\w+)"', report["whole"])
    assert {"scores", "thresholds", "templates", "balance", "pinned"} <= set(sections)
    assert not {"against", "trends", "attribution"} & {*sections, *re.findall(r'href="#(\w+)"', report["whole"])}
    assert report["plain"].count("<svg") > 20
    assert "gate" in re.findall(r'<section class="verdict.*?</section>', report["plain"], re.DOTALL)[0]


@pytest.mark.slow
def test_names_of_the_data_are_text(printed: dict[str, Any]) -> None:
    report = printed["report"]
    for name in ("plain", "whole", "metrics", "table"):
        assert SCRIPT not in report[name]
        assert escape(SCRIPT, quote=False).replace("_", "_<wbr>") in report[name]
    assert "<script" not in report["shown"]
    assert 'sandbox="allow-scripts"' in report["shown"]


@pytest.mark.slow
def test_faults_name_what_is_wrong(printed: dict[str, Any]) -> None:
    faults = printed["faults"]
    expected = {
        "empty": "NoRows|InputError",
        "no such column": "InputError: label.*'?toxic",
        "no such file": "InputError.*none.parquet",
        "no Parquet": "InputError.*text.parquet",
        "a damaged page": "InputError.*damaged/b.parquet",
        "a table of Delta": r"InputError.*logged is a Delta table.*DeltaTable\(.*to_pyarrow_table",
        "tabs": r'InputError.*pandas.read_csv\(path, sep="\\t"\)',
        "other types": "InputError.*pandas.*Column: length",
        "objects": r'InputError: df\["thing"\]: Arrow .*slices\["b"\]',
        "no such folder": "ConfigError.*none.* does not exist",
        "no metrics": "InputError.*columns",
        "no slice": "InputError.*short",
        "twice": "InputError: df.*SCORE",
        "text as boolean": r'InputError: slices\["b"\] = "NOT language".*embedded engine',
        "dates and times": r'InputError: slices\["b"\] = "until < now\(\)".*dates',
    }
    assert {name for name, words in expected.items() if not re.search(words, faults.get(name, ""), re.DOTALL)} == set()
    assert not any(word in text for text in faults.values() for word in ("canary", "[corpus]"))


@pytest.mark.slow
def test_bands_are_identities_and_objects_are_left_out(printed: dict[str, Any]) -> None:
    odd = printed["odd"]
    assert odd["equal"]
    assert odd["bands"] == odd["sizes"]


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    """In processes that begin as copies of one that has imported what takes long and is always there."""
    calls = {
        "import biasspark.plot": ("matplotlib", [".[plot]"]),
        "biasspark.plot": ("matplotlib", [".[plot]"]),
        "biasspark.metric_table": ("matplotlib", [".[report]"]),
        "biasspark.bias_report": ("jinja2", [".[report]"]),
        "biasspark.bias_metrics": ("pyspark", [".[embedded]", ".[spark]"]),
    }
    missing = {call: library for call, (library, _) in calls.items()}
    program = f"""
import os, sys
import biasspark, pandas, pyarrow.dataset

for call, library in {missing}.items():
    assert library not in sys.modules
    if os.fork():
        os.wait()
        continue
    sys.modules[library] = None
    try:
        exec(call)
    except biasspark.ConfigError as error:
        print(call, *str(error).split(), flush=True)
    os._exit(0)
"""
    done = run_python("-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line, (call, (_, words)) in zip(done.stdout.splitlines(), calls.items(), strict=True):
        assert line.startswith(f"{call} ")
        assert all(word in line for word in words)


def test_no_engine_is_named_when_rows_come(tmp_path: Path) -> None:
    """The client of Spark alone is installed."""
    program = """
import importlib.util, sys
there = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in ("pysail", "py4j") else there(name, *more)
import biasspark, pyarrow
biasspark.bias_metrics(pyarrow.table({"x": [1]}), models="x", label="x", identities="x")
"""
    error = run_python("-c", program, cwd=tmp_path).stderr.splitlines()[-1]
    assert error.startswith("biasspark.errors.ConfigError: ")
    assert ".[embedded]" in error


def test_the_first_example_of_the_guide_needs_no_session(tmp_path: Path) -> None:
    comments = make_table(CivilRequest(rows=4000, seed=1, unannotated=0.3))
    toxic = pc.greater_equal(comments["target"], 0.5)
    pq.write_table(comments.append_column("toxic", toxic), tmp_path / "comments.parquet")
    example = next(block for block in blocks_of("python") if block.page == "docs/notebook.md")
    done = run_python(
        "-c", f"{example.text}\nprint(type(metrics).__module__, len(metrics))", cwd=tmp_path, TMPDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["pandas.core.frame", "4"]
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
