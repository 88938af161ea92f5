"""The report in a notebook: objects that show themselves at the end of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from biasspark.report.page import write_model_card, write_page
from biasspark.report.report_data import ReportData
from biasspark.report.text_formats import write_out

_FRAME = (
    '<iframe sandbox="allow-scripts" title="{title}" width="100%" height="{height}" '
    'style="border:1px solid #ccc;border-radius:4px" srcdoc="{page}"></iframe>'
)


@dataclass(frozen=True)
class Document:
    """A page that a notebook shows in a frame of its own, apart from the notebook."""

    title: str
    html: str
    height: int = 800

    def _repr_html_(self) -> str:
        return _FRAME.format(title=escape(self.title), height=self.height, page=escape(self.html))

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        write_out(Path(path), self.html)


@dataclass(frozen=True)
class NightReport:
    """The report of a night, drawn on demand."""

    data: ReportData

    @property
    def document(self) -> Document:
        """The report as a page."""
        return Document(f"Unintended bias, {self.data.run_date}", write_page(self.data))

    def _repr_html_(self) -> str:
        return self.document._repr_html_()

    def save(self, path: str | Path) -> None:
        """Write the report to a file."""
        self.document.save(path)

    def model_card(self) -> str:
        """Return the report as Markdown for a model card."""
        return write_model_card(self.data)
