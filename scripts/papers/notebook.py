"""The notebook of the FATES study, which explains and implements the metrics: its functions, examples and images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd

import biasspark
from biasspark import plot
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import ScoreDistribution, ScoreDistributionsRequest
from scripts.papers.exhibits import Made, Numbers, Picture, Source, read_data, split_by_model
from scripts.papers.nuanced import (
    AEGS,
    AUCS,
    DRAWN,
    SENTENCES,
    define_suite,
    figure_1,
    figure_2,
    highlight_cells,
    table_2,
)

NOTEBOOK = Source(
    "notebook", "The notebook of the FATES study on the metrics of Borkan et al. (2019) and Dixon et al. (2018)"
)
TERMS = ["gay", "black", "white", "male", "female", "lesbian"]
MODELS = ["toxicity_1", "toxicity_6"]
SHIFTS = (
    ScoreDistribution("positives up", (0.2, 0.55), (0.2, 0.9)),
    ScoreDistribution("both up", (0.1, 0.55), (0.45, 0.9)),
)
"""The two images of its section on average equality gaps."""


@cache
def measured_shifts() -> biasspark.MeasuredCorpus:
    """Measure a subgroup whose positives, or all rows, are scored higher."""
    return biasspark.measure(
        make_table(ScoreDistributionsRequest(1, 20_000, SHIFTS)).to_pandas(),
        models=["score"],
        label="label",
        identities=["subgroup"],
        slices={shift.name: f"shape = '{shift.name}'" for shift in SHIFTS},
        histograms=50,
    )


NOTEBOOK.exhibit("Large score shift", "Scores of background and subgroup, hypothetical", data=DRAWN)(figure_1)


def draw_cells(metric: str) -> Picture:
    """Draw the two cells that an AUC compares."""
    return Picture(highlight_cells([metric]), f"The examples that {metric} compares.")


@NOTEBOOK.exhibit("Subgroup AUC", "The examples that it compares", data=DRAWN)
def subgroup_auc(_: Path) -> Iterator[Made]:
    yield draw_cells("subgroup_auc")


def order_comments(metric: str, background: float, subgroup: float) -> Iterator[Made]:
    """Measure the two comments of an example, and draw what their metric compares."""
    is_bpsn = metric == "bpsn_auc"
    comments = pd.DataFrame(
        {"label": [is_bpsn, not is_bpsn], "subgroup": [False, True], "score": [background, subgroup]}
    )
    ours = biasspark.bias_metrics(comments, models=["score"], label="label", identities=["subgroup"])
    yield Numbers(pd.DataFrame({metric: {"subgroup": "misordered"}}), ours.set_index("identity")[[metric]])
    yield draw_cells(metric)


@NOTEBOOK.exhibit(
    "BPSN AUC",
    '"I hate you, die!" scores .85, and "I am gay!" scores .9',
    data="the two comments of the example",
    why="The only pair is ordered wrongly, so the AUC is 0.",
)
def bpsn_auc(_: Path) -> Iterator[Made]:
    yield from order_comments("bpsn_auc", 0.85, 0.9)


@NOTEBOOK.exhibit(
    "BNSP AUC",
    '"What the heck!" scores .45, and "I hate christians!" scores .4',
    data="the two comments of the example",
    why="The only pair is ordered wrongly, so the AUC is 0.",
)
def bnsp_auc(_: Path) -> Iterator[Made]:
    yield from order_comments("bnsp_auc", 0.45, 0.4)


@NOTEBOOK.exhibit(
    "AEG",
    "True positive rates of subgroup and background at every threshold",
    data="a subgroup whose scores are shifted down by .04, 20,000 a cell, seed 1",
    why="The image prints no number. Its shaded area is the Positive AEG.",
)
def aeg(shared: Path) -> Iterator[Made]:
    yield from figure_2(shared)


@NOTEBOOK.exhibit(
    "Positive and Negative AEG",
    "Only the positives of the subgroup are scored higher, or all of it is",
    data="scores drawn from such distributions, 20,000 a cell, seed 1",
    why="The notebook prints .5 for the shifts of its images, and says that unshifted negatives are alike.",
)
def both_aegs(_: Path) -> Iterator[Made]:
    printed = {"positives up": {"negative_aeg": "0.0", "positive_aeg": "0.5"}}
    printed |= {"both up": dict.fromkeys(AEGS, "0.5")}
    yield Numbers(pd.DataFrame(printed).T[AEGS], measured_shifts().bias_metrics().set_index("slice")[AEGS])
    yield Picture(
        plot.histograms(measured_shifts(), slices=[shift.name for shift in SHIFTS]), "Scores of both subgroups."
    )


NOTEBOOK.exhibit(
    "Examples",
    "Metrics of seven score distributions, the image of Table 2 of Nuanced Metrics",
    data=DRAWN,
    why="See Table 2 of Nuanced Metrics.",
)(table_2)


@NOTEBOOK.exhibit(
    "compute_bias_metrics_for_model",
    "The metrics of all subgroups, by the functions of the notebook",
    data="the authors' 30,240 scored sentences (`madlibs_scored`), six terms",
    why="The notebook has no data and stores no output. Its functions, which use scikit-learn and scipy, give what "
    "biasspark gives.",
)
def compute_bias_metrics_for_model(shared: Path) -> Iterator[Made]:
    sentences = read_data(shared, SENTENCES)
    computed = {
        term: {
            f"{model}_{metric}": f"{value:.12f}"
            for model in MODELS
            for metric, value in define_suite(sentences, term, model).items()
        }
        for term in TERMS
    }
    terms = {"column": "phrase", "list": TERMS}
    metrics = biasspark.bias_metrics(sentences, models=MODELS, label="label", identities={"terms": terms})
    yield Numbers(pd.DataFrame(computed).T, split_by_model(metrics, AUCS + AEGS), against="by the notebook's functions")
