"""The scores of templates, in ever more rows: what one session compares."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.config import parse_measures
from biasspark.corpus.examples import build_codebook
from biasspark.corpus.survey import survey_corpus
from biasspark.corpus.templates import template_scores
from biasspark.synthetic.civil_shape import IDENTITY_NAMES, MODELS
from scripts.benchmarks.growth import FRACTIONS, Case
from scripts.benchmarks.task import LABEL, THRESHOLD

N_TEMPLATES = 20


def template_cases(corpus: DataFrame) -> Mapping[str, Case]:
    """Return the cases by name: two models, 24 identities and 20 templates.

    Notes
    -----
    A template has a twentieth of the rows, and nearly every row has a score of its own.
    """
    templates = corpus.withColumn("template", F.pmod(F.xxhash64("id"), F.lit(N_TEMPLATES)))
    parts = [templates.where(F.pmod("id", F.lit(fraction)) == 0) for fraction in FRACTIONS]
    return {f"rows: {part.count()}": partial(deviations, part) for part in parts}


def deviations(corpus: DataFrame) -> DataFrame:
    """Return the standard deviation of each template and identity.

    Without the means: Spark then computes them within the deviations, as it does where the job publishes both.
    """
    columns = {"columns": list(IDENTITY_NAMES), "threshold": THRESHOLD}
    asked = {"models": list(MODELS), "label": {"column": LABEL, "threshold": THRESHOLD}, "identities": columns}
    measures = parse_measures({**asked, "templates": {"column": "template"}})
    codebook = build_codebook(measures, survey_corpus(corpus, measures))
    return template_scores(corpus, measures, codebook, "template").drop("mean_score")
