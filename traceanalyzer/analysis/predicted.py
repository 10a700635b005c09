"""What the model predicts for the readings a capture measured: the check of the model on this very machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyzer.analysis import protocols
from traceanalyzer.analysis.protocols import Symbols

if TYPE_CHECKING:
    from traceanalyzer.trace.sidecar import Calibration, OperationRecord, ProtocolResult

LONGEST_STEP_US = 1e6
"""A calibrated step above this is damage in the sidecar, no step of a machine."""


def predicted(symbols: Symbols, record: OperationRecord, calibration: Calibration) -> dict[str, float]:
    """Return the closed form (ns) of every protocol that has a reading in ``record``, from symbols that owe nothing to it.

    Dispatch is that of the unprofiled run (the same loop as the profiler's, without it), shared out among an operation's
    launches as the trace shows it; kernels, latency and gap are the trace's; the rest was calibrated, the gap between the nodes of a graph too: a trace of a
    queue that runs empty shows none. The number of calls
    is that of the protocol's own loop. Self-time is not predicted: it is where the kernels were taken from.
    """
    if record.inflation is None or not symbols.total_dispatch:
        return {}
    scale = record.inflation.unprofiled_us * 1000 / symbols.total_dispatch
    base = replace(symbols, dispatch=tuple(d * scale for d in symbols.dispatch))
    if (gap := calibration.node_gap_us) is not None and 0 <= gap < LONGEST_STEP_US:
        base = replace(base, node_gap=gap * 1000)
    if (launch := calibration.graph_launch_us) is not None and 0 <= launch < LONGEST_STEP_US:
        base = replace(base, graph_dispatch=launch * 1000)
    result = {}
    for measured in record.protocols:
        name = measured.protocol
        if measured.p50_us is None or name == "profiler_self_time" or name not in (*protocols.PROTOCOLS, "backlog"):
            continue
        calls = _count(measured, "graph_calls") or _count(measured, "calls_per_round")
        of_loop = replace(
            base, calls=max(1, calls), graph_calls=max(1, calls), depth=10 * max(1, calls) * len(base.kernels)
        )
        result[name] = base.paired_time if name == "backlog" else protocols.ladder(of_loop)[name]
    return result


def _count(result: ProtocolResult, name: str) -> int:
    value = result.parameters.get(name, 0)
    return int(value) if isinstance(value, (int, float)) and 0 < value < 1e9 else 0
