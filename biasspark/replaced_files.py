"""Replace local files atomically: readers see the old or the new file, never a part."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


def is_replaced(path: Path) -> bool:
    """Return whether a file is replaced by a new one. A link, as /dev/stdout is, or a pipe is written to instead."""
    return not path.is_symlink() and (path.is_file() or not path.exists())


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a hidden file of the same folder to write to, which replaces a file at the end of the block.

    It has the permissions of an earlier file. If the block fails, that file is as it was; the error names it.
    """
    draft = file.with_name(f".{uuid4().hex}")
    try:
        if file.exists():
            draft.touch()
            shutil.copymode(file, draft)
        yield draft
        draft.replace(file)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(draft):
            error.filename, error.filename2 = str(file), None
        raise


def replace_local_file(file: Path, content: bytes) -> None:
    """Write or replace a file in an existing folder, atomically."""
    with replacing(file) as draft:
        draft.write_bytes(content)
