"""What follows from a survey, without one: values in order, boundaries of ranges, cutpoints, warnings, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from biasspark.config import Label, parse_measures
from biasspark.corpus.survey import (
    MAX_ROWS_A_RANGE,
    MAX_VALUES,
    Survey,
    choose_cutpoints,
    no_positive_fault,
    order_values,
    quantiles_of,
)
from biasspark.errors import InputError
from tests.harness.least_configuration import raised_fault


def test_values_are_in_the_order_of_their_column() -> None:
    assert order_values(["10", "9", None, "-1.5"], "level", numeric=True) == ("-1.5", "9", "10")
    assert order_values(["b", "10", "é", "9", "B"], "race", numeric=False) == ("10", "9", "B", "b", "é")


def test_a_column_of_too_many_values_is_no_category() -> None:
    assert len(order_values(map(str, range(MAX_VALUES)), "many", numeric=True)) == MAX_VALUES
    fault = raised_fault(InputError, order_values, map(str, range(MAX_VALUES + 1)), "many", numeric=True)
    assert fault.path == ("identities",)
    assert all(part in str(fault) for part in ("'many'", "10,000"))


def test_boundaries_cut_a_sample_into_equal_parts_and_fewer_where_scores_repeat() -> None:
    quantiles = quantiles_of(np.arange(1, 1001) / 8, 10)
    assert quantiles.tolist() == [n * 100 / 8 for n in range(1, 10)]
    assert quantiles_of(np.array([-0.0, 3.0]), 3).tolist() == [0.0, 3.0]
    survey = Survey(1_000_001, {}, (quantiles, quantiles_of(np.zeros(50), 10), np.zeros(0)))
    assert [of_model.tolist() for of_model in survey.boundaries(2)] == [[quantiles[4]], [0.0], []]
    assert [of_model.tolist() for of_model in survey.boundaries(0)] == [quantiles[[2, 5]].tolist(), [0.0], []]
    assert (survey.chosen_ranges, Survey(1, {}, ()).chosen_ranges, Survey(10**12, {}, ()).chosen_ranges) == (3, 1, 1024)


def test_a_range_that_would_not_fit_a_worker_is_refused() -> None:
    assert Survey(2 * MAX_ROWS_A_RANGE, {}, ()).boundaries(2) == []
    fault = raised_fault(InputError, Survey(2 * MAX_ROWS_A_RANGE + 1, {}, ()).boundaries, 2)
    assert (fault.path, fault.value) == (("ranking", "ranges"), 2)


@pytest.mark.parametrize(("n_rows", "n_templates", "n_warnings"), [(199, 100, 0), (201, 101, 1), (202, 101, 0)])
def test_nearly_as_many_templates_as_rows_are_warned_of(n_rows: int, n_templates: int, n_warnings: int) -> None:
    warnings = Survey(n_rows, {}, (), n_templates=n_templates).warnings
    assert len(warnings) == n_warnings
    assert all(text.startswith("templates: ") and str(n_templates) in text for text in warnings)


def test_columns_without_values_bytes_that_are_no_utf_8_and_repeated_ids_are_warned_of() -> None:
    values = {"race": (), "sex": ("caf\ufffd",), "age": ("1",)}
    empty, bytes_, ids = Survey(1000, values, (), ids=(1000, 500)).warnings
    assert "'race'" in empty
    assert "'sex'" in bytes_
    assert 'encoding = "ISO-8859-1"' in bytes_
    assert "50%" in ids
    assert '`[corpus] duplicates = "reject"`' in ids
    assert Survey(1000, {}, (), ids=(1000, 981)).warnings == ()
    name = "comment"
    (many,) = Survey(3_000, {name: tuple(map(str, range(101)))}, ()).warnings
    assert "101" in many
    assert Survey(3_030, {name: tuple(map(str, range(101)))}, ()).warnings == ()


@pytest.mark.parametrize(
    ("extremes", "bin_edges"),
    [
        ({}, [0, 0.5, 1]),
        ({"m": (0.2, 0.9)}, [0, 0.5, 1]),
        ({"m": (-1.0, 0.9)}, [-1, -0.05, 0.9]),
        ({"m": (0.0, 3.0)}, [0, 1.5, 3]),
    ],
)
def test_cutpoints_are_thresholds_as_the_column_holds_them_and_bin_edges(
    extremes: dict[str, Any], bin_edges: list[float]
) -> None:
    parts = {"thresholds": {"at": [0.5, 0.7]}, "histograms": {"bins": 2}}
    asked: dict[str, Any] = {"label": {"column": "y"}, "models": {"m": "s", "f": "t"}, "identities": ["u"]}
    schema = StructType([StructField("s", DoubleType()), StructField("t", FloatType())])
    survey = Survey(1, {}, (), extremes)
    cutpoints = choose_cutpoints(parse_measures(asked | parts), survey, schema)
    assert cutpoints["m"].thresholds == (0.5, 0.7)
    assert cutpoints["f"].thresholds == (0.5, float(np.float32(0.7)))
    assert cutpoints["m"].bin_edges == pytest.approx(bin_edges)
    m, scores = cutpoints["m"], cutpoints["m"].scores
    assert scores.tolist() == sorted({*cutpoints["m"].thresholds, *cutpoints["m"].bin_edges})
    assert scores[m.index_of(m.thresholds)].tolist() == [0.5, 0.7]
    assert tuple(scores[m.index_of(m.bin_edges)].tolist()) == m.bin_edges
    assert choose_cutpoints(parse_measures(asked), survey, schema) == {}


def test_positive_labels_in_another_spelling_are_counted() -> None:
    fault = no_positive_fault(Label(column="y", positive=("toxic",)), {"toxic": (False, 412)})
    assert all(part in str(fault) for part in ("'y'", "412 rows", '"toxic"'))
