"""Borkan, Dixon, Sorensen, Thain and Vasserman, "Nuanced Metrics" (2019): seven tables and two figures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark import plot
from biasspark.metrics.suite import SUITE
from biasspark.report.panels import LABEL_COLORS, LINE, notebook_style
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.civil import CORPUS_ROWS, IDENTITY_NAMES, CivilRequest
from biasspark.synthetic.score_cells import DISTRIBUTIONS, ScoreDistribution, ScoreDistributionsRequest
from scripts.papers.exhibits import Made, Numbers, Picture, Source, read_data, read_printed, split_by_model

NUANCED = Source(
    "nuanced",
    'Borkan, Dixon, Sorensen, Thain and Vasserman, "Nuanced Metrics for Measuring Unintended Bias with Real Data for '
    'Text Classification" (2019)',
)
AUCS = ["subgroup_auc", "bpsn_auc", "bnsp_auc"]
AEGS = ["negative_aeg", "positive_aeg"]
MODELS = {"toxicity1": "toxicity_1", "toxicity6": "toxicity_6"}
"""TOXICITY@1 and TOXICITY@6, by the names that the printed tables have here."""

COMPARED = {metric.name: (metric.low, metric.high) for metric in SUITE if metric.name != "background_auc"}
"""The two cells that each metric compares."""

PRINTED_A = ScoreDistribution("A, subgroup means .3 and .7", (0.2, 0.6), (0.3, 0.7))
LEFT = ScoreDistribution("left", (0.2, 0.6), (0.16, 0.56))
SENTENCES = "madlibs_scored/madlibs_scored"
SCORED_SENTENCES = (
    "The scores of the 77,000 sentences were never published, but for 2,514 of them, which are among these. All of "
    "these are templated sentences that the authors published with scores of the same models"
)
DRAWN = "scores drawn from the distributions of the authors' demonstration, 20,000 a cell, seed 1"
CIVIL = (
    "1,804,875 generated comments with the printed counts and shares of toxic comments, whose scores are shifted by "
    "the printed gaps (`make-corpus civil`, seed 1)"
)


@cache
def drawn_scores() -> pd.DataFrame:
    """Return scores of the distributions of Table 2, and of two more."""
    request = ScoreDistributionsRequest(1, 20_000, (*DISTRIBUTIONS, PRINTED_A, LEFT))
    scores: pd.DataFrame = make_table(request).to_pandas()
    return scores


@cache
def measured_shapes() -> biasspark.MeasuredCorpus:
    """Measure each distribution as a slice of its own."""
    return biasspark.measure(
        drawn_scores(),
        models=["score"],
        label="label",
        identities=["subgroup"],
        slices={name: f"shape = '{name}'" for name in drawn_scores()["shape"].unique()},
        histograms=50,
        thresholds={"grid": {"steps": 1000}},
    )


@cache
def measured_comments() -> biasspark.MeasuredCorpus:
    """Measure a generated corpus as large as the human-labeled one, and its short comments."""
    return biasspark.measure(
        make_table(CivilRequest(CORPUS_ROWS, 1)),
        models=MODELS,
        label="target",
        label_threshold=0.5,
        identities=list(IDENTITY_NAMES),
        slices={"short": "comment_length < 100"},
        histograms=50,
        label_balance=True,
    )


def highlight_cells(metrics: list[str]) -> Figure:
    """Draw the scores of background and subgroup for each metric, in color the two cells that it compares."""
    scores = measured_shapes().score_histograms().query("slice == 'B' and identity == 'subgroup'")
    with notebook_style():
        figure = Figure(figsize=(2.9 * len(metrics), 2.4), layout="constrained")
        panels = figure.subplots(2, len(metrics), sharex=True, squeeze=False)
        for metric, column in zip(metrics, panels.T, strict=True):
            column[0].set_title(metric)
            for group, axes in zip(("background", "subgroup"), column, strict=True):
                axes.set(yticks=[], xlim=(0, 1), ylabel=group if metric == metrics[0] else "")
                axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
                for label, color in LABEL_COLORS.items():
                    bins = scores[scores["cell"] == f"{group}_{label}"]
                    is_compared = f"{group}_{label}" in COMPARED[metric]
                    axes.bar(
                        bins["bin_low"],
                        bins["n_rows"].astype(float),
                        width=bins["bin_high"] - bins["bin_low"],
                        align="edge",
                        color=color if is_compared else LINE,
                    )
    return figure


def define_suite(sentences: pd.DataFrame, term: str, score: str) -> dict[str, float]:
    """Compute the five metrics of a term as the paper writes them, and as the notebook computes them."""
    toxic, mentions = sentences["label"], sentences["phrase"].str.contains(rf"\b{term}\b", case=False)
    low, high = sentences[score][~toxic], sentences[score][toxic]

    def auc(negatives: pd.Series[float], positives: pd.Series[float]) -> float:
        labels = np.r_[np.zeros(len(negatives)), np.ones(len(positives))]
        return float(roc_auc_score(labels, np.r_[negatives, positives]))

    def aeg(scores: pd.Series[float]) -> float:
        subgroup, background = scores[mentions], scores[~mentions]
        u = mannwhitneyu(background, subgroup, alternative="less").statistic
        return float(0.5 - u / (len(subgroup) * len(background)))

    return {
        "subgroup_auc": auc(low[mentions], high[mentions]),
        "bpsn_auc": auc(low[mentions], high[~mentions]),
        "bnsp_auc": auc(low[~mentions], high[mentions]),
        "negative_aeg": aeg(low),
        "positive_aeg": aeg(high),
    }


@NUANCED.exhibit("Figure 1", "Scores of background and subgroup, hypothetical", data=DRAWN)
def figure_1(_: Path) -> Iterator[Made]:
    yield Picture(
        plot.histograms(measured_shapes(), slices="B"),
        "A large shift: negatives of the subgroup lie where positives of the background do.",
    )


@NUANCED.exhibit(
    "Figure 2",
    "True positive rates of subgroup and background at every threshold",
    data="a subgroup whose scores are shifted down by .04, 20,000 a cell, seed 1",
    why="The figure prints no number. Its shaded area is the Positive AEG: definition 2, the area, and definition 4, "
    "Mann-Whitney's U, give the same. As printed, the integral of definition 2 has the opposite sign of definitions 3 "
    "and 4, which all tables of the paper follow, and biasspark too.",
)
def figure_2(_: Path) -> Iterator[Made]:
    measured = measured_shapes()
    rates = measured.threshold_rates().query("slice == 'left'").sort_values("threshold", ascending=False)
    subgroup, background = (np.r_[0.0, rates[name].astype(float), 1.0] for name in ("tpr", "background_tpr"))
    area = np.trapezoid(subgroup, background) - 0.5
    metrics = measured.bias_metrics().query("slice == 'left'").set_index("identity")
    yield Numbers(
        pd.DataFrame({"positive_aeg": {"subgroup": f"{area:.4f}"}}),
        metrics[["positive_aeg"]],
        against="area under the curve, less 1/2",
    )
    yield Picture(plot.rate_curves(measured, slices="left"), "Rates of the subgroup against those of the background.")


@NUANCED.exhibit(
    "Table 1",
    "The five metrics, and the examples that each compares",
    data='TOXICITY@1 of the authors\' 30,240 scored sentences, identity "gay"',
    why="The table prints definitions. Here they are computed as written, by scikit-learn and scipy, and by biasspark.",
)
def table_1(shared: Path) -> Iterator[Made]:
    sentences = read_data(shared, SENTENCES)
    defined = define_suite(sentences, "gay", "toxicity_1")
    metrics = biasspark.bias_metrics(
        sentences, models="toxicity_1", label="label", identities={"terms": {"column": "phrase", "list": ["gay"]}}
    )
    yield Numbers(
        pd.DataFrame({"value": {name: f"{value:.12f}" for name, value in defined.items()}}),
        metrics[AUCS + AEGS].T.set_axis(["value"], axis=1),
        against="by definition",
    )
    yield Picture(highlight_cells(list(COMPARED)), "In color the examples that each metric compares, at a large shift.")


@NUANCED.exhibit(
    "Table 2",
    "What each metric sees of seven score distributions",
    data=DRAWN,
    why="The paper cuts AUCs off: .9977 is printed .99. The AEGs printed for A belong to a subgroup with means .3 and "
    ".7; with the parameters published for A both are .498. The paper gives its two AEGs in varying order: here by "
    "their sign, as its text explains for E. The paper draws 1,000 scores a cell, so chance moves its values by "
    "about .01.",
)
def table_2(shared: Path) -> Iterator[Made]:
    printed = read_printed(shared, "nuanced_table2_score_distributions").drop(columns="description")
    # E and F print the gap of the positives first, G that of the negatives.
    printed = printed.rename(columns={"aegs_first": "positive_aeg", "aegs_second": "negative_aeg"})
    printed.loc["G"] = printed.rename(columns=dict(zip(AEGS, AEGS[::-1], strict=True))).loc["G"]
    printed.loc[PRINTED_A.name] = printed.loc["A"].where(printed.columns.isin(AEGS), "")
    yield Numbers(printed, measured_shapes().bias_metrics().set_index("slice"))
    yield Picture(plot.histograms(measured_shapes(), slices=list("ABCDEFG")), "The seven distributions.")


@NUANCED.exhibit(
    "Table 3",
    "TOXICITY@1 and TOXICITY@6 on templated sentences, 20 terms",
    data="the authors' 30,240 scored sentences (`madlibs_scored`)",
    why=f"{SCORED_SENTENCES}. Most have other templates, and fewer pairs are ordered correctly. The three terms with "
    "the lowest BPSN AUC are the same, in the same order, and most gaps have the same sign.",
)
def table_3(shared: Path) -> Iterator[Made]:
    sentences, printed = read_data(shared, SENTENCES), read_printed(shared, "nuanced_table3_synthetic")
    terms = {"column": "phrase", "list": printed.index.to_list()}
    metrics = biasspark.bias_metrics(sentences, models=MODELS, label="label", identities={"terms": terms})
    yield Numbers(printed, split_by_model(metrics, AUCS + AEGS))
    yield Picture(
        plot.intervals(metrics, identities=printed.index.to_list()), "The metrics of the 20 terms, with intervals."
    )
    published = pd.read_csv(shared / "data" / "madlibs_scored" / "expected_single_terms.csv", index_col="subgroup")
    pairs = pd.read_csv(shared / "data" / "madlibs_scored" / "expected_term_pairs.csv", index_col="subgroup")
    singles = published.index.to_list()
    pairs.index = pd.Index([" & ".join(sorted(pair.split(), key=singles.index)) for pair in pairs.index])
    terms = {"column": "phrase", "list": singles}
    metrics = biasspark.bias_metrics(
        sentences,
        models=["toxicity_1", "toxicity_6"],
        label="label",
        identities={"terms": terms, "crossed": {"pairs": True, "min_rows": 50}},
    )
    expected = pd.concat([published, pairs]).drop(columns="subset_size")
    yield Numbers(
        expected.map("{:.12f}".format),
        split_by_model(metrics, AUCS + AEGS),
        title="What the authors published for these very sentences: 12 terms and 20 pairs",
        against="as published",
    )


OPTIONS = {
    "Gender": ["male", "female", "transgender", "other_gender"],
    "Sexual Orientation": ["heterosexual", "homosexual_gay_or_lesbian", "bisexual", "other_sexual_orientation"],
    "Religion": ["christian", "jewish", "muslim", "hindu", "buddhist", "atheist", "other_religion"],
    "Race or ethnicity": ["black", "white", "latino", "other_race_or_ethnicity"],
    "Disability": [
        "physical_disability",
        "intellectual_or_learning_disability",
        "psychiatric_or_mental_illness",
        "other_disability",
    ],
}
"""The identities that raters could choose, by the columns of the published corpus."""


@NUANCED.exhibit(
    "Table 4",
    "Identities that raters could choose",
    data=CIVIL,
    why='The table names 23 identities, all of which the corpus has as columns. It leaves out "asian", the 24th column '
    "and a row of Table 6.",
)
def table_4(_: Path) -> Iterator[Made]:
    measured = set(measured_comments().bias_metrics().to_pandas()["identity"])
    printed = {category: {"identities": str(len(names))} for category, names in OPTIONS.items()}
    ours = {category: {"identities": len(measured.intersection(names))} for category, names in OPTIONS.items()}
    yield Numbers(pd.DataFrame(printed).T, pd.DataFrame(ours).T)


@NUANCED.exhibit(
    "Table 5",
    "Comments and toxic comments by identity",
    data=CIVIL,
    why="The comments are not available here. A generated corpus is drawn at random with the printed shares.",
)
def table_5(shared: Path) -> Iterator[Made]:
    printed = read_printed(shared, "nuanced_table5_counts")
    balance = measured_comments().label_balance().to_pandas().set_index("identity")
    named = balance.rename({"(overall)": "all comments", "homosexual_gay_or_lesbian": "homosexual"})
    yield Numbers(printed, pd.DataFrame({"count": named["n_rows"], "percent_toxic": 100 * named["positive_rate"]}))


@NUANCED.exhibit(
    "Table 6",
    "TOXICITY@1 and TOXICITY@6 on human-labeled comments, short ones and all",
    data=CIVIL,
    why="The comments and their scores are not available here. Scores are generated with the printed gaps to comments "
    "about no identity. The background holds the other identities too, whose scores are shifted as well, so measured "
    "gaps are nearer to 0. AUCs follow from the two.",
)
def table_6(shared: Path) -> Iterator[Made]:
    table = read_printed(shared, "nuanced_table6_human_labeled")
    metrics = measured_comments().bias_metrics().to_pandas()
    for comments in ("short", "all"):
        ours = split_by_model(metrics[metrics["slice"] == comments], AUCS + AEGS)
        yield Numbers(table.loc[comments].set_index("identity"), ours, title=f"{comments} comments")


@NUANCED.exhibit(
    "Table 7",
    "Scores of comments about homosexuals: short comments and all, both models",
    data=CIVIL,
    why="The table is a picture.",
)
def table_7(_: Path) -> Iterator[Made]:
    figure = plot.histograms(measured_comments(), identities="homosexual_gay_or_lesbian", slices=["short", "all"])
    yield Picture(figure, "Short comments above, all below.")
