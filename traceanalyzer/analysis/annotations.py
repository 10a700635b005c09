"""Counters for a trace viewer: what the queue of each stream did at every moment, by the report's own definitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.depth import depth_over_time, thinned
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.trace.tables import Int64

DEPTH = "rows"
STARVED, LAUNCH, UNLINKED = "starved", "launch wait", "no launch recorded"


@dataclass(frozen=True)
class CounterTrack:
    """A step function: ``values[i]`` (one column per name of ``series``) holds from ``at_ns[i]`` (absolute) on.

    ``of`` is the number of steps before any were left out; it equals ``len(at_ns)`` for a whole track.
    """

    label: str
    series: tuple[str, ...]
    at_ns: Int64
    values: npt.NDArray[np.int64]
    of: int


def counters(analysis: Analysis, most: int) -> tuple[list[CounterTrack], str]:
    """Return two tracks per stream with at most ``most`` steps in all, and why there are none (else empty).

    *queue depth*: device rows launched and not finished. The step before a launch call is the report's queue depth
    at that launch. *stream idle*: 1 while the stream is idle, by what it waits for, in the parts of docs/methodology.md: ``starved``
    (the host has not called yet), ``launch wait`` (called, not started), ``no launch recorded`` (cannot be told).
    Where steps are left out, the first, last, lowest and highest of every stretch stay.
    """
    trace, found = analysis.trace, analysis.waits
    if not len(trace.activities):
        return [], "the trace has no device rows"
    if not found.linked.any():
        return [], "no device row is linked to its launch call"
    if analysis.clocks.state is ClockState.DISAGREE:
        return [], "host and device clocks disagree, so nothing that subtracts one from the other is drawn"
    several = len({lane.device for lane in trace.lanes}) > 1
    tracks = []
    for number, lane in enumerate(trace.lanes):
        rows = np.flatnonzero(trace.activities.lane == number)
        device = f"device {trace.devices[lane.device].label} " if several else ""
        name = f"{device}stream {lane.label}"
        tracks += [_depth(analysis, rows, name), _idle(analysis, rows, name)]
    tracks = [t for t in tracks if len(t.at_ns)]
    total = sum(t.of for t in tracks)
    if total > most:
        tracks = [_thinned(t, most * t.of // total) for t in tracks]
    return tracks, ""


def _depth(analysis: Analysis, rows: Int64, name: str) -> CounterTrack:
    mine = rows[analysis.waits.linked[rows]]
    at, depth = depth_over_time(analysis.waits.launch_start_ns[mine], analysis.trace.activities.end_ns[mine])
    return CounterTrack(f"queue depth, {name}", (DEPTH,), at, depth.reshape(-1, 1), len(at))


def _idle(analysis: Analysis, rows: Int64, name: str) -> CounterTrack:
    found, stop = analysis.waits, analysis.trace.activities.start_ns[rows]
    begin, linked = found.previous_end_ns[rows], found.linked[rows] & ~found.first[rows]
    called = begin + found.host_wait_ns[rows]
    unlinked = ~linked & (found.gap_ns[rows] > 0)
    series: tuple[str, ...] = (STARVED, LAUNCH, UNLINKED) if unlinked.any() else (STARVED, LAUNCH)
    # disjoint stretches of the stream, each waiting for one thing
    parts = [
        (linked & (called > begin), begin, called),
        (linked & (stop > called), called, stop),
        (unlinked, begin, stop),
    ]
    low = np.concatenate([start[mask] for mask, start, _ in parts])
    high = np.concatenate([end[mask] for mask, _, end in parts])
    what = np.concatenate([np.full(int(mask.sum()), number) for number, (mask, _, _) in enumerate(parts)])
    order = np.argsort(low, kind="stable")
    low, high, what = low[order], high[order], what[order]
    closes = np.ones(len(low), dtype=bool)
    closes[:-1] = high[:-1] < low[1:]
    at = np.concatenate([low, high[closes]])
    waiting = np.eye(len(parts), dtype=np.int64)[what]
    values = np.concatenate([waiting, np.zeros((int(closes.sum()), len(parts)), dtype=np.int64)])[:, : len(series)]
    order = np.argsort(at, kind="stable")
    return CounterTrack(f"stream idle, {name}", series, at[order], values[order], len(at))


def _thinned(track: CounterTrack, most: int) -> CounterTrack:
    keep = thinned(track.at_ns, track.values @ (1 << np.arange(track.values.shape[1])), max(most // 4, 1))
    return replace(track, at_ns=track.at_ns[keep], values=track.values[keep])
