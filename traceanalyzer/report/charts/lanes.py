"""What lies on the lanes of a timeline, before anything is left out: streams, and what launching threads did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.report.charts.model import AFTER_SYNC, COPY, LAUNCH, OTHER, STARVED, SYNC, LaneKind
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import HostOps, Int64, Ranges

STREAMS, THREADS, LEVELS = 16, 6, 2


@dataclass(frozen=True)
class RawLane:
    """Rows of one lane in order of start. ``name`` numbers texts of ``Trace.names`` (of ``Trace.apis`` on lanes of calls);
    ``rows`` are the rows' numbers in their own table.
    """  # fmt: skip

    kind: LaneKind
    label: str
    start_ns: Int64
    end_ns: Int64
    name: Int64
    tag: Int64
    rows: Int64


def raw_lanes(analysis: Analysis) -> tuple[list[RawLane], int]:
    """Return the lanes from top to bottom (ranges, operators and calls of each thread, then streams), and how many were left out.

    Streams with the most chosen rows come first to be kept, threads with the most launches; of ranges and operators the
    outermost levels.
    """
    threads = sorted(analysis.threads, key=lambda t: -t.launches)
    kept = sorted(t.thread for t in threads[:THREADS])
    streams = sorted(analysis.streams, key=lambda s: -s.activities)
    lanes = sorted(s.lane for s in streams[:STREAMS])
    several = len(analysis.trace.threads) > 1
    found = []
    for thread in kept:
        where = f" {analysis.trace.threads[thread].label}" if several else ""
        found += [_nested(analysis.trace.ranges, thread, "ranges", f"ranges{where}")]
        found += [_nested(analysis.trace.host_ops, thread, "operators", f"operators{where}")]
        found += [_calls(analysis, thread, f"launches{where}")]
    found = [lane for lane in found if len(lane.rows)] + [_stream(analysis, lane) for lane in lanes]
    return found, len(threads) - len(kept) + len(streams) - len(lanes)


def _stream(analysis: Analysis, lane: int) -> RawLane:
    table, trace, waits = analysis.trace.activities, analysis.trace, analysis.waits
    at = np.flatnonzero((table.lane == lane) & analysis.chosen.rows)
    device = trace.devices[trace.lanes[lane].device]
    tag = (
        STARVED * (analysis.starved[at] & waits.opens_call[at])
        | AFTER_SYNC * (waits.after_sync[at] & waits.opens_call[at])
        | COPY * np.isin(table.kind[at], (RowKind.MEMCPY, RowKind.MEMSET))
    )
    label = f"stream {device.label}/{trace.lanes[lane].label}"
    return RawLane(
        "stream", label, table.start_ns[at], table.end_ns[at], table.name[at].astype(np.int64), tag.astype(np.int64), at
    )


def _calls(analysis: Analysis, thread: int, label: str) -> RawLane:
    calls, host = analysis.trace.calls, analysis.host
    at = np.flatnonzero(calls.thread == thread)
    tag = np.where(host.launches[at], LAUNCH, np.where(host.syncs[at], SYNC, OTHER))
    return RawLane("calls", label, calls.start_ns[at], calls.end_ns[at], calls.api[at].astype(np.int64), tag, at)


def _nested(table: HostOps | Ranges, thread: int, kind: LaneKind, label: str) -> RawLane:
    """Return the outermost rows of a thread: two levels of ranges (the tag says which), one of operators."""
    mine = table.thread == thread
    if isinstance(table, Ranges):
        mine &= ~table.on_device
    at = np.flatnonzero(mine)
    at = at[np.lexsort((-table.end_ns[at], table.start_ns[at]))]
    kept, level = [], []
    for depth in range(LEVELS if kind == "ranges" else 1):
        reach = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], table.end_ns[at][:-1]])) if len(at) else at  # fmt: skip
        outer = table.start_ns[at] >= reach
        kept.append(at[outer])
        level.append(np.full(np.count_nonzero(outer), depth, dtype=np.int64))
        at = at[~outer]
    rows, tag = np.concatenate(kept), np.concatenate(level)
    order = np.argsort(table.start_ns[rows], kind="stable")
    rows = rows[order]
    return RawLane(
        kind, label, table.start_ns[rows], table.end_ns[rows], table.name[rows].astype(np.int64), tag[order], rows
    )
