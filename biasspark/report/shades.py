"""The scales of colours, as CSS: light and dark, each of even steps of lightness so that greys tell the same.

``a`` is for AUCs, worst to best: what is best has the colour of the page. ``g`` is for gaps, from scored lower over
none to scored higher: two hues that the colour-blind tell apart, and a sign is printed. ``p`` is for shares, none to
most.
"""

from __future__ import annotations

from collections.abc import Sequence

from biasspark.report.cells import N_SHADES

Rgb = tuple[float, float, float]

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
INKS = ("#000000", "#ffffff")


def write_shades() -> str:
    """Return the rules of all shades, those of a dark page in a query of the reader's preference."""
    return f"{_write_rules(LIGHT)}@media screen and (prefers-color-scheme:dark){{{_write_rules(DARK)}}}\n"


def _write_rules(anchors: dict[str, tuple[str, ...]]) -> str:
    return "".join(
        f".{name}{place}{{background:{colour};color:{choose_ink(colour)}}}"
        for name, ends in anchors.items()
        for place, colour in enumerate(list_shades(ends))
    )


def list_shades(anchors: Sequence[str], n: int = N_SHADES) -> list[str]:
    """Return so many colours, evenly spaced on the line through the anchors."""
    colours = [_to_rgb(anchor) for anchor in anchors]
    found = []
    for place in range(n):
        at = place / (n - 1) * (len(colours) - 1)
        below = min(int(at), len(colours) - 2)
        pairs = zip(colours[below], colours[below + 1], strict=True)
        found.append("#" + "".join(f"{round(255 * (a + (b - a) * (at - below))):02x}" for a, b in pairs))
    return found


def choose_ink(colour: str) -> str:
    """Return the colour of text that is read best on a colour: black or white, always at 4.5 or more."""
    return max(INKS, key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2: 1 for equals, 21 for black on white."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour by WCAG 2: 0 for black, 1 for white."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in _to_rgb(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _to_rgb(colour: str) -> Rgb:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue
