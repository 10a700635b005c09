"""Merged tables as blocks: machines by rows, directions and dtypes by columns, time and speed-up in a cell."""

from __future__ import annotations

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.report.bench.merge import Cell, Doubt, Machine, MergedBench
from traceanalyzer.report.bench.model import SpeedUp

MOST_COLUMNS = 6
"""Cases side by side; more are further tables."""
_SHORT = {"forward": "fwd", "backward": "bwd"}


def title(found: MergedBench) -> str:
    """Return what was measured, and which time is shown."""
    return f"{' '.join(p for p in (found.operator, found.preset) if p)}: {found.implementation}, {found.column} time per call"


def tables(found: MergedBench) -> list[Block]:
    """Return a table for each alternative (one without any), in pieces of :data:`MOST_COLUMNS` cases."""
    blocks = []
    for name in found.against or [""]:
        for first in range(0, len(found.cases), MOST_COLUMNS):
            blocks.append(_table(found, name, range(first, min(first + MOST_COLUMNS, len(found.cases)))))
    return blocks


def _table(found: MergedBench, against: str, places: range) -> Block:
    columns = ["GPU" if found.column == "device" else "machine", *(short(found.cases[i]) for i in places)]
    rows, struck = [], set()
    for number, machine in enumerate(found.machines):
        cells = [machine.cells[i] for i in places]
        rows.append([machine.label, *(_text(c, against) for c in cells)])
        struck |= {(number, place) for place, c in enumerate(cells, 1) if _is_struck(c, against)}
    what = f"{title(found)}, speed-up over {against}" if against else title(found)
    return Block(what, columns, rows, frozenset({0}), [], frozenset(struck), frozenset())


def short(case: str) -> str:
    """Return a case as a column title: ``forward fp32`` is ``fwd fp32``."""
    return " ".join(_SHORT.get(word, word) for word in case.split(" "))


def _text(cell: Cell, against: str) -> str:
    if cell.reading.p50_us is None:
        return show.NA
    time = show.duration(cell.reading.p50_us) + ("!" if cell.doubts else "")
    if not against:
        return time
    speed = _over(cell, against)
    ratio = show.NA
    if speed is not None and speed.ratio is not None:
        ratio = show.ratio(speed.ratio) + ("?" if speed.outcome == "undecided" else "")
    return f"{time}, {ratio}"


def _is_struck(cell: Cell, against: str) -> bool:
    speed = _over(cell, against)
    wrong = cell.correct is False or (speed is not None and speed.ratio is not None and not speed.counts)
    return wrong and cell.reading.p50_us is not None


def _over(cell: Cell, against: str) -> SpeedUp | None:
    return next((s for s in cell.speed_ups if s.against == against), None)


def remarks(found: MergedBench) -> list[str]:
    """Return what the cells cannot hold: signs, wrong results, losses, what is n/a and why, doubts, versions that differ."""
    lines = []
    pairs = [(m, c) for m in found.machines for c in m.cells]
    if any(s.ratio is not None for _, c in pairs for s in c.speed_ups):
        lines.append(f"speed-up: time of the alternative / time of {found.implementation}; below 1 is a loss")
    if any(s.outcome == "undecided" for _, c in pairs for s in c.speed_ups):
        lines.append("?: undecided, the 95 % interval of the ratio is not wholly beyond or within 1 %")
    lines += [f"WRONG RESULT: {m.label}: {short(c.case)}" for m, c in pairs if c.correct is False]
    lines += _losses(found, pairs)
    lines += _absences(pairs)
    lines += _doubts(pairs)
    lines += _cpu_bound(found, pairs)
    for name, versions in found.versions_differ.items():
        listed = ", ".join(f"{v or 'none'} ({m.label})" for v, m in zip(versions, found.machines, strict=True))
        lines.append(f"{name} differs: {listed}")
    lines.append("; ".join([found.schema, *(f"{k} {v}" for k, v in found.sizes.items())]))
    return lines


def _losses(found: MergedBench, pairs: list[tuple[Machine, Cell]]) -> list[str]:
    known = [(m, c, s) for m, c in pairs for s in c.speed_ups if s.ratio is not None and s.counts]
    if not known:
        return []
    lost = [(m, c, s) for m, c, s in known if s.outcome in ("slower", "undecided") and (s.ratio or 1) < 1]
    if not lost:
        return [f"losses of {found.implementation}: none"]
    listed = "; ".join(
        f"{m.label} {short(c.case)} {show.ratio(s.ratio)} over {s.against}"
        + (", undecided" if s.outcome == "undecided" else "")
        for m, c, s in lost
    )
    return [f"losses of {found.implementation}: {listed}"]


def _absences(pairs: list[tuple[Machine, Cell]]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for machine, cell in pairs:
        where = f"{machine.label} {short(cell.case)}"
        if cell.reading.p50_us is None:
            reasons.setdefault(cell.reading.reason, []).append(where)
            continue
        for speed in cell.speed_ups:
            if speed.ratio is None:
                reasons.setdefault(f"over {speed.against}: {speed.reason}", []).append(where)
    return [f"n/a: {', '.join(places)}: {reason}" for reason, places in reasons.items()]


_DOUBTS: dict[Doubt, str] = {
    "disagrees": "self-time and unrolled graph disagree",
    "not_steady": "the times were never steady",
    "clock_held_down": "the clock was held down",
    "ended_early": "the session ended early",
    "suspect": "the verdict on the trace is suspect",
}


def _doubts(pairs: list[tuple[Machine, Cell]]) -> list[str]:
    said: dict[Doubt, list[str]] = {}
    for machine, cell in pairs:
        for doubt in cell.doubts:
            said.setdefault(doubt, []).append(f"{machine.label} {short(cell.case)}")
    return [f"!: {_DOUBTS[doubt]}: {', '.join(places)}" for doubt, places in said.items()]


def _cpu_bound(found: MergedBench, pairs: list[tuple[Machine, Cell]]) -> list[str]:
    """Return where a call in a loop costs more than the kernel that the table shows, and what."""
    if found.column != "device":
        return []
    places = [
        f"{m.label} {short(c.case)} ({show.duration(c.end_to_end.p50_us)})"
        for m, c in pairs
        if c.queue == "cpu-bound" and c.end_to_end.p50_us is not None and c.reading.p50_us is not None
    ]
    if not places:
        return []
    return [f"CPU-bound queue: a call in a loop costs its dispatch, not the kernel's time above: {', '.join(places)}"]
