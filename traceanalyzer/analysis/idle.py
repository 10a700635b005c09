"""Where a device's idle time went: few long pauses and steadily late launches are told apart."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import intervals, stats
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.record import record
from traceanalyzer.trace.tables import Int64, Trace

PAUSES_LISTED = 10


@record(frozen=True)
class Pause:
    """One idle interval of a device: ``row`` ends it, ``before`` is the row that ended last before it.

    The parts say what the device waited for: ``host`` (no call yet), of which ``sync`` lay in or directly
    behind a synchronise, and ``launch`` (called, not started). All are 0 where the row has no launch.
    """

    start_ns: int
    length_ns: int
    before: int
    row: int
    host_ns: int
    sync_ns: int
    launch_ns: int


@record(frozen=True)
class IdleFacts:
    """Busy, span and the anatomy of the idle time of one device, in nanoseconds.

    ``host_ns`` (which contains ``sync_ns``), ``launch_ns`` and ``unattributed_ns`` add up to the idle time.
    A *long pause* lasts over ``long_limit_ns``; all other gaps are short. ``late`` counts short gaps in
    which the device waited for the host, ``late_ns`` is that waiting.
    """

    device: int
    span_ns: int
    busy_ns: int
    self_time_ns: int
    kernel_ns: int
    copy_ns: int
    host_ns: int
    sync_ns: int
    launch_ns: int
    unattributed_ns: int
    long_limit_ns: float
    long_count: int
    long_ns: int
    short_count: int
    short_ns: int
    short_p50_ns: float | None
    late_count: int
    late_ns: int
    late_p50_ns: float | None
    pauses: list[Pause]


def idle_facts(
    trace: Trace, found: Waits, device: int, rows: Int64, is_kernel: Int64, options: AnalysisOptions
) -> IdleFacts:
    """Return the anatomy of one device from its row numbers (at least one); ``is_kernel`` marks its kernels."""
    table = trace.activities
    starts, ends = table.start_ns[rows], table.end_ns[rows]
    busy_s, busy_e = intervals.union(starts, ends)
    low, high = intervals.complement(busy_s, busy_e)
    size = high - low
    by_start = rows[np.lexsort((-ends, starts))]
    ending = by_start[np.searchsorted(table.start_ns[by_start], high, side="left")]
    by_end = rows[np.argsort(ends, kind="stable")]
    before = by_end[np.searchsorted(table.end_ns[by_end], low, side="right") - 1]
    linked = found.linked[ending]
    until = np.minimum(found.launch_start_ns[ending], high)
    host = np.where(linked, np.maximum(0, until - low), 0)
    # sync_wait of the row is measured on its stream; within the device's idle interval it can only be shorter
    sync = np.minimum(host, np.where(linked, found.sync_wait_ns[ending], 0))
    launch = np.where(linked, size - host, 0)
    median = stats.median(size)
    limit = max(options.threshold("long_pause_us") * 1000, 10 * (median or 0))
    long = size > limit
    late = ~long & (host > 0)
    listed = np.argsort(-size, kind="stable")[:PAUSES_LISTED]
    durations = table.dur_ns[rows]
    return IdleFacts(
        device=device,
        span_ns=int(ends.max() - starts.min()),
        busy_ns=intervals.length(busy_s, busy_e),
        self_time_ns=int(durations.sum()),
        kernel_ns=int(durations[is_kernel].sum()),
        copy_ns=int(durations[~is_kernel].sum()),
        host_ns=int(host.sum()),
        sync_ns=int(sync.sum()),
        launch_ns=int(launch.sum()),
        unattributed_ns=int(size[~linked].sum()),
        long_limit_ns=limit,
        long_count=int(np.count_nonzero(long)),
        long_ns=int(size[long].sum()),
        short_count=int(np.count_nonzero(~long)),
        short_ns=int(size[~long].sum()),
        short_p50_ns=stats.median(size[~long]),
        late_count=int(np.count_nonzero(late)),
        late_ns=int(host[late].sum()),
        late_p50_ns=stats.median(host[late]),
        pauses=[
            Pause(int(low[i]), int(size[i]), int(before[i]), int(ending[i]), int(host[i]), int(sync[i]), int(launch[i]))
            for i in listed.tolist()
        ],
    )
