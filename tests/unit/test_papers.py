"""The exhibits of scripts/paper: none is missing, values are compared to their last digit, and text is text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from biasspark.errors import ConfigError
from scripts.papers.__main__ import OVERVIEW, ROOT, SOURCES, main, read_parser
from scripts.papers.exhibits import Cell, Made, Numbers, Source, summarize
from scripts.papers.pages import make_exhibit, show_difference, show_ours, show_printed, write_overview, write_page

PRINTED = {
    "nuanced": [*(f"Table {number}" for number in range(1, 8)), "Figure 1", "Figure 2"],
    "attributing": [*(f"Table {number}" for number in range(1, 8)), *(f"Figure {number}" for number in range(1, 5))],
    "pinned": ["Table 1", "Table 2"],
    "mitigating": [
        *("Perspective API", "Example scores", "Toxicity by length", "Added examples", "Heights"),
        *("Equality difference", "Per-term Pinned AUC"),
    ],
    "notebook": [
        *("Large score shift", "Subgroup AUC", "BPSN AUC", "BNSP AUC", "AEG", "Positive and Negative AEG", "Examples"),
        "compute_bias_metrics_for_model",
    ],
}
"""What each source has, as it names them, or the titles of its slides and images."""

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("key", SOURCES)
def test_every_table_and_figure_is_made_or_has_a_reason(key: str) -> None:
    exhibits = SOURCES[key].exhibits
    assert set(PRINTED[key]) <= {exhibit.name for exhibit in exhibits}
    assert [exhibit.name for exhibit in exhibits if not (exhibit.data if exhibit.make else exhibit.why)] == []
    assert len({exhibit.slug for exhibit in exhibits}) == len(exhibits)


@pytest.mark.parametrize("key", SOURCES)
def test_the_page_has_every_exhibit_and_its_command(key: str) -> None:
    text = OVERVIEW.read_text("utf-8")
    for exhibit in SOURCES[key].exhibits:
        assert f"### {key.capitalize()}, {exhibit.name}\n" in text
        assert exhibit.make is None or f"`scripts/paper {key} {exhibit.slug}`" in text


def test_every_printed_table_that_is_kept_is_compared() -> None:
    folder = ROOT.parent / "shared" / "papers"
    if not folder.is_dir():
        pytest.skip(f"the printed tables are not here: {folder}")
    code = "".join(path.read_text("utf-8") for path in (ROOT / "scripts" / "papers").glob("*.py"))
    assert [path.name for path in folder.glob("*.csv") if path.stem not in code] == []


@pytest.mark.parametrize(
    ("printed", "ours", "agrees", "shown"),
    [
        ("0.76", 0.7609, True, ("0.76", "0.761", "+0.001")),
        ("0.99", 0.9977, True, ("0.99", "0.998", "+0.008")),  # cut off, not rounded
        ("0.3", 0.2801, False, ("0.3", "0.280", "−0.020")),  # .30
        ("-0.48", -0.4837, True, ("−0.48", "−0.484", "−0.004")),
        ("1804875", 1_804_870.0, False, ("1,804,875", "1,804,870", "−5")),
        ("17", 16.8, True, ("17", "16.8", "−0.2")),
        ("lower", 0.9, False, ("lower", "0.900", "")),
        ("", 0.5, False, ("", "0.500", "")),
        ("0.25", None, False, ("0.25", "–", "")),
        ("0.123456789012", 0.123456789112, False, ("0.1234568", "0.1234568", "+0.0000000")),
        ("0.123456789012", 0.123456789013, True, ("0.1234568", "0.1234568", "+0.0000000")),
    ],
)
def test_a_value_is_compared_to_its_last_digit(
    printed: str, ours: float | None, agrees: bool, shown: tuple[str, str, str]
) -> None:
    cell = Cell("row", "column", printed, ours)
    assert cell.agrees == agrees
    assert (show_printed(cell), show_ours(cell), show_difference(cell)) == shown


def test_a_summary_names_the_largest_difference() -> None:
    cells = [Cell("a", "x", "0.50", 0.5), Cell("b", "x", "0.50", 0.75), Cell("c", "x", "lower", 0.1)]
    assert all(part in summarize(cells) for part in ("1 of 2", "0.12", "0.25 (b, x)"))
    assert summarize(cells[2:]) == ""
    assert "1 without ours" in summarize([*cells, Cell("d", "x", "0.50", None)])


def test_values_stand_by_the_names_of_their_rows_and_columns() -> None:
    numbers = Numbers(
        pd.DataFrame({"x": ["1", "2"], "y": ["3", ""]}, index=["a", "b"]),
        pd.DataFrame({"y": [3.0, 4.0, 9.0], "x": [2.0, 1.0, 9.0]}, index=["b", "a", "c"]),
    )
    assert [(cell.row, cell.column, cell.printed, cell.ours) for cell in numbers] == [
        ("a", "x", "1", 1.0),
        ("a", "y", "3", 4.0),
        ("b", "x", "2", 2.0),
        ("b", "y", "", 3.0),
    ]


def test_text_is_text_on_the_page() -> None:
    source = Source("hostile", HOSTILE)

    @source.exhibit(HOSTILE, HOSTILE, data=HOSTILE, why=HOSTILE)
    def make(_: Path) -> Iterator[Made]:
        yield Numbers(pd.DataFrame({HOSTILE: {HOSTILE: HOSTILE}}), pd.DataFrame({HOSTILE: {HOSTILE: 1.0}}), HOSTILE)

    source.leave_out("Table 0", "left out", HOSTILE)
    shown = [make_exhibit(exhibit, Path()) for exhibit in source.exhibits]
    page = write_page(source, shown)
    assert page.count("<script") == 1  # the page's own
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "Table 0" in write_overview({source.key: (source, shown)})


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    for name in ("data", "papers"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], None),
        (["nuanced", "--all"], None),
        (["pinned", "--docs"], None),
        (["nuance"], r"\bnuanced\?"),
        (["nuanced", "table2"], r"\btable-2\?"),
        (["pinned", "--shared", "/nonexistent"], "/nonexistent"),
        (["pinned", "--docs", "/nonexistent/papers.md"], "/nonexistent/papers.md"),
    ],
)
def test_wrong_usage_is_refused(words: list[str], named: str | None, shared: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        main(read_parser().parse_args(["--shared", str(shared), "--out", str(shared / "out"), *words]))
    assert not (shared / "out").exists()


def test_a_folder_that_cannot_be_made_is_named(shared: Path) -> None:
    out = shared / "file" / "out"
    out.parent.touch()
    with pytest.raises(ConfigError, match=re.escape(str(out))):
        main(read_parser().parse_args(["pinned", "--shared", str(shared), "--out", str(out)]))


def test_names_break_after_underscores_counts_have_no_decimals_and_backticks_are_code() -> None:
    source = Source("whole", "")

    @source.exhibit("Table 1", "", data="`a < b`, data", why="As in `c`.")
    def make(_: Path) -> Iterator[Made]:
        printed = pd.DataFrame({"n_a": {"r_s": "4"}, "percent": {"r_s": "17"}})
        yield Numbers(printed, pd.DataFrame({"n_a": {"r_s": 5}, "percent": {"r_s": 17.0}}))

    page = write_page(source, [make_exhibit(exhibit, Path()) for exhibit in source.exhibits])
    assert all(f">{name}</th>" in page for name in ("n_<wbr>a", "r_<wbr>s"))
    assert re.findall("<td.*?>(.*?)<small>(.*?)</small>", page) == [("5", "4 +1"), ("17.0", "17 +0.0")]
    assert all(f"<code>{text}</code>" in page for text in ("a &lt; b", "c"))
