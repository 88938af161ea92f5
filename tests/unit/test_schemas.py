"""The declared tables, compared with the contract, which is written by hand."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from biasspark.tables import schemas
from biasspark.tables.schemas import TABLES, Column, Table, columns
from biasspark.tables.spark_schemas import spark_schema


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


SUITE = ("subgroup_auc", "bpsn_auc", "bnsp_auc", "background_auc", "negative_aeg", "positive_aeg")
ESTIMATES = """
    rule STRING predicate STRING n_train BIGINT mean_train DOUBLE n_honest BIGINT mean_honest DOUBLE
    mean_honest_low DOUBLE mean_honest_high DOUBLE p_value DOUBLE p_adjusted DOUBLE p_train_honest DOUBLE
    false_discovery BOOLEAN found BOOLEAN loss_share DOUBLE p_chance DOUBLE p_chance_adjusted DOUBLE confirmed BOOLEAN
"""
CONTRACT = {
    "u_statistics": """
        model STRING slice STRING identity STRING low_cell STRING high_cell STRING |
        crossed BOOLEAN n_low BIGINT n_high BIGINT u_doubled DECIMAL(38,0) low_square_sum DECIMAL(38,0)
        high_square_sum DECIMAL(38,0) auc DOUBLE auc_variance DOUBLE reason STRING
    """,
    "bias_metrics": f"""
        model STRING slice STRING identity STRING |
        crossed BOOLEAN subgroup_size BIGINT n_subgroup_negative BIGINT n_subgroup_positive BIGINT
        n_background_negative BIGINT n_background_positive BIGINT subgroup_positive_rate DOUBLE
        background_positive_rate DOUBLE {measured(*SUITE)} bias STRING bias_size STRING
    """,
    "model_summary": """
        model STRING slice STRING |
        n_negative BIGINT n_positive BIGINT auc DOUBLE auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE
        auc_method STRING auc_reason STRING subgroup_auc_min DOUBLE subgroup_auc_min_identity STRING
        subgroup_auc_max DOUBLE subgroup_auc_power_mean DOUBLE bpsn_auc_min DOUBLE bpsn_auc_min_identity STRING
        bpsn_auc_max DOUBLE bpsn_auc_power_mean DOUBLE bnsp_auc_min DOUBLE bnsp_auc_min_identity STRING
        bnsp_auc_max DOUBLE bnsp_auc_power_mean DOUBLE negative_aeg_max_abs DOUBLE
        negative_aeg_max_abs_identity STRING positive_aeg_max_abs DOUBLE positive_aeg_max_abs_identity STRING
        n_identities_undefined BIGINT competition_score DOUBLE pinned_auc_equality_difference DOUBLE
    """,
    "pinned_auc": """
        model STRING slice STRING identity STRING |
        crossed BOOLEAN pinned_auc DOUBLE background_weight DOUBLE subgroup_weight DOUBLE bpsn_weight DOUBLE
        bnsp_weight DOUBLE background_auc DOUBLE subgroup_auc DOUBLE bpsn_auc DOUBLE bnsp_auc DOUBLE
        overall_auc DOUBLE known_auc DOUBLE sampled_mean DOUBLE sampled_sd DOUBLE trials INT reason STRING
    """,
    "threshold_rates": f"""
        model STRING slice STRING identity STRING threshold DOUBLE |
        crossed BOOLEAN n_true_positive BIGINT n_false_positive BIGINT n_true_negative BIGINT n_false_negative BIGINT
        background_n_true_positive BIGINT background_n_false_positive BIGINT background_n_true_negative BIGINT
        background_n_false_negative BIGINT {rates("tpr", "fpr", "tnr", "fnr", "precision", "selection_rate")}
        reason STRING
    """,
    "threshold_summary": """
        model STRING slice STRING threshold DOUBLE |
        fpr DOUBLE fnr DOUBLE false_positive_equality_difference DOUBLE false_negative_equality_difference DOUBLE
    """,
    "score_histograms": """
        model STRING slice STRING identity STRING cell STRING bin INT |
        crossed BOOLEAN bin_low DOUBLE bin_high DOUBLE n_rows BIGINT
    """,
    "template_scores": """
        model STRING template STRING identity STRING |
        n_rows BIGINT mean_score DOUBLE sd_score DOUBLE reason STRING
    """,
    "label_balance": """
        identity STRING bucket STRING |
        length_low INT length_high INT n_rows BIGINT n_positive BIGINT positive_rate DOUBLE
        overall_positive_rate DOUBLE n_negatives_to_add BIGINT reason STRING
    """,
    "training_balance": """
        model STRING identity STRING bucket STRING |
        n_added BIGINT length_low INT length_high INT n_rows BIGINT n_positive BIGINT positive_rate DOUBLE
        overall_positive_rate DOUBLE n_negatives_to_add BIGINT reason STRING
    """,
    "bias_alerts": """
        rule STRING model STRING slice STRING identity STRING metric STRING |
        value DOUBLE value_low DOUBLE value_high DOUBLE bound DOUBLE baseline_run_id STRING outcome STRING
        message STRING severity STRING bound_kind STRING baseline_value DOUBLE change DOUBLE change_low DOUBLE
        change_high DOUBLE p_violation DOUBLE p_compliance DOUBLE p_violation_adjusted DOUBLE
        p_compliance_adjusted DOUBLE paired BOOLEAN threshold DOUBLE decided BOOLEAN
    """,
    "jackknife_statistics": """
        model STRING slice STRING identity STRING low_cell STRING high_cell STRING |
        crossed BOOLEAN n_low BIGINT n_high BIGINT u_doubled DECIMAL(38,0) n_low_left ARRAY<BIGINT>
        n_high_left ARRAY<BIGINT> u_doubled_left ARRAY<DECIMAL(38,0)>
    """,
    "comparison_alerts": """
        rule STRING model STRING baseline_model STRING slice STRING identity STRING metric STRING |
        value DOUBLE bound DOUBLE outcome STRING message STRING severity STRING bound_kind STRING
        baseline_value DOUBLE change DOUBLE change_low DOUBLE change_high DOUBLE p_violation DOUBLE
        p_compliance DOUBLE p_violation_adjusted DOUBLE p_compliance_adjusted DOUBLE decided BOOLEAN
    """,
    "model_comparisons": """
        slice STRING identity STRING metric STRING model STRING baseline_model STRING |
        crossed BOOLEAN n_low BIGINT n_high BIGINT value DOUBLE baseline_value DOUBLE difference DOUBLE
        difference_low DOUBLE difference_high DOUBLE p_value DOUBLE p_adjusted DOUBLE verdict STRING method STRING
        n_groups INT
    """,
    "pinned_skew": """
        model STRING slice STRING identity STRING cell STRING |
        skewed_identity STRING fraction DOUBLE n_rows BIGINT n_dropped BIGINT trials INT pinned_auc DOUBLE
        pinned_auc_skewed DOUBLE pinned_auc_sampled_mean DOUBLE pinned_auc_sampled_sd DOUBLE subgroup_auc DOUBLE
        subgroup_auc_sampled_mean DOUBLE subgroup_auc_sampled_sd DOUBLE bpsn_auc DOUBLE bpsn_auc_sampled_mean DOUBLE
        bpsn_auc_sampled_sd DOUBLE bnsp_auc DOUBLE bnsp_auc_sampled_mean DOUBLE bnsp_auc_sampled_sd DOUBLE
    """,
    "example_attributions": """
        model STRING slice STRING row_id STRING |
        label BOOLEAN score DOUBLE n_opposite BIGINT ordered_doubled BIGINT attribution DOUBLE
        normalized_attribution DOUBLE
    """,
    "attribution_correlations": """
        model STRING slice STRING attribution STRING loss STRING |
        pearson DOUBLE n_rows BIGINT
    """,
    "attribution_segments": f"""
        model STRING baseline_model STRING slice STRING target STRING node_id INT |
        parent_id INT depth INT is_leaf BOOLEAN {ESTIMATES}
    """,
    "attribution_slices": f"""
        model STRING slice STRING rank INT |
        score DOUBLE {ESTIMATES}
    """,
    "pair_segments": """
        model STRING slice STRING node_id INT |
        parent_id INT depth INT is_leaf BOOLEAN negative_rule STRING positive_rule STRING negative_predicate STRING
        positive_predicate STRING n_pairs_train BIGINT mean_train DOUBLE n_negatives_honest BIGINT
        n_positives_honest BIGINT mean_honest DOUBLE mean_honest_low DOUBLE mean_honest_high DOUBLE p_value DOUBLE
        p_adjusted DOUBLE p_train_honest DOUBLE false_discovery BOOLEAN found BOOLEAN p_chance DOUBLE
        p_chance_adjusted DOUBLE confirmed BOOLEAN
    """,
    "named_pairs": """
        model STRING slice STRING pair STRING |
        negative_predicate STRING positive_predicate STRING n_positive BIGINT n_negative BIGINT n_pairs DECIMAL(38,0)
        ordered_doubled DECIMAL(38,0) auc DOUBLE auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE auc_method STRING
        headroom_pairs DOUBLE headroom_share DOUBLE
    """,
    "auc_crosses": """
        model STRING slice STRING grouping STRING positive_group STRING negative_group STRING |
        n_positive BIGINT n_negative BIGINT n_pairs DECIMAL(38,0) ordered_doubled DECIMAL(38,0) auc DOUBLE
        auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE auc_method STRING headroom_pairs DOUBLE
        headroom_share DOUBLE
    """,
    "loss_by_segment": """
        model STRING slice STRING segment STRING |
        predicate STRING n_rows BIGINT n_positive BIGINT cross_entropy DOUBLE cross_entropy_low DOUBLE
        cross_entropy_high DOUBLE gini_impurity DOUBLE gini_impurity_low DOUBLE gini_impurity_high DOUBLE auc DOUBLE
        auc_low DOUBLE auc_high DOUBLE auc_variance DOUBLE auc_method STRING mean_normalized_attribution DOUBLE
        mean_normalized_attribution_low DOUBLE mean_normalized_attribution_high DOUBLE
    """,
    "rejected_rows": "row_id STRING model STRING reason STRING |",
    "bias_runs": """
        job STRING |
        status STRING n_rows BIGINT n_rejected BIGINT rejects MAP<STRING,BIGINT> warnings ARRAY<STRING> config STRING
        config_hash STRING code_version STRING spark_version STRING started_at TIMESTAMP published_at TIMESTAMP
        window_start DATE merged_run_ids ARRAY<STRING> table_rows MAP<STRING,BIGINT> copied_from_run_id STRING
        accepts_run_id STRING accepted_by STRING acceptance_note STRING
    """,
    "score_blocks": """
        model STRING slice STRING score_range INT part INT |
        state_key STRING boundaries ARRAY<DOUBLE> block BINARY
    """,
}
"""By table the rest of its key after run_date and corpus, and its values before run_id."""
OF_A_WINDOW = (
    *("u_statistics", "bias_metrics", "model_summary", "pinned_auc"),
    *("threshold_rates", "threshold_summary", "score_histograms"),
)
for name in OF_A_WINDOW:  # a window has the tables of a run, with its first date in the key
    key, _, values = CONTRACT[name].partition("|")
    CONTRACT[f"window_{name}"] = f"window_start DATE {key} | n_nights INT {values}"
EVERY_TABLE = pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)


def parse(text: str) -> list[tuple[str, str]]:
    words = text.split()
    return list(zip(words[::2], words[1::2], strict=True))


@EVERY_TABLE
def test_columns_types_and_order_are_those_of_the_contract(table: Table) -> None:
    key, values = map(parse, CONTRACT[table.name].split("|"))
    assert [(column.name, column.type) for column in table.columns] == [
        *(("run_date", "DATE"), ("corpus", "STRING"), *key, *values, ("run_id", "STRING"))
    ]
    assert table.key_columns == tuple(name for name, _ in key)
    assert table.value_columns == tuple(name for name, _ in (*key, *values))


def test_every_table_is_in_the_contract_by_its_name() -> None:
    assert {name: table.name for name, table in TABLES.items()} == {name: name for name in CONTRACT}


def test_only_rows_whose_ids_repeat_may_repeat_a_key() -> None:
    assert {table.name for table in TABLES.values() if not table.unique} == {"rejected_rows", "example_attributions"}


@EVERY_TABLE
def test_a_comment_is_a_sentence_that_every_metastore_keeps(table: Table) -> None:
    for comment in (table.comment, *(column.comment for column in table.columns)):
        assert comment.endswith("."), comment
        assert not set(";'\"\n\\") & set(comment), comment
        assert "  " not in comment, comment
    assert all(len(column.comment) <= 255 for column in table.columns)


@EVERY_TABLE
def test_the_schemas_of_spark_and_arrow_have_types_and_allow_null(table: Table) -> None:
    schema = spark_schema(table)
    assert [(f.name, f.dataType.simpleString().upper()) for f in schema] == [(c.name, c.type) for c in table.columns]
    assert [f.metadata for f in schema] == [{"comment": c.comment} for c in table.columns]
    assert all(f.nullable for f in schema)
    assert [field for field in table.full_arrow_schema if field.name in table.value_columns] == list(table.arrow_schema)


@EVERY_TABLE
def test_a_double_says_its_range_and_when_it_is_null(table: Table) -> None:
    for column in table.columns:
        if column.type == "DOUBLE":
            assert re.search(r"\d (to|or (more|less))", column.comment), column
            assert "NULL" in column.comment, column


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


@pytest.mark.parametrize("declarations", ["    only words", "a INT: one.\nb int: two.", "a INT: one.\nmore"])
def test_columns_refuses_lines_that_declare_no_column(declarations: str) -> None:
    with pytest.raises(ValueError, match="declares no column"):
        columns(declarations)


def test_every_text_of_the_declarations_is_used() -> None:
    source = Path(schemas.__file__)
    declarations = source.with_name("tables.toml").read_text("utf-8")
    written = declarations + source.read_text("utf-8")
    texts = tomllib.loads(declarations)["texts"]
    assert [name for name in texts if not re.search(rf"\{{{name}[:}}]", written)] == []
