"""Whether anybody recorded what the host did between its calls: without such rows nothing can be said to lie outside of an operator."""

from __future__ import annotations

from traceanalyzer.analysis.ledger.device import DeviceLedger
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Trace


def operators_recorded(trace: Trace, ledger: DeviceLedger) -> bool:
    """Return whether a process that launched the device's rows has rows of operators, or the trace has Python frames."""
    if len(trace.python):
        return True
    if not len(trace.host_ops):
        return False
    if len({t.process for t in trace.threads}) <= 1:
        return True
    launching = distinct(ledger.idle.thread)
    processes = {trace.threads[t].process for t in launching[launching >= 0].tolist()}
    return any(trace.threads[t].process in processes for t in distinct(trace.host_ops.thread).tolist())
