"""Items of a ledger: the segments grouped by what they went to, with an example of each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceanalyzer.analysis.ledger.classes import DrainedBy, LedgerClass
from traceanalyzer.analysis.ledger.device import DeviceLedger
from traceanalyzer.trace.tables import Int64


@dataclass(frozen=True)
class LedgerItem:
    """What one cause cost in a window.

    ``count`` is in how many idle intervals (of busy classes: pieces) it was met, ``longest_ns`` its most in one of them,
    which begins at ``example_ns``; ``median_example_ns`` is where the one of middle length begins. ``row`` is the device row
    after the longest. ``drained`` splits the time by why the device had run dry. ``segments`` are row numbers of the ledger.
    ``line`` is the frame of the user's own code in which the host spent most of the time, empty where no stack shows one.
    """

    cls: LedgerClass
    name: str
    within: str
    ns: int
    count: int
    longest_ns: int
    example_ns: int
    median_example_ns: int
    row: int
    drained: dict[DrainedBy, int]
    segments: Int64
    line: str = ""


def items(ledger: DeviceLedger) -> list[LedgerItem]:
    """Return the items of a ledger, largest first; their times add up to its span."""
    if "items" not in ledger.made:
        ledger.made["items"] = _items(ledger)
    found: list[LedgerItem] = ledger.made["items"]
    return found


def _items(ledger: DeviceLedger) -> list[LedgerItem]:
    if not len(ledger.start):
        return []
    name, within = _canonical(ledger, ledger.name), _canonical(ledger, ledger.within)
    key = (ledger.cls.astype(np.int64) * (name.max() + 1) + name) * (within.max() + 1) + within
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    ns, drained = ledger.ns, ledger.drained.astype(np.int64)
    bounds = [*first.tolist(), len(order)]
    lines = _lines(ledger, order, np.array(bounds))
    found = []
    for number, (low, high) in enumerate(pairwise(bounds)):
        at = order[low:high]
        starts, lengths, rows = _by_interval(ledger, at)
        longest = int(np.argmax(lengths))
        middle = int(np.argpartition(lengths, len(lengths) // 2)[len(lengths) // 2])
        per_reason = np.bincount(drained[at], weights=ns[at], minlength=len(DrainedBy))
        found.append(
            LedgerItem(
                cls=LedgerClass(int(ledger.cls[at[0]])),
                name=ledger.names.text(int(ledger.name[at[0]])),
                within=ledger.names.text(int(ledger.within[at[0]])),
                ns=int(ns[at].sum()),
                count=len(lengths),
                longest_ns=int(lengths[longest]),
                example_ns=int(starts[longest]),
                median_example_ns=int(starts[middle]),
                row=int(rows[longest]),
                drained={d: int(per_reason[d]) for d in DrainedBy if d is not DrainedBy.BUSY and per_reason[d]},
                segments=at,
                line=lines.get(number, ""),
            )
        )
    return sorted(found, key=lambda i: (-i.ns, i.cls, i.name, i.within))


def _lines(ledger: DeviceLedger, order: Int64, bounds: Int64) -> dict[int, str]:
    """Return per item, given where each begins in an order of segments, the user's frame with most of its time."""
    segment, frame, ns = ledger.lines
    if not len(segment):
        return {}
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.searchsorted(bounds, np.arange(len(order)), side="right") - 1
    low = int(frame.min())
    width = int(frame.max()) - low + 1
    key = place[segment] * width + frame - low
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    total = np.add.reduceat(ns[order], first)
    best: dict[int, tuple[int, int]] = {}
    for k, spent in zip(key[order[first]].tolist(), total.tolist(), strict=True):
        item, name = divmod(k, width)
        best[item] = max(best.get(item, (0, 0)), (spent, name + low))
    return {item: ledger.names.text(name) for item, (_, name) in best.items()}


def _by_interval(ledger: DeviceLedger, at: Int64) -> tuple[Int64, Int64, Int64]:
    """Return start, length and row of what segments of one item, in order of time, have in each idle interval."""
    interval, ns = ledger.interval[at], ledger.ns[at]
    opens = np.ones(len(at), dtype=bool)
    opens[1:] = (interval[1:] != interval[:-1]) | (interval[1:] < 0)
    first = np.flatnonzero(opens)
    return ledger.start[at[first]], np.add.reduceat(ns, first), ledger.row[at[first]]


def _canonical(ledger: DeviceLedger, numbers: Int64) -> Int64:
    """Return numbers in which equal texts have one number: a name may be in two tables."""
    known = np.zeros(int(numbers.max(initial=0)) + 1, dtype=bool)
    known[numbers] = True
    place: dict[str, int] = {}
    same = np.zeros(len(known), dtype=np.int64)
    for n in np.flatnonzero(known).tolist():
        same[n] = place.setdefault(ledger.names.text(n), len(place))
    return np.asarray(same[numbers])


def _lines_within(whole: DeviceLedger, keep: slice) -> tuple[Int64, Int64, Int64]:
    """Return a ledger's lines of some of its segments; those at the ends count whole."""
    segment, frame, ns = whole.lines
    mine = (segment >= keep.start) & (segment < keep.stop)
    return segment[mine] - keep.start, frame[mine], ns[mine]


def clipped(ledger: DeviceLedger, window: str, start_ns: int, end_ns: int, unit_starts_ns: Int64) -> DeviceLedger:
    """Return the part of a ledger between two instants of its span, under the name of the window."""
    low = max(start_ns, ledger.start_ns)
    high = max(min(end_ns, ledger.end_ns), low)
    keep = slice(
        int(np.searchsorted(ledger.end, low, side="right")), int(np.searchsorted(ledger.start, high, side="left"))
    )
    return DeviceLedger(
        device=ledger.device, window=window, start_ns=low, end_ns=high, start=np.maximum(ledger.start[keep], low),
        end=np.minimum(ledger.end[keep], high), cls=ledger.cls[keep], name=ledger.name[keep], within=ledger.within[keep],
        drained=ledger.drained[keep], row=ledger.row[keep], interval=ledger.interval[keep], idle=ledger.idle,
        limit_ns=ledger.limit_ns, names=ledger.names, find_lines=lambda _: _lines_within(ledger, keep), unit_starts_ns=unit_starts_ns,
    )  # fmt: skip
