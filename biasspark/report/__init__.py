"""Reports from published tables, as HTML, Markdown and text. No Spark."""
