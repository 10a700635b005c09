"""Answers on a fleet as text and as Markdown."""

from __future__ import annotations

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.console import render_blocks
from traceanalyzer.render.escape import markdown, terminal, wrapped
from traceanalyzer.render.fleet import blocks as cells
from traceanalyzer.render.markdown import pipe_table
from traceanalyzer.report.fleet import FleetAnswers, QueryResult

_ROWS = 10


def text_fleet(found: FleetAnswers, settings: RenderSettings) -> str:
    """Return the answers at the width of the screen."""
    head = "\n".join(wrapped(terminal(cells.headline(found), 400), settings.width))
    return f"{head}\n\n" + render_blocks(cells.blocks(found), [cells.cost(found)], width=settings.width)


def markdown_fleet(found: FleetAnswers, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the answers as Markdown."""
    lines = ["### Fleet", "", f"**{markdown(cells.headline(found), 400)}**", ""]
    for block in cells.blocks(found):
        lines += _table(block)
    return "\n".join([*lines, f"<sub>{markdown(cells.cost(found), 400)}</sub>"]) + "\n"


def text_query(found: QueryResult, settings: RenderSettings) -> str:
    """Return the rows of a query."""
    return render_blocks([cells.query_block(found, settings.top or _ROWS)], [], width=settings.width)


def markdown_query(found: QueryResult, settings: RenderSettings) -> str:
    """Return the rows of a query as Markdown."""
    return "\n".join(_table(cells.query_block(found, settings.top or _ROWS))).rstrip() + "\n"


def _table(block: Block) -> list[str]:
    title = [f"**{markdown(block.title, 200)}**", ""] if block.title else []
    notes = [f"<sub>{'<br>'.join(markdown(n, 300) for n in block.notes)}</sub>", ""] if block.notes else []
    return [*title, *([*pipe_table(block), ""] if block.rows else []), *notes]
