"""From what a capture session left behind to a row of a bench: the sidecar's readings, the trace's verdict."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.report.bench.model import BenchRow, Reading, Result, row_label
from traceanalyzer.report.model import ReportData
from traceanalyzer.trace.sidecar import DeviceFacts, OperationRecord, Sidecar

DEVICE_PROTOCOLS = ("profiler_self_time", "graph_unrolled", "backlog")
"""Whose readings are kernel time, best first. do_bench is none of them: it clears the cache, and may read the host."""
END_TO_END = "wall_sync_once"
COLD = "do_bench"
NO_CLOCK = "a CPU has no device clock"


@dataclass(frozen=True)
class Planned:
    """A row to come. ``absent`` is why it cannot be measured here (``absent_kind`` for programs), empty if it can.

    ``axes``: the values of the named axes of a function of the user's, in their order; ``dtype`` and ``direction`` are empty then.
    """

    dtype: str
    direction: str
    implementation: str
    absent: str = ""
    absent_kind: str = ""
    axes: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> str:
        """Name of the row's own folder."""
        parts = (
            [p for p in (self.direction, self.dtype) if p] + [f"{k}={v}" for k, v in self.axes] + [self.implementation]
        )
        return "-".join("".join(c if c.isalnum() or c in "._=-" else "_" for c in p)[:60] for p in parts)

    @property
    def label(self) -> str:
        """What tells this row from the others: direction and dtype, or the values of the axes, and the implementation."""
        return row_label(self.direction, self.dtype, self.axes, self.implementation)


def absent_row(planned: Planned, device_kind: str, kind: str, reason: str) -> BenchRow:
    """Return a row without numbers and why."""
    none = Reading("", None, None, 0, reason)
    return BenchRow(
        device_kind, planned.dtype, planned.direction, planned.implementation, "", reason, kind, none, none, [], Result(None, None, None, reason),
        None, None, None, None, None, None, "", None, "", None, "unknown", None, reason, None, None, axes=planned.axes,
    )  # fmt: skip


def measured_row(
    planned: Planned, sidecar: Sidecar, report: ReportData | None, unjudged: str, failure: tuple[str, str] | None, folder: str | None
) -> BenchRow:  # fmt: skip
    """Return the row of a session.

    ``report`` is that of its trace, None where there is none, and ``unjudged`` says why. ``failure`` is the kind and the
    reason of what ended the session early.
    """
    if not sidecar.operations:
        return absent_row(
            planned, sidecar.device.kind, *(failure or ("nothing_measured", "the session measured nothing"))
        )
    record = sidecar.operations[0]
    device, end_to_end = _device(sidecar, record), _reading(record, END_TO_END)
    kind, missing = failure or ("", "")
    op = next((o for o in report.ops if o.name == record.name), None) if report else None
    judged = report is not None and report.trace.device_activities > 0
    if report is not None and not judged:
        unjudged = NO_CLOCK if sidecar.device.kind == "cpu" else report.verdict.headline
    during = [c for c in sidecar.clocks if c.when == "during"]
    known = sorted(c.sm_clock_mhz for c in during if c.sm_clock_mhz is not None)
    notes = list(sidecar.notes)
    if device.p50_us is not None and device.protocol != DEVICE_PROTOCOLS[0]:
        notes.append(f"device time is that of {device.protocol}: {_reason(record, DEVICE_PROTOCOLS[0])}")
    correct = record.correctness
    return BenchRow(
        device_kind=sidecar.device.kind,
        dtype=planned.dtype,
        direction=planned.direction,
        implementation=planned.implementation,
        operation=record.name,
        missing=missing,
        missing_kind=kind,
        device=device,
        end_to_end=end_to_end,
        speed_ups=[],
        result=Result(
            correct.passed, correct.max_abs_error, correct.max_rel_error, correct.reason, correct.share_of_allowed
        ),
        peak_memory_bytes=record.peak_memory_bytes,
        bytes_moved=record.bytes_moved,
        flops=record.flops,
        gbytes_per_s=_per_ns(record.bytes_moved, device),
        gflops_per_s=_per_ns(record.flops, device),
        steady=record.warm_up.steady,
        steady_reason=record.warm_up.reason,
        agrees=None if device.p50_us is None else record.agreement.agree,
        agreement="" if device.p50_us is None else record.agreement.explanation,
        verdict=report.verdict if report is not None and judged else None,
        queue=op.queue if op is not None and judged else "unknown",
        grade=op.grade if op is not None and judged else None,
        unjudged="" if judged else unjudged,
        sm_clock_mhz=known[(len(known) - 1) // 2] if known else None,
        folder=folder,
        notes=notes,
        axes=planned.axes,
        cold=_cold(sidecar, record),
        share_of_peak_bandwidth=_share_of_peak(record, device, sidecar.device),
        clock_samples=during,
    )


def _cold(sidecar: Sidecar, record: OperationRecord) -> Reading:
    """Return do_bench's reading where its clear outlasts the host: else the events wait for the host, and read that."""
    found = _reading(record, COLD)
    if found.p50_us is None:
        return found
    clear, inflation = sidecar.calibration.clear_us, record.inflation
    if clear is None or inflation is None:
        reason = "whether the clear hides the host is not known without the profiler's host times"
        return Reading(COLD, None, None, 0, reason)
    host = inflation.unprofiled_us + 2 * (sidecar.calibration.record_us or 0.0)
    if clear < host:
        reason = f"clearing takes {clear:.1f} us, less than the {host:.1f} us in which the host enqueues a call: its events read the host"
        return Reading(COLD, None, None, 0, reason)
    return found


def _share_of_peak(record: OperationRecord, device: Reading, facts: DeviceFacts) -> float | None:
    rate = _per_ns(record.bytes_moved, device)
    return rate / facts.peak_gbytes_per_s if rate is not None and facts.peak_gbytes_per_s else None


def samples_ns(record: OperationRecord, protocol: str) -> list[float]:
    """Return a protocol's readings in order, in nanoseconds; empty without any."""
    return next(([s * 1000 for s in p.samples_us] for p in record.protocols if p.protocol == protocol), [])


def _device(sidecar: Sidecar, record: OperationRecord) -> Reading:
    found = [_reading(record, key) for key in DEVICE_PROTOCOLS]
    best = next((r for r in found if r.p50_us is not None), found[0])
    if best.p50_us is None and sidecar.device.kind == "cpu":
        return Reading(best.protocol, None, None, 0, NO_CLOCK)
    return best


def _reading(record: OperationRecord, key: str) -> Reading:
    for p in record.protocols:
        if p.protocol == key:
            return Reading(key, p.p50_us, p.ci95_us, p.n, p.reason)
    return Reading(key, None, None, 0, f"{key} was not asked for")


def _reason(record: OperationRecord, key: str) -> str:
    return _reading(record, key).reason or "it has no reading"


def _per_ns(work: int | None, device: Reading) -> float | None:
    """Return work per nanosecond of device time, which is 10^9 per second; None without work or time."""
    return work / (device.p50_us * 1000) if work and device.p50_us else None
