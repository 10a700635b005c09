"""What each change would be worth to a run, where an unchanged replay shows that the model holds for it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from traceanalyzer import number_text
from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.ledger import ChangeWorth, DeviceLedger, LedgerClass, LedgerTimeline, Worth, items
from traceanalyzer.analysis.ledger.lines import short_line
from traceanalyzer.analysis.worth.changes import CHANGES, SITE, changed, data_at_cost, missing, without_one_time
from traceanalyzer.analysis.worth.events import Built, EventKind, Window
from traceanalyzer.analysis.worth.program import Builder
from traceanalyzer.analysis.worth.replay import ReplayProgram, run
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

LEAST_UNITS = 3
"""Periods an unchanged replay is held to."""
USUAL_ROWS = 4000
"""So many calls and rows are replayed, of consecutive units."""
MOST_ROWS = 24_000
"""A run whose three units have more is not replayed."""
PERIOD_WITHIN = 0.05
IDLE_WITHIN = 0.10
UNLINKED_SHARE = 0.05
UNEXPLAINED_SHARE = 0.05
LITTLE = 0.01
"""A change that would save a smaller share of the period is worth nothing."""
HIDDEN_BELOW = 0.05
"""A change that would save less is asked what hides it: what with it saves more than both alone, by twice its own."""
LEAST_COST = 0.02
_SITES = 2
FAR = 3
"""A unit this many times as long as the middle one is no usual one."""
FEW_LONG = 3
"""Fewer such units are exceptions (a pause, one late rank): the usual ones are replayed. More are a habit of the run."""
WORKERS = "the trace does not show whether the wait for data is for workers, which would keep their pace, or the host's own work"


class WorthMaker:
    """Replays windows of a trace; what they share is computed once."""

    def __init__(self, trace: Trace, clocks_disagree: bool) -> None:
        self._trace = trace
        self._clocks_disagree = clocks_disagree
        self._builder: Builder | None = None

    @property
    def builder(self) -> Builder:
        """The columns all windows share."""
        if self._builder is None:
            self._builder = Builder(self._trace)
        return self._builder

    def worth(self, ledger: DeviceLedger, units: list[Int64], only: tuple[str, ...] = ()) -> Worth:
        """Return the worths of a device, given the device rows of each of its units in order of start."""
        window = self.window(ledger, units)
        if isinstance(window, str):
            return Worth(window)
        sites = [c.removeprefix(SITE) for c in only if c.startswith(SITE)] if only else _sites(ledger)
        built = self.builder.build(window, sites)
        now = _Outcome(built, built.program)
        n = len(window.first_rows) - 1
        rows = self._trace.activities
        stamps = rows.start_ns[window.first_rows]
        period = _period(built, built.events.start.tolist(), rows.start_ns[built.rows].tolist())
        idle = _idle(rows.start_ns[built.rows], rows.end_ns[built.rows], int(stamps[0]), int(stamps[-1]))
        replayed_idle = now.idle_ns()
        found = Worth("", n, period, now.period_ns, idle, replayed_idle)
        if (why := _gate(found, built.unexplained_ns)) != "":
            return Worth(why, n, period, now.period_ns, idle, replayed_idle)
        return Worth("", n, period, now.period_ns, idle, replayed_idle, self._changes(built, sites, only))

    def timeline(self, ledger: DeviceLedger, units: list[Int64], change: str) -> LedgerTimeline | str:
        """Return how the replayed units would run with a change, or why that cannot be said."""
        found = self.worth(ledger, units, only=(change,))
        if found.reason or found.changes[0].reason:
            return found.reason or found.changes[0].reason
        window = self.window(ledger, units)
        assert not isinstance(window, str)
        built = self.builder.build(window, [change.removeprefix(SITE)] if change.startswith(SITE) else [])
        then = _Outcome(built, changed(without_one_time(built), built.parts, change, self._largest_kernel(built)))
        row_start = np.array(then.row_start, dtype=np.int64)
        return LedgerTimeline(
            change, built.events.call, built.events.thread, np.array(then.event_start, dtype=np.int64), np.array(then.event_end, dtype=np.int64),
            built.rows, row_start, np.array(then.row_end, dtype=np.int64), row_start[built.first_rows],
        )  # fmt: skip

    def window(self, ledger: DeviceLedger, units: list[Int64]) -> Window | str:
        """Return the window of consecutive units to replay, or why there is none."""
        rows = self._trace.activities
        if self._clocks_disagree:
            return "host and device clocks disagree"
        if len(units) < LEAST_UNITS + 1:
            return f"{len(units)} units repeat, {LEAST_UNITS + 1} are needed to see {LEAST_UNITS} periods"
        # a unit that is told by its launches holds no rows without one: all rows of its time count
        low, high = int(rows.start_ns[units[0]].min()), int(rows.start_ns[units[-1]].max())
        device = self.builder.device == ledger.device
        everything = np.flatnonzero(device & (rows.start_ns >= low) & (rows.start_ns <= high))
        unlinked = int(np.count_nonzero(rows.call[everything] == NO_ROW))
        if unlinked > UNLINKED_SHARE * len(everything):
            return f"{unlinked} of {len(everything)} device rows have no launch in the trace"
        # the first row that is launched: which row of a unit starts first changes with the streams' backlogs
        linked = [u[rows.call[u] != NO_ROW] for u in units]
        called = self._trace.calls.start_ns
        first_rows = np.array([int(u[np.argmin(called[rows.call[u]])]) for u in linked if len(u)], dtype=np.int64)
        starts = called[rows.call[first_rows]]
        if len(first_rows) < LEAST_UNITS + 1 or (np.diff(starts) <= 0).any():
            return "its units are not launched one after the other"
        if not (rows.kind[np.concatenate(linked)] == RowKind.KERNEL).any():
            return "its units run no kernel, only copies and fills"
        sizes = np.array([2 * len(u) for u in units], dtype=np.int64)[: len(first_rows) - 1]
        usual = _usual(np.diff(rows.start_ns[first_rows]), np.diff(starts))
        if usual is None:
            return "single units are many times as long as the others, which leaves no three usual ones in a row"
        first_rows, sizes = first_rows[usual.start : usual.stop + 1], sizes[usual]
        if sizes[-LEAST_UNITS:].sum() > MOST_ROWS:
            return f"three units have more than {MOST_ROWS} calls and rows"
        # the last units: the first ones of a run warm up
        total = np.cumsum(sizes[::-1])
        count = max(LEAST_UNITS, int(np.searchsorted(total, USUAL_ROWS)))
        return Window(ledger.device, first_rows[-(min(count, len(sizes)) + 1) :])

    def _changes(self, built: Built, sites: list[str], only: tuple[str, ...]) -> list[ChangeWorth]:
        base = without_one_time(built)
        parts = built.parts
        halved = self._largest_kernel(built)
        now = _Outcome(built, base).period_ns
        wanted = only or (*CHANGES, *(SITE + s for s in sites))
        programs: dict[str, ReplayProgram] = {}
        result: list[ChangeWorth] = []
        for change in wanted:
            why = missing(parts, change) or (
                "no kernel runs" if change == "largest_kernel_halved" and not any(halved) else ""
            )
            if why:
                result.append(ChangeWorth(change, None, None, None, reason=why))
                continue
            programs[change] = changed(base, parts, change, halved)
            then = _Outcome(built, programs[change]).period_ns
            if EventKind.FETCHED in parts.kind and change not in ("no_data_loading", "everything_free"):
                # did the host wait for its workers, or work at the batch itself? The trace shows the range alone
                own = _Outcome(built, changed(data_at_cost(base, parts), parts, change, halved)).period_ns
                if abs(own - then) > PERIOD_WITHIN * then:
                    result.append(ChangeWorth(change, None, None, None, reason=WORKERS))
                    continue
            if then <= 0 or now <= 0:
                result.append(ChangeWorth(change, None, None, None, reason="nothing of the period would be left"))
                continue
            result.append(ChangeWorth(change, then, now, now / then))
        return [self._behind(c, programs, result, built, halved, now) for c in result]

    def _behind(
        self, found: ChangeWorth, programs: dict[str, ReplayProgram], every: list[ChangeWorth], built: Built, halved: list[bool], now: float
    ) -> ChangeWorth:  # fmt: skip
        """Name what hides the worth of a change that takes host time away and is worth nothing by itself."""
        if found.factor is None or found.share >= HIDDEN_BELOW or found.change not in _HIDEABLE:
            return found
        floor = next((c for c in every if c.change == "everything_free"), None)
        if floor is not None and floor.share < LITTLE:
            return ChangeWorth(found.change, found.period_ns, found.now_ns, found.factor, "device")
        best, gain = "", max(LITTLE, 2 * found.share)
        for other in every:
            if other.factor is None or not _may_hide(other.change, found.change):
                continue
            both = changed(programs[other.change], built.parts, found.change, halved)
            then = _Outcome(built, both).period_ns
            share = 1 - then / now - max(other.share, found.share)
            if share > gain:
                best, gain = other.change, share
        return ChangeWorth(found.change, found.period_ns, found.now_ns, found.factor, best) if best else found

    def _largest_kernel(self, built: Built) -> list[bool]:
        rows = self._trace.activities
        at = built.rows
        kernels = rows.kind[at] == RowKind.KERNEL
        if not kernels.any():
            return [False] * len(at)
        total = np.bincount(rows.name[at], weights=np.where(kernels, rows.dur_ns[at], 0))
        largest: list[bool] = ((rows.name[at] == int(np.argmax(total))) & kernels).tolist()
        return largest


_HIDEABLE = (
    "launches_free", "no_synchronise", "no_copy_calls", "no_host_waits", "no_allocation", "no_data_loading", "no_compile",
)  # fmt: skip
_PART_OF = {"no_synchronise": "no_host_waits", "no_copy_calls": "no_host_waits"}


def _may_hide(other: str, change: str) -> bool:
    """Return whether one change can be what another is worth nothing without; a change is not behind its own part."""
    return other in _HIDEABLE and other != change and _PART_OF.get(other) != change and _PART_OF.get(change) != other


class _Outcome:
    """What a program comes to."""

    def __init__(self, built: Built, program: ReplayProgram) -> None:
        self._built = built
        self.event_start, self.event_end, self.row_start, self.row_end = run(program)

    @property
    def period_ns(self) -> float:
        """Time from unit to unit: the device's, or the host's where it would fall behind once the queue has run dry."""
        return _period(self._built, self.event_start, self.row_start)

    def idle_ns(self) -> int:
        """Idle time of the device between the first rows of the first and the last unit."""
        low, high = (self.row_start[self._built.first_rows[i]] for i in (0, -1))
        return _idle(np.array(self.row_start), np.array(self.row_end), low, high)


def _period(built: Built, event_start: list[int], row_start: list[int]) -> float:
    """Return the time from unit to unit of what falls behind most: a lane of the device, or the host."""
    rows, events = built.first_rows, built.first_events
    n = len(rows) - 1
    found = [(row_start[rows[-1]] - row_start[rows[0]]) / n, (event_start[events[-1]] - event_start[events[0]]) / n]
    found += [(row_start[last] - row_start[first]) / (n - 1) for first, last in built.lane_rows]
    return max(found)


def _idle(start: Int64, end: Int64, low: int, high: int) -> int:
    start, end = np.clip(start, low, high), np.clip(end, low, high)
    return max(0, high - low) - intervals.length(*intervals.union(start, end))


def _gate(found: Worth, unexplained_ns: int) -> str:
    """Return why an unchanged replay does not carry a worth, else an empty text."""
    if unexplained_ns > UNEXPLAINED_SHARE * found.now_ns * found.units:
        waited, replayed = number_text.duration(unexplained_ns), number_text.duration(found.now_ns * found.units)
        return f"rows wait {waited} in all for something that the trace does not show, in the {replayed} that would be replayed"
    off = abs(found.replayed_ns - found.now_ns) / found.now_ns if found.now_ns else 1.0
    if off > PERIOD_WITHIN:
        return f"an unchanged replay gives the period {number_text.percent(off)} off"
    # of a device that is hardly ever idle a tenth of the idle time is nothing
    idle_off = abs(found.replayed_idle_ns - found.idle_ns)
    if idle_off > IDLE_WITHIN * found.idle_ns and idle_off > LITTLE * found.now_ns * found.units:
        return f"an unchanged replay gives the idle time {number_text.percent(idle_off / max(found.idle_ns, 1))} off"
    return ""


def _usual(*periods: Int64) -> slice | None:
    """Return the longest run of consecutive units (the last of equals) without an exception; None where it is too short."""
    long = np.zeros(len(periods[0]), dtype=bool)
    for lengths in periods:  # of the device, and of the host
        long |= lengths > FAR * np.median(lengths)
    if not 0 < np.count_nonzero(long) < FEW_LONG:
        return slice(0, len(long))
    edges = [-1, *np.flatnonzero(long).tolist(), len(long)]
    runs = [slice(a + 1, b) for a, b in pairwise(edges)]
    best = max(runs, key=lambda r: (r.stop - r.start, r.start))
    return best if best.stop - best.start >= LEAST_UNITS else None


def _sites(ledger: DeviceLedger) -> list[str]:
    """Return the operators, or with Python stacks the lines of the user's own code, in which the device was idle for longest."""
    cost: dict[str, int] = {}
    _, frames, ns = ledger.lines
    for frame in distinct(frames).tolist():
        line = short_line(ledger.names.text(frame))
        cost[line] = cost.get(line, 0) + int(ns[frames == frame].sum())
    for item in items(ledger):
        if item.cls is LedgerClass.HOST_OP and item.name:
            cost[item.name] = cost.get(item.name, 0) + item.ns
    large = [n for n, ns in cost.items() if ns >= LEAST_COST * ledger.span_ns]
    return sorted(large, key=lambda n: -cost[n])[:_SITES]
