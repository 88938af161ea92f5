-- What changed since the last accepted run: the last date of each corpus compared with the last accepted run of an
-- earlier date, the largest losses first. The same text works in Spark SQL and DuckDB.
--
-- It reads the last date from latest_bias_metrics, since the question comes up most after a run that failed the gate,
-- and the run to compare with from latest_accepted_bias_metrics: the last run of each date that the gate or a person
-- accepted. If no run was accepted yet, the accepted_* columns and the changes are NULL.
--
--   X_change        latest - accepted for an AUC, |latest| - |accepted| for a gap (AEG): below 0 is worse for an AUC,
--                   above 0 for a gap. NULL if either value is.
--   most_worsened   the largest worsening of any metric; below 0 if all improved.
--   apart           whether the interval of any metric lies entirely on the worse side of the accepted one: for a gap,
--                   farther from 0, on either side, than both of its ends.
WITH last_dates AS (
    SELECT corpus, max(run_date) AS run_date FROM latest_bias_metrics GROUP BY corpus
),

metrics AS (
    SELECT m.*
    FROM latest_bias_metrics AS m
    INNER JOIN last_dates ON m.corpus = last_dates.corpus AND m.run_date = last_dates.run_date
    WHERE NOT m.crossed  -- AND m.slice = 'all'
),

accepted_dates AS (
    SELECT m.corpus, max(m.run_date) AS run_date
    FROM latest_accepted_bias_metrics AS m
    INNER JOIN last_dates ON m.corpus = last_dates.corpus AND m.run_date < last_dates.run_date
    GROUP BY m.corpus
),

accepted AS (
    SELECT m.*
    FROM latest_accepted_bias_metrics AS m
    INNER JOIN accepted_dates AS dates ON m.corpus = dates.corpus AND m.run_date = dates.run_date
),

compared AS (
    SELECT
        t.run_date, t.corpus, t.model, t.slice, t.identity, t.run_id,
        a.run_date AS accepted_run_date,
        a.run_id AS accepted_run_id,
        t.subgroup_auc, a.subgroup_auc AS accepted_subgroup_auc,
        t.bpsn_auc, a.bpsn_auc AS accepted_bpsn_auc,
        t.bnsp_auc, a.bnsp_auc AS accepted_bnsp_auc,
        t.negative_aeg, a.negative_aeg AS accepted_negative_aeg,
        t.positive_aeg, a.positive_aeg AS accepted_positive_aeg,
        t.subgroup_auc - a.subgroup_auc AS subgroup_auc_change,
        t.bpsn_auc - a.bpsn_auc AS bpsn_auc_change,
        t.bnsp_auc - a.bnsp_auc AS bnsp_auc_change,
        abs(t.negative_aeg) - abs(a.negative_aeg) AS negative_aeg_change,
        abs(t.positive_aeg) - abs(a.positive_aeg) AS positive_aeg_change,
        coalesce(t.subgroup_auc_high < a.subgroup_auc_low, false)
        OR coalesce(t.bpsn_auc_high < a.bpsn_auc_low, false)
        OR coalesce(t.bnsp_auc_high < a.bnsp_auc_low, false)
        OR coalesce(
            greatest(t.negative_aeg_low, -t.negative_aeg_high) > greatest(-a.negative_aeg_low, a.negative_aeg_high), false
        )
        OR coalesce(
            greatest(t.positive_aeg_low, -t.positive_aeg_high) > greatest(-a.positive_aeg_low, a.positive_aeg_high), false
        ) AS apart
    FROM metrics AS t
    LEFT JOIN accepted AS a
        ON t.corpus = a.corpus AND t.model = a.model AND t.slice = a.slice AND t.identity = a.identity
)

SELECT
    *,
    greatest(
        -subgroup_auc_change, -bpsn_auc_change, -bnsp_auc_change, negative_aeg_change, positive_aeg_change
    ) AS most_worsened
FROM compared
ORDER BY corpus, most_worsened DESC NULLS LAST, model, slice, identity
