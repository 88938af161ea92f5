-- Two models side by side, in the form of Tables 3 and 6 of Borkan et al. 2019 ("Nuanced Metrics for Measuring
-- Unintended Bias with Real Data for Text Classification"): for each date, corpus, slice and identity the metrics of
-- both models and their difference. The same text works in Spark SQL and DuckDB, over the view latest_bias_metrics, and
-- returns the rows and columns of `biasspark side-by-side` for one date.
--
-- It reads the latest runs, accepted or not, as that job does, so models that failed the gate are compared as well. For
-- accepted runs only, write latest_accepted_bias_metrics instead.
--
-- Write the names of your two models into the line marked EDIT. Restrict the query to one date, corpus or slice in the
-- WHERE clause at the end.
--
--   n_subgroup_*      rows in the identity that count for the model. If the two differ, some rows lack a score of one
--                     model, which may cause part of a difference.
--   positive_rate_*   positives among them, 0 to 1.
--   worst_auc_*       the lowest of the subgroup, BPSN and BNSP AUC that have a value. worse: the second's is lower.
--   X_difference      second - first for an AUC, below 0 is worse. |second| - |first| for a gap (AEG), above 0 is
--                     worse. NULL if either value is, and X_first_reason or X_second_reason says why.
--   X_doubtful        whether either value rests on too few rows: its interval is missing or wider than 0.1.
--   X_first_low, _high    the interval of X of the first model.
--   bias_*, bias_size_*   the bias that the intervals show, by name (docs/metrics.md).
--
-- Sorted by the worst identity of the first model. Crossed pairs (a & b) are left out: drop NOT crossed to see them.
WITH chosen AS (
    SELECT 'toxicity_1' AS first_model, 'toxicity_6' AS second_model  -- EDIT
),

suite AS (
    SELECT
        run_date, corpus, slice, identity, crossed, run_id, model,
        n_subgroup_negative + n_subgroup_positive AS n_subgroup,
        subgroup_positive_rate AS positive_rate,
        least(subgroup_auc, bpsn_auc, bnsp_auc) AS worst_auc,
        subgroup_auc, subgroup_auc_low, subgroup_auc_high, subgroup_auc_reason,
        bpsn_auc, bpsn_auc_low, bpsn_auc_high, bpsn_auc_reason,
        bnsp_auc, bnsp_auc_low, bnsp_auc_high, bnsp_auc_reason,
        negative_aeg, negative_aeg_low, negative_aeg_high, negative_aeg_reason,
        positive_aeg, positive_aeg_low, positive_aeg_high, positive_aeg_reason,
        bias, bias_size
    FROM latest_bias_metrics
),

a AS (
    SELECT suite.* FROM suite INNER JOIN chosen ON suite.model = chosen.first_model
),

b AS (
    SELECT suite.* FROM suite INNER JOIN chosen ON suite.model = chosen.second_model
)

SELECT
    run_date, corpus, slice, identity, crossed,
    chosen.first_model,
    chosen.second_model,
    a.n_subgroup AS n_subgroup_first,
    b.n_subgroup AS n_subgroup_second,
    a.positive_rate AS positive_rate_first,
    b.positive_rate AS positive_rate_second,
    a.worst_auc AS worst_auc_first,
    b.worst_auc AS worst_auc_second,
    b.worst_auc - a.worst_auc AS worst_auc_difference,
    b.worst_auc < a.worst_auc AS worse,

    a.subgroup_auc AS subgroup_auc_first,
    b.subgroup_auc AS subgroup_auc_second,
    b.subgroup_auc - a.subgroup_auc AS subgroup_auc_difference,
    (a.subgroup_auc IS NOT NULL AND coalesce(a.subgroup_auc_high - a.subgroup_auc_low > 1e-1, TRUE))
        OR (b.subgroup_auc IS NOT NULL AND coalesce(b.subgroup_auc_high - b.subgroup_auc_low > 1e-1, TRUE)) AS subgroup_auc_doubtful,
    a.subgroup_auc_low AS subgroup_auc_first_low,
    a.subgroup_auc_high AS subgroup_auc_first_high,
    a.subgroup_auc_reason AS subgroup_auc_first_reason,
    b.subgroup_auc_low AS subgroup_auc_second_low,
    b.subgroup_auc_high AS subgroup_auc_second_high,
    b.subgroup_auc_reason AS subgroup_auc_second_reason,

    a.bpsn_auc AS bpsn_auc_first,
    b.bpsn_auc AS bpsn_auc_second,
    b.bpsn_auc - a.bpsn_auc AS bpsn_auc_difference,
    (a.bpsn_auc IS NOT NULL AND coalesce(a.bpsn_auc_high - a.bpsn_auc_low > 1e-1, TRUE))
        OR (b.bpsn_auc IS NOT NULL AND coalesce(b.bpsn_auc_high - b.bpsn_auc_low > 1e-1, TRUE)) AS bpsn_auc_doubtful,
    a.bpsn_auc_low AS bpsn_auc_first_low,
    a.bpsn_auc_high AS bpsn_auc_first_high,
    a.bpsn_auc_reason AS bpsn_auc_first_reason,
    b.bpsn_auc_low AS bpsn_auc_second_low,
    b.bpsn_auc_high AS bpsn_auc_second_high,
    b.bpsn_auc_reason AS bpsn_auc_second_reason,

    a.bnsp_auc AS bnsp_auc_first,
    b.bnsp_auc AS bnsp_auc_second,
    b.bnsp_auc - a.bnsp_auc AS bnsp_auc_difference,
    (a.bnsp_auc IS NOT NULL AND coalesce(a.bnsp_auc_high - a.bnsp_auc_low > 1e-1, TRUE))
        OR (b.bnsp_auc IS NOT NULL AND coalesce(b.bnsp_auc_high - b.bnsp_auc_low > 1e-1, TRUE)) AS bnsp_auc_doubtful,
    a.bnsp_auc_low AS bnsp_auc_first_low,
    a.bnsp_auc_high AS bnsp_auc_first_high,
    a.bnsp_auc_reason AS bnsp_auc_first_reason,
    b.bnsp_auc_low AS bnsp_auc_second_low,
    b.bnsp_auc_high AS bnsp_auc_second_high,
    b.bnsp_auc_reason AS bnsp_auc_second_reason,

    a.negative_aeg AS negative_aeg_first,
    b.negative_aeg AS negative_aeg_second,
    abs(b.negative_aeg) - abs(a.negative_aeg) AS negative_aeg_difference,
    (a.negative_aeg IS NOT NULL AND coalesce(a.negative_aeg_high - a.negative_aeg_low > 1e-1, TRUE))
        OR (b.negative_aeg IS NOT NULL AND coalesce(b.negative_aeg_high - b.negative_aeg_low > 1e-1, TRUE)) AS negative_aeg_doubtful,
    a.negative_aeg_low AS negative_aeg_first_low,
    a.negative_aeg_high AS negative_aeg_first_high,
    a.negative_aeg_reason AS negative_aeg_first_reason,
    b.negative_aeg_low AS negative_aeg_second_low,
    b.negative_aeg_high AS negative_aeg_second_high,
    b.negative_aeg_reason AS negative_aeg_second_reason,

    a.positive_aeg AS positive_aeg_first,
    b.positive_aeg AS positive_aeg_second,
    abs(b.positive_aeg) - abs(a.positive_aeg) AS positive_aeg_difference,
    (a.positive_aeg IS NOT NULL AND coalesce(a.positive_aeg_high - a.positive_aeg_low > 1e-1, TRUE))
        OR (b.positive_aeg IS NOT NULL AND coalesce(b.positive_aeg_high - b.positive_aeg_low > 1e-1, TRUE)) AS positive_aeg_doubtful,
    a.positive_aeg_low AS positive_aeg_first_low,
    a.positive_aeg_high AS positive_aeg_first_high,
    a.positive_aeg_reason AS positive_aeg_first_reason,
    b.positive_aeg_low AS positive_aeg_second_low,
    b.positive_aeg_high AS positive_aeg_second_high,
    b.positive_aeg_reason AS positive_aeg_second_reason,

    a.bias AS bias_first,
    b.bias AS bias_second,
    a.bias_size AS bias_size_first,
    b.bias_size AS bias_size_second,

    run_id
FROM a
FULL JOIN b USING (run_date, corpus, slice, identity, crossed, run_id)
CROSS JOIN chosen
WHERE NOT crossed  -- AND run_date = DATE '2026-01-15' AND corpus = 'civil' AND slice IN ('all', 'short')
ORDER BY run_date, corpus, CASE WHEN slice = 'all' THEN 0 ELSE 1 END, slice, worst_auc_first NULLS LAST, identity
