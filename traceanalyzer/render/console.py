"""The text report, by rich: 100 columns, readable without colour."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.measured import conditions_lines, measured_in
from traceanalyzer.render.opinion import opinion
from traceanalyzer.report.model import FindingRow, ReportData

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 100
_LINE, _NOTE = 2000, 600  # characters of one text; a name of ten thousand must not flood the screen
_TRACE_LINES, _NOTES, _FINDINGS, _EVIDENCE = 12, 12, 60, 3
_NAME_COLUMN = 6
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
        console.print(Padding(Text(terminal(text, _LINE), style=style, overflow="fold"), (0, 0, 0, indent)))

    line(report.verdict.headline, _STATUS_STYLE[report.verdict.status])
    console.print()
    about = blocks.trace_lines(report)
    for text in about[:_TRACE_LINES]:
        loud = text.startswith(("INCOMPLETE", "SIMULATED"))
        line(text, "bold" if loud else "dim" if color else "")
    if len(about) > _TRACE_LINES:
        line(f"and {show.plural(len(about) - _TRACE_LINES, 'more note')} on the file (all in JSON)")
    if text := blocks.clock_line(report):
        line(text, "bold")
    for text in conditions_lines(report.capture):
        line(text, "dim" if color else "")
    for block in (
        *measured_in(report), blocks.kernels(report, top), blocks.copies(report, 5), blocks.ops(report, 8), blocks.ladder(report, 4), blocks.devices(report, top),
        blocks.streams(report, top), blocks.threads(report, top), blocks.idle(report, top), blocks.pauses(report),
        opinion(report),
    ):  # fmt: skip
        if block is not None:
            _print_block(console, block, line)
    console.print()
    line("Linkage", "bold")
    line(report.coverage.sentence, indent=2)
    console.print()
    line(f"Findings ({len(report.findings)})" if report.findings else "Findings: none", "bold")
    short = blocks.short_names(report)
    for finding in report.findings[:_FINDINGS]:
        _print_finding(line, finding, short)
    if len(report.findings) > _FINDINGS:
        line(f"and {show.plural(len(report.findings) - _FINDINGS, 'more finding')} (all in JSON)", indent=2)
    if report.abstentions:
        console.print()
        line("Not judged", "bold")
        reasons = blocks.abstentions(report)
        for rules, reason in reasons[:_FINDINGS]:
            line(terminal(f"{rules}: {reason}", _NOTE), indent=2)
        if len(reasons) > _FINDINGS:
            line(f"and {show.plural(len(reasons) - _FINDINGS, 'more reason')} (all in JSON)", indent=2)
    console.print()
    line(blocks.conditions(report), "dim" if color else "")
    # rich pads lines to the width; the spaces say nothing
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()) + "\n"


def render_blocks(shown: list[blocks.Block], lines: list[str], *, width: int = WIDTH) -> str:
    """Return some blocks and the lines that follow them, without the rest of a report; blanks before a line indent it."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False, markup=False, emoji=False)

    def line(text: str, style: str = "", indent: int = 0) -> None:
        console.print(Padding(Text(terminal(text, _LINE), style=style, overflow="fold"), (0, 0, 0, indent)))

    for block in shown:
        _print_block(console, block, line)
    console.print()
    for text in lines:
        line(text.lstrip(" "), indent=min(len(text) - len(text.lstrip(" ")), 8))
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()).strip("\n") + "\n"


def _print_block(console: Console, block: blocks.Block, line: Line) -> None:
    console.print()
    line(block.title, "bold")
    for number, part in enumerate(_parts(block, console.width) if block.rows else []):
        if number:
            line("(the same rows, continued)", indent=2)
        console.print(_table(part, console.width))
    for note in block.notes[:_NOTES]:
        line(terminal(note, _NOTE), indent=2)
    if len(block.notes) > _NOTES:
        line(f"and {show.plural(len(block.notes) - _NOTES, 'more note')}", indent=2)


def _widths(block: blocks.Block) -> list[int]:
    widths = []
    for number, title in enumerate(block.columns):
        longest = max((len(row[number]) for row in block.rows), default=0)
        widths.append(max(longest, *(len(word) for word in title.split())))
    return widths


def _parts(block: blocks.Block, width: int) -> list[blocks.Block]:
    """Return the block in as many tables as it takes, the first column in each: a number cut short is a wrong number."""
    shown = replace(block, rows=[_shown_row(row, n, block) for n, row in enumerate(block.rows)])
    least = [_NAME_COLUMN if n in block.names else w for n, w in enumerate(_widths(shown))]
    parts, columns, used = [], [0], least[0]
    for number in range(1, len(least)):
        if used + 1 + least[number] > width and len(columns) > 1:
            parts.append(columns)
            columns, used = [0], least[0]
        columns.append(number)
        used += 1 + least[number]
    return [_columns(shown, numbers) for numbers in (*parts, columns)]


def _shown_row(row: list[str], number: int, block: blocks.Block) -> list[str]:
    # plain text has no line to strike a number with
    cells = [terminal(cell, 400) for cell in row]
    return [f"~~{cell}~~" if (number, place) in block.struck else cell for place, cell in enumerate(cells)]


def _columns(block: blocks.Block, numbers: list[int]) -> blocks.Block:
    names = frozenset(place for place, number in enumerate(numbers) if number in block.names)
    labels = frozenset(place for place, number in enumerate(numbers) if number in block.labels)
    rows = [[row[n] for n in numbers] for row in block.rows]
    return replace(block, columns=[block.columns[n] for n in numbers], rows=rows, names=names, labels=labels)


def _table(block: blocks.Block, width: int) -> Table:
    """Return an escaped block as a table: numbers keep their width, names share what is left and are cropped to it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    widths = _widths(block)
    left = width - sum(w for n, w in enumerate(widths) if n not in block.names) - (len(widths) - 1)
    for place, number in enumerate(sorted(block.names)):
        widths[number] = max(_NAME_COLUMN, min(widths[number], left // (len(block.names) - place)))
        left -= widths[number]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for number, title in enumerate(block.columns):
        side: Literal["left", "right"] = "left" if number in block.names | block.labels else "right"
        table.add_column(Text(title), justify=side, width=widths[number], overflow="fold")
    for row in block.rows:
        # a number wider than the whole screen still folds, digit by digit, rather than lose its end
        table.add_row(
            *(Text(_cropped(c, widths[n]), no_wrap=True) if n in block.names else Text(c) for n, c in enumerate(row))
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
    # a short name has a mark of its own where something was cut already
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}".replace("……", "…")


def _print_finding(line: Line, finding: FindingRow, short: dict[str, str]) -> None:
    head = f"{finding.rule} {finding.title}, {finding.severity}, {finding.grade}"
    line(head, _SEVERITY_STYLE[finding.severity], 2)
    line(finding.message, indent=4)
    if finding.numbers:
        line(terminal(f"numbers: {blocks.numbers(finding)}", _NOTE), indent=4)
    for row in finding.evidence[:_EVIDENCE]:
        length = f", {show.us(row.dur_us)} us long" if row.dur_us is not None else ""
        note = f": {row.note}" if row.note else ""
        line(
            terminal(f"at {row.at_us:,.3f} us{length}: {_shown(short.get(row.what, row.what))}{note}", _NOTE), indent=4
        )
    for remedy in finding.remedy:
        line(terminal(f"-> {remedy}", _NOTE), indent=4)


def _shown(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:36]}…{name[-20:]}"
