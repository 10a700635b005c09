"""Merged tables as text, Markdown, CSV and HTML."""

from __future__ import annotations

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.bench import merged_blocks as cells
from traceanalyzer.render.bench.cells_csv import rows_csv
from traceanalyzer.render.bench.page import tables_page
from traceanalyzer.render.console import render_blocks
from traceanalyzer.render.escape import markdown
from traceanalyzer.render.markdown import pipe_table
from traceanalyzer.report.bench.merge import MergedBench


def text_merged(found: MergedBench, settings: RenderSettings) -> str:
    """Return the tables at the width of the screen, then what must be said of their cells."""
    return render_blocks(cells.tables(found), cells.remarks(found), width=settings.width)


def markdown_merged(found: MergedBench, settings: RenderSettings) -> str:  # noqa: ARG001 - the interface of all renderers
    """Return the tables as Markdown, each under its title."""
    lines = []
    for block in cells.tables(found):
        lines += [f"### {markdown(block.title)}", "", *pipe_table(block), ""]
    return "\n".join([*lines, *(f"- {markdown(line, 600)}" for line in cells.remarks(found))]) + "\n"


def csv_merged(found: MergedBench, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return a line for each cell and alternative; absent values are empty."""
    columns = [
        "machine", "source", "case", "implementation", "column", "protocol", "p50_us", "ci95_low_us", "ci95_high_us", "n", "reason",
        "correct", "doubts", "queue", "end_to_end_p50_us", "against", "speed_up", "speed_up_ci95_low", "speed_up_ci95_high", "outcome", "counts", "speed_up_reason",
    ]  # fmt: skip
    rows: list[list[object]] = []
    for machine in found.machines:
        for cell in machine.cells:
            r = cell.reading
            head: list[object] = [
                machine.label, machine.source, cell.case, found.implementation, found.column, r.protocol, r.p50_us, *(r.ci95_us or (None, None)),
                r.n, r.reason, cell.correct, " ".join(cell.doubts), cell.queue, cell.end_to_end.p50_us,
            ]  # fmt: skip
            for s in cell.speed_ups:
                rows.append([*head, s.against, s.ratio, *(s.ci95 or (None, None)), s.outcome, s.counts, s.reason])
            if not cell.speed_ups:
                rows.append([*head, *[None] * 7])
    return rows_csv(columns, rows)


def page_merged(found: MergedBench, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the tables as one page."""
    return tables_page(cells.title(found), cells.tables(found), cells.remarks(found)[:-1], cells.remarks(found)[-1])
