"""The synthetic comment corpus as a DataFrame, generated on the executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biasspark.synthetic.blocks import generate
from biasspark.synthetic.civil_rows import CivilShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def civil_corpus(
    spark: SparkSession, rows: int, seed: int, *, unannotated: float = 0.75, text: bool = False
) -> DataFrame:
    """Comments in the shape of the Civil Comments corpus, with two biased models' scores.

    Frequencies, toxic rates and biases are those of Nuanced, Tables 5 and 6, where these print them; see
    `biasspark.synthetic.civil_shape` for each number and what is chosen.

    Parameters
    ----------
    spark
        Any session, classic or Connect.
    rows
        Number of comments. Ids run from 0 to `rows - 1`.
    seed
        A whole number from 0. The same seed gives the same rows, at any partitioning and on any machine, and a shorter
        corpus is the beginning of a longer one.
    unannotated
        Share of the comments whose 24 annotations are all NULL. It changes nothing else: comments that mention an
        identity are always annotated, so all mentions, scores and targets stay as they are.
    text
        Whether to add `comment_text`, of exactly `comment_length` characters.

    Returns
    -------
    DataFrame
        id BIGINT, created_date DATE, target DOUBLE (fraction of annotators who find the comment toxic, 8 % at 0.5 or
        more), 24 identities DOUBLE (fraction of annotators who see it, or NULL), comment_length INT (20 to 1000),
        toxicity_1 DOUBLE (strongly biased, most in short comments), toxicity_6 DOUBLE (mitigated), both in (0, 1)
        with eight digits; comment_text STRING on request.

    Raises
    ------
    ConfigError
        Naming each argument that is out of range.

    Notes
    -----
    A lazy plan of one stage without shuffle. A million rows take 4 s of processor time, half of it to write Parquet;
    with text 2 s more. A worker holds one block of 20,000 rows at a time, 150 MB with Python and its libraries, 200 MB
    with text, however many rows are asked for.
    """
    return generate(spark, CivilShape(rows, seed, unannotated, text))
