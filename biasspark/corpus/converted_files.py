"""Files that the embedded engine cannot read, rewritten as Parquet for the life of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

ReadBatches = Callable[[Path], Iterable[pa.RecordBatch]]

_ROWS = 1 << 17
_CONVERTING = Lock()
_folders: list[TemporaryDirectory[str]] = []
_converted: dict[object, Path] = {}


def convert_files(files: Sequence[Path], root: Path, read: ReadBatches, how: object) -> Path:
    """Write files as Parquet below a temporary folder, in the same folders, and return it.

    The same files are written once per process; the folder is deleted when the process ends.

    Parameters
    ----------
    read
        Yields the rows of a file, in the columns and types that are to be written.
    how
        Anything else on which the result depends.
    """
    states = [(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = (root, tuple(states), how)
    with _CONVERTING:
        if key not in _converted:
            target = temporary_folder()
            for number, file in enumerate(files):
                _write(read(file), target / file.relative_to(root).parent / f"{number}.parquet")
            _converted[key] = target
        return _converted[key]


def temporary_folder() -> Path:
    """Return a new folder, which is deleted when the process ends."""
    if not _folders:
        _folders.append(TemporaryDirectory(prefix="biasspark-"))
    return Path(mkdtemp(dir=_folders[0].name))


def read_parquet(file: Path, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Yield the rows of a Parquet file in the columns of a schema that it has, dictionaries as their values."""
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us", page_checksum_verification=True) as source:
        names = [name for name in schema.names if name in source.schema_arrow.names]
        target = pa.schema([schema.field(name) for name in names])
        for batch in source.iter_batches(_ROWS, columns=names):
            yield from pa.Table.from_batches([batch]).select(names).cast(target).to_batches()


def _write(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = None
    for batch in batches:
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
