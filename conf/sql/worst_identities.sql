-- The worst identities: for the last accepted run of each corpus, each model and each slice the ten identities for
-- which a low AUC is most certain. The same text works in Spark SQL and DuckDB.
--
-- It reads latest_accepted_bias_metrics: a dashboard should rank numbers that passed the gate or that a person
-- accepted, and a run that failed does not replace them. A corpus without an accepted run, for example without a gate,
-- is read from latest_bias_metrics.
--
--   metric, value, low, high   the one of the identity's three AUCs whose interval ends lowest, and its interval.
--   bias, bias_size            the bias that all five intervals show, by name (docs/metrics.md).
--   place                      1 is worst: the lowest upper end. Sorted by the value itself, small identities would
--                              lead by chance.
--   accepted                   false if the corpus has no accepted run.
--
-- Crossed pairs (a & b), identities of fewer than 30 rows and values without an interval are left out, as in the summary
-- that `biasspark measure` prints.
WITH shown AS (
    SELECT *, true AS accepted FROM latest_accepted_bias_metrics
    UNION ALL
    SELECT *, false AS accepted FROM latest_bias_metrics
    WHERE corpus NOT IN (SELECT corpus FROM latest_accepted_bias_metrics)
),

last_dates AS (
    SELECT corpus, max(run_date) AS run_date FROM shown GROUP BY corpus
),

metrics AS (
    SELECT m.*
    FROM shown AS m
    INNER JOIN last_dates ON m.corpus = last_dates.corpus AND m.run_date = last_dates.run_date
    WHERE
        NOT m.crossed
        AND m.n_subgroup_negative + m.n_subgroup_positive >= 30  -- AND m.slice = 'all' AND m.model = 'toxicity_6'
),

long AS (
    SELECT
        run_date, corpus, model, slice, identity, n_subgroup_negative, n_subgroup_positive, bias, bias_size, accepted,
        'subgroup_auc' AS metric,
        subgroup_auc AS value, subgroup_auc_low AS low, subgroup_auc_high AS high
    FROM metrics
    UNION ALL
    SELECT
        run_date, corpus, model, slice, identity, n_subgroup_negative, n_subgroup_positive, bias, bias_size, accepted,
        'bpsn_auc', bpsn_auc, bpsn_auc_low, bpsn_auc_high
    FROM metrics
    UNION ALL
    SELECT
        run_date, corpus, model, slice, identity, n_subgroup_negative, n_subgroup_positive, bias, bias_size, accepted,
        'bnsp_auc', bnsp_auc, bnsp_auc_low, bnsp_auc_high
    FROM metrics
),

lowest AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_date, corpus, model, slice, identity ORDER BY high, metric) AS metric_rank
    FROM long
    WHERE high IS NOT NULL
),

ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_date, corpus, model, slice ORDER BY high, identity) AS place
    FROM lowest
    WHERE metric_rank = 1
)

SELECT
    run_date, corpus, model, slice, place, identity, metric, value, low, high, bias, bias_size,
    n_subgroup_negative, n_subgroup_positive, accepted
FROM ranked
WHERE place <= 10
ORDER BY corpus, model, CASE WHEN slice = 'all' THEN 0 ELSE 1 END, slice, place
