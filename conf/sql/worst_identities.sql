-- The worst identities tonight: for the last night of each corpus, each model and each slice the ten identities for
-- which it is most certain that an AUC is low. One and the same text for Spark SQL and for DuckDB.
--
--   metric, value, low, high   that of the identity's three AUCs whose interval ends lowest, and the interval.
--   reads_as                   what a low value of that metric means.
--   place                      1 is worst: the lowest upper end. Sorted by it and not by the value, which small
--                              identities would lead by chance.
--
-- Crossed pairs (a & b) and values without an interval are left out.
WITH tonight AS (
    SELECT corpus, max(run_date) AS run_date FROM latest_bias_metrics GROUP BY corpus
),

metrics AS (
    SELECT m.*
    FROM latest_bias_metrics AS m
    INNER JOIN tonight ON m.corpus = tonight.corpus AND m.run_date = tonight.run_date
    WHERE NOT m.crossed  -- AND m.slice = 'all' AND m.model = 'toxicity_6'
),

long AS (
    SELECT
        run_date, corpus, model, slice, identity, n_subgroup_negative, n_subgroup_positive,
        'subgroup_auc' AS metric, 'confuses within the identity' AS reads_as,
        subgroup_auc AS value, subgroup_auc_low AS low, subgroup_auc_high AS high
    FROM metrics
    UNION ALL
    SELECT
        run_date, corpus, model, slice, identity, n_subgroup_negative, n_subgroup_positive,
        'bpsn_auc', 'false alarms', bpsn_auc, bpsn_auc_low, bpsn_auc_high
    FROM metrics
    UNION ALL
    SELECT
        run_date, corpus, model, slice, identity, n_subgroup_negative, n_subgroup_positive,
        'bnsp_auc', 'misses', bnsp_auc, bnsp_auc_low, bnsp_auc_high
    FROM metrics
),

lowest AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_date, corpus, model, slice, identity ORDER BY high, metric) AS own_place
    FROM long
    WHERE high IS NOT NULL
),

placed AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_date, corpus, model, slice ORDER BY high, identity) AS place
    FROM lowest
    WHERE own_place = 1
)

SELECT
    run_date, corpus, model, slice, place, identity, metric, value, low, high, reads_as,
    n_subgroup_negative, n_subgroup_positive
FROM placed
WHERE place <= 10
ORDER BY corpus, model, CASE WHEN slice = 'all' THEN 0 ELSE 1 END, slice, place
