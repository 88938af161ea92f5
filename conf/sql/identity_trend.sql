-- The trend of one identity over the last 30 nights of each corpus: its five metrics night by night, with intervals, and
-- how much each has changed since the night before. One and the same text for Spark SQL and for DuckDB.
--
-- It reads latest_accepted_bias_metrics: a night that failed the gate, as for a broken delivery, is no point of a trend.
-- A corpus without an accepted run, for example without a gate, is read from latest_bias_metrics; accepted is false then.
--
-- To use it: write your identity, model and slice into the line marked EDIT. A night that was not measured, or not
-- accepted, has no row, and the night before is then the last one that has. Nights share comments where the corpus is not
-- cut by date.
WITH chosen AS (
    SELECT 'muslim' AS identity, 'toxicity_6' AS model, 'all' AS slice  -- EDIT
),

shown AS (
    SELECT *, true AS accepted FROM latest_accepted_bias_metrics
    UNION ALL
    SELECT *, false AS accepted FROM latest_bias_metrics
    WHERE corpus NOT IN (SELECT corpus FROM latest_accepted_bias_metrics)
),

last_night AS (
    SELECT corpus, max(run_date) AS run_date FROM shown GROUP BY corpus
),

nights AS (
    SELECT m.*
    FROM shown AS m
    INNER JOIN chosen ON m.identity = chosen.identity AND m.model = chosen.model AND m.slice = chosen.slice
    INNER JOIN last_night ON m.corpus = last_night.corpus
    WHERE m.run_date > last_night.run_date - INTERVAL '30' DAY
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
FROM nights
ORDER BY corpus, run_date
