"""The small night of scripts/quicken: a corpus is made and measured, in one process and in a folder of its own."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from biasspark.backfill import backfill_parser  # noqa: E402 - found through the line above
from biasspark.session import job_session  # noqa: E402 - likewise
from jobs import bias_metrics, make_corpus  # noqa: E402 - likewise


def rehearse(folder: str) -> None:
    """Make a corpus in a folder and publish a night of it there."""
    corpus = f"{folder}/corpus"
    order = ("civil", "--rows", "1000", "--seed", "1", "--out", corpus)
    night = ("--config", str(ROOT / "conf" / "demo.toml"), "--run-date", "2026-01-15")
    places = ("--set", f"corpus.path={corpus}", "--set", f"output.path={folder}/warehouse")
    with job_session("rehearsal"):
        make_corpus.make_corpus(make_corpus.corpus_parser().parse_args(order))
        bias_metrics.main(backfill_parser("").parse_args([*night, *places]))


if __name__ == "__main__":
    rehearse(sys.argv[1])
