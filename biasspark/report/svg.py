"""A matplotlib figure as SVG inside a page: within its security policy, and in its colors, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from biasspark.columns import NEGATIVE, POSITIVE
from biasspark.plot.heat_maps import CELL_COLORS
from biasspark.plot.panels import INK, LABEL_COLORS, LINE, MODEL_COLORS, SOFT, STYLE

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"

_VARIABLES = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    LABEL_COLORS[NEGATIVE]: "var(--neg)",
    LABEL_COLORS[POSITIVE]: "var(--pos)",
    **{color: f"var(--m{number})" for number, color in enumerate(MODEL_COLORS)},
}
_INHERITED = (
    *("fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-linecap", "stroke-linejoin"),
    "stroke-dasharray",
)


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw figures in the page's style, the same bytes for the same rows. ``name`` keeps the ids of figures apart."""
    style: Any = {**STYLE, "svg.hashsalt": name}  # a plain dict: its keys are matplotlib's
    with mpl.rc_context(style), warnings.catch_warnings():
        # A name may have letters that no font here has. The reader's browser has its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def write_figure(figure: Figure, label: str) -> Markup:
    """Return a figure that is drawn within `drawing` as an ``<svg>`` element; readers who do not see it get the label.

    Style attributes, which the page's policy forbids, are presentation attributes. Cells of a color scale have its
    classes. Ids to which nothing refers are left out. Text is text, in the fonts of the page.
    """
    for artist in figure.findobj(lambda artist: artist.get_label() in CELL_COLORS):
        artist.set_gid(str(artist.get_label()))
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(file.getvalue())
    _remove(root, lambda element: element.tag in {f"{{{SVG}}}metadata", f"{{{SVG}}}style"})
    used_ids = set(re.findall(rb"#([\w-]+)", file.getvalue()))
    for element in root.iter():
        _adapt(element, used_ids)
    for group in root.iterfind(f".//{{{SVG}}}g[@class]"):
        for child in group:
            child.attrib["fill"] = "currentColor" if child.tag == f"{{{SVG}}}text" else "var(--cell)"
    _remove(root, _is_invisible)
    for group in reversed(list(root.iter(f"{{{SVG}}}g"))):
        _lift_attributes(group)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib |= {"class": "chart", "role": "img", "aria-label": label, "width": width, "height": height}
    ElementTree.register_namespace("", SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return Markup(re.sub(r">\s+<", "><", text).replace(" />", "/>"))  # ElementTree has escaped all text


def _remove(root: ElementTree.Element, is_removed: Callable[[ElementTree.Element], bool]) -> None:
    for parent in root.iter():
        for child in [child for child in parent if is_removed(child)]:
            parent.remove(child)


def _is_invisible(element: ElementTree.Element) -> bool:
    """Return whether an element has neither line nor color. What has an id is drawn elsewhere."""
    return element.get("fill") == "none" and element.attrib.keys().isdisjoint({"stroke", "id"})


def _adapt(element: ElementTree.Element, used_ids: set[bytes]) -> None:
    """Replace what a page cannot have: style attributes, links of another namespace, unused ids."""
    attributes = element.attrib
    if attributes.get("id") in CELL_COLORS:
        attributes["class"] = attributes["id"]
    if attributes.get("id", "").encode() not in used_ids:
        attributes.pop("id", None)
    if HREF in attributes:
        attributes["href"] = attributes.pop(HREF)
    for key in attributes.keys() & {"d", "x", "y", "transform"}:
        attributes[key] = _round_numbers(attributes[key])
    if "d" in attributes:
        attributes["d"] = re.sub(r" ?([A-Za-z]) ?", r"\1", attributes["d"])
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    for declaration in attributes.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key and key not in {"font-family", "font"}:
            attributes[key] = _VARIABLES.get(value, value)


def _lift_attributes(group: ElementTree.Element) -> None:
    """Give a group the colors and lines that all its elements have, for example markers."""
    children = [child.attrib for child in group]
    for key in _INHERITED:
        values = {attributes.get(key, "") for attributes in children}
        if len(values) == 1 and values != {""}:
            group.attrib[key] = values.pop()
            for attributes in children:
                del attributes[key]


def _round_numbers(text: str) -> str:
    """Round numbers to a tenth of a pixel, and join lines."""
    rounded = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)
    return re.sub(r"\s+", " ", rounded).strip()
