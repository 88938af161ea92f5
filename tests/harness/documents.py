"""The blocks of code in the pages at the root and in docs/: what each is, and what the comment before it says of it.

A comment of one line right before a block says more of it:

- ``<!-- file: NAME -->`` and ``<!-- added to: NAME -->``: the commands after it find it in that file;
- ``<!-- from: PATH -->``: it stands so in that file of the project;
- ``<!-- output -->``: the commands, or the Python, before it print these lines, three dots standing for others;
- ``<!-- leaves of the census -->``: trees of tests/published/test_attributing.py have them;
- ``<!-- slow -->``: it is run with the slow tests alone;
- ``<!-- apart: WHERE -->``: the commands are run there by a test of their own, with the slow tests;
- ``<!-- elsewhere: WHERE -->``: it is another platform's, and only shown.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", *_DOCS)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REMARK = re.compile(r"<!-- ([a-z ]+?)(?:: (.*))? -->\n\Z")


@dataclass(frozen=True)
class Code:
    """One block."""

    page: str
    line: int
    language: str
    text: str
    remark: str = ""
    says: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(page: str) -> list[Code]:
    """Give the blocks of a page, in order."""
    text = (ROOT / page).read_text("utf-8")
    assert text.count("\n```") % 2 == 0, f"{page}: a block is not closed"
    found = []
    for fence in _FENCE.finditer(text):
        remark = _REMARK.search(text, 0, fence.start())
        parts = (remark[1], remark[2] or "") if remark else ("", "")
        found.append(Code(page, text.count("\n", 0, fence.start()) + 1, fence[1], fence[2], *parts))
    return found


BLOCKS = tuple(block for page in PAGES for block in read_blocks(page))


def blocks_of(language: str, *remarks: str) -> list[Code]:
    """Give the blocks of a language; with remarks those alone that have one of them."""
    return [block for block in BLOCKS if block.language == language and (not remarks or block.remark in remarks)]


def read_lines(block: Code) -> list[str]:
    """Give the commands, each on one line, with the comments after them."""
    return [line for line in block.text.replace("\\\n", " ").splitlines() if shlex.split(line, comments=True)]


def read_commands(block: Code) -> list[list[str]]:
    """Give the words of each command, less what follows a #; variables are left as they stand."""
    return [shlex.split(line, comments=True) for line in read_lines(block)]


def output_of(block: Code) -> list[str]:
    """Give the lines that a block is said to print; three dots stand for any."""
    after = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return [line for one in after if one.remark == "output" for line in one.text.splitlines() if line != "..."]


def files_of(block: Code) -> dict[str, str]:
    """Give the files that the commands of a block find: of its own page up to there, else of docs/configuration.md."""
    files = {file.says: file.text for file in read_blocks("docs/configuration.md") if file.remark == "file"}
    for earlier in read_blocks(block.page):
        if earlier.line > block.line:
            break
        if earlier.remark == "file":
            files[earlier.says] = earlier.text
        elif earlier.remark == "added to":
            files[earlier.says] += f"\n{earlier.text}"
    return files


def headings_of(page: Path) -> set[str]:
    """Return the anchors of a page: its headings in small letters, with dashes for spaces and without punctuation."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
