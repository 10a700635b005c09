"""A trace reduced to rows of the tables: what is kept of a run, in bounds that no file can exceed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from traceanalyzer._version import __version__
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis, analyse
from traceanalyzer.analysis.queue import QueueState
from traceanalyzer.doctor.causes import DeviceCauses, Family, causes
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.doctor.registry import chosen_rules
from traceanalyzer.fleet.scan import TraceSource
from traceanalyzer.fleet.tables import COMMON, TABLES, Row, Rows, kept_name
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.report.build import build_report
from traceanalyzer.report.model import LedgerRow, ReportData
from traceanalyzer.report.ranks import RankRow, rank_collectives, rank_of, rank_rows
from traceanalyzer.report.soundness import SOUND_BUSY
from traceanalyzer.report.units import KernelRow, OpRow
from traceanalyzer.trace.reader import read

MOST = {"kernels": 5_000, "operations": 500, "steps": 200, "ledger": 5_000, "findings": 1_000, "collectives": 500_000, "devices": 1_024}  # fmt: skip
"""Rows kept of one trace, by table; runs.rows_left_out counts what is over."""
_ITEMS = 12
_ERROR = "error"


def reduce_trace(source: TraceSource, options: AnalysisOptions, commit: str | None = None) -> Rows:
    """Return the rows of a trace; nothing else of it outlives the call. Raises :class:`~traceanalyzer.errors.TraceAnalyzerError`."""
    trace = read(source.path, options.limits)
    analysis = analyse(trace, options)
    findings, abstentions = diagnose(analysis, chosen_rules(options.select, options.ignore))
    report = build_report(analysis, findings, abstentions)
    if commit is None and report.capture is not None:
        commit = report.capture.git_commit or None
    rank = rank_of(trace.meta.rank, source.file.rpartition("/")[2])[0]
    common = common_columns(source, rank, commit)
    made: Rows = {
        "devices": _devices(analysis, report, source),
        "kernels": _kernels(report),
        "operations": [_operation(op) for op in report.ops],
        "steps": _steps(report),
        "ledger": _ledger(analysis, report),
        "findings": _findings(report),
        "collectives": _collectives(analysis, source),
    }
    left_out = sum(max(0, len(rows) - MOST[table]) for table, rows in made.items())
    made = {table: rows[: MOST[table]] for table, rows in made.items()}
    made["runs"] = [_run(source, analysis, report, left_out)]
    return {t: [_clean(common | row) for row in rows] for t, rows in made.items()}


def common_columns(source: TraceSource, rank: int | None, commit: str | None) -> Row:
    """Return the columns that every table has."""
    values = (source.run, source.job, rank, source.host, commit, source.file)
    return dict(zip((c.name for c in COMMON), values, strict=True))


def _clean(row: Row) -> Row:
    return {k: kept_name(v) if isinstance(v, str) else v for k, v in row.items()}


def _ns(us: float | None) -> int | None:
    return None if us is None else round(us * 1000)


def _run(source: TraceSource, analysis: Analysis, report: ReportData, left_out: int) -> Row:
    t = report.trace
    return {
        "file_bytes": source.size, "file_mtime_ns": source.mtime_ns, "world_size": analysis.trace.meta.world_size, "format": t.format,
        "flavour": t.flavour, "verdict": report.verdict.status, "reason": _reason(analysis, report), "events": t.events,
        "device_rows": t.device_activities, "kernels": t.kernels, "incomplete": t.incomplete, "salvaged": t.salvaged, "start_ns": t.start_ns,
        "span_ns": _ns(t.span_us), "rows_left_out": left_out, "version": __version__,
    }  # fmt: skip


def _reason(analysis: Analysis, report: ReportData) -> str | None:
    """Return the code of why a trace cannot be judged: an error that a rule found, else what the queue or the ledger lacks."""
    if report.verdict.status != "cannot-judge":
        return None
    error = next((f for f in report.findings if f.severity == _ERROR), None)
    if error is not None:
        return f"{error.rule}.{error.code}" if error.code else error.rule
    if all(d.queue.state is QueueState.UNKNOWN for d in analysis.devices):
        if not analysis.coverage.linked:
            return "no_links"
        return "clocks_disagree" if analysis.clocks.state is ClockState.DISAGREE else "few_launches"
    return "no_cause"


def _devices(analysis: Analysis, report: ReportData, source: TraceSource) -> list[Row]:
    cleared = any(op.clear_p50_us is not None for op in report.ops)
    limits = {(d.subject.device, d.subject.owner): _limit(d, analysis, cleared) for d in causes(analysis)}
    names = {(d.number, d.owner): d.name for d in analysis.trace.devices}
    file = source.file.rpartition("/")[2]
    found = rank_rows(analysis, report, file, None)
    return [
        device_columns(r, names.get((r.device, r.owner), "")) | limits.get((r.device, r.owner), _NO_LIMIT)
        for r in found
    ]


_NO_LIMIT: Row = {"limit": "unknown-time", "limit_ns": 0, "limit_share": None, "limit_class": None, "limit_name": None}


def device_columns(r: RankRow, name: str) -> Row:
    """Return the columns of devices that `ranks` knows as well."""
    times = ("span", "busy", "idle", "compute", "communication", "copy", "exposed_communication", "exposed_copy")
    return {
        "device": r.device, "owner": r.owner, "device_name": name, "rank_from": r.rank_from, **{f"{t}_ns": _ns(getattr(r, f"{t}_us")) for t in times},
        "overlap_share": r.overlap_share, "kernels": r.kernels, "communication_kernels": r.communication_kernels, "queue": r.queue, "grade": r.grade,
    }  # fmt: skip


def _limit(device: DeviceCauses, analysis: Analysis, cleared: bool) -> Row:
    """Return what limits a device: the family with the largest cost, unless it is busy, or most of the loss has no cause."""
    if analysis.clocks.state is ClockState.DISAGREE:
        return _NO_LIMIT | {"limit": "clocks"}
    masks = device.families
    if cleared:  # a cache clear is part of how it was measured, no cost of the run
        masks = {family: mask & ~device.of(LedgerClass.FILL) for family, mask in masks.items()}
    sizes = {family: device.ns(mask) for family, mask in masks.items()}
    unknown = sizes.pop(Family.UNKNOWN)
    family, ns = max(sizes.items(), key=lambda pair: pair[1])
    span = device.ledger.span_ns
    if unknown > sum(sizes.values()):
        return _NO_LIMIT | {"limit_ns": unknown, "limit_share": unknown / span if span else None}
    items = device.items(masks[family], 1)
    if device.busy_share >= SOUND_BUSY and ns < (1 - SOUND_BUSY) * span:
        label = "device-busy"
    else:
        label = str(family)
    item = {"limit_class": items[0].cls.label, "limit_name": items[0].name or None} if items else {}
    return _NO_LIMIT | {"limit": label, "limit_ns": ns, "limit_share": ns / span if span else None} | item


def _kernels(report: ReportData) -> list[Row]:
    rows = []
    for kind, table in (("kernel", report.kernels), ("copy", report.copies)):
        for row in table:
            # a name with several configurations has a row each, and none that mixes them
            rows += [_kernel(v, row, kind) for v in row.variants or [row]]
    return sorted(rows, key=lambda r: -r["total_ns"])


def _kernel(k: KernelRow, of: KernelRow, kind: str) -> Row:
    low, high = k.p50_ci95_us or (None, None)
    return {
        "device": of.device, "owner": of.owner, "kind": kind, "name": of.name, "short_name": of.short_name,
        "config": k.config if of.variants else None, "count": k.count, "total_ns": _ns(k.total_us), "min_ns": _ns(k.min_us), "p50_ns": _ns(k.p50_us),
        "p90_ns": _ns(k.p90_us), "max_ns": _ns(k.max_us), "mad_ns": _ns(k.mad_us), "p50_low_ns": _ns(low), "p50_high_ns": _ns(high),
        "exclusive_p50_ns": _ns(k.exclusive_p50_us), "share": k.share, "starved": k.starved, "dispatch_p50_ns": _ns(k.dispatch_p50_us),
        "event_reading_ns": _ns(k.event_reading_us), "inflation": k.inflation, "reading_absent": k.event_reading_absent or None,
        "queue": k.queue, "grade": k.grade,
    }  # fmt: skip


READINGS = {
    "wall_nosync": "wall_nosync_ns", "wall_sync_each": "wall_sync_each_ns", "wall_sync_once": "wall_sync_once_ns", "event_pair": "event_pair_ns",
    "event_pair_sync": "event_pair_sync_ns", "event_loop": "event_loop_ns", "do_bench": "do_bench_ns", "graph_unrolled": "graph_unrolled_ns",
    "profiler_self_time": "profiler_self_time_ns",
}  # fmt: skip


def _operation(op: OpRow) -> Row:
    pair, self_time = op.readings.get("event_pair"), op.self_time_p50_us
    return {
        "device": op.device, "name": op.name, "method": op.method, "calls": op.iterations, "launches_per_call": op.launches_per_iteration,
        "kernels_per_call": op.kernels_per_iteration, "self_time_p50_ns": _ns(self_time), "busy_p50_ns": _ns(op.busy_p50_us),
        "span_p50_ns": _ns(op.span_p50_us), "period_p50_ns": _ns(op.period_p50_us), "dispatch_p50_ns": _ns(op.dispatch_p50_us),
        **{column: _ns(op.readings.get(protocol)) for protocol, column in READINGS.items()},
        "inflation": pair / self_time if pair is not None and self_time else None,
        "reading_absent": op.readings_absent.get("event_pair") or None, "queue": op.queue, "grade": op.grade,
    }  # fmt: skip


def _steps(report: ReportData) -> list[Row]:
    return [
        {
            "device": s.device, "owner": s.owner, "name": s.name, "method": s.method, "count": s.n, "p50_ns": _ns(s.p50_us), "mean_ns": _ns(s.mean_us),
            "min_ns": _ns(s.min_us), "max_ns": _ns(s.max_us), "wait_p50_ns": _ns(s.wait_p50_us), "busy_p50_ns": _ns(s.busy_p50_us),
            "slowest_index": s.slowest.index, "slowest_cause": s.slowest.cause,
        }
        for s in report.steps
    ]  # fmt: skip


def _ledger(analysis: Analysis, report: ReportData) -> list[Row]:
    if analysis.clocks.state is ClockState.DISAGREE:
        return []  # causes of idle time are read off the host's clock
    rows = []
    for found in report.ledger:
        rows += [_part(found, "class", code, us) for code, us in found.classes.items()]
        rows += [_part(found, "drained_by", code, us) for code, us in found.drained_by.items()]
        for i in found.items[:_ITEMS]:
            own = {
                "name": i.name or None,
                "within": i.within or None,
                "count": i.count,
                "longest_ns": _ns(i.longest_us),
            }
            rows.append(_part(found, "item", i.class_, i.us) | own)
    for device in causes(analysis):
        subject, span = device.subject, device.ledger.span_ns
        base = {"device": subject.device, "owner": subject.owner, "window": "span", "axis": "family", "span_ns": span}
        rows += [base | {"code": str(f), "ns": ns} for f in Family if (ns := device.family_ns(f))]
    return rows


def _part(found: LedgerRow, axis: str, code: str, us: float) -> Row:
    return {
        "device": found.device, "owner": found.owner, "window": found.window, "axis": axis, "code": code, "ns": _ns(us), "span_ns": _ns(found.span_us),
    }  # fmt: skip


def _findings(report: ReportData) -> list[Row]:
    return [
        {
            "rule": f.rule, "code": f.code, "severity": f.severity, "grade": f.grade, "subject_kind": f.subject_of.kind, "subject_name": f.subject_of.name,
            "device": f.subject_of.device, "stream": f.subject_of.stream, "window": f.window, "cost_ns": _ns(f.cost_us), "cost_share": f.cost_share,
            "worth": f.worth, "params": _params(f.params),
        }
        for f in report.findings
    ]  # fmt: skip


def _params(params: dict[str, Any]) -> str:
    """Return parameters as JSON that stays whole: long values are cut one by one."""
    kept: Callable[[Any], Any] = lambda v: v[:400] if isinstance(v, str) else v  # noqa: E731
    text = json.dumps({k: kept(v) for k, v in list(params.items())[:8]})
    return text if len(text) <= 4_000 else "{}"


def _collectives(analysis: Analysis, source: TraceSource) -> list[Row]:
    rows = []
    for device, found in enumerate(rank_collectives(analysis, source.file.rpartition("/")[2])):
        names = [found.names[n] for n in found.name.tolist()]
        rows += [
            {"device": device, "place": place, "name": name, "start_ns": start, "end_ns": end}
            for place, (name, start, end) in enumerate(
                zip(names, found.start_ns.tolist(), found.end_ns.tolist(), strict=True)
            )
        ]
    return rows


def fault_row(source: TraceSource, commit: str | None, code: str, **known: Any) -> Row:
    """Return the row of a file without a run; ``known`` are columns of faults."""
    rank = rank_of(None, source.file.rpartition("/")[2])[0]
    row = common_columns(source, rank, commit) | {c.name: None for c in TABLES["faults"] if c not in COMMON}
    row |= {
        "file_bytes": source.size,
        "file_mtime_ns": source.mtime_ns,
        "code": code,
        "elapsed_ns": 0,
        "version": __version__,
    }
    return _clean(row | known)
