-- Which slice is worse than the whole: for the last accepted run of each corpus, every AUC of every identity in a slice
-- compared with that in all rows: those apart first, then by the largest loss. The same text works in Spark SQL and
-- DuckDB.
--
-- It reads latest_accepted_bias_metrics: a run that failed the gate does not replace the numbers that a team works
-- with. A corpus without an accepted run, for example without a gate, is read from latest_bias_metrics.
--
--   difference   slice - whole: below 0 if the model does worse in the slice.
--   apart        whether the slice's interval lies entirely below that of the whole. The slice is part of the whole, so
--                this asks for more than evidence of a difference would.
--   accepted     false if the corpus has no accepted run.
--
-- `biasspark attribute` searches for other slices: latest_attribution_slices, latest_attribution_segments.
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
    WHERE NOT m.crossed  -- AND m.model = 'toxicity_6'
),

long AS (
    SELECT
        run_date, corpus, model, slice, identity, accepted, 'subgroup_auc' AS metric,
        subgroup_auc AS value, subgroup_auc_low AS low, subgroup_auc_high AS high
    FROM metrics
    UNION ALL
    SELECT
        run_date, corpus, model, slice, identity, accepted, 'bpsn_auc',
        bpsn_auc, bpsn_auc_low, bpsn_auc_high
    FROM metrics
    UNION ALL
    SELECT
        run_date, corpus, model, slice, identity, accepted, 'bnsp_auc',
        bnsp_auc, bnsp_auc_low, bnsp_auc_high
    FROM metrics
)

SELECT
    part.run_date, part.corpus, part.model, part.slice, part.identity, part.metric,
    part.value, part.low, part.high,
    whole.value AS whole_value, whole.low AS whole_low, whole.high AS whole_high,
    part.value - whole.value AS difference,
    part.high < whole.low AS apart,
    part.accepted
FROM long AS part
INNER JOIN long AS whole
    ON
        part.corpus = whole.corpus AND part.model = whole.model AND part.identity = whole.identity
        AND part.metric = whole.metric
WHERE part.slice <> 'all' AND whole.slice = 'all' AND part.value IS NOT NULL AND whole.value IS NOT NULL
ORDER BY
    part.corpus, part.model, coalesce(part.high < whole.low, false) DESC, difference,
    part.slice, part.identity, part.metric
