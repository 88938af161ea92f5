"""Two models side by side: the rows, their differences and their order."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import biasspark
from biasspark.errors import ConfigError, Fault, InputError
from biasspark.report.side_by_side import KEY, SORT_KEYS, Request, compare_side_by_side, is_worse, side_by_side
from tests.fixtures.two_models import HOSTILE, RUN, metrics_table, run_rows, suite_row

MODELS = ("toxicity_1", "toxicity_6")
ALIKE = (0.9, 0.5, 0.9, 0.1, 0.1)


def test_runs_are_kept_apart() -> None:
    rows = [suite_row(model, "all", "gay", ALIKE) for model in MODELS]
    metrics = metrics_table([*rows, *(row | {"bpsn_auc": 0.25} for row in rows)])
    for name, values in (("run_id", ["r1", "r1", "r2", "r2"]), ("corpus", ["civil"] * 4)):
        metrics = metrics.append_column(name, pa.array(values))
    compared = side_by_side(metrics, *MODELS)
    assert [compared.column_names[0], compared.column_names[-1]] == ["corpus", "run_id"]
    assert set(KEY) - set(compared.column_names) == {"run_date"}
    both = [(row["run_id"], row["bpsn_auc_first"], row["bpsn_auc_second"]) for row in compared.to_pylist()]
    assert both == [("r1", 0.5, 0.5), ("r2", 0.25, 0.25)]


def test_repeated_keys_are_refused() -> None:
    """A frame that is joined to itself, or several runs without the columns that keep them apart."""
    metrics = metrics_table(run_rows())
    with pytest.raises(InputError, match="toxicity_1"):
        side_by_side(pa.concat_tables([metrics, metrics]), *MODELS)
    third = metrics.filter(pc.field("model") == "another")
    assert len(third)
    assert side_by_side(pa.concat_tables([metrics, third]), *MODELS).equals(side_by_side(metrics, *MODELS))


@pytest.mark.parametrize(
    ("sort", "order", "identities"),
    [
        ("worst_auc", "lowest AUC", ["only_first", HOSTILE, "black", "gay", "empty"]),
        ("bnsp_auc", "lowest BNSP AUC", ["only_first", "gay", HOSTILE, "black", "empty"]),
        ("negative_aeg", "largest |Negative AEG|", ["black", "gay", "only_first", HOSTILE, "empty"]),
    ],
)
def test_the_worst_of_the_first_model_come_first(sort: str, order: str, identities: list[str]) -> None:
    request = Request(models=MODELS, slices=("short", "all", "a & b", "short"), sort=sort, limit=4)
    compared = compare_side_by_side(metrics_table(run_rows()), RUN, request)
    short, whole, lacking = compared.slices
    assert order in compared.describe_size(whole)
    assert ([row["identity"] for row in whole.rows], whole.n_identities) == (identities[:4], 5)
    assert (short.name, short.n_identities, lacking.name, lacking.n_identities) == ("short", 1, "a & b", 0)


def test_identities_with_few_rows_are_left_out_and_counted() -> None:
    few = suite_row("toxicity_6", "all", "gay", ALIKE) | {"n_subgroup_negative": 1, "n_subgroup_positive": 2}
    rows = [row for row in run_rows() if (row["model"], row["slice"], row["identity"]) != ("toxicity_6", "all", "gay")]
    request = Request(models=MODELS, slices=("all",), min_rows=10, limit=2)
    compared = compare_side_by_side(metrics_table([*rows, few]), RUN, request)
    (part,) = compared.slices
    assert [row["identity"] for row in part.rows] == [HOSTILE, "black"]
    assert (part.n_identities, part.n_small) == (5, 2)  # only_first has no rows of the second model
    assert all(words in compared.describe_size(part) for words in ("2 of 5", "--limit", "2 left out", "10 rows"))


def test_all_slices_are_shown_unless_some_are_named() -> None:
    compared = compare_side_by_side(metrics_table(run_rows()), RUN, Request(models=MODELS, crossed=True))
    assert [(part.name, part.n_identities) for part in compared.slices] == [("all", 6), ("a & b", 0), ("short", 1)]


def test_names_that_the_run_lacks_are_all_refused() -> None:
    request = Request(models=("toxicity_1", "toxicity_9"), slices=("long", "all"))
    with pytest.raises(InputError) as caught:
        compare_side_by_side(metrics_table(run_rows()), RUN, request)
    model, slice_name = map(str, caught.value.faults)
    assert all(name in model for name in ("toxicity_9", "another", "toxicity_1", "toxicity_6"))
    assert all(name in slice_name for name in ("long", "a & b", "short"))


def test_a_model_is_not_compared_with_itself() -> None:
    with pytest.raises(ConfigError, match='models: "m" twice'):
        Request(models=("m", "m"))


def test_faults_of_arguments_are_all_listed() -> None:
    metrics = metrics_table(run_rows())
    unnamed = metrics.set_column(metrics.column_names.index("model"), "model", pa.nulls(len(metrics), pa.string()))
    calls: tuple[tuple[pa.Table, str, str, list[str]], ...] = (
        (metrics, "m", "m", ["second", "min_rows"]),
        (metrics, "m", "n", ["first", "second", "min_rows"]),
        (unnamed, "m", "n", ["first", "second", "min_rows"]),
        (metrics.drop_columns(["slice"]), "m", "n", ["metrics", "min_rows"]),
    )
    for table, first, second, expected in calls:
        with pytest.raises(ConfigError) as caught:
            biasspark.side_by_side(table, first, second, min_rows=-1)
        assert [fault.path[0] for fault in caught.value.faults if isinstance(fault, Fault)] == expected
        assert "None" not in str(caught.value)


def compare(first: float | None, second: float | None) -> dict[str, object]:
    rows = [suite_row(model, "all", "gay", [value] * 5) for model, value in zip(MODELS, (first, second), strict=True)]
    (row,) = side_by_side(metrics_table(rows), *MODELS).to_pylist()
    return dict(row)


def test_worse_is_below_for_an_auc_and_farther_from_0_for_a_gap() -> None:
    assert {name: is_worse(compare(0.2, -0.3), name, 3) for name in SORT_KEYS} == dict.fromkeys(SORT_KEYS, True)
    assert not any(is_worse(compare(-0.3, 0.2), name, 3) for name in SORT_KEYS)


def test_what_the_digits_do_not_show_is_not_worse() -> None:
    assert [is_worse(compare(0.5, 0.496), "bpsn_auc", digits) for digits in (3, 2)] == [True, False]
    assert not is_worse(compare(0.5, 0.5), "bpsn_auc", 3)
    assert not is_worse(compare(0.5, None), "bpsn_auc", 3)
