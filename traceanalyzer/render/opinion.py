"""The second opinion as a block: both numbers, and each difference as the sum of lettered causes."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.report.model import ReportData

if TYPE_CHECKING:
    from traceanalyzer.report.opinion import OpinionRow

_LETTERS = [*ascii_uppercase, *(a + b for a in ascii_uppercase for b in ascii_uppercase)]


def opinion(report: ReportData, most: int = 100) -> Block | None:
    """Return the block of a report that has a second opinion, with at most ``most`` rows; None without one."""
    found = report.second_opinion
    if found is None:
        return None
    title = f"Second opinion: {found.tool}"
    if found.error:
        return Block(title, ["quantity", "ours", "theirs", "ours - theirs"], [], notes=[f"none: {found.error}"])
    shown = found.rows[:most]
    letters: dict[str, str] = {}
    for row in shown:
        for cause in row.causes:
            letters.setdefault(cause.cause, _LETTERS[len(letters)])
    notes = [f"{letter}: {cause}" for cause, letter in letters.items()]
    reasons: dict[str, list[str]] = {}
    for row in shown:
        if row.note:
            reasons.setdefault(row.note, []).append(row.quantity)
    notes += [f"{reason}: {', '.join(quantities)}" for reason, quantities in reasons.items()]
    open_rows = [row for row in shown if row.unexplained is not None]
    if open_rows:
        notes.append(f"unexplained: what no cause accounts for, in {show.plural(len(open_rows), 'row')}")
    elif letters:
        notes.append("each cause is verified: without it, the number changes by the amount at its letter")
    if len(found.rows) > most:
        notes.append(f"{show.plural(len(found.rows) - most, 'more row')} in the JSON report")
    columns = ["quantity (us)", "ours", "theirs", "ours - theirs"]
    return Block(title, columns, [_cells(row, letters) for row in shown], frozenset({0}), notes)


def _cells(row: OpinionRow, letters: dict[str, str]) -> list[str]:
    number = show.count if row.unit == "rows" else show.us
    parts = [f"{letters[c.cause]} {_signed(c.amount, row.unit)}" for c in row.causes]
    if row.unexplained is not None:
        parts.append(f"unexplained {_signed(row.unexplained, row.unit)}")
    if row.theirs_unrounded is not None:
        parts.append(f"{number(row.theirs_unrounded)} if not cut to whole us")
    equal = row.ours is not None and row.theirs is not None and not parts
    quantity = f"{row.quantity} (rows)" if row.unit == "rows" else row.quantity
    return [quantity, number(row.ours), number(row.theirs), "same" if equal else ", ".join(parts) or show.NA]


def opinion_line(report: ReportData, most: int) -> tuple[str, str] | None:
    """Return the title of the block and its rows and notes in one text, for where a table takes too much room."""
    block = opinion(report, most)
    if block is None:
        return None
    rows = [
        f"{name}: {ours} against {theirs}" + ("" if why == show.NA else f" ({why})")
        for name, ours, theirs, why in block.rows
    ]
    return block.title, "\n".join([*rows, *block.notes])


def _signed(amount: float, unit: str) -> str:
    text = show.count(abs(amount)) if unit == "rows" else show.us(abs(amount))
    return f"{'-' if amount < 0 else '+'}{text}"
