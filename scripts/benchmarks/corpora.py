"""The corpora of a benchmark: made when first needed, and kept under build/bench until others of the name are made."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from scripts.benchmarks.task import IDENTITY_NAMES

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
SEED = 1


def civil_corpus(rows: int, unannotated: float) -> Path:
    """Return a civil corpus with a share of rows without annotations."""
    sources = [*sorted((ROOT / "biasspark" / "synthetic").glob("*.*")), ROOT / "jobs" / "make_corpus.py"]
    name = f"civil-{rows}-{unannotated:g}-{_digest(path.read_bytes() for path in sources)}"
    options = ["civil", "--rows", str(rows), "--seed", str(SEED), "--unannotated", str(unannotated)]
    return _make_once(BUILD / name, "jobs/make_corpus.py", *options)


def split_corpus(corpus: Path) -> Path:
    """Return a corpus with ten identities in place of each identity of another corpus."""
    script = "scripts/benchmarks/split_identities.py"
    files = (f"{path}{path.stat().st_size}{path.stat().st_mtime_ns}" for path in sorted(corpus.glob("*.parquet")))
    rows = describe_corpus(corpus)["rows"]
    name = f"split-{rows}-{_digest([*map(str.encode, files), (ROOT / script).read_bytes()])}"
    return _make_once(BUILD / name, "--driver-memory", "2g", script, "--corpus", str(corpus))


def describe_corpus(corpus: Path) -> dict[str, int]:
    """Return the rows of a corpus, those with annotations, and the bytes of its files."""
    rows = ds.dataset(corpus)
    return {
        "rows": int(rows.count_rows()),
        "bytes": sum(path.stat().st_size for path in corpus.glob("*.parquet")),
        "annotated_rows": int(rows.count_rows(filter=pc.is_valid(pc.field(IDENTITY_NAMES[0])))),
    }


def read_once(corpus: Path) -> None:
    """Read all files, so that no candidate waits for the disk."""
    for path in corpus.glob("*.parquet"):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def _make_once(folder: Path, *job: str) -> Path:
    if not (folder / "_SUCCESS").exists():
        print(f"making {folder.relative_to(ROOT)}", file=sys.stderr, flush=True)
        for older in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
            shutil.rmtree(older)
        folder.parent.mkdir(parents=True, exist_ok=True)
        command: list[str | Path] = [ROOT / "scripts" / "submit", *job, "--out", folder]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return folder


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]
