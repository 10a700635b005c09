"""Operations and graph replays as rows of the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from traceanalyzer.analysis import protocols, stats
from traceanalyzer.analysis.absent import Absent
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.graphs import ReplayFacts
from traceanalyzer.analysis.operations import OpFacts, impossible
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.predicted import predicted
from traceanalyzer.analysis.protocols import Symbols
from traceanalyzer.analysis.queue import QueueVerdict
from traceanalyzer.analysis.symbols import operation_symbols
from traceanalyzer.doctor.rule import us
from traceanalyzer.report.units import OpRow
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.names import short_names

if TYPE_CHECKING:
    from traceanalyzer.trace.sidecar import OperationRecord


def op_rows(analysis: Analysis, clean: Callable[[str], str], short: dict[str, str]) -> list[OpRow]:
    """Return operations, then graph replays; an operation that is nothing but graph launches is its replay.

    ``short`` has the short names of kernels and copies: an operation named after one is shown by it.
    """
    found = shown_operations(analysis)
    replays = zip(analysis.replays, analysis.replay_queues, strict=True)
    return [_operation(analysis, op, clean, short) for op in found] + [
        _replay(analysis, r, q, clean) for r, q in replays
    ]


def shown_operations(analysis: Analysis) -> list[OpFacts]:
    """Return the operations that get a row of their own: those that are not graph replays, which have one already."""
    return [op for op in analysis.operations if not (analysis.replays and _is_replay(analysis, op))]


def _is_replay(analysis: Analysis, op: OpFacts) -> bool:
    calls = [c for part in op.iterations.calls for c in part.tolist()]
    graph = analysis.trace.calls.api_class[calls] == ApiClass.GRAPH_LAUNCH if calls else np.zeros(1, dtype=bool)
    return op.iterations.windows is None and bool(graph.all())


def _readings(values: dict[str, float | None]) -> dict[str, float | None]:
    return {name: us(values.get(name)) for name in protocols.PROTOCOLS}


def _record(analysis: Analysis, name: str) -> OperationRecord | None:
    sidecar = analysis.trace.meta.sidecar
    return next((o for o in sidecar.operations if o.name == name), None) if sidecar else None


def _symbols(s: Symbols | None) -> dict[str, float | list[float]]:
    if s is None:
        return {}
    return {
        "dispatch_us": [round(d / 1000, 6) for d in s.dispatch], "kernels_us": [round(k / 1000, 6) for k in s.kernels],
        "latency_us": round(s.latency / 1000, 6), "record_us": round(s.record / 1000, 6), "sync_us": round(s.sync / 1000, 6),
        "gap_us": round(s.gap / 1000, 6), "clear_us": round(s.clear / 1000, 6), "clear_dispatch_us": round(s.clear_dispatch / 1000, 6),
    }  # fmt: skip


def _backlog(analysis: Analysis, op: OpFacts) -> dict[str, float | list[float]]:
    """Return b, the device work still queued when a call's first launch arrives; nothing where no call shows it."""
    waits = analysis.waits
    first = np.array([int(op.iterations.rows[i][0]) for i in op.worked.tolist()], dtype=np.int64)
    first = first[waits.linked[first] & ~waits.first[first]]
    latency = op.symbols.latency if op.symbols else 0.0
    submitted = analysis.trace.calls.end_ns[analysis.trace.activities.call[first]]  # L counts from here
    queued = waits.previous_end_ns[first] - submitted - latency
    found = us(stats.median(np.maximum(0, queued)))
    return {} if found is None else {"backlog_us": found}


def _operation(analysis: Analysis, op: OpFacts, clean: Callable[[str], str], short: dict[str, str]) -> OpRow:
    found = op.iterations
    own = clean(found.name.removesuffix(found.mark))
    record, sidecar = _record(analysis, found.name), analysis.trace.meta.sidecar
    interval = stats.median_interval(op.self_ns)
    launches = [len(c) for c in found.calls]
    clears = op.clear_ns[op.clear_ns > 0]
    return OpRow(
        name=clean(found.name),
        method=found.method,
        how=clean(found.how),
        certainty=found.certainty,
        iterations=len(found.rows),
        iterations_without_work=len(found.rows) - len(op.worked),
        launches_per_iteration=float(np.median(launches)) if launches else 0.0,
        kernels_per_iteration=op.kernels_per_iteration,
        self_time_p50_us=us(stats.median(op.self_ns)),
        self_time_ci95_us=(us(interval[0]) or 0.0, us(interval[1]) or 0.0) if interval else None,
        busy_p50_us=us(stats.median(op.busy_ns)),
        span_p50_us=us(stats.median(op.span_ns)),
        clear_p50_us=us(stats.median(clears)),
        period_p50_us=us(stats.median(op.period_ns)),
        dispatch_p50_us=us(stats.median(op.dispatch_ns)),
        readings=_readings(op.readings),
        readings_replayed=_readings(op.replays),
        readings_measured={p.protocol: p.p50_us for p in record.protocols} if record else {},
        readings_predicted={n: us(v) for n, v in predicted(op.symbols, record, sidecar.calibration).items()}
        if record and op.symbols and sidecar
        else {},
        symbols=_symbols(op.symbols) | _backlog(analysis, op) if op.symbols else {},
        symbol_sources={
            "dispatch": "median over calls, launch to launch",
            "kernels": "median over calls, by launch",
            **(op.machine.found if op.machine else {}),
            "backlog": "median device work still queued when a call's first launch arrives",
        }
        if op.symbols
        else {},
        symbols_seen=sorted(op.machine.seen) if op.symbols and op.machine else [],
        no_ladder=op.no_ladder,
        readings_absent={p: str(code) for p, code in op.absent.items()},
        device=analysis.trace.devices[found.device].number if found.device is not None else None,
        rank=analysis.origin.rank_of_process(found.process) if found.process is not None else None,
        short_name=short[own] + found.mark if found.windows is None and own in short else "",
        launches_left_out=found.left_out,
        queue=str(op.queue.state),
        grade=str(op.queue.grade) if op.queue.grade else None,
    )


def _no_ladder(judged: bool, dispatch_ns: float | None) -> str:
    if not judged:
        return "host and device clocks disagree; launch latency cannot be measured"
    return "" if dispatch_ns is not None else "only one replay, so no dispatch interval"


def _replay(analysis: Analysis, replay: ReplayFacts, queue: QueueVerdict, clean: Callable[[str], str]) -> OpRow:
    first = short_names([clean(analysis.trace.names[replay.first_name])])[0]
    dispatch, span, own = stats.median(replay.dispatch_ns), stats.median(replay.span_ns), stats.median(replay.self_ns)
    judged = analysis.clocks.state is not ClockState.DISAGREE
    machine = analysis.machines[replay.device]
    symbols = (
        operation_symbols(machine, [dispatch], [span]) if judged and dispatch is not None and span is not None else None
    )
    readings: dict[str, float | None] = dict(protocols.ladder(symbols)) if symbols else {}
    if judged and len(replay.readings_ns):
        readings["event_pair"] = stats.median(replay.readings_ns)
    absent = dict.fromkeys(protocols.PROTOCOLS, Absent.NO_SYMBOLS if judged else Absent.CLOCKS)
    if symbols is not None:
        absent = impossible(readings, symbols, stats.median(replay.period_ns), False, analysis.trace.meta.step_ns)
        readings |= dict.fromkeys(absent)
    readings["profiler_self_time"] = own
    several = len({r.device for r in analysis.replays}) > 1
    device = analysis.trace.devices[replay.device]
    rank = analysis.origin.device_rank[replay.device]
    mark = (f" (rank {rank})" if rank is not None else f" (device {device.label})") if several else ""
    interval = stats.median_interval(replay.self_ns)
    return OpRow(
        name=f"{replay.api}: {replay.kernels} kernels from {first}{mark}"
        if replay.kernels
        else f"{replay.api}: {first}{mark}",
        method="graph launch",
        how=f"{len(replay.opening)} replay{'s' if len(replay.opening) != 1 else ''} of one graph",
        certainty="certain",
        iterations=len(replay.opening),
        iterations_without_work=0,
        launches_per_iteration=1.0,
        kernels_per_iteration=float(replay.kernels),
        self_time_p50_us=us(own),
        self_time_ci95_us=(us(interval[0]) or 0.0, us(interval[1]) or 0.0) if interval else None,
        busy_p50_us=us(stats.median(replay.busy_ns)),
        span_p50_us=us(span),
        clear_p50_us=None,
        period_p50_us=us(stats.median(replay.period_ns)),
        dispatch_p50_us=us(dispatch),
        readings=_readings(readings),
        readings_replayed=_readings({}),
        readings_measured={},
        readings_predicted={},
        symbols=_symbols(symbols),
        symbol_sources=machine.found if symbols else {},
        symbols_seen=sorted(machine.seen) if symbols else [],
        no_ladder=_no_ladder(judged, dispatch),
        readings_absent={p: str(code) for p, code in absent.items() if readings.get(p) is None},
        device=device.number if several else None,
        rank=rank if several else None,
        queue=str(queue.state),
        grade=str(queue.grade) if queue.grade else None,
    )
