"""A hook of MkDocs that adds pages and files outside docs/ to the site, and rewrites the links to them.

Pages link to files of the repository, ``../README.md`` or ``../jobs/report.py``, so that the links work there as well.

Used by scripts/check.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
README = "README.md"
PAGES = {README: "index.md"} | {name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
EXAMPLES = ROOT / "examples"
_LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#]+)")


@event_priority(100)  # before the plugin that renders notebooks looks for them
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/ and the notebooks."""
    for source, address in PAGES.items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / source)))
    for notebook in sorted(EXAMPLES.glob("notebooks/*.ipynb")):
        path = notebook.relative_to(EXAMPLES).as_posix()
        files.append(File(path, str(EXAMPLES), config.site_dir, use_directory_urls=False))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links of the repository to links of the site; other files of the repository are copied into it."""
    folder = "." if page.file.src_uri in PAGES.values() else "docs"

    def rewrite(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[2]))
        address = PAGES.get(path) or path.removeprefix("docs/").replace("examples/notebooks/", "notebooks/")
        if address == path and (ROOT / path).is_file() and not files.get_file_from_path(path):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
        return link[1] + address

    return _LINK.sub(rewrite, markdown)
