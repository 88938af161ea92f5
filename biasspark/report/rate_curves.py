"""The rates of identities against those of their background, as curves that are drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from biasspark.columns import (
    ALL_ROWS,
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    IDENTITY,
    MODEL,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.report.cells import DASH, TableCell, drop_zeros, metric_cell
from biasspark.report.charts import LETTER, PIXELS, WIDEST_NAME, WIDTH, choose_identities, model_colour, short_name
from biasspark.report.distributions import Cells, RateCurve, trace_rates
from biasspark.report.facts import NightFacts
from biasspark.report.svg import SOFT, drawing, write_figure

MOST_CURVES = 8
_CURVES = (
    ("negative_aeg", "FPR", BACKGROUND_NEGATIVE, SUBGROUP_NEGATIVE),
    ("positive_aeg", "TPR", BACKGROUND_POSITIVE, SUBGROUP_POSITIVE),
)


@dataclass(frozen=True)
class _Panel:
    """What one panel shows: the curve of an identity and a model, with the gap of the table."""

    curve: RateCurve | None
    gap: TableCell
    colour: str


def draw_rate_curves(facts: NightFacts, histograms: Mapping[tuple[str, str], Cells]) -> Markup | None:
    """Draw the rates of an identity against those of its background over all thresholds; None without histograms.

    A panel per identity and model, negatives above positives. The area between a curve and the diagonal is the gap.
    """
    models, names = facts.models()[:MOST_CURVES], choose_curves(facts)
    if not histograms or not names:
        return None
    columns = [(name, model) for name in names for model in models]
    widest = int(WIDTH / MOST_CURVES / LETTER) - 3
    suite = {(row[IDENTITY], row[MODEL]): row for row in facts.rows("bias_metrics", slice=ALL_ROWS)}
    with drawing("curves"):
        figure = Figure(figsize=(WIDTH / PIXELS, 390 / PIXELS))
        grid = figure.subplots(2, MOST_CURVES, squeeze=False)
        figure.subplots_adjust(left=0.045, right=0.995, top=0.87, bottom=0.07, wspace=0.2, hspace=0.28)
        for line, (metric, rate, background, subgroup) in enumerate(_CURVES):
            for axes, (name, model) in zip(grid[line], columns, strict=False):
                curve = trace_rates(histograms.get((model, name), {}), background, subgroup)
                gap = metric_cell(suite[name, model], metric) if (name, model) in suite else TableCell(text=DASH)
                _draw_curve(axes, _Panel(curve, gap, model_colour(models.index(model))))
            grid[line][0].set_ylabel(f"{rate} of the identity", labelpad=2)
            for axes in grid[line][len(columns) :]:
                axes.set_axis_off()
            grid[line][0].set_xlabel("of background", labelpad=-8)
        for axes, (name, model) in zip(grid[0], columns, strict=False):
            axes.text(
                0, 1.09, short_name(model, widest), color=model_colour(models.index(model)), transform=axes.transAxes
            )
            if model == models[0]:
                axes.text(
                    0,
                    1.25,
                    short_name(name, min(WIDEST_NAME, widest * len(models))),
                    fontsize=12,
                    transform=axes.transAxes,
                )
        return write_figure(figure, "False and true positive rates of the worst identities against their background")


def _draw_curve(axes: Axes, panel: _Panel) -> None:
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, dashes=(3, 3))
    if panel.curve is not None:
        across, up = panel.curve.background, panel.curve.subgroup
        axes.fill_between(across, across, up, color=panel.colour, alpha=0.22, linewidth=0)
        axes.plot(across, up, color=panel.colour, linewidth=1.8)
    below = panel.gap.value is not None and panel.gap.value < 0
    x, y, side = (0.05, 0.86, "left") if below else (0.96, 0.18, "right")
    axes.text(x, y, f"{'◦ ' if panel.gap.weak else ''}{panel.gap.text}", ha=side, fontsize=12)
    axes.text(x, y - 0.12, drop_zeros(panel.gap.interval), ha=side, fontsize=9, color=SOFT)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([0, 1], ["0", "1"])
    axes.set_yticks([0, 1], ["0", "1"])


def choose_curves(facts: NightFacts) -> list[str]:
    """Return the identities whose rates are drawn: so many that their panels of all models fit on a line."""
    return choose_identities(facts, MOST_CURVES // max(1, min(len(facts.models()), MOST_CURVES)))
