"""Items of a ledger: the segments grouped by what they went to, with an example of each."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis.ledger.classes import DrainedBy, LedgerClass
from traceanalyzer.analysis.ledger.device import DeviceLedger
from traceanalyzer.record import record
from traceanalyzer.trace.tables import Int64

_SPARSE = 1 << 20
"""A table by number may be so much larger than what is looked up in it."""


@record(frozen=True)
class LedgerItem:
    """What one cause cost in a window.

    ``count`` is in how many idle intervals (of busy classes: pieces) it was met, ``longest_ns`` its most in one of them,
    which begins at ``example_ns``; ``starts_ns`` and ``lengths_ns`` have all of them in order of time. ``row`` is the device row
    after the longest. ``drained`` splits the time by why the device had run dry. ``segments`` are row numbers of the ledger.
    ``line`` is the frame of the user's own code in which the host spent most of the time, empty where no stack shows one.
    ``ranges`` is in how many of the user's ranges (or outside of all) the time lies; of several ``within`` is the one with the most time.
    """

    cls: LedgerClass
    name: str
    within: str
    ns: int
    count: int
    longest_ns: int
    example_ns: int
    row: int
    drained: dict[DrainedBy, int]
    segments: Int64
    starts_ns: Int64
    lengths_ns: Int64
    line: str = ""
    ranges: int = 1

    @cached_property
    def median_example_ns(self) -> int:
        """Where the interval of middle length begins."""
        middle = len(self.lengths_ns) // 2
        return int(self.starts_ns[int(np.argpartition(self.lengths_ns, middle)[middle])])


def items(ledger: DeviceLedger) -> list[LedgerItem]:
    """Return the items of a ledger, largest first; their times add up to its span."""
    if "items" not in ledger.made:
        ledger.made["items"] = _items(ledger)
    found: list[LedgerItem] = ledger.made["items"]
    return found


def largest(ledger: DeviceLedger, most: int) -> list[LedgerItem]:
    """Return the largest causes by class and name, whatever range of the user they lie in."""
    groups: dict[tuple[LedgerClass, str], list[LedgerItem]] = {}
    for item in items(ledger):
        groups.setdefault((item.cls, item.name), []).append(item)
    found = sorted(groups.values(), key=lambda group: -sum(i.ns for i in group))
    return [_together(ledger, group) for group in found[:most]]


def _together(ledger: DeviceLedger, group: list[LedgerItem]) -> LedgerItem:
    if len(group) == 1:
        return group[0]
    segments = np.sort(np.concatenate([i.segments for i in group]))
    interval = ledger.interval[segments]
    opens = np.ones(len(segments), dtype=bool)
    opens[1:] = (interval[1:] != interval[:-1]) | (interval[1:] < 0)
    first = np.flatnonzero(opens)
    starts, lengths = ledger.start[segments[first]], np.add.reduceat(ledger.ns[segments], first)
    longest = int(lengths.argmax())
    drained: dict[DrainedBy, int] = {}
    for item in group:
        for why, ns in item.drained.items():
            drained[why] = drained.get(why, 0) + ns
    return LedgerItem(
        cls=group[0].cls, name=group[0].name, within=next((i.within for i in group if i.within), ""), ns=sum(i.ns for i in group), count=len(first),
        longest_ns=int(lengths[longest]), example_ns=int(starts[longest]), row=int(ledger.row[segments[first[longest]]]),
        drained=drained, segments=segments, starts_ns=starts, lengths_ns=lengths, line=group[0].line, ranges=len(group),
    )  # fmt: skip


def _items(ledger: DeviceLedger) -> list[LedgerItem]:
    if not len(ledger.start):
        return []
    item, order = _numbered(ledger)
    counts = np.bincount(item)
    ends = np.cumsum(counts)
    begins = ends - counts
    # in each item, what its segments have in each idle interval, in order of time
    interval, ns = ledger.interval[order], ledger.ns[order]
    opens = np.ones(len(order), dtype=bool)
    opens[1:] = (interval[1:] != interval[:-1]) | (interval[1:] < 0)
    opens[begins] = True
    first = np.flatnonzero(opens)
    lengths = np.add.reduceat(ns, first)
    starts, rows = ledger.start[order[first]], ledger.row[order[first]]
    pieces = np.searchsorted(first, begins), np.searchsorted(first, ends)
    drained = np.bincount(
        item * len(DrainedBy) + ledger.drained, weights=ledger.ns, minlength=len(counts) * len(DrainedBy)
    ).reshape(-1, len(DrainedBy))
    reasons = [d for d in DrainedBy if d is not DrainedBy.BUSY]
    lines = _lines(ledger, item, len(counts))
    lead = order[begins]
    columns = (
        begins,
        ends,
        *pieces,
        ledger.cls[lead],
        ledger.name[lead],
        ledger.within[lead],
        np.add.reduceat(ns, begins),
    )
    found = []
    for number, (low, high, one, last, cls, name, within, total) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        longest = one + int(lengths[one:last].argmax())
        found.append(
            LedgerItem(
                cls=LedgerClass(cls),
                name=ledger.names.text(name),
                within=ledger.names.text(within),
                ns=total,
                count=last - one,
                longest_ns=int(lengths[longest]),
                example_ns=int(starts[longest]),
                row=int(rows[longest]),
                drained={d: int(ns) for d, ns in zip(reasons, drained[number, 1:].tolist(), strict=True) if ns},
                segments=order[low:high],
                starts_ns=starts[one:last],
                lengths_ns=lengths[one:last],
                line=lines.get(number, ""),
            )
        )
    return sorted(found, key=lambda i: (-i.ns, i.cls, i.name, i.within))


def _numbered(ledger: DeviceLedger) -> tuple[Int64, npt.NDArray[np.intp]]:
    """Return the item of each segment, and the segments in order of items and time."""
    name, within = _canonical(ledger, ledger.name), _canonical(ledger, ledger.within)
    many_names, many_ranges = int(name.max()) + 1, int(within.max()) + 1
    key = (ledger.cls.astype(np.int64) * many_names + name) * many_ranges + within
    many = len(LedgerClass) * many_names * many_ranges
    if many <= _SPARSE + 4 * len(key):
        seen = np.zeros(many, dtype=bool)
        seen[key] = True
        item = (np.cumsum(seen) - 1)[key]
    else:
        item = np.unique(key, return_inverse=True)[1].reshape(-1)
    # numbers of 16 bits are sorted in linear time
    return item, np.argsort(item.astype(np.uint16) if int(item.max()) < 1 << 16 else item, kind="stable")


def _lines(ledger: DeviceLedger, item: Int64, count: int) -> dict[int, str]:
    """Return per item, given that of each segment, the user's frame with most of its time."""
    segment, frame, ns = ledger.lines
    if not len(segment):
        return {}
    low = int(frame.min())
    width = int(frame.max()) - low + 1
    key = item[segment] * width + frame - low
    if count * width <= _SPARSE + 4 * len(key):
        spent_of = np.bincount(key, weights=ns)
        keys = np.flatnonzero(np.bincount(key))
        total = spent_of[keys].astype(np.int64)
    else:
        order = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
        keys, total = key[order[first]], np.add.reduceat(ns[order], first)
    best: dict[int, tuple[int, int]] = {}
    for k, spent in zip(keys.tolist(), total.tolist(), strict=True):
        number, name = divmod(k, width)
        best[number] = max(best.get(number, (0, 0)), (spent, name + low))
    return {number: ledger.names.text(name) for number, (_, name) in best.items()}


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
