"""A matplotlib figure as SVG that lives inside a page: under its security policy, and in its colours, light or dark."""

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

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"

INK, SOFT, LINE, PAPER = "#111111", "#666666", "#dddddd", "#fefefe"
MODELS = ("#0072b2", "#d55e00", "#009e73", "#aa4499")
"""What figures are drawn in. Each colour stands for a variable of the page's style sheet."""

MARKERS = ("o", "D", "s", "^")
"""Of models: told apart without colour, too."""

_VARIABLES = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    PAPER: "var(--paper)",
    **{colour: f"var(--m{place})" for place, colour in enumerate(MODELS)},
}
_INHERITED = (
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-opacity",
    "stroke-width",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-dasharray",
)
_STYLE = {
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.labelcolor": SOFT,
    "axes.linewidth": 1,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "normal",
    "figure.dpi": 72,  # then a point of the figure is a pixel of the page
    "figure.facecolor": "none",
    "font.size": 11,
    "grid.color": LINE,
    "grid.linewidth": 1,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollar signs is no formula
    "xtick.bottom": False,
    "xtick.labelcolor": SOFT,
    "xtick.major.size": 0,
    "ytick.labelcolor": SOFT,
    "ytick.left": False,
    "ytick.major.size": 0,
}


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw figures in the page's style, the same bytes for the same rows. ``name`` keeps ids of figures apart."""
    style: Any = {**_STYLE, "svg.hashsalt": name}  # a plain dict: its keys are matplotlib's
    with mpl.rc_context(style), warnings.catch_warnings():
        # A name may have letters that no font here has; the reader's browser has its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def write_figure(figure: Figure, label: str) -> Markup:
    """Return a figure as an ``<svg>`` element.

    Parameters
    ----------
    figure
        Drawn within `drawing`.
    label
        What the picture shows, for those who do not see it.

    Returns
    -------
    Markup
        Without style attributes, which a policy that names style sheets by their hash forbids: each becomes
        presentation attributes. Without ids that nothing refers to. Text is text, in the fonts of the page.
    """
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(file.getvalue())
    _drop(root, lambda element: element.tag in {f"{{{SVG}}}metadata", f"{{{SVG}}}style"})
    used = set(re.findall(rb"#([\w-]+)", file.getvalue()))
    for element in root.iter():
        _adapt(element, used)
    _drop(root, _is_unseen)
    for group in reversed(list(root.iter(f"{{{SVG}}}g"))):
        _say_once(group)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib |= {"class": "chart", "role": "img", "aria-label": label, "width": width, "height": height}
    ElementTree.register_namespace("", SVG)
    written = ElementTree.tostring(root, encoding="unicode")
    return Markup(re.sub(r">\s+<", "><", written).replace(" />", "/>"))  # ElementTree has escaped all text


def _drop(root: ElementTree.Element, is_needless: Callable[[ElementTree.Element], bool]) -> None:
    for parent in root.iter():
        for child in [child for child in parent if is_needless(child)]:
            parent.remove(child)


def _is_unseen(element: ElementTree.Element) -> bool:
    """Say whether an element is a frame without line and colour; what has an id is drawn elsewhere."""
    return element.get("fill") == "none" and element.attrib.keys().isdisjoint({"stroke", "id"})


def _adapt(element: ElementTree.Element, used: set[bytes]) -> None:
    """Replace what a page cannot have: style attributes, links by another namespace, needless ids."""
    if element.attrib.get("id", "").encode() not in used:
        element.attrib.pop("id", None)
    if HREF in element.attrib:
        element.attrib["href"] = element.attrib.pop(HREF)
    if "d" in element.attrib:
        element.attrib["d"] = re.sub(r" ?([A-Za-z]) ?", r"\1", _shorten(element.attrib["d"]))
    for key in ("x", "y"):
        if key in element.attrib:
            element.attrib[key] = _shorten(element.attrib[key])
    if "transform" in element.attrib:
        element.attrib["transform"] = _shorten(element.attrib["transform"])
        if element.attrib["transform"].startswith("rotate(-0 "):
            del element.attrib["transform"]
    for declaration in element.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key and key not in {"font-family", "font"}:
            element.attrib[key] = _VARIABLES.get(value, value)


def _say_once(group: ElementTree.Element) -> None:
    """Give a group the colours and lines that all its elements have, markers for example."""
    children = [child.attrib for child in group]
    for key in _INHERITED:
        first, *others = {own.get(key, "") for own in children} or {""}
        if first and not others:
            group.attrib[key] = first
            for own in children:
                del own[key]


def _shorten(text: str) -> str:
    """Round numbers to a tenth of a pixel, and put lines together."""
    rounded = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text)
    return re.sub(r"\s+", " ", rounded).strip()
