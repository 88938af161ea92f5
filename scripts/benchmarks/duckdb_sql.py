"""The suite in DuckDB: the fastest SQL that we could write, exact, on all cores.

No table has a row for each (row, identity). The points of a model are the distinct scores of positives and of members,
one row in six here. One ASOF join counts the negatives between points, running sums place every point, memberships are
joined to points by score, and the background (all rows less the members) follows from the steps between the points of
its identity. Counts are BIGINT, sums of squares HUGEINT.
"""

from __future__ import annotations

import os

import duckdb

from scripts.benchmarks.task import (
    IDENTITY_NAMES,
    LABEL,
    MODELS,
    PAIRS,
    THRESHOLD,
    Outcome,
    Statistic,
    list_numbers,
    parse_task,
    quoted,
)

Key = tuple[str, str, str]

ROWS = f"""
CREATE VIEW known AS
SELECT {LABEL} >= {THRESHOLD} AS label, {quoted(MODELS)}, {quoted(IDENTITY_NAMES)}
FROM read_parquet(getvariable('corpus'))
WHERE {LABEL} IS NOT NULL AND {quoted(IDENTITY_NAMES[:1])} IS NOT NULL;

CREATE TEMP TABLE mentions AS
SELECT identity, label, {quoted(MODELS)}
FROM (UNPIVOT (FROM known WHERE greatest({quoted(IDENTITY_NAMES)}) >= {THRESHOLD})
      ON {quoted(IDENTITY_NAMES)} INTO NAME identity VALUE fraction)
WHERE fraction >= {THRESHOLD};
"""

POINTS = """
CREATE OR REPLACE TEMP TABLE members AS
SELECT identity, "{model}" AS score, count(*) FILTER (NOT label) AS mn, count(*) FILTER (label) AS mp
FROM mentions GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE points AS
WITH positives AS (SELECT "{model}" AS score, count(*) AS p_at FROM known WHERE label GROUP BY ALL),
point AS (SELECT score FROM members UNION SELECT score FROM positives),
negatives AS (
    SELECT point.score,
        count(*) FILTER (negative.score = point.score) AS n_at,
        count(*) FILTER (negative.score > point.score) AS n_after
    FROM (SELECT "{model}" AS score FROM known WHERE NOT label) negative
        ASOF JOIN point ON negative.score >= point.score
    GROUP BY ALL
),
counted AS (
    SELECT score, coalesce(n_at, 0) AS n_at, coalesce(n_after, 0) AS n_after, coalesce(p_at, 0) AS p_at
    FROM point LEFT JOIN negatives USING (score) LEFT JOIN positives USING (score)
    UNION ALL  -- what lies below all points
    SELECT '-inf', 0, (SELECT count(*) FROM known WHERE NOT label) - coalesce(sum(n_at + n_after), 0)::BIGINT, 0
    FROM negatives
),
placed AS (
    SELECT *,
        (sum(n_at + n_after) OVER below - n_at - n_after)::BIGINT AS n_below,
        (sum(p_at) OVER below - p_at)::BIGINT AS p_below
    FROM counted WINDOW below AS (ORDER BY score ROWS UNBOUNDED PRECEDING)
)
SELECT *, (sum(p_at * (2 * n_below + n_at)) OVER below - p_at * (2 * n_below + n_at))::BIGINT AS placed_below
FROM placed WINDOW below AS (ORDER BY score ROWS UNBOUNDED PRECEDING);
"""
"""For each point the negatives and positives at and below it, and the doubled placements of the positives below it."""

TOTALS = """
SELECT any_value(n), any_value(p), sum(p_at * d),
    sum(n_at * (e::HUGEINT * e) + n_after * (f::HUGEINT * f)), sum(p_at * (d::HUGEINT * d))
FROM (
    SELECT *, 2 * n_below + n_at AS d, 2 * (p - p_below - p_at) + p_at AS e, 2 * (p - p_below - p_at) AS f
    FROM points, (SELECT sum(n_at + n_after)::BIGINT AS n, sum(p_at)::BIGINT AS p FROM points)
)
"""
"""Sizes, twice U, and sums of squares of all negatives and all positives."""

IDENTITIES = """
WITH placed AS (
    SELECT *,
        $p - p_below - p_at AS p_above,
        (sum(mn) OVER below)::BIGINT - mn AS mn_below, (sum(mp) OVER below)::BIGINT - mp AS mp_below,
        (sum(mn) OVER whole)::BIGINT AS m_n, (sum(mp) OVER whole)::BIGINT AS m_p,
        -- rows of the corpus between the points of the identity: before this one, after it
        n_below - coalesce(lag(n_below + n_at) OVER below, 0) AS n_before,
        p_below - coalesce(lag(p_below + p_at) OVER below, 0) AS p_before,
        coalesce(lead(p_below) OVER below, $p) - p_below - p_at AS p_after,
        -- and their placements: positives seen from below, negatives from above
        coalesce(lead(placed_below) OVER below, $placed) - placed_below - p_at * (2 * n_below + n_at) AS placed_after,
        placed_below + 2 * n_below * ($p - p_below) AS seen_below
    FROM members JOIN points USING (score)
    WINDOW below AS (PARTITION BY identity ORDER BY score), whole AS (PARTITION BY identity)
),
steps AS (
    SELECT *,
        -- members below (t) and above (s: positives, r: negatives), at the point and beside it
        2 * mn_below + mn AS t, 2 * (mn_below + mn) AS t_after,
        2 * (m_p - mp_below - mp) + mp AS s, 2 * (m_p - mp_below) AS s_before,
        2 * (m_n - mn_below - mn) + mn AS r, 2 * (m_n - mn_below) AS r_before,
        -- all negatives below (d), all positives above (e); of the background: negatives and positives below, above
        2 * n_below + n_at AS d, 2 * p_above + p_at AS e,
        2 * (n_below - mn_below) + n_at - mn AS bd,
        2 * (p_below - mp_below) + p_at - mp AS bg,
        2 * (p_above - (m_p - mp_below - mp)) + p_at - mp AS be,
        seen_below - coalesce(lag(seen_below + n_at * (2 * p_above + p_at)) OVER below, 0) AS seen_before
    FROM placed WINDOW below AS (PARTITION BY identity ORDER BY score)
)
SELECT identity, any_value(m_n), any_value(m_p),
    -- subgroup
    sum(mp * t), sum(mn * (s::HUGEINT * s)), sum(mp * (t::HUGEINT * t)),
    -- BPSN
    sum(mn * be), sum(mn * (be::HUGEINT * be)),
    sum((p_at - mp) * (t::HUGEINT * t) + p_after * (t_after::HUGEINT * t_after)),
    -- BNSP
    sum(mp * bd), sum((n_at - mn) * (s::HUGEINT * s) + n_before * (s_before::HUGEINT * s_before)),
    sum(mp * (bd::HUGEINT * bd)),
    -- background, less what all negatives and positives have: (x - y)^2 = x^2 - 2xy + y^2
    sum(mp * (t - d) - mn * e),
    sum(n_at * (s::HUGEINT * s - 2 * e * s::HUGEINT) + n_before * (s_before::HUGEINT * s_before)
        - 2 * seen_before::HUGEINT * s_before - mn * ((e - s)::HUGEINT * (e - s))),
    sum(p_at * (t::HUGEINT * t - 2 * d * t::HUGEINT) + p_after * (t_after::HUGEINT * t_after)
        - 2 * placed_after::HUGEINT * t_after - mp * ((d - t)::HUGEINT * (d - t))),
    -- negative AEG
    sum(mn * bd), sum((n_at - mn) * (r::HUGEINT * r) + n_before * (r_before::HUGEINT * r_before)),
    sum(mn * (bd::HUGEINT * bd)),
    -- positive AEG
    sum(mp * bg), sum((p_at - mp) * (s::HUGEINT * s) + p_before * (s_before::HUGEINT * s_before)),
    sum(mp * (bg::HUGEINT * bg))
FROM steps GROUP BY identity
"""
"""For each identity its size, and for each of the six pairs of cells twice U and the sums of squares."""


def measure_corpus(corpus: str) -> Outcome:
    database = duckdb.connect(config={"threads": len(os.sched_getaffinity(0))})
    database.execute("SET VARIABLE corpus = $files", {"files": f"{corpus}/*.parquet"})
    database.execute(ROWS)
    statistics = {key: statistic for model in MODELS for key, statistic in measure_model(database, model).items()}
    return Outcome(list_numbers(statistics), details={"duckdb": duckdb.__version__})


def measure_model(database: duckdb.DuckDBPyConnection, model: str) -> dict[Key, Statistic]:
    """Return the U statistics of every (model, identity, metric)."""
    database.execute(POINTS.format(model=model))
    (totals,) = database.execute(TOTALS).fetchall()
    n, p, doubled, low_squares, high_squares = map(int, totals)
    rows = database.execute(IDENTITIES, {"p": p, "placed": doubled}).fetchall()
    sums = {row[0]: tuple(map(int, row[1:])) for row in rows}
    statistics = {}
    for identity in IDENTITY_NAMES:
        m_n, m_p, *values = sums.get(identity, (0,) * 20)
        values[9:12] = values[9] + doubled, values[10] + low_squares, values[11] + high_squares
        sizes = {"subgroup_negative": m_n, "subgroup_positive": m_p}
        sizes |= {"background_negative": n - m_n, "background_positive": p - m_p}
        for first, (metric, (low, high)) in zip(range(0, 18, 3), PAIRS.items(), strict=True):
            statistics[model, identity, metric] = Statistic(sizes[low], sizes[high], *values[first : first + 3])
    return statistics


if __name__ == "__main__":
    arguments = parse_task(__doc__)
    measure_corpus(arguments.corpus).write(arguments.outcome)
