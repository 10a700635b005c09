"""The replayed units of a run as they would be with a change, as rows for a trace that viewers open."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.analysis.ledger import LedgerTimeline
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.worth.changes import CHANGES, SITE
from traceanalyzer.errors import OptionError
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import NO_ROW

_CATEGORY = {RowKind.KERNEL: "kernel", RowKind.MEMCPY: "gpu_memcpy", RowKind.MEMSET: "gpu_memset"}
DATA_NAME = "enumerate(DataLoader)"


@dataclass(frozen=True)
class HostEvent:
    """A host call or a wait for data; times in nanoseconds from the first event."""

    category: str
    name: str
    thread: str
    start_ns: int
    dur_ns: int
    corr: int


@dataclass(frozen=True)
class DeviceEvent:
    """A device row; times in nanoseconds from the first event."""

    category: str
    name: str
    device: int
    stream: int
    start_ns: int
    dur_ns: int
    corr: int


@dataclass(frozen=True)
class Counterfactual:
    """A timeline that never ran: what the queue model makes of a run with one change."""

    change: str
    device_name: str
    host: list[HostEvent]
    device: list[DeviceEvent]
    unit_starts_ns: list[int]
    period_us: float
    now_us: float
    units: int


def counterfactual(analysis: Analysis, change: str) -> Counterfactual:
    """Return the timeline of the first device that a change can be told for.

    Raises OptionError for an unknown change, and where the trace does not carry the replay.
    """
    if change not in CHANGES and not change.startswith(SITE):
        raise OptionError(
            "unknown_change", f"there is no change {change!r}", hint=f"one of {', '.join(CHANGES)}, {SITE}OPERATOR"
        )
    reasons = []
    for ledger in analysis.ledgers:
        found = ledger.replay_with(change)
        if isinstance(found, LedgerTimeline):
            return _rows(analysis, found, ledger.device)
        reasons.append(found)
    why = reasons[0] if reasons else "the trace has no device rows"
    raise OptionError("no_replay", f"{change} cannot be replayed: {why}", hint="see worth in the JSON report")


def _rows(analysis: Analysis, found: LedgerTimeline, device: int) -> Counterfactual:
    trace = analysis.trace
    rows, calls = trace.activities, trace.calls
    zero = int(min(found.event_start.min(), found.row_start.min()))
    host = []
    for call, thread, start, end in zip(
        found.call.tolist(), found.thread.tolist(), found.event_start.tolist(), found.event_end.tolist(), strict=True
    ):
        api = trace.apis[calls.api[call]] if call != NO_ROW else ""
        category = "user_annotation" if not api else "cuda_runtime" if api.startswith("cuda") else "cuda_driver"
        host.append(
            HostEvent(category, api or DATA_NAME, trace.threads[thread].tid, start - zero, end - start, call + 1)
        )
    lanes = trace.lanes
    shown = [
        DeviceEvent(
            _CATEGORY[RowKind(int(rows.kind[row]))], trace.names[rows.name[row]], trace.devices[lanes[rows.lane[row]].device].number,
            lanes[rows.lane[row]].stream, start - zero, end - start, int(rows.call[row]) + 1,
        )
        for row, start, end in zip(found.row.tolist(), found.row_start.tolist(), found.row_end.tolist(), strict=True)
    ]  # fmt: skip
    starts = (found.unit_starts - zero).tolist()
    worth = analysis.ledgers[next(i for i, d in enumerate(analysis.ledgers) if d.device == device)].worth
    one = worth.of(found.change)
    period = one.period_ns if one and one.period_ns else (starts[-1] - starts[0]) / max(1, len(starts) - 1)
    return Counterfactual(
        found.change, trace.devices[device].name, host, shown, starts, round(period / 1000, 3), round(worth.now_ns / 1000, 3), len(starts) - 1
    )  # fmt: skip
