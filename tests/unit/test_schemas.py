"""The declared tables against the contract, written out by hand."""

from __future__ import annotations

import re

import pytest

from biasspark.tables.schemas import (
    ATTRIBUTION_CORRELATIONS,
    ATTRIBUTION_SEGMENTS,
    ATTRIBUTION_SLICES,
    AUC_CROSSES,
    BIAS_ALERTS,
    BIAS_METRICS,
    BIAS_RUNS,
    COMPARISON_ALERTS,
    EXAMPLE_ATTRIBUTIONS,
    JACKKNIFE_STATISTICS,
    LABEL_BALANCE,
    LOSS_BY_SEGMENT,
    MODEL_COMPARISONS,
    MODEL_SUMMARY,
    PAIR_SEGMENTS,
    PINNED_AUC,
    PINNED_SKEW,
    REJECTED_ROWS,
    SCORE_BLOCKS,
    SCORE_HISTOGRAMS,
    TABLES,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    THRESHOLD_SUMMARY,
    U_STATISTICS,
    Column,
    Table,
)
from biasspark.tables.schemas.declaring import columns


def measured(*names: str) -> str:
    return " ".join(
        f"{name} DOUBLE {name}_low DOUBLE {name}_high DOUBLE {name}_method STRING {name}_reason STRING"
        for name in names
    )


def rates(*names: str) -> str:
    return " ".join(
        f"{name} DOUBLE background_{name} DOUBLE {name}_gap DOUBLE {name}_gap_low DOUBLE {name}_gap_high DOUBLE"
        for name in names
    )


def bounded(*names: str, kind: str = "DOUBLE") -> str:
    return " ".join(f"{name}_at_least {kind} {name}_at_most {kind}" for name in names)


SUITE = ("subgroup_auc", "bpsn_auc", "bnsp_auc", "background_auc", "negative_aeg", "positive_aeg")
SUMMED_UP = " ".join(
    [
        bounded("auc", "auc_variance"),
        *(
            f"{bounded(f'{name}_min')} {name}_min_contenders ARRAY<STRING> "
            f"{bounded(f'{name}_max', f'{name}_power_mean')}"
            for name in SUITE[:3]
        ),
        *(f"{bounded(f'{name}_max_abs')} {name}_max_abs_contenders ARRAY<STRING>" for name in SUITE[4:]),
        bounded("competition_score", "pinned_auc_equality_difference"),
    ]
)
ESTIMATES = """
    rule STRING predicate STRING n_train BIGINT mean_train DOUBLE n_honest BIGINT mean_honest DOUBLE
    mean_honest_low DOUBLE mean_honest_high DOUBLE p_value DOUBLE p_adjusted DOUBLE p_train_honest DOUBLE
    false_discovery BOOLEAN found BOOLEAN loss_share DOUBLE p_chance DOUBLE p_chance_adjusted DOUBLE confirmed BOOLEAN
"""
CONTRACT = {
    U_STATISTICS: f"""
        run_date DATE corpus STRING model STRING slice STRING identity STRING low_cell STRING high_cell STRING
        crossed BOOLEAN n_low BIGINT n_high BIGINT u_doubled DECIMAL(38,0) low_square_sum DECIMAL(38,0)
        high_square_sum DECIMAL(38,0) auc DOUBLE auc_variance DOUBLE reason STRING
        {bounded("u_doubled", "low_square_sum", "high_square_sum", kind="DECIMAL(38,0)")}
        {bounded("auc", "auc_variance")} run_id STRING
    """,
    BIAS_METRICS: f"""
        run_date DATE corpus STRING model STRING slice STRING identity STRING crossed BOOLEAN n_subgroup_negative BIGINT
        n_subgroup_positive BIGINT n_background_negative BIGINT n_background_positive BIGINT
        subgroup_positive_rate DOUBLE background_positive_rate DOUBLE
        {measured(*SUITE)} {bounded(*SUITE)}
        run_id STRING
    """,
    MODEL_SUMMARY: f"""
        run_date DATE corpus STRING model STRING slice STRING n_negative BIGINT n_positive BIGINT
        auc DOUBLE auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE auc_method STRING auc_reason STRING
        subgroup_auc_min DOUBLE subgroup_auc_min_identity STRING subgroup_auc_max DOUBLE subgroup_auc_power_mean DOUBLE
        bpsn_auc_min DOUBLE bpsn_auc_min_identity STRING bpsn_auc_max DOUBLE bpsn_auc_power_mean DOUBLE
        bnsp_auc_min DOUBLE bnsp_auc_min_identity STRING bnsp_auc_max DOUBLE bnsp_auc_power_mean DOUBLE
        negative_aeg_max_abs DOUBLE negative_aeg_max_abs_identity STRING
        positive_aeg_max_abs DOUBLE positive_aeg_max_abs_identity STRING
        n_identities_undefined BIGINT competition_score DOUBLE pinned_auc_equality_difference DOUBLE
        {SUMMED_UP} run_id STRING
    """,
    PINNED_AUC: f"""
        run_date DATE corpus STRING model STRING slice STRING identity STRING crossed BOOLEAN pinned_auc DOUBLE
        background_weight DOUBLE subgroup_weight DOUBLE bpsn_weight DOUBLE bnsp_weight DOUBLE
        background_auc DOUBLE subgroup_auc DOUBLE bpsn_auc DOUBLE bnsp_auc DOUBLE overall_auc DOUBLE
        sampled_mean DOUBLE sampled_sd DOUBLE trials INT reason STRING
        {bounded("pinned_auc", "background_auc", "subgroup_auc", "bpsn_auc", "bnsp_auc", "overall_auc")} run_id STRING
    """,
    THRESHOLD_RATES: f"""
        run_date DATE corpus STRING model STRING slice STRING identity STRING threshold DOUBLE crossed BOOLEAN
        n_true_positive BIGINT n_false_positive BIGINT n_true_negative BIGINT n_false_negative BIGINT
        background_n_true_positive BIGINT background_n_false_positive BIGINT
        background_n_true_negative BIGINT background_n_false_negative BIGINT
        {rates("tpr", "fpr", "tnr", "fnr", "precision", "selection_rate")} reason STRING run_id STRING
    """,
    THRESHOLD_SUMMARY: """
        run_date DATE corpus STRING model STRING slice STRING threshold DOUBLE fpr DOUBLE fnr DOUBLE
        false_positive_equality_difference DOUBLE false_negative_equality_difference DOUBLE run_id STRING
    """,
    SCORE_HISTOGRAMS: """
        run_date DATE corpus STRING model STRING slice STRING identity STRING cell STRING bin INT
        crossed BOOLEAN bin_low DOUBLE bin_high DOUBLE n_rows BIGINT run_id STRING
    """,
    TEMPLATE_SCORES: """
        run_date DATE corpus STRING model STRING template STRING identity STRING n_rows BIGINT mean_score DOUBLE
        sd_score DOUBLE reason STRING run_id STRING
    """,
    LABEL_BALANCE: """
        run_date DATE corpus STRING identity STRING bucket STRING length_low INT length_high INT n_rows BIGINT
        n_positive BIGINT positive_rate DOUBLE overall_positive_rate DOUBLE n_negatives_to_add BIGINT reason STRING
        run_id STRING
    """,
    BIAS_ALERTS: f"""
        run_date DATE corpus STRING rule STRING model STRING slice STRING identity STRING metric STRING value DOUBLE
        value_low DOUBLE value_high DOUBLE bound DOUBLE baseline_run_id STRING outcome STRING message STRING
        severity STRING bound_kind STRING baseline_value DOUBLE change DOUBLE change_low DOUBLE change_high DOUBLE
        p_violation DOUBLE p_compliance DOUBLE p_violation_adjusted DOUBLE p_compliance_adjusted DOUBLE
        {bounded("value", "baseline_value", "change")} paired BOOLEAN threshold DOUBLE
        decided BOOLEAN run_id STRING
    """,
    JACKKNIFE_STATISTICS: """
        run_date DATE corpus STRING model STRING slice STRING identity STRING low_cell STRING high_cell STRING
        crossed BOOLEAN n_low BIGINT n_high BIGINT u_doubled DECIMAL(38,0)
        n_low_left ARRAY<BIGINT> n_high_left ARRAY<BIGINT> u_doubled_left ARRAY<DECIMAL(38,0)> run_id STRING
    """,
    COMPARISON_ALERTS: """
        run_date DATE corpus STRING rule STRING model STRING baseline_model STRING slice STRING identity STRING
        metric STRING value DOUBLE bound DOUBLE outcome STRING message STRING severity STRING bound_kind STRING
        baseline_value DOUBLE change DOUBLE change_low DOUBLE change_high DOUBLE p_violation DOUBLE p_compliance DOUBLE
        p_violation_adjusted DOUBLE p_compliance_adjusted DOUBLE decided BOOLEAN run_id STRING
    """,
    MODEL_COMPARISONS: """
        run_date DATE corpus STRING slice STRING identity STRING metric STRING model STRING baseline_model STRING
        crossed BOOLEAN n_low BIGINT n_high BIGINT value DOUBLE baseline_value DOUBLE difference DOUBLE
        difference_low DOUBLE difference_high DOUBLE p_value DOUBLE p_adjusted DOUBLE verdict STRING method STRING
        n_groups INT run_id STRING
    """,
    PINNED_SKEW: """
        run_date DATE corpus STRING model STRING slice STRING identity STRING cell STRING fraction DOUBLE n_rows BIGINT
        n_dropped BIGINT trials INT pinned_auc DOUBLE pinned_auc_skewed DOUBLE
        pinned_auc_sampled_mean DOUBLE pinned_auc_sampled_sd DOUBLE
        subgroup_auc DOUBLE subgroup_auc_sampled_mean DOUBLE subgroup_auc_sampled_sd DOUBLE
        bpsn_auc DOUBLE bpsn_auc_sampled_mean DOUBLE bpsn_auc_sampled_sd DOUBLE
        bnsp_auc DOUBLE bnsp_auc_sampled_mean DOUBLE bnsp_auc_sampled_sd DOUBLE run_id STRING
    """,
    EXAMPLE_ATTRIBUTIONS: """
        run_date DATE corpus STRING model STRING slice STRING row_id STRING label BOOLEAN score DOUBLE
        n_opposite BIGINT ordered_doubled BIGINT attribution DOUBLE normalized_attribution DOUBLE run_id STRING
    """,
    ATTRIBUTION_CORRELATIONS: """
        run_date DATE corpus STRING model STRING slice STRING attribution STRING loss STRING pearson DOUBLE
        n_rows BIGINT run_id STRING
    """,
    ATTRIBUTION_SEGMENTS: f"""
        run_date DATE corpus STRING model STRING baseline_model STRING slice STRING target STRING node_id INT
        parent_id INT depth INT is_leaf BOOLEAN {ESTIMATES} run_id STRING
    """,
    ATTRIBUTION_SLICES: f"""
        run_date DATE corpus STRING model STRING slice STRING rank INT score DOUBLE {ESTIMATES}
        run_id STRING
    """,
    PAIR_SEGMENTS: """
        run_date DATE corpus STRING model STRING slice STRING node_id INT parent_id INT depth INT is_leaf BOOLEAN
        negative_rule STRING positive_rule STRING negative_predicate STRING positive_predicate STRING
        n_pairs_train BIGINT mean_train DOUBLE n_negatives_honest BIGINT n_positives_honest BIGINT mean_honest DOUBLE
        mean_honest_low DOUBLE mean_honest_high DOUBLE p_value DOUBLE p_adjusted DOUBLE p_train_honest DOUBLE
        false_discovery BOOLEAN found BOOLEAN p_chance DOUBLE p_chance_adjusted DOUBLE confirmed BOOLEAN run_id STRING
    """,
    AUC_CROSSES: """
        run_date DATE corpus STRING model STRING slice STRING grouping STRING positive_group STRING
        negative_group STRING n_positive BIGINT n_negative BIGINT n_pairs DECIMAL(38,0) ordered_doubled DECIMAL(38,0)
        auc DOUBLE auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE auc_method STRING headroom_pairs DOUBLE
        headroom_share DOUBLE run_id STRING
    """,
    LOSS_BY_SEGMENT: """
        run_date DATE corpus STRING model STRING slice STRING segment STRING predicate STRING n_rows BIGINT
        n_positive BIGINT cross_entropy DOUBLE cross_entropy_low DOUBLE cross_entropy_high DOUBLE gini_impurity DOUBLE
        gini_impurity_low DOUBLE gini_impurity_high DOUBLE auc DOUBLE auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE
        auc_method STRING mean_normalized_attribution DOUBLE mean_normalized_attribution_low DOUBLE
        mean_normalized_attribution_high DOUBLE run_id STRING
    """,
    REJECTED_ROWS: "run_date DATE corpus STRING row_id STRING model STRING reason STRING run_id STRING",
    BIAS_RUNS: """
        run_date DATE corpus STRING job STRING status STRING n_rows BIGINT n_rejected BIGINT rejects MAP<STRING,BIGINT>
        warnings ARRAY<STRING> config STRING config_hash STRING code_version STRING spark_version STRING
        started_at TIMESTAMP published_at TIMESTAMP window_start DATE merged_run_ids ARRAY<STRING> run_id STRING
    """,
    SCORE_BLOCKS: """
        run_date DATE corpus STRING model STRING slice STRING score_range INT part INT state_key STRING
        boundaries ARRAY<DOUBLE> block BINARY run_id STRING
    """,
}
KEYS = {
    U_STATISTICS: ("model", "slice", "identity", "low_cell", "high_cell"),
    BIAS_METRICS: ("model", "slice", "identity"),
    MODEL_SUMMARY: ("model", "slice"),
    PINNED_AUC: ("model", "slice", "identity"),
    THRESHOLD_RATES: ("model", "slice", "identity", "threshold"),
    THRESHOLD_SUMMARY: ("model", "slice", "threshold"),
    SCORE_HISTOGRAMS: ("model", "slice", "identity", "cell", "bin"),
    TEMPLATE_SCORES: ("model", "template", "identity"),
    LABEL_BALANCE: ("identity", "bucket"),
    BIAS_ALERTS: ("rule", "model", "slice", "identity", "metric"),
    JACKKNIFE_STATISTICS: ("model", "slice", "identity", "low_cell", "high_cell"),
    COMPARISON_ALERTS: ("rule", "model", "baseline_model", "slice", "identity", "metric"),
    PINNED_SKEW: ("model", "slice", "identity", "cell"),
    MODEL_COMPARISONS: ("slice", "identity", "metric", "model", "baseline_model"),
    EXAMPLE_ATTRIBUTIONS: ("model", "slice", "row_id"),
    ATTRIBUTION_CORRELATIONS: ("model", "slice", "attribution", "loss"),
    ATTRIBUTION_SEGMENTS: ("model", "baseline_model", "slice", "target", "node_id"),
    ATTRIBUTION_SLICES: ("model", "slice", "rank"),
    PAIR_SEGMENTS: ("model", "slice", "node_id"),
    AUC_CROSSES: ("model", "slice", "grouping", "positive_group", "negative_group"),
    LOSS_BY_SEGMENT: ("model", "slice", "segment"),
    REJECTED_ROWS: ("row_id", "model", "reason"),
    BIAS_RUNS: ("job",),
    SCORE_BLOCKS: ("model", "slice", "score_range", "part"),
}
OF_A_WINDOW = (
    *(U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, PINNED_AUC),
    *(THRESHOLD_RATES, THRESHOLD_SUMMARY, SCORE_HISTOGRAMS),
)
for nightly in OF_A_WINDOW:  # a window has the tables of a night, told apart by its first night
    window = TABLES[f"window_{nightly.name}"]
    last = KEYS[nightly][-1]
    words = CONTRACT[nightly].split()
    after = words.index(last) + 2
    CONTRACT[window] = " ".join([*words[:4], "window_start DATE", *words[4:after], "n_nights INT", *words[after:]])
    KEYS[window] = ("window_start", *KEYS[nightly])


@pytest.mark.parametrize("table", CONTRACT, ids=lambda table: table.name)
def test_columns_types_and_order_are_those_of_the_contract(table: Table) -> None:
    words = CONTRACT[table].split()
    assert [(c.name, c.type) for c in table.columns] == list(zip(words[::2], words[1::2], strict=True))
    assert table.key_columns == KEYS[table]


def test_every_table_is_in_the_contract_by_its_name() -> None:
    assert {name: table.name for name, table in TABLES.items()} == {table.name: table.name for table in CONTRACT}


@pytest.mark.parametrize("table", CONTRACT, ids=lambda table: table.name)
def test_value_columns_are_those_that_a_stage_computes(table: Table) -> None:
    assert table.names == ("run_date", "corpus", *table.value_columns, "run_id")


def test_only_rows_whose_ids_repeat_may_repeat_a_key() -> None:
    assert {table.name for table in TABLES.values() if not table.unique} == {"rejected_rows", "example_attributions"}


@pytest.mark.parametrize("table", CONTRACT, ids=lambda table: table.name)
def test_a_comment_is_a_sentence_that_every_metastore_keeps(table: Table) -> None:
    for column in table.columns:
        assert 0 < len(column.comment) <= 255, column
        assert column.comment.endswith("."), column
        assert not set(";'\"\n\\") & set(column.comment), column
        assert "  " not in column.comment, column


@pytest.mark.parametrize("table", CONTRACT, ids=lambda table: table.name)
def test_a_table_says_what_a_row_is(table: Table) -> None:
    assert table.comment.endswith(".")
    assert not set(";'\"\n\\") & set(table.comment)


@pytest.mark.parametrize("table", CONTRACT, ids=lambda table: table.name)
def test_schema_has_types_and_comments_and_allows_null(table: Table) -> None:
    schema = table.schema
    assert [(f.name, f.dataType.simpleString().upper()) for f in schema] == [(c.name, c.type) for c in table.columns]
    assert [f.metadata for f in schema] == [{"comment": c.comment} for c in table.columns]
    assert all(f.nullable for f in schema)


@pytest.mark.parametrize("table", CONTRACT, ids=lambda table: table.name)
def test_a_double_says_its_range_and_when_it_is_null(table: Table) -> None:
    for column in table.columns:
        if column.type == "DOUBLE":
            assert re.search(r"\d (to|or (more|less))", column.comment), column
            assert "NULL" in column.comment, column


def test_pinned_auc_comes_with_the_warning_of_its_authors() -> None:
    summed_up = next(c.comment for c in MODEL_SUMMARY.columns if c.name == "pinned_auc_equality_difference")
    single = next(c.comment for c in PINNED_AUC.columns if c.name == "pinned_auc")
    skewed = [c.comment for c in PINNED_SKEW.columns if c.name.startswith("pinned_auc")]
    assert len(skewed) == 4
    for comment in (summed_up, single, PINNED_AUC.comment, *skewed):
        assert "advise against it: it moves with the class balance" in comment


def test_columns_reads_a_declaration_over_several_lines() -> None:
    declared = columns("""
        n BIGINT: Rows, and then
            some more.
        shares MAP<STRING,BIGINT>: By reason: all of them.
    """)
    assert declared == (
        Column("n", "BIGINT", "Rows, and then some more."),
        Column("shares", "MAP<STRING,BIGINT>", "By reason: all of them."),
    )


def test_columns_refuses_what_begins_with_no_column() -> None:
    with pytest.raises(IndexError):
        columns("    only words")
