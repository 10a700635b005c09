"""The symbols of the timing model, estimated from one trace (docs/methodology.md), each with how it was found."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.origin import Origin
from traceanalyzer.analysis.protocols import Symbols
from traceanalyzer.analysis.readings import Readings
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.record import record
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.tables import NO_ROW, Bool, Trace

TYPICAL = {"latency": 4000.0, "record": 0.0, "sync": 6000.0, "gap": 0.0, "clear": 85_000.0, "clear_dispatch": 6000.0}
"""Used where a trace does not show a symbol, in nanoseconds; sources and threads, docs/methodology.md."""

STEADY_CALLS = 1_000_000
"""Loops are judged in steady state: what the first and last call add is shared by this many."""

UNSEEN = {
    "record": "no event record in this trace: taken as free (typically 1-3 us)",
    "gap": "no queued rows seen: taken as 0",
    "clear": "256 MiB on a device that is not in the table, typical value; set it with --clear-us",
    "clear_dispatch": "typical value; the clear's launch is not told apart in a trace",
}

CLEAR_US = {
    "L40S": 311, "A100-SXM4-40": 173, "A100-PCIE-40": 173, "RTX PRO 6000": 150, "A100": 132, "H100": 80, "H200": 56, "B200": 34,
}  # fmt: skip
"""A 256 MiB clear at nominal peak bandwidth: the least it takes (docs/methodology.md). First match of the name."""


@record(frozen=True)
class MachineSymbols:
    """What the machine costs, in nanoseconds, and how each number was found; ``seen`` are those of this very run or given by the user."""

    latency: float
    record: float
    sync: float
    gap: float
    clear: float
    clear_dispatch: float
    found: dict[str, str]
    seen: frozenset[str]


def machine_symbols(
    trace: Trace, host: Launching, found: Waits, readings: Readings, clear_us: float | None, device: int, where: Origin
) -> MachineSymbols:
    """Return L, e, s, g and the clear of one device (a row of ``trace.devices``) and the process that feeds it."""
    how: dict[str, str] = {}
    seen: set[str] = set()
    calibrated = _calibrated(trace)

    def symbol(name: str, value: float | None, words: str) -> float:
        if name in calibrated and (value is None or name != "clear" or clear_us is None):
            value, words = calibrated[name], "calibrated by the capture"
            seen.add(name)
        if value is None:
            how[name] = UNSEEN.get(name, "typical value, not seen in this trace")
            return TYPICAL[name]
        how[name] = words
        if name != "clear" or clear_us is not None:  # a clear of the table of devices is that of no run
            seen.add(name)
        return max(0.0, value)

    calls, rows = trace.calls, trace.activities
    here = np.array([lane.device for lane in trace.lanes], dtype=np.int64)[rows.lane] == device
    process = int(where.device_process[device])
    fed = where.thread_process[calls.thread] == process if process != NO_ROW else np.ones(len(calls), dtype=bool)
    records = (calls.api_class == ApiClass.EVENT_RECORD) & fed
    record = stats.median((calls.end_ns - calls.start_ns)[records])
    queued = here & found.linked & ~found.first & ~found.starved & found.opens_call
    # queued ahead: its call had returned, so neither the call nor the way to the device is in the gap
    returned = np.zeros(len(rows), dtype=np.int64)
    returned[found.linked] = calls.end_ns[rows.call[found.linked]]
    queued &= returned < found.previous_end_ns - 20_000
    gap = stats.median(found.gap_ns[queued]) if np.count_nonzero(queued) >= 3 else None
    clear = (
        clear_us * 1000
        if clear_us is not None
        else next((v * 1000.0 for k, v in CLEAR_US.items() if k in trace.devices[device].name), None)
    )
    named = "given with --clear-us" if clear_us is not None else "256 MiB at the nominal bandwidth of this device"
    return MachineSymbols(
        latency=symbol(
            "latency", readings.latency_ns.get(device), "median from the end of starved launch calls to their kernels"
        ),
        record=symbol("record", record, f"median of {int(records.sum())} event record calls"),
        sync=symbol(
            "sync",
            _sync_return(trace, host.syncs & fed, here),
            "median from the last kernel's end to the synchronise's return",
        ),
        gap=symbol("gap", gap, f"median gap of {int(np.count_nonzero(queued))} rows launched well ahead"),
        clear=symbol("clear", clear, named),
        clear_dispatch=symbol("clear_dispatch", None, ""),
        found=how if len(rows) else {},
        seen=frozenset(seen if len(rows) else ()),
    )


def _calibrated(trace: Trace) -> dict[str, float]:
    """Return the symbols a capture measured on the machine itself, in nanoseconds."""
    if trace.meta.sidecar is None:
        return {}
    c = trace.meta.sidecar.calibration
    found = {"sync": c.sync_us, "record": c.record_us, "clear": c.clear_us, "clear_dispatch": c.clear_dispatch_us}
    return {name: us * 1000 for name, us in found.items() if us is not None and 0 <= us < 1e9}


def _sync_return(trace: Trace, syncs: Bool, here: Bool) -> float | None:
    ends = np.sort(trace.activities.end_ns[here])
    at = np.flatnonzero(syncs)
    if not len(ends) or not len(at):
        return None
    returned = trace.calls.end_ns[at]
    last = np.searchsorted(ends, returned, side="right") - 1
    waited = (last >= 0) & (ends[np.maximum(last, 0)] >= trace.calls.start_ns[at])
    return stats.median((returned - ends[np.maximum(last, 0)])[waited])


def operation_symbols(machine: MachineSymbols, dispatch: list[float], kernels: list[float]) -> Symbols:
    """Return the symbols of one operation on this machine: medians per launch, in nanoseconds."""
    return Symbols(
        tuple(max(0.0, d) for d in dispatch), tuple(kernels), latency=machine.latency, record=machine.record, sync=machine.sync,
        gap=machine.gap, clear=machine.clear, clear_dispatch=machine.clear_dispatch,
        calls=STEADY_CALLS, depth=10 * STEADY_CALLS, graph_calls=100,
    )  # fmt: skip
