"""The text report, by rich: 100 columns, readable without colour."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol

from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.model import FindingRow, ReportData

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 100
_STATUS_STYLE = {"ok": "bold green", "suspect": "bold yellow", "cannot-judge": "bold red"}
_SEVERITY_STYLE = {"error": "bold red", "warning": "bold yellow", "note": "bold"}


class Line(Protocol):
    """Prints one line of escaped, folded text."""

    def __call__(self, text: str, style: str = "", indent: int = 0) -> None: ...  # noqa: D102


def render_console(report: ReportData, *, top: int = 20, width: int = WIDTH, color: bool = False) -> str:
    """Return the report as text of at most ``width`` columns; ``top`` rows per table."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="standard" if color else None, highlight=False,
        markup=False, emoji=False, legacy_windows=False, no_color=not color,
    )  # fmt: skip

    def line(text: str, style: str = "", indent: int = 0) -> None:
        console.print(Padding(Text(terminal(text, 4000), style=style, overflow="fold"), (0, 0, 0, indent)))

    line(report.verdict.headline, _STATUS_STYLE[report.verdict.status])
    console.print()
    for text in blocks.trace_lines(report):
        loud = text.startswith(("INCOMPLETE", "SIMULATED"))
        line(text, "bold" if loud else "dim" if color else "")
    if text := blocks.clock_line(report):
        line(text, "bold")
    for block in (
        blocks.kernels(report, top), blocks.copies(report, 5), blocks.ops(report, 8), blocks.ladder(report, 4), blocks.devices(report),
        blocks.streams(report, top), blocks.threads(report, top), blocks.idle(report), blocks.pauses(report),
    ):  # fmt: skip
        if block is not None:
            _print_block(console, block, line)
    console.print()
    line("Linkage", "bold")
    line(report.coverage.sentence, indent=2)
    console.print()
    line(f"Findings ({len(report.findings)})" if report.findings else "Findings: none", "bold")
    for finding in report.findings:
        _print_finding(line, finding)
    if report.abstentions:
        console.print()
        line("Not judged", "bold")
        for abstention in report.abstentions:
            line(f"{abstention.rule}: {abstention.reason}", indent=2)
    console.print()
    line(blocks.conditions(report), "dim" if color else "")
    # rich pads lines to the width; the spaces say nothing
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()) + "\n"


def _print_block(console: Console, block: blocks.Block, line: Line) -> None:
    console.print()
    line(block.title, "bold")
    console.print(_table(block, console.width))
    for note in block.notes:
        line(note, indent=2)


def _table(block: blocks.Block, width: int) -> Table:
    """Return the block as a table: numbers keep their width, names share what is left and are cropped to it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[terminal(cell, 400) for cell in row] for row in block.rows]
    widths = []
    for number, title in enumerate(block.columns):
        longest = max((len(row[number]) for row in cells), default=0)
        widths.append(max(longest, *(len(word) for word in title.split())))
    left = width - sum(w for n, w in enumerate(widths) if n not in block.names) - (len(widths) - 1)
    for place, number in enumerate(sorted(block.names)):
        widths[number] = max(6, min(widths[number], left // (len(block.names) - place)))
        left -= widths[number]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for number, title in enumerate(block.columns):
        table.add_column(
            Text(title), justify="left" if number in block.names else "right", width=widths[number], overflow="fold"
        )
    for row in cells:
        table.add_row(
            *(Text(_cropped(cell, widths[n]) if n in block.names else cell, no_wrap=True) for n, cell in enumerate(row))
        )
    return table


def _cropped(text: str, width: int) -> str:
    """Cut the middle out: of a short name the end tells it apart, of a configuration the beginning does."""
    if len(text) <= width:
        return text
    if text.startswith("  "):
        return text[: width - 1] + "…"
    name, mark, configs = text.rpartition(" (")
    if mark and configs.endswith(" configs)"):
        return _cropped(name, max(width - len(mark) - len(configs), 6)) + mark + configs
    head = (width - 1) * 2 // 5
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _print_finding(line: Line, finding: FindingRow) -> None:
    head = f"{finding.rule} {finding.title}, {finding.severity}, {finding.grade}"
    line(head, _SEVERITY_STYLE[finding.severity], 2)
    line(finding.message, indent=4)
    if finding.numbers:
        line(f"numbers: {blocks.numbers(finding)}", indent=4)
    for row in finding.evidence:
        length = f", {show.us(row.dur_us)} us long" if row.dur_us is not None else ""
        note = f": {row.note}" if row.note else ""
        line(f"at {row.at_us:,.3f} us{length}: {_shown(row.what)}{note}", indent=4)
    for remedy in finding.remedy:
        line(f"-> {remedy}", indent=4)


def _shown(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:36]}…{name[-20:]}"
