"""Which device rows and host calls a report is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from traceanalyzer.errors import OptionError
from traceanalyzer.options import Selection
from traceanalyzer.trace.tables import NO_ROW, Bool, Trace


@dataclass(frozen=True)
class Chosen:
    """Masks over ``trace.activities`` and ``trace.calls``; ``names`` over ``trace.names`` (kernel filter).

    ``windows`` counts the instances of the chosen range, 0 where no range was asked for.
    """

    rows: Bool
    calls: Bool
    names: Bool
    windows: int


def choose(trace: Trace, selection: Selection) -> Chosen:
    """Return what the selection leaves. Work belongs to a range by where its launch call lies on the host.

    Raises :class:`~traceanalyzer.errors.OptionError` for a range, device or stream that is not there and for
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
    windows = 0
    if selection.range_name is not None:
        inside, windows = _in_range(trace, selection.range_name)
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


def _in_range(trace: Trace, name: str) -> tuple[Bool, int]:
    ranges = trace.ranges
    host = ~ranges.on_device
    present = {trace.names[i] for i in ranges.name[host].tolist()}
    if name not in present:
        near = get_close_matches(name, present, 3, 0.4) or sorted(present)[:5]
        hint = f"near: {', '.join(repr(n) for n in near)}" if near else "the trace holds no ranges"
        raise OptionError("unknown_range", f"the trace has no range called {name!r}", hint=hint)
    at = np.flatnonzero(host & (ranges.name == trace.names.index(name)))
    process_of_thread = [t.process for t in trace.threads]
    inside = np.zeros(len(trace.calls), dtype=bool)
    processes = np.array(process_of_thread, dtype=object)
    call_process = processes[trace.calls.thread] if len(trace.calls) else np.empty(0, dtype=object)
    for process in {process_of_thread[t] for t in ranges.thread[at].tolist()}:
        mine = at[processes[ranges.thread[at]] == process]
        starts = ranges.start_ns[mine]
        # ranges of one name may nest: the latest end so far decides
        reach = np.maximum.accumulate(ranges.end_ns[mine])
        last = np.searchsorted(starts, trace.calls.start_ns, side="right") - 1
        inside |= (call_process == process) & (last >= 0) & (reach[np.maximum(last, 0)] >= trace.calls.start_ns)
    return inside, len(at)
