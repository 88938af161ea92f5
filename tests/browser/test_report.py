"""The report in a real browser: what is visible, what is sorted, what hostile names do, and what axe-core finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from biasspark.report.page import SECTIONS, write_metric_page, write_page, write_table_page
from tests.fixtures.made_up_report import IMAGE, MODELS, NAMES, SCRIPT, alert, full_report, make_report, with_rows

SUBGROUP, BPSN = 3, 6
"""The columns of the old model's Subgroup AUC, which one identity lacks, and of the new one's BPSN AUC."""
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
pytestmark = [
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not here: apt-get install chromium"),
    # Playwright closes its event loop as it likes.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def save_report(folder: Path, identities: Sequence[str] = NAMES) -> str:
    alerts = [alert("fail"), alert("pass", identity=IMAGE, message=SCRIPT)]
    path = folder / "report.html"
    path.write_text(write_page(with_rows(make_report(identities=identities), bias_alerts=alerts)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def short_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every kind of section with few identities: axe-core takes its time for each cell."""
    return save_report(tmp_path_factory.mktemp("short"), ("gay", SCRIPT))


@pytest.fixture(scope="module")
def full_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fifty identities and two models with all that a page can have."""
    path = tmp_path_factory.mktemp("full") / "report.html"
    path.write_text(write_page(full_report()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield launched
        launched.close()


@contextmanager
def opening(browser: Any) -> Iterator[Callable[..., Any]]:
    """Give what opens a page in a context of its own; at the end there must be no error and no request but for files.

    Settings are those of a context of Playwright.
    """
    contexts, messages, asked, wanted = [], [], [], set()

    def open_page(address: str, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        wanted.add(address)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert messages == []
    assert set(asked) == wanted


@pytest.fixture
def open_report(browser: Any, report: str) -> Iterator[Any]:
    """Open the report, or another page."""
    with opening(browser) as open_page:
        yield lambda address=report, **settings: open_page(address, **settings)


@pytest.fixture(scope="module")
def opened(browser: Any, report: str) -> Iterator[Any]:
    with opening(browser) as open_page:
        yield open_page(report)


FOLD = """
document.querySelectorAll('details').forEach((one) => { one.dataset.first ??= one.open; });
document.querySelectorAll('details').forEach((one) => { one.open = one.dataset.first === 'true'; });
location.hash = '';
"""


@pytest.fixture
def page(opened: Any) -> Any:
    """The report, opened once, which takes longer than most tests, in its first size and folded as it first was."""
    opened.set_viewport_size({"width": 1280, "height": 900})
    opened.emulate_media(color_scheme="light", media="screen")
    opened.evaluate(FOLD)
    return opened


def find_table(page: Any) -> Any:
    return page.locator("#identities table.metrics").first


def read_column(page: Any, column: int) -> list[str]:
    texts: list[str] = (
        find_table(page)
        .locator("tbody tr")
        .evaluate_all("(rows, column) => rows.map((row) => row.cells[column].firstChild.textContent.trim())", column)
    )
    assert len(texts) == len(NAMES) + 1
    return texts


def read_numbers(page: Any, column: int) -> list[float]:
    return [float(text.lstrip("◦\xa0")) for text in read_column(page, column)]


def unfold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def test_the_verdict_is_seen_first(page: Any) -> None:
    verdict = page.get_by_role("heading", name="The gate failed: 1 of 2 checks")
    assert verdict.is_visible()
    assert verdict.bounding_box()["y"] < 200
    size = "(one) => parseFloat(getComputedStyle(one).fontSize)"
    sizes = page.locator("h1, h2, h3").evaluate_all(f"all => all.map({size})")
    assert sizes.count(max(sizes)) == 1
    assert verdict.evaluate(size) == max(sizes)
    assert page.get_by_text("Since 14 January 2026").is_visible()
    assert page.get_by_text("Worse: toxicity_1, black, BPSN AUC").is_visible()


def test_sections_and_pictures_are_visible(page: Any) -> None:
    for title in ("Models side by side", "The worst identities", "Every identity", "Score distributions"):
        assert page.get_by_role("heading", name=title, exact=True).is_visible()
    for label in ("Intervals of the five metrics", "False and true positive rates", "Overall AUC and the worst"):
        box = page.get_by_role("img", name=label).first.bounding_box()
        assert box["width"] > 900
        assert box["height"] > 150
    assert page.locator("svg.dist").first.is_visible()
    assert page.get_by_text("Do not base decisions on this.").is_visible()
    assert not page.get_by_role("img", name="Pinned AUC of every identity").is_visible()
    page.get_by_text("Show pinned AUC anyway").click()
    assert page.get_by_role("img", name="Pinned AUC of every identity").is_visible()


def test_the_axes_of_the_worst_identities_line_up(page: Any) -> None:
    """In the tables of all models and crossed pairs, whatever the names are."""
    lefts = page.locator("#worst table svg.iv").evaluate_all("all => all.map((one) => one.getBoundingClientRect().x)")
    assert page.locator("#worst table").count() == 4
    assert len(set(lefts)) == 1


def test_hostile_names_stay_text(page: Any) -> None:
    assert page.title().startswith("Unintended bias")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    for name in (SCRIPT, IMAGE):
        assert find_table(page).get_by_text(name, exact=True).is_visible()


def test_tables_sort_by_click_and_back(page: Any) -> None:
    first = read_column(page, 0)
    values = read_numbers(page, BPSN)
    head = find_table(page).locator(f"th[data-column='{BPSN}']")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert read_numbers(page, BPSN) == sorted(values)
    head.get_by_role("button").click()
    assert read_numbers(page, BPSN) == sorted(values, reverse=True) != sorted(values)
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert read_column(page, 0) == first


def test_differences_are_sorted_by_their_numbers(page: Any) -> None:
    table = page.locator("#against table[data-sort]")
    assert not table.is_visible()
    page.get_by_text("All differences for 8 identities").click()
    assert table.is_visible()
    table.get_by_role("button", name="Negative AEG").click()
    cells = table.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.cells[7].firstChild.textContent)")
    values = [float(text.strip("▲▼ ").replace("−", "-")) for text in cells]
    assert values == sorted(values)
    assert {text[0] for text in cells} >= {"▲", "▼"}


def test_biases_sort_as_words_and_rows_without_one_are_last(open_report: Any, tmp_path: Path) -> None:
    rows = make_report(identities=("gay",)).rows("bias_metrics", model=MODELS[0], slice="all")
    biases = (None, "shifted_up", "closer_together")
    rows = [{**rows[0], "identity": str(bias), "bias": bias, "bias_size": None} for bias in biases]
    path = tmp_path / "metrics.html"
    path.write_text(write_metric_page(rows, "all"), "utf-8")
    page = open_report(path.as_uri())
    for in_order in (["closer together", "shifted up", "–"], ["shifted up", "closer together", "–"]):
        page.locator("th[data-column='8']").get_by_role("button").click()
        assert page.locator("td.bias").all_inner_texts() == in_order


def test_small_negative_numbers_sort_by_their_exponents(open_report: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.html"
    path.write_text(write_table_page("t", {"n": ""}, [{"n": n} for n in (-1.234e-5, -0.5, 2e5)], ""), "utf-8")
    page = open_report(path.as_uri())
    page.get_by_role("button").click()
    assert page.locator("tbody tr").all_inner_texts() == ["−0.5", "−1.234e−05", "2e+05"]


def test_everything_is_there_without_javascript(open_report: Any) -> None:
    page = open_report(java_script_enabled=False)
    assert page.get_by_role("heading", name="The gate failed: 1 of 2 checks").is_visible()
    assert page.locator("#identities table.metrics").first.get_by_text("0.", exact=False).first.is_visible()
    assert page.get_by_role("button").count() == 0
    page.locator("#identities").get_by_text("Slice short", exact=True).first.click()
    assert page.locator("#identities table.metrics").nth(1).is_visible()


def test_a_link_unfolds_the_slice_that_it_leads_to(page: Any) -> None:
    page.get_by_role("link", name="short", exact=True).first.click()
    assert page.locator("#identities table.metrics").nth(1).is_visible()
    page.locator("#slice-1").get_by_role("link", name="intervals").click()
    assert page.get_by_role("img", name="every identity and model, slice short").is_visible()
    page.locator("#intervals-1").get_by_role("link", name="scores").click()
    assert page.get_by_role("heading", name="Slice by slice").is_visible()
    assert page.get_by_role("img", name="Scores of gay by toxicity_1, slice short").is_visible()


def test_a_number_leads_to_its_definition(page: Any) -> None:
    link = page.locator("#identities thead").first.get_by_role("link", name="BPSN AUC")
    assert "how often a positive of the background" in link.get_attribute("title")
    link.click()
    target = page.locator(":target")
    assert target.is_visible()
    assert "how often a positive of the background" in target.inner_text()


def test_the_page_never_scrolls_sideways(page: Any) -> None:
    for _ in ("folded", "unfolded"):
        for width in (360, 400, 768, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            wide = "[...document.querySelectorAll('.sheet')].filter((one) => one.scrollWidth > one.clientWidth).length"
            assert page.evaluate(wide) == 0  # what is wider than its sheet is scrolled within it
        unfold(page)


def test_dark_and_light_follow_the_reader(page: Any) -> None:
    for scheme, shade in (("dark", "rgb(16, 19, 23)"), ("light", "rgb(247, 246, 243)")):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == shade


def test_paper_has_what_is_unfolded_and_no_navigation(open_report: Any) -> None:
    page = open_report(color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    other_slice = page.locator("#identities table.metrics").nth(1)
    assert not other_slice.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("h1").evaluate("one => getComputedStyle(one).color") == "rgb(27, 33, 41)"
    unfold(page)
    assert other_slice.is_visible()


@pytest.mark.slow
def test_a_report_is_a_few_sheets_of_paper(open_report: Any, full_page: str) -> None:
    """Fifty identities and two models, of which what is folded is not printed."""
    pages = open_report(full_page).pdf(prefer_css_page_size=True)
    assert 10 < len(re.findall(rb"/Type /Page\b", pages)) <= 36


def test_a_telephone_has_the_contents_first_and_first_columns_that_stay(open_report: Any) -> None:
    page = open_report(viewport={"width": 400, "height": 800})
    contents = page.get_by_role("navigation", name="Sections")
    assert contents.bounding_box()["y"] < page.get_by_role("heading", name="The gate failed").bounding_box()["y"]
    assert contents.bounding_box()["height"] < 50
    unfold(page)
    for section in (".verdict", "#worst", "#identities", "#pinned"):
        frame = page.locator(f"{section} .scroll:has(table)").first
        first = frame.locator("tbody tr").first.locator("th").first
        assert frame.evaluate("one => one.classList.contains('more')")
        before = first.bounding_box()["x"]
        frame.evaluate("one => { one.scrollLeft = 60; }")
        assert first.bounding_box()["x"] == before
        frame.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
        page.wait_for_function("one => !one.classList.contains('more')", arg=frame.element_handle())
    assert page.locator("table.checks").first.evaluate("one => one.scrollWidth") < 800


def test_crosses_stand_beside_each_other_where_there_is_room(page: Any) -> None:
    for width, are_beside in ((400, False), (1280, True)):
        page.set_viewport_size({"width": width, "height": 900})
        first, second = (page.locator("#attribution table.heat").nth(number).bounding_box()["y"] for number in (0, 1))
        assert (first == second) if are_beside else (first < second)


def list_serious(page: Any) -> list[tuple[str, str]]:
    """Unfold everything, and return what axe-core finds that is serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    unfold(page)
    violations = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in violations if one["impact"] in {"serious", "critical"}]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), pytest.param("dark", 400, marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious(open_report: Any, short_report: str, scheme: str, width: int) -> None:
    page = open_report(short_report, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert list_serious(page) == []


@pytest.mark.slow
def test_axe_finds_nothing_serious_on_a_page_with_everything(open_report: Any, full_page: str) -> None:
    page = open_report(full_page)
    assert page.get_by_text("Not measured").count() == 0
    there = set(page.locator("[id]").evaluate_all("all => all.map((one) => one.id)"))
    assert {section.anchor for section in SECTIONS} <= there
    assert list_serious(page) == []
