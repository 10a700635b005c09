"""How long each step took, the host's wait in it included, and what the slowest one had more of than the middle one.

A step is the profiler's own (``ProfilerStep#N``: the host range, as XProf and the TensorBoard plug-in have it), else a
range that repeats, else from the first launch of one call of the repeating pattern to the first launch of the next.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import intervals, stats
from traceanalyzer.analysis.iterations import Iterations
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.ledger import BUSY, DeviceLedger, LedgerClass, clipped, items
from traceanalyzer.analysis.origin import Origin
from traceanalyzer.analysis.ranges import PROFILER_STEP, Spans, profiler_steps
from traceanalyzer.analysis.selection import Chosen
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

MOST_KINDS = 32
_WORTH_A_CAUSE = 0.01
"""A slowest step within this of the median has no cause of its own."""


@record(frozen=True)
class SlowCause:
    """What a slow step had more of: a class of the ledger, the name in it that grew most, and by how much.

    ``cls`` is None where the difference lies outside of the device's span.
    """

    cls: LedgerClass | None
    name: str
    within: str
    more_ns: int


@record(frozen=True)
class StepFacts:
    """Steps of one kind, in order of time; one value a step, in nanoseconds.

    ``wait_ns`` is how long the thread that runs the steps waited for the device in each, ``busy_ns`` how long the device
    worked in it; ``head_ns`` is from the step's begin to the first instant at which it works, ``tail_ns`` from the last one to the
    step's end (a step in which it does not work has all of its time in the head). ``device`` (row of ``trace.devices``) is the one with most work in the steps, NO_ROW where no row lies in
    one. ``slowest`` and ``middle`` number steps; ``cause`` says what the slowest has more of than the middle one, None
    where the two are about equal. ``process`` and ``part`` are set where several processes or devices have such steps.
    """

    name: str
    method: str
    start_ns: Int64
    dur_ns: Int64
    wait_ns: Int64
    busy_ns: Int64
    head_ns: Int64
    tail_ns: Int64
    device: int
    slowest: int
    middle: int
    cause: SlowCause | None
    process: int | None
    part: int | None

    @property
    def p50_ns(self) -> float:
        """Median length of a step."""
        return float(np.median(self.dur_ns))


def find_steps(
    trace: Trace, host: Launching, chosen: Chosen, where: Origin, found: list[Iterations], ledgers: list[DeviceLedger]
) -> list[StepFacts]:
    """Return the steps of each kind, the longest in total first; of several processes each has its own.

    Where the profiler marked several steps there are no others; a single one is shown where nothing else repeats.
    """
    marked = profiler_steps(trace)
    kinds = [] if len(marked) > 1 else [k for op in found if (k := _of_calls(trace, op)) is not None]
    if len(marked) and not kinds:
        launching = trace.calls.thread[host.launches & chosen.calls]
        kinds = _marked(trace, where, marked, set(where.thread_process[launching].tolist()))
    kinds.sort(key=lambda k: -int((k.end_ns - k.start_ns).sum()))
    return [_facts(trace, host, where, k, ledgers) for k in kinds[:MOST_KINDS]]


@record(frozen=True)
class _Kind:
    name: str
    method: str
    start_ns: Int64
    end_ns: Int64
    thread: int
    process: int
    several: bool
    part: int | None


def _marked(trace: Trace, where: Origin, steps: Spans, working: set[int]) -> list[_Kind]:
    process = where.thread_process[steps.thread]
    numbers = [p for p in distinct(process).tolist() if not working or p in working]
    result = []
    for number in numbers:
        mine = steps.of(np.flatnonzero(process == number))
        several = len(numbers) > 1
        thread = int(mine.thread[0])
        mine = mine.of(np.flatnonzero(mine.thread == thread))
        name = f"{PROFILER_STEP} ({where.mark(trace, number)})" if several else PROFILER_STEP
        result.append(_Kind(name, PROFILER_STEP, mine.start_ns, mine.end_ns, thread, number, several, None))
    return result


def _of_calls(trace: Trace, op: Iterations) -> _Kind | None:
    """Return the steps of an operation: its ranges, or first launch to first launch; None without two launches."""
    calls = trace.calls
    first = np.array([int(c[0]) for c in op.calls if len(c)], dtype=np.int64)
    if len(first) < 2:
        return None
    thread = int(calls.thread[first[0]])
    start = np.sort(calls.start_ns[first])
    begin, end = start[:-1], start[1:]
    if op.windows is not None:
        begin, end = (np.array(t, dtype=np.int64) for t in zip(*op.windows, strict=True))
    process = op.process if op.process is not None else NO_ROW
    return _Kind(op.name, op.method, begin, end, thread, process, op.process is not None, op.device)


def _facts(trace: Trace, host: Launching, where: Origin, kind: _Kind, ledgers: list[DeviceLedger]) -> StepFacts:
    length = kind.end_ns - kind.start_ns
    thread = np.full(len(length), kind.thread, dtype=np.int64)
    process = int(where.thread_process[kind.thread])
    own = [x for x in ledgers if where.device_process[x.device] in (process, NO_ROW)] or ledgers
    own = [x for x in own if kind.part is None or x.device == kind.part]
    ledger, busy = None, np.zeros(len(length), dtype=np.int64)
    head, tail = length, busy
    for candidate in own:
        working = np.isin(candidate.cls, [int(c) for c in BUSY])
        covered = intervals.covered_length(kind.start_ns, kind.end_ns, candidate.start[working], candidate.end[working])
        if ledger is None or covered.sum() > busy.sum():
            ledger, busy = candidate, covered
            head, tail = _margins(kind, candidate.start[working], candidate.end[working])
    slowest, middle = int(np.argmax(length)), int(np.argsort(length, kind="stable")[(len(length) - 1) // 2])
    over = int(length[slowest] - length[middle])
    grew = len(length) > 1 and over > _WORTH_A_CAUSE * float(stats.median(length) or 0)
    return StepFacts(
        kind.name, kind.method, kind.start_ns, length, host.waited_ns(trace, thread, kind.start_ns, kind.end_ns), busy, head, tail,
        ledger.device if ledger is not None else NO_ROW, slowest, middle,
        _cause(kind, ledger, slowest, middle) if grew and ledger is not None else None,
        kind.process if kind.several else None, kind.part,
    )  # fmt: skip


def _margins(kind: _Kind, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Return how long each step runs before the first and after the last of the busy stretches in it, which are in order and disjoint."""
    length = kind.end_ns - kind.start_ns
    if not len(start):
        return length, np.zeros(len(length), dtype=np.int64)
    first, last = (
        np.searchsorted(end, kind.start_ns, side="right"),
        np.searchsorted(start, kind.end_ns, side="left") - 1,
    )
    worked = first <= last
    begin = np.maximum(start[np.minimum(first, len(start) - 1)], kind.start_ns)
    stop = np.minimum(end[np.maximum(last, 0)], kind.end_ns)
    return np.where(worked, begin - kind.start_ns, length), np.where(worked, kind.end_ns - stop, 0)


def _cause(kind: _Kind, ledger: DeviceLedger, slowest: int, middle: int) -> SlowCause:
    slow, usual = (
        clipped(ledger, kind.name, int(kind.start_ns[i]), int(kind.end_ns[i]), np.empty(0, dtype=np.int64))
        for i in (slowest, middle)
    )
    more: dict[LedgerClass, int] = dict(slow.classes_ns())
    for known, ns in usual.classes_ns().items():
        more[known] = more.get(known, 0) - ns
    lengths = [int(kind.end_ns[i] - kind.start_ns[i]) for i in (slowest, middle)]
    outside = lengths[0] - slow.span_ns - (lengths[1] - usual.span_ns)
    cls = max(more, key=lambda c: more[c], default=None)
    if cls is None or outside > more[cls]:
        return SlowCause(None, "", "", outside)
    named: dict[tuple[str, str], int] = {}
    for part, sign in ((slow, 1), (usual, -1)):
        for item in items(part):
            if item.cls is cls:
                named[item.name, item.within] = named.get((item.name, item.within), 0) + sign * item.ns
    name, within = max(named, key=lambda n: named[n])
    return SlowCause(cls, name, within, more[cls])
