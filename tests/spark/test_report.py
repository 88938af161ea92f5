"""The jobs that read published tables: their inputs, Spark jobs, outputs and faults."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from biasspark import metric_table, night_report
from biasspark.config import parse_config
from biasspark.errors import ConfigError, InputError
from biasspark.report.gate_summary import describe_changes
from biasspark.report.page import write_model_card
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS, TABLES, U_STATISTICS
from biasspark.tables.spark_schemas import spark_schema
from biasspark.tables.store import PathStore
from biasspark.workflows import export_table as export
from biasspark.workflows import write_report as report
from biasspark.workflows.write_report import BY_PERSON, read_report_data
from tests.fixtures.made_up_report import MODELS, RUN_DATE, SCRIPT, alert, make_report, page_without_charts
from tests.harness.example_run import add_run, write_history, write_run
from tests.harness.least_configuration import changed, raised_fault
from tests.harness.main_job import run, write_config
from tests.harness.running_jobs import Done
from tests.harness.spark_effort import watch

FORMULA = '=HYPERLINK("http://x")'
NAMES = ("gay", SCRIPT, FORMULA)
SUITE = ("bias_metrics", "model_summary")


def start_run(back: int, run_id: str, job: str = "bias_metrics") -> Run:
    return Run(RUN_DATE - timedelta(days=back), "civil", job, run_id, datetime.now(UTC))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> PathStore:
    """Two run dates, the earlier one accepted by a person; neither has pinned AUC."""
    folder, tables = tmp_path_factory.mktemp("report") / "warehouse", make_report(identities=NAMES).tables
    published = ((start_run(1, "r_1"), SUITE), (start_run(0, "r_0"), (*SUITE, "score_histograms", "threshold_summary")))
    for published_run, names in published:
        of_run = {name: tables[name] for name in names}
        add_run(folder, published_run, of_run, config='{"histograms": {"bins": 200}}')
    acceptance = {"accepts_run_id": "r_1", "accepted_by": "Ada", "acceptance_note": "known"}
    add_run(folder, start_run(1, "r_accept", "accept_run"), {}, status="accepted", **acceptance)
    return PathStore(str(folder))


def test_a_run_is_read_with_what_it_is_compared_with(spark: SparkSession, warehouse: PathStore) -> None:
    data = night_report(spark, warehouse, RUN_DATE, "civil").data
    assert data.models() == list(MODELS)
    assert data.identities()[0] == "gay"
    assert set(data.identities()) == {*NAMES, "unmentioned"}
    assert (data.run["run_id"], data.runs, data.n_identities) == ("r_0", {"bias_metrics": "r_0"}, 4)
    assert {"pinned_auc", "auc_crosses"}.isdisjoint(data.tables)
    assert data.run["published_at"].tzinfo is not None
    assert {row["slice"] for row in data.rows("bias_metrics")} == {"all", "short"}
    bins = data.rows("score_histograms", model=MODELS[0], identity="gay")
    assert {row["slice"] for row in bins} == {"all", "short"}
    assert {round(row["bin_high"] - row["bin_low"], 9) for row in bins} == {0.1}  # two of 200 bins make one
    baseline = data.baseline
    assert baseline is not None
    assert (baseline.run_id, len(baseline.metrics), len(baseline.summaries)) == ("r_1", 8, 2)
    assert (data.baseline_label, list(data.history)) == (BY_PERSON, [baseline])


@pytest.mark.classic("Spark Connect counts no jobs")
def test_a_report_takes_few_spark_jobs(spark: SparkSession, tmp_path: Path) -> None:
    """Two for the ledger and two for earlier runs; the tables of the run are read from their files."""
    write_run(tmp_path)
    write_history(tmp_path)
    with watch(spark, 1000) as effort:
        data = read_report_data(spark, PathStore(str(tmp_path)), RUN_DATE, "civil")
    assert (len(data.history), len(data.tables)) == (3, 19)
    assert effort.n_jobs <= 4


@pytest.mark.parametrize("gone", ["bias_alerts", "bias_metrics", "model_summary"])
def test_a_page_that_would_have_no_decision_or_numbers_is_not_drawn(
    spark: SparkSession, tmp_path: Path, gone: str
) -> None:
    """Without its alerts a run would seem to have no gate."""
    store, run = PathStore(str(tmp_path)), start_run(0, "r_0")
    tables = {"bias_alerts": [alert("pass")]} | {name: make_report().tables[name] for name in SUITE}
    del tables[gone]
    add_run(tmp_path, run, tables, gone=[gone])
    with pytest.raises(InputError, match=store.location(TABLES[gone], run)):
        read_report_data(spark, store, RUN_DATE, "civil")


def test_a_page_says_which_of_its_tables_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    """Only tables in the ledger."""
    store, runs = PathStore(str(tmp_path)), [start_run(0, "r_0"), start_run(0, "r_1", "compare_models")]
    suite = {name: make_report().tables[name] for name in SUITE}
    add_run(tmp_path, runs[0], suite, gone=["score_histograms"])
    add_run(tmp_path, runs[1], {}, gone=["model_comparisons"])
    summary = {"model_summary": suite["model_summary"]}
    add_run(tmp_path, start_run(1, "r_before"), summary, gone=["bias_metrics"], status="accepted")
    data = read_report_data(spark, store, RUN_DATE, "civil")
    *warnings, of_runs = data.run["warnings"]
    lost = ("score_histograms", "model_comparisons")
    folders = [store.location(TABLES[name], run) for name, run in zip(lost, runs, strict=True)]
    assert [warning.startswith(place) for warning, place in zip(warnings, folders, strict=True)] == [True, True]
    assert data.lost == dict(zip(lost, warnings, strict=True))
    assert "r_before" in of_runs
    assert data.baseline is not None
    assert data.baseline.is_lost
    assert data.history == [data.baseline]


def test_a_page_says_which_of_its_runs_were_measured_differently(spark: SparkSession, tmp_path: Path) -> None:
    store, tables = PathStore(str(tmp_path)), make_report(identities=("gay",)).tables
    suite = {name: tables[name] for name in SUITE}
    then, now = (
        parse_config(changed(label={"threshold": at}, intervals={"level": level}), Path()).json
        for at, level in ((0.5, 0.9), (0.8, 0.95))
    )
    for back, config in ((2, now), (1, then), (0, now)):
        add_run(tmp_path, start_run(back, f"r_{back}"), suite, config=config)
    compared = {"model_comparisons": tables["model_comparisons"]}
    add_run(tmp_path, start_run(0, "r_compared", "compare_models"), compared, config=then)
    data = read_report_data(spark, store, RUN_DATE, "civil", 2)
    phrases = ["label.threshold is 0.8 now, 0.5 then", "intervals.level is 0.95 now, 0.9 then"]
    assert [(run.run_id, run.differences) for run in data.history] == [("r_2", []), ("r_1", phrases)]
    assert [run.run_id for run in read_report_data(spark, store, RUN_DATE, "civil", 1).history] == ["r_1"]
    of_comparison = "label.threshold is 0.5 there, 0.8 here; intervals.level is 0.9 there, 0.95 here"
    for document in (page_without_charts(data), write_model_card(data)):
        assert document.count("; ".join(phrases)) == 2  # what changed, and the trends
        assert document.count(of_comparison) == 1


def test_new_and_missing_identities_are_counted_also_if_they_are_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    metrics, summaries = (make_report(identities=("gay",)).tables[name] for name in SUITE)
    for back, letter, n in ((1, "a", 80), (0, "b", 300)):
        added = [{**metrics[0], "identity": f"{letter}{number}"} for number in range(n)]
        tables = {"bias_metrics": [*metrics, *added], "model_summary": summaries}
        add_run(tmp_path, start_run(back, f"r_{back}"), tables)
    notes, _ = describe_changes(read_report_data(spark, store, RUN_DATE, "civil"))
    assert [note.split()[-1] for note in notes[-2:]] == ["300.", "80."]


def test_a_report_on_labels_alone_counts_every_identity(spark: SparkSession, tmp_path: Path) -> None:
    names = ["(overall)", *(f"i{number}" for number in range(250))]
    row = make_report().tables["label_balance"][0]
    tables = {"label_balance": [{**row, "slice": "all", "identity": name} for name in names]}
    add_run(tmp_path, start_run(0, "r_0"), tables)
    assert read_report_data(spark, PathStore(str(tmp_path)), RUN_DATE, "civil").n_identities == 250


@pytest.fixture
def config(spark: SparkSession, warehouse: PathStore, tmp_path: Path) -> Path:
    """Return the configuration of a job on the session of the tests."""
    return write_config(tmp_path, corpus={"name": "civil"}, output={"path": warehouse.path})


def test_the_job_writes_page_and_model_card(config: Path, warehouse: PathStore, tmp_path: Path) -> None:
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    code, out, err = run(config, "--out", page, "--publish", "--model-card", card, job=report)
    assert (code, json.loads(out.splitlines()[-1])["run_id"]) == (0, "r_0"), err
    published = Path(warehouse.path) / "reports" / f"run_date={RUN_DATE}" / "r_0.html"
    assert published.read_bytes() == page.read_bytes()
    assert "accepted by hand" in page.read_text("utf-8")
    assert SCRIPT not in page.read_text("utf-8")
    assert card.read_text("utf-8").startswith("### Unintended bias")


def test_a_run_that_is_not_published_is_refused_with_those_that_are(config: Path) -> None:
    code, _, err = run(config, "--publish", run_date="2026-02-01", job=report)
    assert code == 3
    assert "2026-01-15, 2026-01-14" in err


def test_any_table_is_exported_with_formulas_as_text(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.csv"
    code, _, err = run(config, "--table", "bias_metrics", "--out", out, job=export)
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO(out.read_bytes().decode())))
    assert len(rows) == 16
    assert list(rows[0]) == list(BIAS_METRICS.names)
    assert {row["identity"] for row in rows} == {"gay", SCRIPT, f"'{FORMULA}", "unmentioned"}
    assert all(float(row["negative_aeg"]) < 0.5 for row in rows)


def test_a_table_with_a_row_per_row_of_the_corpus_is_exported_in_order(
    spark: SparkSession, warehouse: PathStore, tmp_path: Path
) -> None:
    warehouse = PathStore(str(shutil.copytree(warehouse.path, tmp_path / "copy")))
    config = write_config(tmp_path, corpus={"name": "civil"}, output={"path": warehouse.path})
    attributed, out = start_run(0, "r_attribution", "attribution"), tmp_path / "rows.csv"
    rows = [{"model": "m", "slice": "all", "row_id": row_id} for row_id in ("b", "a")]
    add_run(Path(warehouse.path), attributed, {"example_attributions": rows}, gone=["loss_by_segment"])
    assert run(config, "--table", "example_attributions", "--out", out, job=export)[0] == 0
    assert [row["row_id"] for row in csv.DictReader(io.StringIO(out.read_text("utf-8")))] == ["a", "b"]
    (file,) = Path(warehouse.location(TABLES["example_attributions"], attributed)).iterdir()
    whole = file.read_bytes()
    parquet.write_table(parquet.ParquetFile(file).read().slice(1), file)
    code, _, err = run(config, "--table", "example_attributions", "--out", out, job=export)
    assert (code, "1 of 2 rows" in err) == (3, True)
    assert len(out.read_text("utf-8").splitlines()) == 3  # as before
    file.write_bytes(whole[:4] + b"\xff" * 36 + whole[40:])  # the footer, by which rows are counted, is whole
    code, _, err = run(config, "--table", "example_attributions", "--out", out, job=export)
    assert (code, str(file.parent) in err) == (3, True), err
    code, _, err = run(config, "--table", "loss_by_segment", "--out", out, job=export)
    assert (code, warehouse.location(TABLES["loss_by_segment"], attributed) in err) == (3, True)  # its files are gone
    code, _, err = run(config, "--table", "auc_crosses", "--out", out, job=export)
    assert (code, "error: auc_crosses: run r_attribution" in err) == (3, True)  # the run did not write it
    assert len(out.read_text("utf-8").splitlines()) == 3


def test_a_frame_of_metrics_shows_itself(spark: SparkSession, warehouse: PathStore) -> None:
    metrics = spark.read.parquet(f"{warehouse.path}/bias_metrics/run_date={RUN_DATE}/run_id=r_0")
    shown = metric_table(metrics)._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"')
    assert "&lt;bdi&gt;gay&lt;/bdi&gt;" in shown
    assert "<script" not in shown
    with pytest.raises(InputError, match="shrt"):
        metric_table(metrics, "shrt")
    with pytest.raises(InputError, match="slice = 3"):
        metric_table(metrics, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="slice"):
        metric_table(metrics.where("slice IS NULL"))


def test_a_frame_of_another_table_shows_itself(spark: SparkSession) -> None:
    row = dict.fromkeys(U_STATISTICS.names) | {"model": SCRIPT}
    frame = spark.createDataFrame([row], spark_schema(U_STATISTICS))
    with pytest.raises(InputError, match="slice"):
        metric_table(frame, "short")
    shown = metric_table(frame)
    assert shown.title == "u_statistics"
    assert SCRIPT not in shown.html
    assert shown.html.count("<tr>") == 2


def test_a_frame_of_no_table_is_refused_before_any_work(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "model STRING, slice STRING, bpsn_auc DOUBLE")
    with pytest.raises(InputError) as caught:
        metric_table(frame.where("raise_error('work') = 1"))
    assert all(word in str(caught.value) for word in ("metric_table", "columns", "bias_metrics"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store", "warehouse"),
        ("run_date", "2026-01-15"),
        ("run_date", datetime.now(UTC)),
    ],
)
def test_arguments_of_other_types_are_named(warehouse: PathStore, spark: SparkSession, name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"spark": spark, "store": warehouse, "run_date": RUN_DATE, "corpus": "civil"}
    with pytest.raises(TypeError, match=f"^{name}: "):
        night_report(**arguments | {name: value})


@pytest.mark.parametrize("nights", [-1, 3.0, True, "three"])
def test_the_number_of_runs_is_a_whole_number(warehouse: PathStore, spark: SparkSession, nights: Any) -> None:
    assert raised_fault(ConfigError, night_report, spark, warehouse, RUN_DATE, "civil", nights).path == ("nights",)


def test_other_objects_are_refused(warehouse: PathStore) -> None:
    for other in ([{"model": "m"}], None, warehouse):
        with pytest.raises(TypeError, match=r"^table: "):
            metric_table(other)


# ---- reports published next to tables, and to a folder of any file system that Spark can write

RUN_ID = "r_0"
PAGE = f"run_date={RUN_DATE}/{RUN_ID}.html"
classic = pytest.mark.classic("A session of Spark Connect writes files of this machine alone")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder of tables."""
    folder = tmp_path_factory.mktemp("publishing")
    tables = make_report(identities=("gay",)).tables
    add_run(folder / "warehouse", start_run(0, RUN_ID), {name: tables[name] for name in SUITE})
    return folder


@pytest.fixture
def publish(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Publish the report with some settings of the configuration, in a session of its own."""
    is_running = False
    write = report.write_documents

    @contextmanager
    def lend(*_: object) -> Iterator[SparkSession]:
        nonlocal is_running
        is_running = True
        yield spark
        is_running = False

    def write_while_running(*arguments: Any) -> list[str]:
        assert is_running, "what is imported from a zip of --py-files is gone when the session has stopped"
        return write(*arguments)

    monkeypatch.setattr("biasspark.tables.store.job_session", lend)
    monkeypatch.setattr(report, "write_documents", write_while_running)

    def publish(*settings: str) -> Done:
        overrides = [part for setting in settings for part in ("--set", setting)]
        config = write_config(folder, corpus={"name": "civil"})
        return run(config, "--publish", *overrides, run_date=RUN_DATE, job=report)

    return publish


def setting(path: object) -> str:
    return f"report.path={json.dumps(str(path))}"


@pytest.fixture
def mount(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """Return the settings and the URI of another file system, which Hadoop has not opened yet."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    lake, interface = f"lake-{uuid4().hex}", "fs.AbstractFileSystem.viewfs.impl"
    link, before = f"fs.viewfs.mounttable.{lake}.link./reports", settings.get(interface)
    (tmp_path / "lake").mkdir()
    settings.set(link, f"file://{tmp_path}/lake")
    yield settings, f"viewfs://{lake}/reports"
    settings.unset(link)
    settings.set(interface, before)


@classic
@pytest.mark.parametrize("has_both_interfaces", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_page_is_published_to_another_file_system_and_replaced(
    publish: Callable[..., Done], mount: tuple[Any, str], tmp_path: Path, has_both_interfaces: bool
) -> None:
    """Also to one with only the older of the two Hadoop interfaces."""
    settings, lake = mount
    if not has_both_interfaces:
        settings.unset("fs.AbstractFileSystem.viewfs.impl")
    page = tmp_path / "lake" / PAGE
    for _ in range(2):
        done = publish(setting(lake))
        assert (done.code, done.summary["written"]) == (0, [f"{lake}/{PAGE}"]), done.err
        assert page.read_text("utf-8").endswith("</html>")
        assert [path for path in page.parent.iterdir() if path.suffix != ".crc"] == [page]
        page.write_text("an earlier page", encoding="utf-8")
        page.with_name(f".{page.name}.crc").unlink()


@classic
def test_a_file_system_that_spark_does_not_know_is_a_fault_of_the_configuration(publish: Callable[..., Done]) -> None:
    done = publish(setting("nowhere://user:hunter2@lake/reports"))
    assert done.code == 2
    assert '[report] path = "nowhere://(redacted)@lake/reports". ' in done.err
    done = publish(setting("s3a://lake/reports"))
    assert done.code == 2
    assert "org.apache.hadoop:hadoop-aws:3." in done.err


def test_a_file_in_the_way_is_named(publish: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("", encoding="utf-8")
    done = publish(setting(tmp_path / "reports"))
    assert done.code == 2
    assert all(word in done.err for word in ("--publish", str(tmp_path / "reports" / PAGE)))


def test_tables_in_a_catalog_need_a_folder_for_reports(
    publish: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biasspark.tables.store.job_session", lambda *_: pytest.fail("Spark is started"))
    done = publish('output={ catalog = "lake.bias", format = "iceberg" }')
    assert done.code == 2
    assert all(word in done.err for word in ("--publish", '"lake.bias"', "[report] path", "--out"))
