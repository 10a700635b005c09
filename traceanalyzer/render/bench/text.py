"""A bench as text of 100 columns."""

from __future__ import annotations

from traceanalyzer.render.base import WIDTH, RenderSettings
from traceanalyzer.render.bench import blocks as cells
from traceanalyzer.render.console import render_blocks
from traceanalyzer.report.bench.model import BenchTable


def render_bench(table: BenchTable, *, width: int = WIDTH) -> str:
    """Return the tables, then what must be said of their rows."""
    overview, work = cells.overview(table), cells.work(table)
    shown = [b for b in (overview, cells.times(table), work if work.rows else None) if b is not None]
    lines = [*cells.remarks(table), *cells.verdicts(table), *cells.conditions(table)]
    return render_blocks(shown, lines, width=width)


def text_bench(table: BenchTable, settings: RenderSettings) -> str:
    """Return the tables at the width of the screen."""
    return render_bench(table, width=settings.width)
