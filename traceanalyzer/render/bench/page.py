"""A bench as one HTML page: its tables and what must be said of them, with the parts and the policy of the report's page."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.bench import blocks as cells
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.assets import page_assets, page_data
from traceanalyzer.render.page.content import clean_block
from traceanalyzer.render.page.templates import render_template
from traceanalyzer.report.bench.model import BenchTable


def tables_page(title: str, tables: Sequence[Block], remarks: Sequence[str], conditions: str) -> str:
    """Return a page of tables that can be sorted, then lines; every text is made harmless."""
    context = {
        "assets": page_assets(),
        "title": terminal(title, 400),
        "tables": [clean_block(b) for b in tables],
        "remarks": [terminal(line, 1000) for line in remarks],
        "conditions": terminal(conditions, 4000),
        "data": page_data({}),
    }
    return render_template("bench.html.j2", context)


def page_bench(table: BenchTable, settings: RenderSettings) -> str:  # noqa: ARG001 - the interface of all renderers
    """Return the tables of a bench as a page."""
    overview, work = cells.overview(table), cells.work(table)
    shown = [b for b in (overview, cells.times(table), work if work.rows else None) if b is not None]
    conditions = "; ".join(cells.conditions(table))
    return tables_page(cells.title(table), shown, [*cells.remarks(table), *cells.verdicts(table)], conditions)
