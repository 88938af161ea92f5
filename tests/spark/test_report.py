"""The report's job and its kin on tables that were really published: what is read, what is written, what is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import run_job
from biasspark.errors import InputError
from biasspark.report import metric_table, night_report
from biasspark.report.comparisons import hold_against
from biasspark.report.facts import NightFacts
from biasspark.report.narrowing import keep_worst_alerts
from biasspark.report.reading import read_night
from biasspark.report.verdict import reach_verdict
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS, TABLES
from biasspark.tables.store import PathStore
from jobs import export, report
from tests.browsing import launched, needs_browser, opening
from tests.example_night import write_history, write_night, write_table
from tests.report_rows import MODELS, NIGHT, SCRIPT, alert, alert_against, compare_values, night_facts

FORMULA = '=HYPERLINK("http://x")'
NAMES = ("gay", SCRIPT, FORMULA)


def start_run(back: int, run_id: str, job: str = "bias_metrics") -> Run:
    return Run(NIGHT - timedelta(days=back), "civil", job, run_id, datetime.now(UTC))


def write(store: PathStore, run: Run, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows of a table as a run does, but without Spark."""
    write_table(Path(store.path), TABLES[name], list(rows), run.run_date, run.run_id)


def enter(store: PathStore, run: Run, status: str = "published", config: str = "{}") -> None:
    """Append the row of a run to the ledger."""
    now = datetime.now(UTC)
    row = {"job": run.job, "status": status, "config": config, "n_rows": 100, "n_rejected": 2, "started_at": now}
    write(store, run, "bias_runs", [row | {"published_at": now, "rejects": {}, "warnings": []}])


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> PathStore:
    """Two nights, the earlier of which a person has accepted; neither has pinned AUC."""
    store = PathStore(str(tmp_path_factory.mktemp("report") / "warehouse"))
    tables = night_facts(identities=NAMES).tables
    suite = ("bias_metrics", "model_summary")
    nights = ((start_run(1, "r_1"), suite), (start_run(0, "r_0"), (*suite, "score_histograms", "threshold_summary")))
    for run, names in nights:
        for name in names:
            write(store, run, name, tables[name])
        enter(store, run, config='{"histograms": {"bins": 200}}')
    said = {"accepted_run_id": "r_1", "job": "bias_metrics", "reason": "known", "by": "Ada"}
    enter(store, start_run(1, "r_accept", "accept_run"), "accepted", json.dumps(said))
    return store


def count_collected(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> list[int]:
    """Count the rows that come to the driver, a number for each time."""
    frames, brought = type(spark.range(1)), []
    collect = frames.collect

    def counting(frame: Any) -> Any:
        rows = collect(frame)
        brought.append(len(rows))
        return rows

    monkeypatch.setattr(frames, "collect", counting)
    return brought


MANY, N_WEAK = 400, 5


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> PathStore:
    """One night with many identities, pairs of them, alerts, comparisons and templates."""
    store = PathStore(str(tmp_path_factory.mktemp("large") / "warehouse"))
    night, comparison = start_run(0, "r_0"), start_run(0, "r_1", "compare_models")
    tables = night_facts(identities=("gay",)).tables
    base = {row["model"]: row for row in tables["bias_metrics"] if row["identity"] == "gay"}

    def metrics() -> Iterator[dict[str, Any]]:
        for row, n in product(base.values(), range(MANY)):
            own = {"subgroup_auc": None, "bpsn_auc": 0.5 + n / 1000, "bnsp_auc": 0.4 if n == 77 else None}
            few = {"bpsn_auc_low": 0.1, "bpsn_auc_high": 0.9} if n < N_WEAK else {}
            yield row | own | few | {"slice": "all", "identity": f"i{n:03}", "bnsp_auc_low": None}
            yield row | own | {"slice": "all", "identity": f"i{n:03} & b", "crossed": True, "bnsp_auc_low": None}
        yield base[MODELS[0]] | {"slice": "all", "identity": "(overall)"}

    names = [f"i{n:03}" for n in range(MANY)]
    compared = [compare_values(name, "bpsn_auc", 0.9, 0.8) for name in names] + [
        compare_values(f"{name} & b", "bpsn_auc", 0.9, 0.8) | {"crossed": True} for name in names
    ]
    scores = [
        {"model": MODELS[0], "template": t, "identity": name, "n_rows": 2, "mean_score": 0.1 * t + n / 1000}
        for t in range(3)
        for n, name in enumerate(["(overall)", *names])
    ]
    broken = [alert("fail", identity=name, value_high=0.77 - n / 1000) for n, name in enumerate(names)]
    for run, name, rows in (
        (night, "bias_metrics", metrics()),
        (night, "model_summary", tables["model_summary"]),
        (night, "bias_alerts", list(broken)),
        (night, "template_scores", [row | {"template": str(row["template"])} for row in scores]),
        (comparison, "model_comparisons", compared),
        (comparison, "comparison_alerts", [alert_against("pass", identity=name) for name in names]),
    ):
        write(store, run, name, rows)
    enter(store, night)
    enter(store, comparison, config='{"compare": {"baseline": "toxicity_1", "cluster": "author"}}')
    return store


@pytest.fixture(scope="module")
def read(spark_session: SparkSession, large: PathStore) -> tuple[NightFacts, int]:
    """What the report has of the large night, and how many rows came to the driver for it."""
    with pytest.MonkeyPatch.context() as patch:
        brought = count_collected(patch, spark_session)
        return night_report(spark_session, large, NIGHT, "civil").facts, sum(brought)


def test_what_comes_to_the_driver_does_not_grow_with_identities(read: tuple[NightFacts, int]) -> None:
    facts, n_brought = read
    worst, named = 100, 1  # i000 has the largest AEGs, which are equal, with enough rows
    identities = worst + named
    ledger, pairs, alerts, compared, templates = 3, 8, 200, identities + 500, identities
    of_metrics = worst + 1 + 2 * identities + 1 + 2 * pairs + 2
    assert n_brought == ledger + of_metrics + 4 + 2 * alerts + 2 + compared + 1 + templates
    assert facts.identities() == [*(f"i{n:03}" for n in range(N_WEAK, N_WEAK + 100)), "i000"]
    assert facts.n_identities == MANY


def test_what_is_not_read_is_counted_and_the_worst_is_read(read: tuple[NightFacts, int]) -> None:
    facts, _ = read
    assert reach_verdict(facts).title == f"The gate failed: {MANY} of {2 * MANY} checks"
    assert [row["identity"] for row in facts.alerts()[:3]] == [f"i{MANY - n}" for n in (1, 2, 3)]
    assert facts.alerts()[0]["excess"] == pytest.approx(0.8 - 0.77 + (MANY - 1) / 1000)
    assert facts.configs["compare_models"]["compare"]["cluster"] == "author"
    (own,) = hold_against(facts)
    assert own.counts == {"worse": 2 * MANY, "better": 0, "no_evidence": 0, "insufficient_data": 0}
    assert len(own.rows) == 101
    assert len(own.worse) == 601
    worst = [row["identity"] for row in facts.rows("crossed_pairs", model=MODELS[0])]
    assert sorted(worst) == [f"i{n:03} & b" for n in range(8)]  # of i077 the lowest has no interval
    assert facts.count_summed("summed_aucs", "competition_score", model=MODELS[0]) == (N_WEAK + 1, MANY)
    assert facts.count_summed("summed_aucs", "bnsp_auc_power_mean", model=MODELS[0]) == (1, 1)
    (first,) = facts.rows("template_means", identity="i005")
    assert (first["n_templates"], first["n_rows"]) == (3, 6)
    assert (first["mean_score"], first["mean_departure"]) == pytest.approx((0.106, 0.006), abs=1e-12)
    assert (first["score_deviation"], first["departure_deviation"]) == pytest.approx((0.1, 0), abs=1e-12)


def test_a_violation_is_as_large_as_the_interval_lies_beyond_its_bound(spark: SparkSession) -> None:
    ends = {"value_low": -0.3, "value_high": -0.1, "change_low": 0.02, "change_high": 0.1}
    kinds = {
        "min": (0.0, 0.1),
        "max": (-0.5, 0.2),
        "max_abs": (0.05, 0.05),
        "max_drop": (0.2, -0.3),
        "max_rise": (0, 0.02),
    }
    rows = [
        {"outcome": "warn", "rule": kind, "model": "m", "slice": "all", "identity": "a", "bound_kind": kind}
        | {"bound": float(bound)}
        | ends
        for kind, (bound, _) in kinds.items()
    ]
    rows.append(rows[0] | {"identity": "(overall)"} | dict.fromkeys(ends))
    rows.append(rows[0] | {"identity": "b"} | dict.fromkeys(ends))
    names = list(rows[0])
    schema = ", ".join(f"{name} {'DOUBLE' if name in {*ends, 'bound'} else 'STRING'}" for name in names)
    frame = spark.createDataFrame([tuple(row[name] for name in names) for row in rows], schema)
    found = keep_worst_alerts(frame).collect()
    wanted = {(kind, "a"): size for kind, (_, size) in kinds.items()} | {("min", "(overall)"): 0.1}
    assert {(row["rule"], row["identity"]): row["excess"] for row in found[:-1]} == pytest.approx(wanted)
    assert (found[-1]["identity"], found[-1]["excess"]) == ("b", None)
    changes = frame.drop("value_low", "value_high").where("rule = 'max_rise'")
    assert keep_worst_alerts(changes).first()["excess"] == pytest.approx(0.02)


@pytest.fixture
def configuration(warehouse: PathStore, tmp_path: Path) -> Path:
    path = tmp_path / "civil.toml"
    path.write_text(
        f'corpus = {{ name = "civil", path = "/data/civil" }}\nlabel = {{ column = "toxic" }}\n'
        f'models = {{ toxicity_1 = "a" }}\nidentities = {{ columns = ["gay"] }}\n'
        f"output = {{ path = {json.dumps(warehouse.path)} }}\n"
    )
    return path


def test_a_night_is_read_with_what_it_is_compared_with(spark: SparkSession, warehouse: PathStore) -> None:
    facts = night_report(spark, warehouse, NIGHT, "civil").facts
    assert facts.models() == list(MODELS)
    assert facts.identities()[0] == "gay"
    assert set(facts.identities()) == {*NAMES, "unmentioned"}
    assert (facts.run["run_id"], facts.runs) == ("r_0", {"bias_metrics": "r_0"})
    assert {"pinned_auc", "auc_crosses"}.isdisjoint(facts.tables)
    assert facts.run["published_at"].tzinfo is UTC
    assert {row["slice"] for row in facts.rows("bias_metrics")} == {"all", "short"}
    assert {row["slice"] for row in facts.rows("score_histograms")} == {"all"}
    own = night_facts(identities=NAMES).rows("score_histograms", model=MODELS[0], identity="gay")
    bins = facts.rows("score_histograms", model=MODELS[0], identity="gay")
    assert sum(row["n_rows"] for row in bins) == sum(row["n_rows"] for row in own)
    assert {round(row["bin_high"] - row["bin_low"], 9) for row in bins} == {0.1}  # of 200 bins two make one
    assert all(row["bin_low"] == pytest.approx(row["bin"] / 10) for row in bins)
    baseline = facts.baseline
    assert baseline is not None
    assert (baseline.run_id, len(baseline.metrics), len(baseline.summaries)) == ("r_1", 8, 2)
    assert facts.standing == "the last accepted run, accepted by hand"
    assert list(facts.history) == [baseline]


@pytest.fixture
def run_here(
    spark: SparkSession, configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run a job on the session of the tests, which stays; gives its exit code and what it said."""

    def run(job: Any, *flags: object, run_date: object = NIGHT) -> tuple[int, str, str]:
        monkeypatch.setattr(job, "job_session", lambda *_: nullcontext(spark))
        parser = job.export_parser() if job is export else job.report_parser()
        arguments = ("--config", configuration, "--run-date", run_date, *flags)
        code = run_job(job.main, parser, list(map(str, arguments)))
        return code, *capsys.readouterr()

    return run


def test_the_job_writes_page_and_model_card(run_here: Any, warehouse: PathStore, tmp_path: Path) -> None:
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    code, out, err = run_here(report, "--out", page, "--publish", "--model-card", card)
    assert (code, json.loads(out.splitlines()[-1])["run_id"]) == (0, "r_0"), err
    published = Path(warehouse.path) / "reports" / f"run_date={NIGHT}" / "r_0.html"
    assert published.read_bytes() == page.read_bytes()
    assert "accepted by hand" in page.read_text("utf-8")
    assert SCRIPT not in page.read_text("utf-8")
    assert card.read_text("utf-8").startswith("### Unintended bias")


@pytest.mark.parametrize("gone", ["bias_alerts", "bias_metrics", "model_summary"])
def test_a_page_that_would_have_no_verdict_or_numbers_is_not_drawn(
    spark: SparkSession, tmp_path: Path, gone: str
) -> None:
    """Without its alerts a night would seem to have no gate."""
    store, run = PathStore(str(tmp_path)), start_run(0, "r_0")
    for name in {"bias_alerts", "bias_metrics", "model_summary"} - {gone}:
        write(store, run, name, [alert("pass")] if name == "bias_alerts" else night_facts().tables[name])
    enter(store, run, config='{"gate": {"rule": []}}')
    with pytest.raises(InputError) as caught:
        read_night(spark, store, NIGHT, "civil")
    assert caught.value.faults == (
        f"{store.place(TABLES[gone], run)}: its files are gone. The ledger has the run. Restore them, or measure the "
        "night again.",
    )


def test_a_page_says_which_of_its_tables_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    """Only tables that the configuration of the run asks for; what it does not, was never there."""
    store, runs = PathStore(str(tmp_path)), [start_run(0, "r_0"), start_run(0, "r_1", "compare_models")]
    for name in ("bias_metrics", "model_summary"):
        write(store, runs[0], name, night_facts().tables[name])
    enter(store, runs[0], config='{"histograms": {"bins": 50}}')
    enter(store, runs[1])
    assert read_night(spark, store, NIGHT, "civil").run["warnings"] == [
        f"{store.place(TABLES[name], run)}: its files are gone. The ledger has the run. Restore them, or measure the "
        "night again."
        for name, run in zip(("model_comparisons", "score_histograms"), reversed(runs), strict=True)
    ]


@pytest.fixture
def open_page() -> Iterator[Callable[..., Any]]:
    with launched() as browser, opening(browser) as open_page:
        yield open_page


@needs_browser
def test_a_browser_shows_what_the_job_drew_from_published_tables(
    run_here: Any, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    """A gate, a baseline run, attribution, a comparison, and the trends of four nights."""
    write_night(tmp_path / "lake")
    write_history(tmp_path / "lake")
    out = tmp_path / "report.html"
    code, _, err = run_here(report, "--out", out, "--set", f"output.path={json.dumps(str(tmp_path / 'lake'))}")
    assert code == 0, err
    page = open_page(out.as_uri())
    assert page.get_by_role("heading", name="The gate failed: 1 of 2 checks").is_visible()
    assert page.locator("table.checks").get_by_text("Warning").is_visible()
    assert page.get_by_text("Since 14 January 2026 (the last accepted run)").is_visible()
    assert page.get_by_text("Worse: toxicity_1, black, BPSN AUC").is_visible()
    assert page.get_by_text("toxicity_6 is significantly worse than toxicity_1 in").first.is_visible()
    assert page.locator("#attribution table.heat").first.is_visible()
    assert page.locator("#attribution .tree").first.is_visible()
    assert page.get_by_text("4 nights, 12 January 2026 to 15 January 2026").is_visible()
    assert page.get_by_role("img", name="Overall AUC and the worst metrics").bounding_box()["width"] > 900
    assert page.locator(".missing").all_inner_texts() == []


def test_a_night_that_is_not_published_is_refused_with_those_that_are(run_here: Any) -> None:
    code, _, err = run_here(report, "--publish", run_date="2026-02-01")
    assert code == 3
    assert "Its last nights there: 2026-01-15, 2026-01-14." in err


def test_a_report_without_a_place_is_refused(run_here: Any) -> None:
    code, _, err = run_here(report)
    assert code == 2
    assert "--out: missing. A report needs a place. Give --out, --publish or --model-card." in err


def test_any_table_is_exported_with_formulas_as_text(run_here: Any, tmp_path: Path) -> None:
    out = tmp_path / "metrics.csv"
    code, _, err = run_here(export, "--table", "bias_metrics", "--out", out)
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO(out.read_bytes().decode())))
    assert len(rows) == 16
    assert list(rows[0]) == list(BIAS_METRICS.names)
    assert {row["identity"] for row in rows} == {"gay", SCRIPT, f"'{FORMULA}", "unmentioned"}
    assert all(float(row["negative_aeg"]) < 0.5 for row in rows)


def test_a_frame_of_metrics_shows_itself(spark: SparkSession, warehouse: PathStore) -> None:
    metrics = spark.read.parquet(f"{warehouse.path}/bias_metrics/run_date={NIGHT}/run_id=r_0")
    shown = metric_table(metrics)._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"')
    assert "&lt;bdi&gt;gay&lt;/bdi&gt;" in shown
    assert "<script" not in shown
    with pytest.raises(InputError, match="shrt"):
        metric_table(metrics, "shrt")


@pytest.mark.parametrize("name", ["u_statistics", "model_summary", "pinned_auc", "bias_alerts"])
def test_a_frame_of_another_table_is_refused_before_any_work(spark: SparkSession, name: str) -> None:
    metrics = spark.createDataFrame([], TABLES[name].schema)
    with pytest.raises(InputError) as caught:
        metric_table(metrics.where("raise_error('work') = 1"))
    assert all(word in str(caught.value) for word in ("metric_table", "columns", "bias_metrics"))


def test_what_is_no_frame_of_spark_is_refused(spark: SparkSession, warehouse: PathStore) -> None:
    for other in (pd.DataFrame({"model": ["m"]}), [{"model": "m"}], None, warehouse):
        with pytest.raises(TypeError, match=r"metric_table.*bias_metrics"):
            metric_table(other)
