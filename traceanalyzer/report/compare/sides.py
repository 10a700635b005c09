"""A finished report as one side of a comparison. Reports may come from files: every number is looked at before use."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np

from traceanalyzer.analysis.compare.sides import ComparedWork, Side, SideCondition
from traceanalyzer.analysis.compare.statistics import Times, device_step
from traceanalyzer.analysis.protocols import Symbols
from traceanalyzer.analysis.symbols import STEADY_CALLS
from traceanalyzer.report.captured import OperationRecord, Sidecar
from traceanalyzer.report.compare.times import LIMIT_US, nanoseconds, number, times
from traceanalyzer.report.compare.unit_sides import unit_sides
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import KernelRow, OpRow
from traceanalyzer.trace.names import short_names

MOST_KERNELS = 1000
"""Largest kernels of a side that are compared, by total time; the rest is counted."""
_MACHINE = ("latency", "record", "sync", "gap", "clear", "clear_dispatch")
_HOST_FLAGS = ("with_stack", "record_shapes", "profile_memory", "with_modules", "with_flops")


def side_of(report: ReportData, source: str = "trace") -> Side:
    """Return the side; ``source`` is ``trace`` or ``report`` (a saved one)."""
    capture = report.capture
    step = report.trace.resolution_us
    written = max(1, round(step * 1000)) if isfinite(step) and step <= 1e6 else 1
    step_ns = max(
        written, device_step([nanoseconds(r.samples_us) for k in report.kernels for r in (k.variants or [k])])
    )
    kernels = [w for row in report.kernels for w in _kernels(row, step_ns)]
    kernels.sort(key=lambda w: -w.total_us)
    records = {o.name: o for o in capture.operations} if capture else {}
    has_rows = report.trace.device_activities > 0
    measured = any(p.samples_us for o in records.values() for p in o.protocols)
    ops = [_operation(row, records.get(row.name), step_ns) for row in report.ops if row.self_time_p50_us is not None]
    if not has_rows:
        ops = [_captured(o) for o in records.values()]
    return Side(
        name=report.trace.name,
        source=source,
        ops=ops,
        kernels=kernels[:MOST_KERNELS],
        conditions=_conditions(report, capture),
        clock_mhz=_clock(capture),
        throttled=_throttled(capture),
        broken="" if has_rows or measured else _integrity(report),
        host_broken=_host_broken(report),
        has_device_rows=has_rows,
        kernels_left_out=max(0, len(kernels) - MOST_KERNELS),
        units=unit_sides(report, step_ns),
        starts_us=[min(w.first_us for w in kernels if w.first_us is not None)]
        if any(w.first_us is not None for w in kernels)
        else [],
    )


def _integrity(report: ReportData) -> str:
    errors = [f for f in report.findings if f.severity == "error" and f.rule.startswith("TA1")]
    return errors[0].message if errors else "no device activity"


def _host_broken(report: ReportData) -> str:
    if report.clock.state == "disagree":
        return "host and device clocks disagree"
    if report.coverage.rows and not report.coverage.linked:
        return "no device row is linked to a launch"
    return ""


def _kernels(row: KernelRow, step_ns: int) -> list[ComparedWork]:
    if row.variants:
        return [w for v in row.variants for w in _kernels(v, step_ns)]
    total = number(row.total_us)
    return [
        ComparedWork(
            name=row.name,
            short_name=row.short_name,
            times=times(row.count, row.p50_us, row.samples_us, row.lag_one, row.p50_ci95_us, step_ns),
            config=row.config or "",
            total_us=max(total, 0.0) if total is not None else 0.0,
            first_us=number(row.first_us),
            dispatch_us=number(row.dispatch_p50_us),
            event_reading_us=number(row.event_reading_us),
            queue="in graph" if row.count and row.in_graph == row.count else row.queue,
        )
    ]


def _operation(row: OpRow, record: OperationRecord | None, step_ns: int) -> ComparedWork:
    count = row.samples_of or max(row.iterations - row.iterations_without_work, 0)
    own = times(count, row.self_time_p50_us, row.samples_us, row.lag_one, row.self_time_ci95_us, step_ns)
    work = ComparedWork(
        name=row.name,
        short_name=short_names([row.name])[0],
        times=own,
        method=row.method,
        total_us=own.count * own.p50_ns / 1000,
        kernels_per_call=row.kernels_per_iteration,
        dispatch_us=number(row.dispatch_p50_us),
        dispatch_samples_us=[v for v in row.dispatch_samples_us if isfinite(v) and 0 <= v <= LIMIT_US],
        event_reading_us=number(row.readings_replayed.get("event_pair") or row.readings.get("event_pair")),
        span_us=number(row.span_p50_us),
        period_us=number(row.period_p50_us),
        queue=row.queue,
        symbols=_symbols(row.symbols),
        seen=frozenset(_MACHINE) & frozenset(row.symbols_seen),
        readings_us={p: number(v) for p, v in row.readings.items()},
        flush={"self-time": "cleared" if row.clear_p50_us is not None else "not cleared"},
    )  # fmt: skip
    return _with_record(work, record)


def _with_record(work: ComparedWork, record: OperationRecord | None) -> ComparedWork:
    """Return the work with what its capture knew: measured protocols, inputs, cache, whether the result was right."""
    if record is None:
        return work
    check = record.correctness
    measured = {p.protocol: times(p.n, p.p50_us, p.samples_us, None, p.ci95_us) for p in record.protocols if p.p50_us}
    return replace(
        work,
        measured=measured,
        inputs=dict(record.inputs),
        flush=work.flush | _cleared(record),
        captured=True,
        checked=check.passed is True,
        bytes_moved=record.bytes_moved,
        wrong=(check.reason or "it differs from the reference") if check.passed is False else "",
    )


def _cleared(record: OperationRecord) -> dict[str, str]:
    """Return how the cache was treated under each protocol that was measured: what one did says nothing of another."""
    sizes = {p.protocol: p.parameters.get("clear_bytes") for p in record.protocols if p.p50_us}
    return {protocol: f"cleared, {size} bytes" if size else "not cleared" for protocol, size in sizes.items()}


def _captured(record: OperationRecord) -> ComparedWork:
    """Return an operation that left no device row: what was measured around it."""
    work = ComparedWork(
        record.name, short_names([record.name])[0], Times(0, 0.0), measure="", method="capture annotation"
    )
    return _with_record(work, record)


def _symbols(values: dict[str, float | list[float]]) -> Symbols | None:
    """Return the symbols in nanoseconds, None where the report has no whole set."""

    def kept(name: str) -> tuple[float, ...]:
        found = values.get(f"{name}_us")
        listed = found if isinstance(found, list) else [found] if found is not None else []
        return tuple(v * 1000 for v in listed if number(v) is not None)

    dispatch, kernels = kept("dispatch"), kept("kernels")
    machine = {n: t[0] for n in _MACHINE if (t := kept(n))}
    if not dispatch or len(machine) < len(_MACHINE):
        return None
    try:
        return Symbols(dispatch, kernels, **machine, calls=STEADY_CALLS, depth=10 * STEADY_CALLS, graph_calls=100)
    except ValueError:
        return None


def _conditions(report: ReportData, capture: Sidecar | None) -> list[SideCondition]:
    trace = report.trace
    names = sorted({d.name for d in trace.devices if d.name}) or (
        [capture.device.name] if capture and capture.device.name else []
    )
    chosen = ", ".join(f"{k} {v}" for k, v in trace.selection.items() if k != "range_instances")
    versions = (capture.versions if capture else {}) | trace.versions
    found = [
        SideCondition("device", ", ".join(names), True),
        SideCondition("devices at work", str(len(report.devices)) if report.devices else "", False),
        SideCondition("origin", "simulated" if trace.simulated else "recorded on a device", True),
        SideCondition("selection", chosen or "everything", True),
        *(SideCondition(f"{name} version", str(value), False) for name, value in versions.items()),
        SideCondition("profiler options", ", ".join(f for f in _HOST_FLAGS if trace.profiler_flags.get(f)) or "none", False),
        SideCondition("resolution of times", f"{trace.resolution_us:g} us" if trace.resolution_us >= 1 else "under 1 us", False),
    ]  # fmt: skip
    if capture is not None:
        found.append(SideCondition("framework", capture.framework, False))
        switches = ", ".join(f"{k}={v}" for k, v in sorted(capture.environment.items()))
        found.append(SideCondition("environment switches", switches or "none", False))
    return found


def _clock(capture: Sidecar | None) -> float | None:
    during = [c.sm_clock_mhz for c in capture.clocks if c.sm_clock_mhz and c.when == "during"] if capture else []
    every = during or (
        [c.sm_clock_mhz for c in capture.clocks if c.sm_clock_mhz and c.when == "after"] if capture else []
    )
    return float(np.median(every)) if every else None


def _throttled(capture: Sidecar | None) -> str:
    reasons = {r for c in capture.clocks for r in c.throttle_reasons if "idle" not in r.lower()} if capture else set()
    return ", ".join(sorted(reasons))
