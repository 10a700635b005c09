"""Parts of a report as text, by rich: at most as wide as the screen, readable without colour."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.base import WIDTH
from traceanalyzer.render.blocks import Line, Lines, NameCell, Part
from traceanalyzer.render.escape import TIED, terminal, tied
from traceanalyzer.render.sections import SECTIONS
from traceanalyzer.report.model import ReportData

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NOTE, _NOTES = 600, 12
_NAME_COLUMN = 6


def render_console(
    report: ReportData, *, top: int = 20, width: int = WIDTH, color: bool = False, sections: Sequence[str] = ()
) -> str:
    """Return every section of the report, or the named ``sections``, as text; ``top`` rows per table."""
    wanted = [s for s in SECTIONS if not sections or s.name in sections]
    parts = [part for section in wanted for part in section.parts(report, top)]
    if not parts:
        parts = [Lines("", [Line(f"nothing to show in section {', '.join(s.name for s in wanted)}")])]
    return render_parts(parts, width=width, color=color)


def render_parts(parts: Sequence[Part], *, width: int = WIDTH, color: bool = False) -> str:
    """Return the parts as text of at most ``width`` columns, an empty line between them."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="standard" if color else None, highlight=False,
        markup=False, emoji=False, legacy_windows=False, no_color=not color,
    )  # fmt: skip
    for number, part in enumerate(parts):
        if number:
            console.print()
        if isinstance(part, Lines):
            _print_lines(console, part)
        else:
            _print_block(console, part)
    # rich pads lines to the width; the spaces say nothing
    return "\n".join(text.rstrip() for text in out.getvalue().replace(TIED, " ").splitlines()) + "\n"


def render_blocks(shown: list[blocks.Block], lines: list[str], *, width: int = WIDTH) -> str:
    """Return some blocks and the lines that follow them, without the rest of a report; blanks before a line indent it."""
    below = [Line(text.lstrip(" "), indent=min(len(text) - len(text.lstrip(" ")), 8)) for text in lines]
    return render_parts([*shown, Lines("", below)], width=width).strip("\n") + "\n"


def _print_lines(console: Console, part: Lines) -> None:
    if part.title:
        _print_line(console, Line(part.title, "bold"))
    for line in part.lines:
        _print_line(console, line)


def _print_line(console: Console, line: Line) -> None:
    from rich.padding import Padding
    from rich.text import Text

    style = line.style if console.color_system else line.style.replace("dim", "")
    text = Text(tied(terminal(line.text, line.limit)), style=style, overflow="fold")
    console.print(Padding(text, (0, 0, 0, line.indent)))


def _print_block(console: Console, block: blocks.Block) -> None:
    if block.title:
        _print_line(console, Line(block.title, "bold"))
    for number, part in enumerate(_parts(block, console.width) if block.rows else []):
        if number:
            _print_line(console, Line("(the same rows, continued)", indent=2))
        console.print(_table(part, console.width))
    for note in block.notes[:_NOTES]:
        _print_line(console, Line(note, indent=2, limit=_NOTE))
    if len(block.notes) > _NOTES:
        _print_line(console, Line(f"and {show.plural(len(block.notes) - _NOTES, 'more note')}", indent=2))


def _widths(block: blocks.Block) -> list[int]:
    widths = []
    for number, title in enumerate(block.columns):
        longest = max((len(row[number]) for row in block.rows), default=0)
        words = [title] if block.compact else title.split()
        widths.append(max(longest, *(len(word) for word in words), 0))
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
    cells = [NameCell(terminal(c.name, 400), c.tail) if isinstance(c, NameCell) else terminal(c, 400) for c in row]
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
    # the shortest first, so that what it leaves goes to the others
    for place, number in enumerate(sorted(block.names, key=lambda n: (widths[n], n))):
        widths[number] = max(_NAME_COLUMN, min(widths[number], left // (len(block.names) - place)))
        left -= widths[number]
    apart = (0, 1, 0, 0) if block.compact else 0
    shape = None if block.compact else box.SIMPLE_HEAD
    table = Table(box=shape, show_edge=False, pad_edge=False, padding=apart, collapse_padding=False)
    for number, title in enumerate(block.columns):
        side: Literal["left", "right"] = "left" if number in block.names | block.labels else "right"
        table.add_column(Text(title), justify=side, width=widths[number], overflow="fold")
    for number, row in enumerate(block.rows):
        # a number wider than the whole screen still folds, digit by digit, rather than lose its end
        crop = _cut_end if number in block.inner else _cropped
        table.add_row(
            *(Text(crop(c, widths[n]), no_wrap=True) if n in block.names else Text(c) for n, c in enumerate(row))
        )
    return table


def _cut_end(text: str, width: int) -> str:
    """Cut the end off: the beginning of a configuration tells it apart."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _cropped(text: str, width: int) -> str:
    """Cut the middle out: of a short name the end tells it apart."""
    if len(text) <= width:
        return text
    if isinstance(text, NameCell) and text.tail:
        return _cropped(text.name, max(width - len(text.tail), 6)) + text.tail
    head = (width - 1) * 2 // 5
    # a short name has a mark of its own where something was cut already
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}".replace("……", "…")
