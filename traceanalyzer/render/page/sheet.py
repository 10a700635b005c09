"""The page of everything that is not a report or a comparison: one shell, then parts of bars, charts, tables and lines.

Every text is made harmless here, so that a renderer of ranks, a bench, a history or a fleet only says what its page holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.assets import page_assets, page_data
from traceanalyzer.render.page.content import clean_block
from traceanalyzer.render.page.svg import RowChart
from traceanalyzer.render.page.templates import render_template
from traceanalyzer.render.page.trend import TrendChart

ROWS = 500
"""Most rows of one table; a page of ten thousand stays below a megabyte."""
CELLS = 9_000
"""Most cells of a page, for the same reason; tables after that keep their first rows."""
OPEN_CHARTS, CHARTS = 6, 60
OPEN_BARS, BARS = 16, 160
LINES = 200
_LEAST_ROWS = 8
_MARKDOWN = 100_000
"""Longest block that the copy button holds; a longer one is no comment on a pull request."""
_KEPT = "text, CSV and JSON hold all"


@dataclass(frozen=True)
class BarPiece:
    """A part of a bar in thousandths of the axis; ``kind`` names its colour."""

    kind: str
    x: float
    width: float
    text: str


@dataclass(frozen=True)
class Bar:
    """One bar of several on one axis. ``mark`` is a word that sets it apart (late); ``anchor`` is the id that its label links to."""

    label: str
    value: str
    pieces: list[BarPiece]
    anchor: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars on one axis with their legend of (kind, text); bars with a mark are never folded away."""

    title: str
    bars: list[Bar]
    ticks: list[tuple[float, str, str]]
    legend: list[tuple[str, str]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SheetPart:
    """A section of a page: what it has of bars, charts, tables and lines, in this order."""

    anchor: str
    title: str
    bars: Bars | None = None
    charts: Sequence[RowChart | TrendChart] = ()
    tables: Sequence[Block] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Sheet:
    """A page. ``status`` is that of its verdict (its colour), ``word`` the same in words; empty: there is none.

    ``file`` is what the page is of and begins its title. ``sortable`` is whether its tables sort.
    """

    file: str
    headline: str
    parts: Sequence[SheetPart]
    status: str = ""
    word: str = ""
    file_parts: Sequence[str] = ()
    conditions: str = ""
    markdown: str = ""


def sheet_page(sheet: Sheet) -> str:
    """Return the page. What does not fit into a page below a megabyte is left out with a note that counts it."""
    left = CELLS
    parts = []
    for part in sheet.parts:
        tables = []
        for b in part.tables:
            shown = _cut(b, left)
            left -= len(shown.rows) * len(shown.columns)
            tables.append(clean_block(shown))
        made = _part(part, tables)
        if made is not None:
            parts.append(made)
    markdown = sheet.markdown if len(sheet.markdown) <= _MARKDOWN else ""
    context = {
        "assets": page_assets(),
        "title": terminal(f"{sheet.file}: {sheet.headline[:200]}", 400),
        "file": terminal(sheet.file, 200),
        "file_parts": [terminal(p, 200) for p in sheet.file_parts],
        "status": sheet.status,
        "word": sheet.word,
        "headline": terminal(sheet.headline, 4000),
        "parts": parts,
        "conditions": terminal(sheet.conditions, 4000),
        "markdown": bool(markdown),
        "data": page_data({"markdown": markdown} if markdown else {}),
    }
    return render_template("sheet.html.j2", context)


def _cut(b: Block, left: int) -> Block:
    rows = min(ROWS, max(_LEAST_ROWS, left // max(1, len(b.columns))))
    if len(b.rows) <= rows:
        return b
    return Block(
        b.title, b.columns, b.rows[:rows], b.names, [f"{len(b.rows) - rows:,} more rows are not on this page: {_KEPT}", *b.notes], b.struck, b.labels,
        anchors=b.anchors,
    )  # fmt: skip


def _part(part: SheetPart, tables: list[Block]) -> dict[str, Any] | None:
    """Return a section for the template, None where it is empty."""
    charts = list(part.charts)
    lines = [terminal(line, 1000) for line in part.lines[:LINES]]
    if len(part.lines) > LINES:
        lines.append(f"{len(part.lines) - LINES:,} more lines: {_KEPT}")
    if not (part.bars or charts or tables or lines):
        return None
    notes = (
        [f"{len(charts) - CHARTS:,} more charts are not drawn; the table below has their numbers"]
        if len(charts) > CHARTS
        else []
    )
    return {
        "anchor": part.anchor, "title": terminal(part.title, 200), "bars": _bars(part.bars) if part.bars else None, "tables": tables, "lines": lines,
        "charts": charts[:OPEN_CHARTS], "more_charts": charts[OPEN_CHARTS:CHARTS], "notes": notes,
    }  # fmt: skip


def _bars(found: Bars) -> dict[str, Any]:
    marked = [b for b in found.bars if b.mark]
    plain = [b for b in found.bars if not b.mark]
    shown = {id(b) for b in (*marked[:BARS], *plain[: max(0, BARS - len(marked))])}
    opened = {id(b) for b in (*marked[:OPEN_BARS], *plain[: max(0, OPEN_BARS - len(marked))])}
    bars = [b for b in found.bars if id(b) in shown]
    left_out = len(found.bars) - len(bars)
    return {
        "title": terminal(found.title, 300), "ticks": found.ticks,
        "legend": [(kind, terminal(text, 100)) for kind, text in found.legend],
        "bars": [_bar(b) for b in bars if id(b) in opened], "more": [_bar(b) for b in bars if id(b) not in opened],
        "notes": [terminal(n, 400) for n in found.notes] + ([f"{left_out:,} more bars are not drawn; the table has their numbers"] if left_out else []),
    }  # fmt: skip


def _bar(b: Bar) -> dict[str, Any]:
    return {
        "label": terminal(b.label, 80), "value": terminal(b.value, 80), "anchor": b.anchor, "mark": b.mark,
        "pieces": [(p.kind, p.x, p.width, terminal(p.text, 120)) for p in b.pieces],
        "text": terminal("; ".join(p.text for p in b.pieces), 600),
    }  # fmt: skip
