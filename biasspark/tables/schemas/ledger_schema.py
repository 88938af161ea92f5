"""What a run leaves about itself: the rows that it rejected, and its row in the ledger."""

from __future__ import annotations

from biasspark.tables.schemas.dsl import Table, columns

REJECTED_ROWS = Table(
    name="rejected_rows",
    job="bias_metrics",
    comment="Rows that a run did not use, and why, up to a number per reason. bias_runs counts all. Holds no text.",
    key=columns("""
        row_id STRING: The id of the row in the corpus. NULL where it has none.
        model STRING: The model for which the row is rejected. NULL where it is for all.
        reason STRING: The first that applies: malformed_row, null_id, duplicate_id, null_label (missing or unreadable),
            label_out_of_range, null_score, score_not_numeric, nan_score, infinite_score. With annotation_out_of_range
            the row stays, an identity unknown.
    """),
    values=(),
    unique=False,
)

BIAS_RUNS = Table(
    name="bias_runs",
    job="(every job)",
    comment="The ledger: a row here publishes all rows of its run. Rows are only ever added.",
    key=columns("""
        job STRING: The job that ran, and so the tables that it wrote.
    """),
    values=columns("""
        status STRING: published, or accepted: by its gate, which found no rule broken, or by a person, in a row of the
            job accept_run whose accepts_run_id names the run.
        n_rows BIGINT: Rows read from the corpus.
        n_rejected BIGINT: Rows rejected for all models.
        rejects MAP<STRING,BIGINT>: How often each reason was given, complete. A score counts for each model it lacks.
        warnings ARRAY<STRING>: What a reader of the numbers should know, one sentence each. None is best.
        config STRING: The configuration as JSON, defaults filled in, values of options redacted.
        config_hash STRING: SHA-256 of config. Runs with the same hash measured the same thing in the same way.
        code_version STRING: The version of biasspark.
        spark_version STRING: The version of Spark. Of the embedded engine the one that it speaks, and its own version.
        started_at TIMESTAMP: When the run started.
        published_at TIMESTAMP: When the run was published, later than every earlier run of the same run_date, corpus
            and job.
        window_start DATE: The first night of a window of nights that ends with run_date. NULL for a single night.
        merged_run_ids ARRAY<STRING>: The runs of the nights that a window merged, in the order of the nights. NULL for
            a single night.
        table_rows MAP<STRING,BIGINT>: The tables that the run wrote, with their rows. A table that is not listed
            belongs to a part that was off. NULL in runs of older versions.
        copied_from_run_id STRING: The run whose rows this run has in fewer files, the first one where a copy was
            copied. NULL for all others.
        accepts_run_id STRING: The run that a person accepts by this row. NULL for all others.
        accepted_by STRING: Who accepts it. NULL for all others.
        acceptance_note STRING: Why it is accepted, in the words of that person. NULL for all others.
    """),
)
