"""What held a device back, by family, from the rows of its ledger; and each cause with the nanoseconds that it cost.

Every idle nanosecond has one family, so that the families of a device can be compared: a wait of the host (a synchronise, a blocking copy, a poll)
owns what the host does behind it until it has launched again, unless that has a cause of its own (loading data, compiling, allocating).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis.ledger import ChangeWorth, DeviceLedger, DrainedBy, LedgerClass
from traceanalyzer.analysis.ledger.membership import of_classes
from traceanalyzer.analysis.ledger.recorded import operators_recorded
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.call_operators import CallOperators
from traceanalyzer.doctor.finding import Cost, SeenRow
from traceanalyzer.doctor.subject import Subject, on_device
from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64


class Family(StrEnum):
    """What families of causes are called; ``UNKNOWN`` is said and is never a cause."""

    DISPATCH = "dispatch"
    PAUSE = "pause"
    WAITS = "waits"
    DATA = "data"
    CODE = "code"
    MEMORY = "memory"
    COPIES = "copies"
    COMMUNICATION = "communication"
    DEVICE = "device"
    PROFILER = "profiler"
    UNKNOWN = "unknown"


_HOST = (
    LedgerClass.HOST_OP, LedgerClass.PYTHON, LedgerClass.BETWEEN_OPS, LedgerClass.LAUNCH_CALL, LedgerClass.LAUNCH_LATENCY,
    LedgerClass.OTHER_CALL, LedgerClass.LAUNCH_STALL,
)  # fmt: skip
_OWN = {
    Family.DATA: (LedgerClass.DATA_LOADING,),
    Family.CODE: (LedgerClass.COMPILE, LedgerClass.CODE_LOAD, LedgerClass.FIRST_USE, LedgerClass.GRAPH_SETUP),
    Family.MEMORY: (LedgerClass.ALLOCATION,),
    Family.COPIES: (LedgerClass.COPY_CALL, LedgerClass.COPY, LedgerClass.FILL),
    Family.COMMUNICATION: (LedgerClass.COMMUNICATION,),
    Family.DEVICE: (LedgerClass.DEVICE_GAP, LedgerClass.INSIDE_LAUNCH, LedgerClass.DEVICE_WAIT),
    Family.PROFILER: (LedgerClass.PROFILER,),
    Family.UNKNOWN: (LedgerClass.UNLINKED, LedgerClass.UNRECORDED, LedgerClass.BEFORE_WINDOW),
    Family.WAITS: (LedgerClass.SYNCHRONISE,),
    Family.DISPATCH: _HOST,
}
_AFTER_WAIT = (*_HOST, LedgerClass.SYNCHRONISE, LedgerClass.COPY_CALL)
_READS_BACK = re.compile(
    r"::item\b|_local_scalar_dense|::nonzero\b|::is_nonzero\b|::equal\b|::cpu\b|::tolist\b|::to\b|::_to_copy\b|::copy_\b|\bcopy|memcpy",
    re.I,
)
LEAST_POLLS = {"streamquery": 2, "eventquery": 4}
"""Questions since the last launch that make a poll: an allocator asks after an event now and then."""
_UNNAMED = (LedgerClass.BETWEEN_OPS, LedgerClass.LAUNCH_STALL)
LEAST_PAUSE_NS = 1_000_000
PAUSE_FACTOR = 20
MOST_PAUSES = 3
RARE = 10
MOST_OF = 0.8
"""A pause in every tenth unit of the run, or three in all, are no habit of it."""
SHOWN = 3
_SHOWN_BY = {
    LedgerClass.COMMUNICATION: "only communication runs",
    LedgerClass.COPY: "only copies run",
    LedgerClass.FILL: "only fills run",
}
"""What a stretch of a busy class shows; in all others the device has nothing to do."""


@record(frozen=True)
class Item:
    """A cause of one class and name: its time, in how many idle intervals, its longest and where that begins."""

    cls: LedgerClass
    name: str
    within: str
    ns: int
    count: int
    longest_ns: int
    longest_at_ns: int
    operators_recorded: bool = True

    @property
    def named(self) -> bool:
        """Whether a row names it; of the others the words of their class are shown."""
        return bool(self.name) and self.cls is not LedgerClass.LAUNCH_LATENCY

    @property
    def what(self) -> str:
        """The name, or the words of its class where it has none."""
        if self.cls is LedgerClass.LAUNCH_LATENCY:
            return "launch latency"
        return self.name or {
            # where no operator was recorded nothing is known to lie outside of one
            LedgerClass.BETWEEN_OPS: f"host code outside of {'operators' if self.operators_recorded else 'API calls'}",
            LedgerClass.PROFILER: "the profiler",
        }.get(self.cls, self.cls.label.replace("_", " "))


@record(frozen=True)
class Wait:
    """Waits of the host in one call (of one operator): idle time behind them, how many, and where their copies went ("to host", "to device", or empty)."""

    api: str
    operator: str
    ns: int
    count: int
    direction: str


class DeviceCauses:
    """The ledger of one device, read for causes."""

    def __init__(self, analysis: Analysis, ledger: DeviceLedger) -> None:
        self._analysis = analysis
        self.ledger = ledger
        self._calls = CallOperators(analysis.trace)

    @property
    def subject(self) -> Subject:
        """The device."""
        return on_device(self._analysis, self.ledger.device)

    @property
    def label(self) -> str:
        """The device's label where the trace has several, else empty."""
        several = len(self._analysis.ledgers) > 1
        return self._analysis.trace.devices[self.ledger.device].label if several else ""

    @cached_property
    def operators_recorded(self) -> bool:
        """Whether operators or Python frames of the launching processes were recorded."""
        return operators_recorded(self._analysis.trace, self.ledger)

    @cached_property
    def _interval_of(self) -> Int64:
        return np.maximum(self.ledger.interval, 0)

    @cached_property
    def is_idle(self) -> Bool:
        """Which segments are idle time."""
        return self.ledger.interval >= 0

    @cached_property
    def after_wait(self) -> Bool:
        """Which segments lie in an interval that began because the host waited, and are the wait itself or the host's way to its next launch."""
        waited = self.ledger.drained == DrainedBy.WAIT
        return np.asarray(waited & of_classes(self.ledger.cls, _AFTER_WAIT))

    @cached_property
    def polled_intervals(self) -> Bool:
        """Which idle intervals the host spent asking whether the device is done, over and over."""
        idle, calls = self.ledger.idle, self._analysis.trace.calls
        result = np.zeros(len(idle), dtype=bool)
        if not len(idle) or not len(calls):
            return result
        for word, least in LEAST_POLLS.items():
            polls = np.array([word in a.lower() for a in self._analysis.trace.apis], dtype=bool)
            at = np.flatnonzero(polls[calls.api])
            if len(at):
                result |= self._polled_by(at, least)
        return result

    def _polled_by(self, at: Int64, least: int) -> Bool:
        """Return the idle intervals before which the launching thread made so many of the calls since its last launch."""
        idle, calls = self.ledger.idle, self._analysis.trace.calls
        result = np.zeros(len(idle), dtype=bool)
        owns = np.flatnonzero(self._analysis.host.owns)
        for thread in distinct(calls.thread[at]).tolist():
            mine = np.sort(calls.start_ns[at[calls.thread[at] == thread]])
            launches = np.sort(calls.start_ns[owns[calls.thread[owns] == thread]])
            here = np.flatnonzero((idle.thread == thread) & (idle.drained != DrainedBy.DEVICE))
            begins = idle.call_start[here]
            before = np.searchsorted(launches, begins, side="left") - 1
            low = (
                np.where(before >= 0, launches[np.maximum(before, 0)], np.iinfo(np.int64).min)
                if len(launches)
                else begins
            )
            asked = np.searchsorted(mine, begins) - np.searchsorted(mine, low)
            last = np.searchsorted(mine, begins) - 1
            # the last question came when the device was already idle, or up to the moment it fell idle
            recent = (last >= 0) & (mine[np.maximum(last, 0)] >= idle.start[here] - (idle.end[here] - idle.start[here]))
            result[here] = (asked >= least) & recent
        return result

    @cached_property
    def polled(self) -> Bool:
        """Which segments are polling: the questions, and the host's own time between and behind them."""
        inside = self.is_idle & self.polled_intervals[self._interval_of] if len(self.ledger.idle) else self.is_idle
        return inside & of_classes(self.ledger.cls, (*_HOST, LedgerClass.SYNCHRONISE))

    @cached_property
    def pauses(self) -> Int64:
        """The few idle intervals, longest first, in which the host did nothing that a row names, and which are far longer than all others.

        At most three, or one for ten units of the run: more are a habit of it. Only where the run repeats, so that there is a usual interval.
        """
        idle = self.ledger.idle
        none = np.empty(0, dtype=np.int64)
        if len(idle) < 2 * PAUSE_FACTOR:
            return none
        unnamed = of_classes(self.ledger.cls, _UNNAMED) & self.is_idle
        unnamed &= ~self.after_wait & ~self.polled
        length = np.bincount(self._interval_of[unnamed], weights=self.ledger.ns[unnamed], minlength=len(idle))
        order = np.argsort(-length, kind="stable")
        units = max((len(op.worked) for op in self._analysis.operations), default=0)
        most = max(MOST_PAUSES, units // RARE)
        usual = length[order[most]] if len(order) > most else 0.0
        long = order[:most]
        return long[(length[long] >= LEAST_PAUSE_NS) & (length[long] >= PAUSE_FACTOR * usual)]

    def exceptions(self, mask: Bool) -> Int64:
        """Return the lengths of the few stretches, longest first, that hold most of the segments' time and are far longer than the others."""
        at = np.flatnonzero(mask)
        length = np.sort(self._per_interval(at)[1])[::-1] if len(at) else np.empty(0, dtype=np.int64)
        units = max((len(op.worked) for op in self._analysis.operations), default=0)
        most = max(MOST_PAUSES, units // RARE)
        if len(length) <= 2 * most:
            return length[:0]
        usual = int(length[most])
        few = length[:most][(length[:most] >= LEAST_PAUSE_NS) & (length[:most] >= PAUSE_FACTOR * usual)]
        return few if few.sum() >= MOST_OF * length.sum() else few[:0]

    @cached_property
    def paused(self) -> Bool:
        """Which segments belong to such a pause."""
        inside = np.zeros(len(self.ledger.idle) + 1, dtype=bool)
        inside[self.pauses] = True
        host = of_classes(self.ledger.cls, _UNNAMED)
        return self.is_idle & inside[self._interval_of] & host & ~self.after_wait & ~self.polled

    @cached_property
    def families(self) -> dict[Family, Bool]:
        """The segments of each family; they are disjoint and leave out compute only."""
        cls = self.ledger.cls
        waits = self.after_wait | self.polled
        result = {family: of_classes(cls, classes) & ~waits & ~self.paused for family, classes in _OWN.items()}
        result[Family.WAITS] |= waits
        result[Family.PAUSE] = self.paused
        return result

    def family_ns(self, family: Family) -> int:
        """Return the time of a family."""
        return self.ns(self.families[family])

    def of(self, *classes: LedgerClass) -> Bool:
        """Return which segments are of the classes and of no wait."""
        return of_classes(self.ledger.cls, classes) & ~self.families[Family.WAITS] & ~self.paused

    def ns(self, mask: Bool) -> int:
        """Return the time of the segments together."""
        return int(self.ledger.ns[mask].sum())

    def share(self, mask: Bool) -> float:
        """Return the time of the segments as a part of the span."""
        return self.ns(mask) / self.ledger.span_ns if self.ledger.span_ns else 0.0

    @property
    def busy_share(self) -> float:
        """The part of the span in which anything runs on the device."""
        return self.share(~self.is_idle)

    def time_before(self, at: Int64, mask: Bool) -> Int64:
        """Return how much of the time of the segments in ``mask`` lies before each instant, in ns."""
        ledger = self.ledger
        ns = np.where(mask, ledger.ns, 0)
        total = np.concatenate([[0], np.cumsum(ns)])
        which = np.clip(np.searchsorted(ledger.start, at, side="right") - 1, 0, max(0, len(ns) - 1))
        inside = np.clip(at - ledger.start[which], 0, ledger.ns[which])
        return np.asarray(total[which] + np.where(mask[which], inside, 0))

    def worth(self, change: str) -> ChangeWorth | None:
        """Return what a change would be worth to the units of the run, None where the replay does not say."""
        found = self.ledger.worth.of(change) if change else None
        return found if found is not None and found.factor else None

    def cost(self, mask: Bool, change: str = "") -> Cost:
        """Return the time of the segments as the cost of a finding, with what the end of the cause would be worth."""
        worth = self.worth(change)
        return Cost(self.ns(mask), self.ledger.span_ns, self.ledger.window, max(0.0, worth.share) if worth else None)

    def items(self, mask: Bool, most: int = SHOWN) -> list[Item]:
        """Return the segments by class and name, the largest first."""
        ledger, at = self.ledger, np.flatnonzero(mask)
        if not len(at):
            return []
        key = ledger.cls[at].astype(np.int64) * (int(ledger.name[at].max()) + 2) + ledger.name[at]
        _, which = np.unique(key, return_inverse=True)
        sums = np.bincount(which, weights=ledger.ns[at])
        found = []
        for k in np.argsort(-sums, kind="stable")[:most].tolist():
            mine = at[which == k]
            start, length = self._per_interval(mine)
            longest = int(np.argmax(length))
            ranges = distinct(ledger.within[mine])
            found.append(
                Item(
                    LedgerClass(int(ledger.cls[mine[0]])), ledger.names.text(int(ledger.name[mine[0]])),
                    ledger.names.text(int(ranges[0])) if len(ranges) == 1 else "", int(sums[k]), len(length),
                    int(length[longest]), int(start[longest]), self.operators_recorded,
                )
            )  # fmt: skip
        return found

    def _per_interval(self, at: Int64) -> tuple[Int64, Int64]:
        interval = self.ledger.interval[at]
        opens = np.ones(len(at), dtype=bool)
        opens[1:] = (interval[1:] != interval[:-1]) | (interval[1:] < 0)
        first = np.flatnonzero(opens)
        return self.ledger.start[at[first]], np.add.reduceat(self.ledger.ns[at], first)

    def mostly_long(self, mask: Bool, least_ns: int) -> bool:
        """Return whether stretches of at least so long hold half of the segments' time."""
        at = np.flatnonzero(mask)
        if not len(at):
            return False
        length = self._per_interval(at)[1]
        return bool(2 * length[length >= least_ns].sum() >= length.sum())

    def count(self, mask: Bool) -> int:
        """Return in how many idle intervals the segments lie."""
        return len(distinct(self.ledger.interval[mask]))

    def evidence(self, mask: Bool, note: str = "") -> list[SeenRow]:
        """Return the longest stretches of the segments; ``note`` says what they show, else their class does."""
        at = np.flatnonzero(mask)
        if not len(at):
            return []
        start, length = self._per_interval(at)
        names = self.ledger.names
        begins = np.searchsorted(self.ledger.start[at], start)
        found = []
        for k in np.argsort(-length, kind="stable")[:SHOWN].tolist():
            segment = at[begins[k]]
            cls = LedgerClass(int(self.ledger.cls[segment]))
            found.append(
                SeenRow(
                    names.text(int(self.ledger.name[segment])) or cls.label,
                    int(start[k]),
                    int(length[k]),
                    note or _SHOWN_BY.get(cls, "the device has nothing to do"),
                )
            )
        return sorted(found, key=lambda e: e.start_ns)

    @cached_property
    def copies_waited_for(self) -> Int64:
        """Return for each idle interval the copy that the host was waiting for when it began, NO_ROW for none.

        The wait is the copy's own call, or a synchronise right behind the call, on the same thread.
        """
        trace, idle = self._analysis.trace, self.ledger.idle
        result = np.full(len(idle), NO_ROW, dtype=np.int64)
        rows, calls = trace.activities, trace.calls
        at = np.flatnonzero(idle.waited_in != NO_ROW)
        if not len(at):
            return result
        first = np.full(len(calls), NO_ROW, dtype=np.int64)
        copies = np.flatnonzero(np.isin(rows.kind, (RowKind.MEMCPY, RowKind.MEMSET)) & (rows.call != NO_ROW))
        first[rows.call[copies]] = copies
        waits = idle.waited_in[at]
        own = first[waits]
        before = np.maximum(waits - 1, 0)
        behind = (waits > 0) & (calls.thread[before] == calls.thread[waits]) & (first[before] != NO_ROW)
        # the copy is what was waited for only where it ended last before the queue was empty
        row = np.where(own != NO_ROW, own, np.where(behind, first[before], NO_ROW))
        done = (row != NO_ROW) & (rows.end_ns[np.maximum(row, 0)] <= calls.end_ns[waits])
        result[at] = np.where(done, row, NO_ROW)
        return result

    @cached_property
    def reads_back(self) -> Bool:
        """Which idle intervals began because the host waited for a copy, or read a value; others that waited did so by a bare synchronise."""
        idle = self.ledger.idle
        result: Bool = np.asarray(self.copies_waited_for != NO_ROW)
        at = np.flatnonzero((idle.waited_in != NO_ROW) & ~result)
        if len(at):
            result[at] = [_READS_BACK.search(o) is not None for o in self._calls.names(idle.waited_in[at])]
        return result

    def _direction(self, intervals: Int64, ns: npt.NDArray[np.float64]) -> str:
        """Return where the copies go that the host waited for before most of the intervals' time: to host, to device, or empty."""
        trace = self._analysis.trace
        rows = self.copies_waited_for[intervals]
        known = rows != NO_ROW
        names = [trace.names[n].lower().replace(" ", "") for n in trace.activities.name[rows[known]].tolist()]
        times = ns[known].tolist()
        to_host = sum(t for n, t in zip(names, times, strict=True) if "dtoh" in n or "devicetohost" in n)
        to_device = sum(t for n, t in zip(names, times, strict=True) if "htod" in n or "hosttodevice" in n)
        if not to_host and not to_device:
            return ""
        return "to host" if to_host >= to_device else "to device"

    def waited(self, read_back: bool) -> Bool:
        """Return the segments behind waits: those for a value or a copy, or those by a synchronise."""
        if not len(self.ledger.idle):
            return np.zeros(len(self.ledger.start), dtype=bool)
        return np.asarray(self.after_wait & ~self.polled & (self.reads_back[self._interval_of] == read_back))

    def waits_by_call(self, mask: Bool) -> list[Wait]:
        """Return the waits that the segments lie behind, by call and operator, the costliest first."""
        idle, trace = self.ledger.idle, self._analysis.trace
        at = np.flatnonzero(mask)
        if not len(at):
            return []
        intervals, which = np.unique(self.ledger.interval[at], return_inverse=True)
        ns = np.bincount(which, weights=self.ledger.ns[at])
        calls = idle.waited_in[intervals]
        key = trace.calls.api[calls].astype(np.int64) * (len(trace.names) + 1) + self._calls.codes(calls) + 1
        found = []
        for k in distinct(key).tolist():
            mine = key == k
            first = calls[mine][:1]
            found.append(
                Wait(
                    trace.apis[trace.calls.api[first[0]]], self._calls.names(first)[0], int(ns[mine].sum()), int(mine.sum()),
                    self._direction(intervals[mine], ns[mine]),
                )
            )  # fmt: skip
        return sorted(found, key=lambda w: -w.ns)


def causes(analysis: Analysis) -> list[DeviceCauses]:
    """Return the causes of each device that has a ledger."""
    kept = analysis.__dict__.get("_causes")
    if kept is None:
        # a copy, or the analysis would hold itself: a process that does not look for cycles would never let the trace go
        own = replace(analysis)
        kept = [DeviceCauses(own, ledger) for ledger in analysis.ledgers]
        # a cached property of the frozen analysis in all but place: it belongs to the rules
        analysis.__dict__["_causes"] = kept
    return list(kept)
