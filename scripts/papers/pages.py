"""Output of exhibits: lines on the screen, a page for each source, and docs/papers.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from biasspark.cli import format_table
from biasspark.report.charts import drawing, write_figure
from biasspark.report.page import environment, hash_source, read_template
from biasspark.report.panels import color_rules
from scripts.papers.exhibits import PRINTED, Cell, Exhibit, Numbers, Picture, Source, summarize

TEMPLATES = Path(__file__).parent
MINUS = "\N{MINUS SIGN}"
STYLE = """
.off small { color: var(--warn); font-weight: 600; }
main > section > p, main > section > .scroll, main > section > figure { margin: 10px 0; }
main > section > p { max-width: 100ch; }
.heat thead th, .heat tbody th { max-width: none; overflow-wrap: normal; }
.heat tbody th { min-width: 60px; }
h2, main > ul { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Shown:
    """An exhibit with its numbers and pictures."""

    exhibit: Exhibit
    numbers: tuple[Numbers, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def agreement(self) -> str:
        """How far our values are from those of the source, then from others, such as those by definition."""
        kinds = sorted({numbers.against for numbers in self.numbers}, key=lambda against: against != PRINTED)
        summaries = [
            (against, summarize(cell for numbers in self.numbers if numbers.against == against for cell in numbers))
            for against in kinds
        ]
        return " ".join(
            text if against == PRINTED else f"{against.capitalize()}: {text}" for against, text in summaries if text
        )


def make_exhibit(exhibit: Exhibit, shared: Path) -> Shown:
    """Make the numbers and pictures of an exhibit from the shared data."""
    made = list(exhibit.make(shared)) if exhibit.make else []
    numbers = tuple(item for item in made if isinstance(item, Numbers))
    return Shown(exhibit, numbers, tuple(item for item in made if isinstance(item, Picture)))


def show_ours(cell: Cell) -> str:
    """Return our value with a digit more than is printed."""
    if cell.ours is None:
        return "\N{EN DASH}"
    n_decimals = 3 if cell.value is None else 0 if _is_count(cell) else cell.n_shown
    return f"{cell.ours:,.{n_decimals}f}".replace("-", MINUS)


def show_printed(cell: Cell) -> str:
    """Return a printed value; counts with thousands."""
    if cell.value is None or cell.decimals <= cell.n_shown:
        return f"{cell.value:,.0f}" if _is_count(cell) else cell.printed.replace("-", MINUS)
    return f"{cell.value:.{cell.n_shown}f}".replace("-", MINUS)


def show_difference(cell: Cell) -> str:
    """Return our value minus the printed one, with the precision of ours; empty if there is none."""
    if cell.difference is None:
        return ""
    return f"{cell.difference:+z,.{0 if _is_count(cell) else cell.n_shown}f}".replace("-", MINUS)


def break_name(name: str) -> Markup:
    """Return the name of a row or column, whose line may break after an underscore."""
    return Markup("_<wbr>").join(name.split("_"))


def show_code(text: str) -> Markup:
    """Return a sentence as HTML, with the text between backticks as code."""
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in parts)


def _is_count(cell: Cell) -> bool:
    return cell.is_count or (cell.value is not None and not cell.decimals and abs(cell.value) >= 1_000)


def write_lines(source: Source, shown: Shown) -> str:
    """Return an exhibit as text: a line for each value."""
    parts = [f"{shown.exhibit.name} of {source.key}: {shown.exhibit.title}"]
    parts += [f"Made from {shown.exhibit.data}."] if shown.exhibit.data else []
    for numbers in shown.numbers:
        columns = ("row", "column", numbers.against, "ours", "difference")
        cells = [
            (cell.row, cell.column, show_printed(cell), show_ours(cell), show_difference(cell)) for cell in numbers
        ]
        parts += [numbers.title] if numbers.title else []
        parts.append(format_table([dict(zip(columns, values, strict=True)) for values in cells], columns))
    parts += [f"Picture: {picture.caption}" for picture in shown.pictures]
    return "\n".join([*parts, *(text for text in (shown.agreement, shown.exhibit.why) if text)]) + "\n"


def write_page(source: Source, shown: list[Shown]) -> str:
    """Return the exhibits of a source as one self-contained HTML file, in light and dark colors."""
    style, script = read_template("report.css") + color_rules() + STYLE, read_template("sort.js")
    return _render(
        "page.html.j2",
        source=source,
        shown=shown,
        style=Markup(style),  # the project's own, as is the script
        style_hash=hash_source(style),
        script=Markup(script),
        script_hash=hash_source(script),
        draw=draw,
    )


def write_overview(shown: dict[str, tuple[Source, list[Shown]]]) -> str:
    """Return docs/papers.md: the values of every source, and ours."""
    return _render("papers.md.j2", sources=shown)


def draw(picture: Picture, name: str) -> Markup:
    """Return a picture as SVG in the colors of the page."""
    picture.figure.set_facecolor("none")
    with drawing(name):
        return write_figure(picture.figure, picture.caption)


def _render(template: str, **context: Any) -> str:
    texts = {
        function.__name__: function for function in (show_ours, show_printed, show_difference, show_code, break_name)
    }
    text = (TEMPLATES / template).read_text("utf-8")
    if template.endswith(".md.j2"):
        text = "{% autoescape false %}" + text + "{% endautoescape %}"
    return environment().from_string(text).render(**texts, **context) + "\n"
