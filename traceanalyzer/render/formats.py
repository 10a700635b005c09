"""Every output format, by product; the first of a list is the default of its command."""

from __future__ import annotations

from traceanalyzer.render.base import Renderer

_TEXT, _MARKDOWN, _JSON, _HTML, _CSV = "text/plain", "text/markdown", "application/json", "text/html", "text/csv"

REPORT = (
    Renderer("text", _TEXT, ".txt", "text:text_report"),
    Renderer("markdown", _MARKDOWN, ".md", "markdown:markdown_report"),
    Renderer("json", _JSON, ".json", "json_v1:json_report"),
    Renderer("csv", _CSV, ".csv", "csv:csv_report"),
    Renderer("html", _HTML, ".html", "page.content:page_report"),
    Renderer("summary", _MARKDOWN, ".md", "summary:summary_report"),
)

COMPARISON = (
    Renderer("text", _TEXT, ".txt", "compare.text:text_comparison"),
    Renderer("markdown", _MARKDOWN, ".md", "compare.markdown:markdown_comparison"),
    Renderer("json", _JSON, ".json", "json_v1:json_comparison"),
    Renderer("html", _HTML, ".html", "compare.page:page_comparison"),
)

CHECK = (
    Renderer("text", _TEXT, ".txt", "checks:text_check"),
    Renderer("json", _JSON, ".json", "checks:json_check"),
    Renderer("github", _TEXT, ".txt", "checks:github_check"),
    Renderer("sarif", "application/sarif+json", ".sarif", "checks:sarif_check"),
)

LINT = (
    Renderer("text", _TEXT, ".txt", "lint:text_lint"),
    Renderer("json", _JSON, ".json", "lint:json_lint"),
    Renderer("github", _TEXT, ".txt", "lint:github_lint"),
    Renderer("sarif", "application/sarif+json", ".sarif", "lint:sarif_lint"),
)

RANKS = (
    Renderer("text", _TEXT, ".txt", "ranks:text_ranks"),
    Renderer("markdown", _MARKDOWN, ".md", "ranks:markdown_ranks"),
    Renderer("html", _HTML, ".html", "page.ranks:page_ranks"),
    Renderer("json", _JSON, ".json", "json_v1:json_of"),
)

BENCH = (
    Renderer("text", _TEXT, ".txt", "bench.text:text_bench"),
    Renderer("markdown", _MARKDOWN, ".md", "bench.markdown:markdown_bench"),
    Renderer("json", _JSON, ".json", "json_v1:json_of"),
    Renderer("csv", _CSV, ".csv", "bench.cells_csv:csv_bench"),
    Renderer("html", _HTML, ".html", "bench.page:page_bench"),
)

MERGED = (
    Renderer("text", _TEXT, ".txt", "bench.merged:text_merged"),
    Renderer("markdown", _MARKDOWN, ".md", "bench.merged:markdown_merged"),
    Renderer("json", _JSON, ".json", "json_v1:json_of"),
    Renderer("csv", _CSV, ".csv", "bench.merged:csv_merged"),
    Renderer("html", _HTML, ".html", "bench.merged:page_merged"),
)

PREDICTION = (
    Renderer("text", _TEXT, ".txt", "prediction:text_prediction"),
    Renderer("markdown", _MARKDOWN, ".md", "prediction:markdown_prediction"),
    Renderer("json", _JSON, ".json", "prediction:json_prediction"),
)

FLEET = (
    Renderer("text", _TEXT, ".txt", "fleet.text:text_fleet"),
    Renderer("markdown", _MARKDOWN, ".md", "fleet.text:markdown_fleet"),
    Renderer("html", _HTML, ".html", "fleet.page:page_fleet"),
    Renderer("json", _JSON, ".json", "json_v1:json_of"),
)

FLEET_QUERY = (
    Renderer("text", _TEXT, ".txt", "fleet.text:text_query"),
    Renderer("markdown", _MARKDOWN, ".md", "fleet.text:markdown_query"),
    Renderer("html", _HTML, ".html", "fleet.page:page_query"),
    Renderer("json", _JSON, ".json", "json_v1:json_of"),
)
