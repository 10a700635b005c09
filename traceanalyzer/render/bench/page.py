"""A bench as one HTML page: the times of each case on one axis, its tables and what must be said of them."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.bench import blocks as cells
from traceanalyzer.render.bench.markdown import markdown_bench
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.sheet import CHARTS, Sheet, SheetPart, sheet_page
from traceanalyzer.render.page.svg import ChartMark, ChartRow, RowChart, short_time, time_axis
from traceanalyzer.report.bench.model import BenchRow, BenchTable, Reading

_ROWS = 12
"""Implementations drawn of one case."""


def tables_page(title: str, tables: Sequence[Block], remarks: Sequence[str], conditions: str) -> str:
    """Return a page of tables that can be sorted, then lines."""
    parts = [
        SheetPart("tables", "Tables", tables=tables),
        SheetPart("remarks", "What must be said of them", lines=remarks),
    ]
    return sheet_page(Sheet(title.partition(":")[0], title, parts, conditions=conditions))


def page_bench(table: BenchTable, settings: RenderSettings) -> str:
    """Return a bench as a page."""
    overview, work = cells.overview(table), cells.work(table)
    shown = [cells.times(table), *([work] if work.rows else [])]
    status, word = _status(table)
    remarks = cells.remarks(table)
    losses = cells.losses(table)
    parts = [
        SheetPart("overview", "Overview", tables=[overview] if overview is not None else []),
        SheetPart("readings", "Times", charts=_charts(table)),
        SheetPart("tables", "Tables", tables=shown),
        SheetPart("remarks", "What must be said of them", lines=[*(r for r in remarks if r not in losses), *cells.verdicts(table)]),
    ]  # fmt: skip
    about = [show.plural(len(table.rows), "row"), f"compared: {table.column} time per call"]
    conditions = "; ".join(cells.conditions(table))
    return sheet_page(
        Sheet(
            " ".join(p for p in (table.operator, table.preset) if p), _headline(table, losses), parts, status, word, about, conditions, markdown_bench(table, settings)
        )
    )  # fmt: skip


def _headline(table: BenchTable, losses: list[str]) -> str:
    """Return what was measured, then what matters most of it."""
    wrong = [r.label for r in table.rows if r.result.passed is False]
    said = (
        [f"the result of {', '.join(wrong[:4])}{f' and {len(wrong) - 4:,} more' if len(wrong) > 4 else ''} is wrong"]
        if wrong
        else []
    )
    return "; ".join([f"{cells.title(table)}: {table.implementation}", *said, *losses])


def _status(table: BenchTable) -> tuple[str, str]:
    """Return the status that colours the verdict, and its word."""
    if any(r.result.passed is False for r in table.rows):
        return "cannot-judge", "Wrong result"
    if not any(r.measured for r in table.rows):
        return "cannot-judge", "Not measured"
    if any(x.outcome != "undecided" for x in table.losses):
        return "suspect", "Loses"
    if table.losses or any(s.outcome == "undecided" for r in table.rows for s in r.speed_ups):
        return "undecided", "Undecided"
    if not any(s.ratio is not None for r in table.rows for s in r.speed_ups):
        return "", ""
    return "ok", "No loss"


def _charts(table: BenchTable) -> list[RowChart]:
    """Return a chart for each case: one row per implementation that was measured, in the column that is compared."""
    several = len({r.device_kind for r in table.rows}) > 1
    cases: dict[str, list[BenchRow]] = {}
    for row in table.rows:
        if _reading(table, row).p50_us is not None:
            cases.setdefault(f"{row.case} on {row.device_kind}" if several else row.case, []).append(row)
    return [_chart(table, case, rows) for case, rows in list(cases.items())[: CHARTS + 1]]


def _reading(table: BenchTable, row: BenchRow) -> Reading:
    return row.device if table.column == "device" else row.end_to_end


def _chart(table: BenchTable, case: str, rows: list[BenchRow]) -> RowChart:
    shown = rows[:_ROWS]
    found = [_reading(table, r) for r in shown]
    axis = time_axis([v for r in found for v in (r.p50_us, *(r.ci95_us or ())) if v is not None])
    drawn = []
    for row, r in zip(shown, found, strict=True):
        assert r.p50_us is not None
        wrong = row.result.passed is False
        marks = [ChartMark("span", "call", axis.at(r.ci95_us[0]), axis.at(r.ci95_us[1]))] if r.ci95_us else []
        marks.append(ChartMark("ring" if wrong else "dot", "self", axis.at(r.p50_us)))
        sure = f" (95 % {show.time_interval(r.ci95_us)})" if r.ci95_us else ""
        text = f"{show.time(r.p50_us)}{sure}, n {show.count(r.n)}"
        drawn.append(
            ChartRow(
                terminal(row.implementation, 80) + (": WRONG RESULT" if wrong else ""),
                terminal(text, 160),
                marks,
                "wrong" if wrong else "",
            )
        )
    notes = [f"{len(rows) - len(shown):,} more implementations are in the table"] if len(rows) > len(shown) else []
    title = terminal(f"{case}: {table.column} time per call, median and 95 % interval", 200)
    return RowChart(title, drawn, axis.ticks(short_time), "logarithmic" if axis.logarithmic else "", notes=notes)
