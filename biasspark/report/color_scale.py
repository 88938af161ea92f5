"""The color scales as CSS, light and dark, with even steps of lightness, so that they work in gray as well.

``a`` is for AUCs, from worst to best, which has the color of the page. ``g`` is for gaps, from scored lower to scored
higher, in two hues that color-blind readers can distinguish. ``p`` is for shares, from 0 to the largest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_hex, to_rgb

from biasspark.report.cells import N_COLORS

LIGHT = {
    "a": ("#8a3206", "#c9570c", "#f2973a", "#fcc978", "#fdeccb", "#ffffff"),
    "g": ("#4a2a7a", "#8f83bb", "#d3d0e6", "#ffffff", "#fbd7a6", "#e6933a", "#9c4a06"),
    "p": ("#ffffff", "#d9efe6", "#97d0cb", "#4a9fbe", "#145c92"),
}
DARK = {
    "a": ("#f8cd74", "#dc9636", "#a1681e", "#6a4516", "#382a19", "#181c22"),
    "g": ("#beb4ea", "#7d70b4", "#3f385f", "#181c22", "#573b17", "#a86d22", "#f0ad58"),
    "p": ("#181c22", "#15404a", "#20737f", "#63b7be", "#b8e8e5"),
}


def color_rules() -> str:
    """Return the CSS rules of all colors, those for dark mode in a media query.

    The variable ``--cell`` is for the charts in the page.
    """
    return f"{_rules(LIGHT)}@media screen and (prefers-color-scheme:dark){{{_rules(DARK)}}}\n"


def _rules(scales: dict[str, tuple[str, ...]]) -> str:
    return "".join(
        f".{name}{number}{{--cell:{color};background:{color};color:{text_color(color)}}}"
        for name, anchors in scales.items()
        for number, color in enumerate(interpolate(anchors))
    )


def interpolate(anchors: Sequence[str]) -> list[str]:
    """Return the colors of a scale, evenly spaced on the line through the anchors."""
    rgb = [to_rgb(anchor) for anchor in anchors]
    scale = [number / (N_COLORS - 1) * (len(rgb) - 1) for number in range(N_COLORS)]
    channels = (np.interp(scale, range(len(rgb)), values) for values in zip(*rgb, strict=True))
    return [to_hex(color) for color in zip(*channels, strict=True)]


def text_color(background: str) -> str:
    """Return black or white, whichever has more contrast by WCAG 2: both have 4.58 at a luminance of 0.179."""
    return "#000000" if luminance(background) > 0.179 else "#ffffff"


def luminance(color: str) -> float:
    """Return the relative luminance of a color by WCAG 2: 0 for black, 1 for white."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
