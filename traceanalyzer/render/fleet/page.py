"""Answers on a fleet as one HTML page: what limits the runs as a chart, then each answer as a table."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.fleet import blocks as cells
from traceanalyzer.render.fleet.text import markdown_fleet
from traceanalyzer.render.page.sheet import ROWS, Sheet, SheetPart, sheet_page
from traceanalyzer.render.page.svg import Axis, ChartMark, ChartRow, RowChart
from traceanalyzer.report.fleet import FleetAnswers, QueryResult


def page_fleet(found: FleetAnswers, settings: RenderSettings) -> str:
    """Return the answers as a page."""
    parts = [
        SheetPart(
            f"answer-{n}", block.title, charts=_limits(found) if found.limits and block.title == cells.LIMITS_TITLE else (), tables=[block]
        )
        for n, block in enumerate(cells.blocks(found), 1)
    ]  # fmt: skip
    headline = cells.headline(found).removeprefix(f"{found.results}: ")
    return sheet_page(
        Sheet(
            found.results,
            headline,
            parts,
            file_parts=["fleet"],
            conditions=cells.cost(found),
            markdown=markdown_fleet(found, settings),
        )
    )


def page_query(found: QueryResult, settings: RenderSettings) -> str:
    """Return the rows of a query as a page."""
    block = replace(cells.query_block(found, settings.top or ROWS), title="Rows")
    count = show.plural(len(found.rows), "row")
    return sheet_page(
        Sheet("Query", f"{count}{' and more' if found.cut else ''}", [SheetPart("rows", "Rows", tables=[block])])
    )


def _limits(found: FleetAnswers) -> list[RowChart]:
    """Return the share of the span that each limit costs: the median of its devices and the worst."""
    known = [x for x in found.limits if x.median_share is not None and x.worst_share is not None]
    if not known:
        return []
    axis = Axis(0.0, 1.0, False)
    rows = []
    for x in known:
        assert x.median_share is not None
        assert x.worst_share is not None
        low, high = axis.at(x.median_share), axis.at(x.worst_share)
        marks = [ChartMark("span", "excess", low, high), ChartMark("tick", "fg", low), ChartMark("dot", "self", high)]
        text = f"{show.plural(x.devices, 'device')}, median {show.percent(x.median_share)}, worst {show.percent(x.worst_share)}"
        rows.append(ChartRow(terminal(cells.LIMITS.get(x.limit, x.limit), 80), text, marks))
    return [
        RowChart(
            "Share of the device's span that each limit takes, on the devices that it limits",
            rows,
            axis.ticks(lambda v: f"{100 * v:.0f} %"),
            "",
            notes=["line: the median of the devices; dot: the worst"],
        )
    ]
