"""Which device rows and host calls a report is about."""

from __future__ import annotations

import re
from difflib import get_close_matches

import numpy as np

from traceanalyzer.analysis.origin import Origin
from traceanalyzer.analysis.ranges import range_names, ranges_called
from traceanalyzer.errors import OptionError
from traceanalyzer.options import Selection
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Trace


@record(frozen=True)
class Chosen:
    """Masks over ``trace.activities`` and ``trace.calls``; ``names`` over ``trace.names`` (kernel filter).

    ``windows`` counts the instances of the chosen range, 0 where no range was asked for.
    """

    rows: Bool
    calls: Bool
    names: Bool
    windows: int


def choose(trace: Trace, selection: Selection, where: Origin) -> Chosen:
    """Return what the selection leaves. Work belongs to a range by where its launch call lies on the host.

    Raises :class:`~traceanalyzer.errors.OptionError` for a range, device, rank or stream that is not there and for
    a regular expression that does not compile.
    """
    rows = np.ones(len(trace.activities), dtype=bool)
    calls = np.ones(len(trace.calls), dtype=bool)
    lane_device = np.array([trace.devices[lane.device].number for lane in trace.lanes], dtype=np.int64)
    lane_stream = np.array([lane.stream for lane in trace.lanes], dtype=np.int64)
    for what, wanted, column in (
        ("device", selection.device, lane_device),
        ("stream", selection.stream, lane_stream),
    ):
        if wanted is None:
            continue
        if wanted not in column:
            there = ", ".join(map(str, sorted(set(column.tolist())))) or "none"
            raise OptionError(f"unknown_{what}", f"the trace has no {what} {wanted}", hint=f"it has: {there}")
        rows &= (column == wanted)[trace.activities.lane]
    if selection.rank is not None:
        devices, threads = _of_rank(where, selection.rank)
        rows &= devices[np.array([lane.device for lane in trace.lanes], dtype=np.int64)[trace.activities.lane]]
        calls &= threads[trace.calls.thread]
    windows = 0
    if selection.range_name is not None:
        inside, windows = _in_range(trace, selection.range_name, where)
        calls &= inside
        linked = trace.activities.call != NO_ROW
        in_range = np.zeros(len(rows), dtype=bool)
        in_range[linked] = inside[trace.activities.call[linked]]
        rows &= in_range
    if selection.device is not None or selection.stream is not None:
        owning = np.zeros(len(calls), dtype=bool)
        owning[trace.activities.call[rows & (trace.activities.call != NO_ROW)]] = True
        calls &= owning
    names = np.ones(len(trace.names), dtype=bool)
    if selection.kernel is not None:
        try:
            pattern = re.compile(selection.kernel)
        except re.error as error:
            raise OptionError(
                "bad_pattern", f"--kernel is not a regular expression: {error}", hint="quote special characters"
            ) from None
        names = np.array([pattern.search(n[:4096]) is not None for n in trace.names], dtype=bool)
    return Chosen(rows, calls, names, windows)


def _of_rank(where: Origin, rank: int) -> tuple[Bool, Bool]:
    """Return which devices and which threads belong to a rank. Raises OptionError for one that is not there."""
    if rank not in where.ranks:
        there = ", ".join(map(str, where.ranks))
        hint = f"it has: {there}" if there else "it does not say which rank its rows are of; choose by --device"
        raise OptionError("unknown_rank", f"the trace has no rank {rank}", hint=hint)
    devices = np.array([r == rank for r in where.device_rank], dtype=bool)
    return devices, np.array([r == rank for r in where.thread_rank], dtype=bool)


def _in_range(trace: Trace, name: str, where: Origin) -> tuple[Bool, int]:
    spans = ranges_called(trace, name)
    if not len(spans):
        present = range_names(trace)
        near = get_close_matches(name[:256], [n for n in present if len(n) <= 256][:2000], 3, 0.4) or present[:5]
        hint = f"near: {', '.join(repr(n) for n in near)}" if near else "the trace holds no ranges"
        raise OptionError("unknown_range", f"the trace has no range called {name!r}", hint=hint)
    inside = np.zeros(len(trace.calls), dtype=bool)
    call_process = where.thread_process[trace.calls.thread]
    range_process = where.thread_process[spans.thread]
    for process in distinct(range_process).tolist():
        mine = spans.of(np.flatnonzero(range_process == process))
        # ranges of one name may nest: the latest end so far decides
        reach = np.maximum.accumulate(mine.end_ns)
        last = np.searchsorted(mine.start_ns, trace.calls.start_ns, side="right") - 1
        inside |= (call_process == process) & (last >= 0) & (reach[np.maximum(last, 0)] >= trace.calls.start_ns)
    return inside, len(spans)
