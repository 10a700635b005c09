"""Do the two independent device protocols agree? Profiler self-time against calls unrolled into one graph."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer import number_text
from traceanalyzer.capture.criterion import DEVICE_SHARE, agree, graph_expected_us
from traceanalyzer.trace.sidecar import Agreement, Calibration, ProtocolResult


def agreement(results: Sequence[ProtocolResult], calibration: Calibration) -> Agreement:
    """Return whether the graph reads what self-time and the calibrated gaps between its nodes make.

    ``difference`` is the graph's reading over that expectation, less 1; ``agree`` is None where one of the two is missing.
    """
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
    kernels, calls = _number(own, "kernels_per_call", 1.0), int(_number(graph, "graph_calls", 1.0))
    wanted = graph_expected_us(own.p50_us, kernels, calls, calibration)
    share = (graph.p50_us - wanted) / wanted
    gaps = (
        f" and {number_text.duration(1000 * (wanted - own.p50_us))} of calibrated gaps" if wanted > own.p50_us else ""
    )
    itself, unrolled = number_text.duration(1000 * own.p50_us), number_text.duration(1000 * graph.p50_us)
    numbers = f"self-time {itself}{gaps}, unrolled graph {unrolled} per call ({number_text.change(share)})"
    if agree(graph.p50_us, wanted, DEVICE_SHARE, calibration):
        return Agreement(True, share, f"{numbers}: they agree")
    if share > 0:
        gap = "no gap between nodes was calibrated on this machine (about 0.5 to 1 us each is usual)"
        why = (
            gap
            if calibration.node_gap_us is None
            else "the graph runs other kernels than the call, or runs them slower"
        )
    else:
        why = (
            "back to back the kernels found warmer caches or higher clocks than under the profiler, or the graph runs less "
            "than the call does (work that is done once at capture)"
        )
    return Agreement(False, share, f"{numbers}: {why}")


def _number(result: ProtocolResult, name: str, default: float) -> float:
    value = result.parameters.get(name, default)
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e9 else default
