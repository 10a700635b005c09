"""Do the two independent device protocols agree? Profiler self-time against calls unrolled into one graph."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.trace.sidecar import Agreement, ProtocolResult

TOLERANCE = 0.03
"""Self-time and unrolled graph were seen to agree to this share where both are sound."""
TOLERANCE_US = 0.5
"""Device stamps resolve about half a microsecond."""


def agreement(results: Sequence[ProtocolResult]) -> Agreement:
    """Return whether the two agree within 3 % or half a microsecond; ``agree`` is None where one is missing."""
    found = {r.protocol: r for r in results}
    own, graph = found.get("profiler_self_time"), found.get("graph_unrolled")
    for result, name in ((own, "profiler self-time"), (graph, "the unrolled graph")):
        if result is None:
            return Agreement(None, None, f"{name} was not asked for")
        if result.p50_us is None:
            return Agreement(None, None, f"no {name}: {result.reason}")
    assert own is not None and graph is not None and own.p50_us is not None and graph.p50_us is not None
    if not own.p50_us:
        return Agreement(None, None, "the self-time is zero")
    excess = graph.p50_us - own.p50_us
    share = excess / own.p50_us
    numbers = f"self-time {own.p50_us:.3f} us, unrolled graph {graph.p50_us:.3f} us per call ({share:+.1%})"
    if abs(share) <= TOLERANCE or abs(excess) <= TOLERANCE_US:
        return Agreement(True, share, f"{numbers}: they agree")
    if excess > 0:
        why = (
            "the graph's reading holds the device's gaps between its nodes (about 0.5 to 1 us each), which self-time leaves out; "
            "where that does not account for it, the graph runs other kernels than the call"
        )
    else:
        why = (
            "back to back the kernels found warmer caches or higher clocks than under the profiler, or the graph runs less "
            "than the call does (work that is done once at capture)"
        )
    return Agreement(False, share, f"{numbers}: {why}")
