"""How much of the device's record is linked to a launch, by API: a reader sees what a number rests on."""

from __future__ import annotations

from collections import Counter

import numpy as np

from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.record import record
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.tables import NO_ID, NO_ROW, Bool, Int64, Trace


@record(frozen=True)
class LinkCoverage:
    """Linkage of the selected device rows.

    ``by_api`` counts device rows per API, most first. ``unknown_apis`` are those of the APIs that the launch
    table does not know. ``unlinked_head`` of the ``unlinked`` rows start before the first linked one: work
    queued before the profiler started. ``lost`` are kernel and graph launch calls (rows of ``trace.calls``)
    without a device row, of which ``lost_head`` come before the first call that has one; ``captured`` ran
    nothing because a graph was being captured. Rows launched before a recording began, and calls whose work ran after it ended,
    are neither unlinked nor lost. ``empty`` copy and fill calls own no row (zero bytes long).
    """

    rows: int
    linked: int
    launches: int
    by_api: dict[str, int]
    unknown_apis: list[str]
    unlinked: int
    unlinked_head: int
    lost: list[int]
    lost_head: int
    launch_calls: int
    captured: int
    empty: int


def coverage(trace: Trace, host: Launching, found: Waits, chosen: Bool, chosen_calls: Bool) -> LinkCoverage:
    """Return the coverage of the chosen device rows and host calls."""
    rows, calls = trace.activities, trace.calls
    linked = chosen & found.linked
    apis = Counter(calls.api[rows.call[linked]].tolist())
    unlinked = chosen & ~found.linked & ~_before_the_start(trace)
    head = 0
    if linked.any():
        head = int(np.count_nonzero(rows.start_ns[unlinked] < rows.start_ns[linked].min()))
    by_name = host.by_name & chosen_calls
    lost = np.flatnonzero(by_name & ~host.owns & ~host.captured)
    lost = lost[~_behind_the_end(trace, lost)]
    owning = np.flatnonzero(by_name & host.owns)
    lost_head = int(np.count_nonzero(calls.start_ns[lost] < calls.start_ns[owning].min())) if len(owning) else 0
    memory = np.isin(calls.api_class, [ApiClass.MEMCPY, ApiClass.MEMSET])
    named = {a for a in apis if calls.api_class[np.flatnonzero(calls.api == a)[0]] == ApiClass.OTHER}
    return LinkCoverage(
        rows=int(np.count_nonzero(chosen)),
        linked=int(np.count_nonzero(linked)),
        launches=int(np.count_nonzero(np.bincount(rows.call[linked & (rows.call != NO_ROW)]))),
        by_api={trace.apis[a]: n for a, n in sorted(apis.items(), key=lambda x: (-x[1], trace.apis[x[0]]))},
        unknown_apis=sorted(trace.apis[a] for a in named),
        unlinked=int(np.count_nonzero(unlinked)),
        unlinked_head=head,
        lost=lost.tolist(),
        lost_head=lost_head,
        launch_calls=int(np.count_nonzero(by_name)),
        captured=int(np.count_nonzero(host.captured & chosen_calls)),
        empty=int(np.count_nonzero(memory & ~host.owns & chosen_calls & ~host.captured)),
    )


def _before_the_start(trace: Trace) -> Bool:
    """Return the device rows that were launched before the recording began, where correlation ids tell."""
    first = {process: window[0] for process, window in trace.meta.id_windows.items()}
    of_lane = np.array(
        [first.get(trace.devices[lane.device].pid, NO_ID) for lane in trace.lanes] or [NO_ID], dtype=np.int64
    )
    rows = trace.activities
    return np.asarray((rows.corr != NO_ID) & (rows.corr < of_lane[rows.lane]))


def _behind_the_end(trace: Trace, calls: Int64) -> Bool:
    """Return which calls launched work that ran after the recording had ended, where correlation ids tell."""
    last = {process: window[1] for process, window in trace.meta.id_windows.items()}
    most = np.iinfo(np.int64).max
    of_thread = np.array([last.get(thread.process, most) for thread in trace.threads] or [most], dtype=np.int64)
    return np.asarray(trace.calls.corr[calls] > of_thread[trace.calls.thread[calls]])
