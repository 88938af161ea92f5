"""How two models side by side are written: text for a terminal, Markdown, and CSV. No Spark."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.report.definitions import SUITE, SUITE_TITLES
from biasspark.report.side_by_side import (
    LINE_WIDTH,
    Request,
    SideBySide,
    SliceRows,
    format_csv,
    format_markdown,
    format_text,
    side_by_side,
)
from biasspark.report.text_formats import escape_markdown
from biasspark.text import measure_width
from tests.fixtures.two_models import RUN, metrics_table, suite_row

FIRST = {"subgroup_auc": 0.868, "bpsn_auc": 0.532, "bnsp_auc": 1.0, "negative_aeg": 0.462, "positive_aeg": -0.034}
SECOND = {"subgroup_auc": 0.996, "bpsn_auc": 0.958, "bnsp_auc": 0.98, "negative_aeg": -0.295, "positive_aeg": -0.0362}


def make_row(
    identity: str = "gay",
    first: Mapping[str, float | None] = FIRST,
    second: Mapping[str, float | None] = SECOND,
    reason: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    rows = [
        suite_row(model, "all", identity, [values[name] for name in SUITE], reason=reason)
        for model, values in (("a", first), ("b", second))
    ]
    (row,) = side_by_side(metrics_table(rows), "a", "b").to_pylist()
    counts = {"n_subgroup": 1260, "positive_rate": 0.5}
    return {**row, **{f"{name}_{side}": n for name, n in counts.items() for side in ("first", "second")}, **changes}


def compare(*rows: dict[str, Any]) -> SideBySide:
    part = SliceRows(name="all", rows=rows, n_identities=len(rows))
    request = Request(models=("toxicity_1", "toxicity_6"))
    return SideBySide(request=request, run=RUN, columns=tuple(rows[0]) if rows else ("slice",), slices=(part,))


def table_of(markdown: str) -> list[list[str]]:
    """Return the cells of a Markdown table by line, as GitHub cuts them: at every pipe without a backslash."""
    rows = [re.findall(r"((?:[^\\|]|\\.)*)\|", line[1:]) for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


class TestText:
    def test_a_table(self) -> None:
        hurt = make_row("trans women", SECOND, FIRST, n_subgroup_first=53429, n_subgroup_second=53429)
        lines = format_text(compare(make_row(), hurt)).splitlines()
        assert lines[0].split() == ["A:", "toxicity_1", "B:", "toxicity_6"]
        assert all(part in lines[1] for part in ("civil", "2026-01-15", "r1"))
        assert (
            lines[4:9]
            == """\
                              Subgroup AUC       BPSN AUC          BNSP AUC         Negative AEG       Positive AEG
  identity       rows  pos%    A    B  diff     A    B  diff      A     B  diff      A     B  diff      A     B  diff
--------------------------- ---------------- ---------------- ------------------ ------------------ ------------------
  gay           1,260  50.0 .868 .996 +.128  .532 .958 +.426  1.000  .980 -.020! +.462 -.295 -.167  -.034 -.036 +.002!
! trans women  53,429  50.0 .996 .868 -.128! .958 .532 -.426!  .980 1.000 +.020  -.295 +.462 +.167! -.036 -.034 -.002
""".splitlines()
        )
        assert [line.split()[0] for line in lines[9:] if line] == ["diff:", "!"]

    def test_two_digits(self) -> None:
        line = format_text(compare(make_row()), 2).splitlines()[7]
        values = ".87 1.00 +.13  .53 .96 +.43  1.00 .98 -.02!  +.46 -.29 -.17  -.03 -.04 +.00"
        assert line.split() == ["gay", "1,260", "50.0", *values.split()]

    def test_a_long_name_puts_the_gaps_of_all_slices_below(self) -> None:
        long = "psychiatric_or_mental_illness"
        short = SliceRows(name="short", rows=[make_row(long)], n_identities=1)
        both = replace(compare(make_row()), slices=(*compare(make_row()).slices, short))
        lines = format_text(both).splitlines()
        assert [line.split()[:1] for line in lines[3:]] == [
            *(["slice"], ["Subgroup"], ["identity"], ["-" * 23], ["gay"], []),
            *(["Negative"], ["identity"], ["-" * 23], ["gay"], []),
            *(["slice"], ["Subgroup"], ["identity"], ["-" * 44], [long], []),
            *(["Negative"], ["identity"], ["-" * 44], [long], []),
            *(["diff:"], ["!"]),
        ]
        aucs, gaps = ".868 .996 +.128  .532 .958 +.426  1.000 .980 -.020!", "+.462 -.295 -.167  -.034 -.036 +.002!"
        of_long = [line.split() for line in lines if long in line]
        assert of_long == [[long, "1,260", "50.0", *values.split()] for values in (aucs, gaps)]

    def test_null_is_a_mark_with_its_reason_below(self) -> None:
        nothing = dict.fromkeys(SUITE)
        rows = (
            make_row("a", nothing, nothing, "no_subgroup_positives"),
            make_row("b", first=nothing, reason="withheld"),
            make_row("c", second=nothing, n_subgroup_second=None),
            make_row("d", n_subgroup_second=1255),
        )
        lines = format_text(compare(*rows)).splitlines()
        assert [line.split()[1:6] for line in lines[7:11]] == [
            ["1,260", "50.0", "(b)", "(b)", "-"],
            ["1,260", "50.0", "(c)", ".996", "-"],
            ["1,260", "(a)", "50.0", ".868", "-"],
            ["1,260", "(a)", "50.0", ".868", ".996"],
        ]
        assert [line.split()[0] for line in lines[-3:]] == ["(a)", "(b)", "(c)"]
        assert lines[-2:] == ["(b) no_subgroup_positives", "(c) withheld"]

    def test_values_of_few_rows_are_marked(self) -> None:
        weak: dict[str, Any] = {"bpsn_auc_first_low": 0.4, "bnsp_auc_second_low": None}
        text = format_text(compare(make_row(**weak)))
        values = ".868 .996 +.128  ?.532 .958 +.426  1.000 ?.980 -.020!"
        assert text.splitlines()[7].split()[:12] == ["gay", "1,260", "50.0", *values.split()]
        assert "\n? " in text
        assert "\n? " not in format_text(compare(make_row()))
        cells = table_of(format_markdown(compare(make_row(**weak))))[2]
        assert (cells[9], cells[10], cells[13]) == ("◦ 0.532", "0.958", "◦ 0.980")

    def test_the_bias_stands_below_by_name(self) -> None:
        row = make_row(bias_first="negatives_shifted_up", bias_size_first="large", bias_second="no_evidence")
        text = format_text(compare(row, make_row("black")))
        lines = [line.split("  ") for line in text.splitlines() if "50.0" in line][2:]
        assert [[cell.strip() for cell in line if cell][-2:] for line in lines] == [
            ["negatives shifted up, large", "no evidence"],
            ["-", "-"],
        ]
        assert table_of(format_markdown(compare(row)))[2][4:6] == ["negatives shifted up, large", "no evidence"]

    def test_what_a_terminal_would_obey_is_written_out(self) -> None:
        shown = format_text(compare(make_row("a\x1b[2J\nb\u202e")))
        assert r"a\x1b[2J\nb\u202e " in shown
        assert shown.isascii()

    @given(names=st.lists(st.text(max_size=80), min_size=1, max_size=4), digits=st.sampled_from([2, 3]))
    def test_any_names_stay_within_the_line_and_aligned(self, names: list[str], digits: int) -> None:
        lines = format_text(compare(*map(make_row, names)), digits).splitlines()[4:-3]
        assert max(map(measure_width, lines)) <= LINE_WIDTH
        # All rows have the same numbers, so they end where each other end.
        ends = {measure_width(line) for line in lines if line.endswith("!") and ".03" not in line}
        assert len(ends) <= 1
        assert sum(" 1,260  50.0 " in line for line in lines) in {len(names), 2 * len(names)}


class TestMarkdown:
    def test_a_table(self) -> None:
        head, rule, row = table_of(format_markdown(compare(make_row("trans women", SECOND, FIRST))))
        differences = ["B - A"] * 3 + [r"\|B\| - \|A\|"] * 2
        assert head == [
            *("", "identity", "rows", "positive", "bias A", "bias B"),
            *(
                cell
                for title, last in zip(SUITE_TITLES.values(), differences, strict=True)
                for cell in (f"{title} A", "B", last)
            ),
        ]
        assert rule == [":-:", "---", *["--:"] * 2, *["---"] * 2, *["--:"] * 15]
        assert row == [
            *("!", "trans women", "1,260", "50.0%", "-", "-"),
            *("0.996", "0.868", "**-0.128**", "0.958", "0.532", "**-0.426**", "0.980", "1.000", "+0.020"),
            *("-0.295", "+0.462", "**+0.167**", "-0.036", "-0.034", "-0.002"),
        ]

    def test_null_is_its_reason(self) -> None:
        row = make_row(second=dict.fromkeys(SUITE), reason="no_subgroup_positives", n_subgroup_second=None)
        cells = table_of(format_markdown(compare(row), 2))[2]
        assert (cells[1], cells[2][:11], cells[3]) == ("gay", "1,260 and -", "50.0%")
        assert cells[6:9] == ["0.87", "no_subgroup_positives", "-"]

    @pytest.mark.parametrize(
        ("name", "escaped"),
        [
            ("black & female", "black &amp; female"),
            ("homosexual_gay_or_lesbian", "homosexual_gay_or_lesbian"),
            ("_a_ b_", r"\_a\_ b\_"),
            ("a|b", r"a\|b"),
            ("a\\|b", r"a\\\|b"),
            ("`rm`", r"\`rm\`"),
            ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
            ("[a](b) **c** ~~d~~ $e$", r"\[a\](b) \*\*c\*\* \~\~d\~\~ \$e\$"),
            ("a\nb", r"a\\nb"),
        ],
    )
    def test_names_are_not_obeyed(self, name: str, escaped: str) -> None:
        assert escape_markdown(name) == escaped
        assert table_of(format_markdown(compare(make_row(name))))[2][1] == escaped

    @given(name=st.text(max_size=30))
    def test_any_name_is_one_cell(self, name: str) -> None:
        assert [len(cells) for cells in table_of(format_markdown(compare(make_row(name))))] == [21, 21, 21]


class TestCsv:
    def test_full_precision_and_rfc_4180(self) -> None:
        row = {"slice": "all", "identity": 'say "a", b', "crossed": False, "n": 7, "d": -0.1 - 0.2, "small": 1e-17}
        row |= {"null": None, "run_date": date(2026, 1, 15), "lines": "a\nb"}
        assert format_csv(compare(row)) == (
            "slice,identity,crossed,n,d,small,null,run_date,lines\r\n"
            'all,"say ""a"", b",false,7,-0.30000000000000004,1e-17,,2026-01-15,"a\nb"\r\n'
        )

    @pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
    def test_text_is_no_formula_and_numbers_stay_numbers(self, begin: str) -> None:
        text = format_csv(compare({"identity": f"{begin}1+1", "value": -0.5}))
        (row,) = csv.DictReader(io.StringIO(text, newline=""))
        assert row == {"identity": f"'{begin}1+1", "value": "-0.5"}


def test_a_slice_without_identities_has_no_table() -> None:
    assert not [line for line in format_text(compare()).splitlines() if line.startswith(" ") or "---" in line]
    assert table_of(format_markdown(compare())) == []
    assert format_csv(compare()) == "slice\r\n"
