-- Which windows are out of date: those with a date that was measured again, or for the first time, since they were
-- merged, one row for each such date. Merge them again. The same text works in Spark SQL and DuckDB.
--
--   stale_date      the date that was measured since the merge
--   merged_run_id   the run of the date that the window contains; NULL if it contains none
--   run_id          the run of the date that readers see now
--
-- It reads only the ledger: a window merges the latest run of each date, accepted or not.
--
-- A run that maintenance copied into fewer files has the same rows, and makes no window stale. For old windows, which
-- do not say which runs they merged, runs that were published later count.
WITH runs AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY corpus, job, run_date, window_start ORDER BY published_at DESC, run_id DESC
        ) AS recency
    FROM bias_runs
    WHERE job IN ('bias_metrics', 'window_metrics')
),

windows AS (
    SELECT * FROM runs WHERE job = 'window_metrics' AND recency = 1
),

dates AS (
    SELECT * FROM runs WHERE job = 'bias_metrics' AND recency = 1
),

merged AS (
    SELECT
        w.run_id AS window_run_id, n.run_date, n.run_id,
        coalesce(n.copied_from_run_id, n.run_id) AS rows_of_run_id
    FROM windows AS w
    INNER JOIN runs AS n
        ON w.corpus = n.corpus AND n.job = 'bias_metrics' AND array_contains(w.merged_run_ids, n.run_id)
)

SELECT
    w.corpus, w.window_start, w.run_date, w.run_id AS window_run_id,
    n.run_date AS stale_date,
    m.run_id AS merged_run_id,
    n.run_id
FROM windows AS w
INNER JOIN dates AS n
    ON w.corpus = n.corpus AND n.run_date BETWEEN w.window_start AND w.run_date
LEFT JOIN merged AS m
    ON w.run_id = m.window_run_id AND n.run_date = m.run_date
WHERE
    CASE
        WHEN w.merged_run_ids IS NULL THEN n.published_at > w.published_at
        WHEN m.run_id IS NULL THEN true
        ELSE m.rows_of_run_id <> coalesce(n.copied_from_run_id, n.run_id)
    END
ORDER BY w.corpus, w.run_date, w.window_start, n.run_date
