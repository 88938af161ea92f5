"""Small-cell suppression and values that rest on too few rows, in every table of the suite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biasspark.config import MinimumCellRows, Privacy
from biasspark.metrics import suppression
from biasspark.metrics.pinned import pinned_aucs
from biasspark.metrics.suite import SUITE, bias_metrics
from biasspark.metrics.summary import model_summary
from biasspark.metrics.suppression import require_rows, suppress_statistics
from biasspark.metrics.u_statistics import UStatistics, u_statistics
from tests.oracle.counts import count_corpora

LEAST = 20
KNOWN = ("model", "slice", "identity", "low_cell", "high_cell", "crossed", "overall_auc", "trials")


@pytest.fixture(scope="module")
def statistics() -> UStatistics:
    """An identity of a third of the rows, one of five whose positives score lowest, and a slice of twelve rows."""
    rng, n = np.random.default_rng(7), 400
    label, common = rng.random(n) < 0.4, (np.arange(n) % 3 == 0).astype(float)
    rare = (np.arange(n) % 80 == 5).astype(float)
    score = rng.normal(np.where(label, 1.5, 0), 1) - 9.0 * (label & (rare == 1))
    identities = {"common": common, "rare": rare, "nearly all": 1 - rare, "everybody": np.ones(n)}
    few = {name: inside[:12] for name, inside in identities.items()}
    return u_statistics(
        count_corpora({("m", "all"): (score, label, identities), ("m", "few"): (score[:12], label[:12], few)})
    )


def tables_of(statistics: UStatistics) -> dict[str, list[dict[str, Any]]]:
    tables = {
        "u_statistics": statistics.table(),
        "bias_metrics": bias_metrics(statistics, 0.95),
        "pinned_auc": pinned_aucs(statistics),
        "model_summary": model_summary(statistics, 0.95),
    }
    return {name: table.to_pylist() for name, table in tables.items()}


def test_small_groups_are_withheld_in_every_table(statistics: UStatistics) -> None:
    """Those of a small background, too; nobody outside reveals nobody. In a slice of twelve rows all are small."""
    tables = tables_of(suppress_statistics(statistics, Privacy(min_group_rows=LEAST)))
    n_hidden = 0
    for name in ("u_statistics", "bias_metrics", "pinned_auc"):
        for row in tables[name]:
            reasons = {value for column, value in row.items() if column.endswith("reason")}
            numbers = {
                value
                for column, value in row.items()
                if column not in KNOWN and not column.endswith(("reason", "method"))
            }
            hidden = row["slice"] == "few" or row["identity"] in ("rare", "nearly all")
            assert (numbers == {None} and reasons == {"withheld"}) == hidden, row
            n_hidden += hidden
    assert n_hidden == (2 + 4) * (6 + 1 + 1) + 1
    all_rows, few = tables["model_summary"]
    assert (all_rows["bpsn_auc_min_identity"], all_rows["n_identities_undefined"]) == ("common", 3)
    assert [few[name] for name in ("n_negative", "auc", "auc_reason")] == [None, None, "withheld"]
    assert few["bpsn_auc_min_identity"] is few["competition_score"] is few["pinned_auc_equality_difference"] is None


def test_without_suppression_the_smallest_group_is_the_worst(statistics: UStatistics) -> None:
    tables = tables_of(suppress_statistics(statistics, None))
    assert tables["model_summary"][0]["bnsp_auc_min_identity"] == "rare"
    assert tables == tables_of(statistics)


def test_a_metric_needs_its_least_rows(statistics: UStatistics) -> None:
    evidence = MinimumCellRows(min_rows=3, metrics={"bnsp_auc": 100, "auc": 10_000})
    plain, needed = tables_of(statistics), tables_of(require_rows(statistics, evidence))

    def row_of(tables: dict[str, list[dict[str, Any]]], name: str, identity: str = "common") -> dict[str, Any]:
        return next(row for row in tables[name] if row["slice"] == "all" and row.get("identity", identity) == identity)

    row, known = (row_of(tables, "bias_metrics") for tables in (needed, plain))
    bnsp = (row["bnsp_auc"], row["bnsp_auc_reason"], row["bnsp_auc_method"])
    assert bnsp == (None, "below_minimum_rows", "none")
    assert row["bpsn_auc"] == known["bpsn_auc"]
    for table, count in (("bias_metrics", "n_subgroup_positive"), ("u_statistics", "u_doubled")):  # they stay
        assert [row[count] for row in needed[table]] == [row[count] for row in plain[table]]
    overall, pinned = row_of(needed, "model_summary"), row_of(needed, "pinned_auc")
    assert (overall["auc"], overall["auc_reason"]) == (None, "below_minimum_rows")
    assert pinned["reason"] == "below_minimum_rows"
    assert {pinned[name] for name in ("overall_auc", "known_auc", "pinned_auc", "bnsp_weight")} == {None}
    assert require_rows(statistics, None) is statistics
    # An empty cell says so itself.
    assert row_of(needed, "bias_metrics", "everybody")["bpsn_auc_reason"] == "no_background_positives"


def test_of_two_metrics_of_a_pair_either_needs_its_rows(
    statistics: UStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression, "SUITE", (*SUITE, SUITE[1]._replace(name="twin")))
    evidence = MinimumCellRows(min_rows=0, metrics={"bpsn_auc": 10_000})
    assert np.isnan(require_rows(statistics, evidence).auc[SUITE[1].pair]).all()
