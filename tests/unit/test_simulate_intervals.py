"""The simulation behind the choice of intervals, by what it left behind."""

from __future__ import annotations

from tests.kept_simulations import read_kept


def test_the_chosen_rule_covers_as_no_other_choice_does() -> None:
    kept = read_kept("interval_coverage.json")
    rules = kept["summary"]["assumed, small cell of 10 and more"]
    chosen = rules[kept["chosen"]]
    assert chosen["share_below_0.94"] == rules["both joined, the bound of every choice"]["share_below_0.94"] < 0.02
    assert chosen["min"] > 0.9
    assert chosen["median_width_over_wald_from_300_rows"] < 1.01
