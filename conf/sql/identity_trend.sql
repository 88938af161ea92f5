-- The trend of one identity over the last 30 dates of each corpus: its five metrics date by date, with intervals, and
-- their changes since the date before. The same text works in Spark SQL and DuckDB.
--
-- It reads latest_accepted_bias_metrics: a run that failed the gate, for example for a broken delivery, is left out. A
-- corpus without an accepted run, for example without a gate, is read from latest_bias_metrics; accepted is false then.
--
-- Write your identity, model and slice into the line marked EDIT. A date that was not measured, or not accepted, has no
-- row, and changes are then since the last one that has. Runs share comments if the corpus is not divided by date.
WITH chosen AS (
    SELECT 'muslim' AS identity, 'toxicity_6' AS model, 'all' AS slice  -- EDIT
),

shown AS (
    SELECT *, true AS accepted FROM latest_accepted_bias_metrics
    UNION ALL
    SELECT *, false AS accepted FROM latest_bias_metrics
    WHERE corpus NOT IN (SELECT corpus FROM latest_accepted_bias_metrics)
),

last_dates AS (
    SELECT corpus, max(run_date) AS run_date FROM shown GROUP BY corpus
),

trend AS (
    SELECT m.*
    FROM shown AS m
    INNER JOIN chosen ON m.identity = chosen.identity AND m.model = chosen.model AND m.slice = chosen.slice
    INNER JOIN last_dates ON m.corpus = last_dates.corpus
    WHERE m.run_date > last_dates.run_date - INTERVAL '30' DAY
)

SELECT
    run_date, corpus, model, slice, identity,
    n_subgroup_negative + n_subgroup_positive AS n_subgroup,
    subgroup_auc, subgroup_auc_low, subgroup_auc_high,
    subgroup_auc - lag(subgroup_auc) OVER (PARTITION BY corpus ORDER BY run_date) AS subgroup_auc_change,
    bpsn_auc, bpsn_auc_low, bpsn_auc_high,
    bpsn_auc - lag(bpsn_auc) OVER (PARTITION BY corpus ORDER BY run_date) AS bpsn_auc_change,
    bnsp_auc, bnsp_auc_low, bnsp_auc_high,
    bnsp_auc - lag(bnsp_auc) OVER (PARTITION BY corpus ORDER BY run_date) AS bnsp_auc_change,
    negative_aeg, negative_aeg_low, negative_aeg_high,
    negative_aeg - lag(negative_aeg) OVER (PARTITION BY corpus ORDER BY run_date) AS negative_aeg_change,
    positive_aeg, positive_aeg_low, positive_aeg_high,
    positive_aeg - lag(positive_aeg) OVER (PARTITION BY corpus ORDER BY run_date) AS positive_aeg_change,
    run_id, accepted
FROM trend
ORDER BY corpus, run_date
