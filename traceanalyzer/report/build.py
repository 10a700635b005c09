"""An analysis and its findings, frozen into a :class:`~traceanalyzer.report.model.ReportData`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceanalyzer._version import __version__
from traceanalyzer.analysis import stats
from traceanalyzer.analysis.absent import Absent
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.idle import IdleFacts, Pause
from traceanalyzer.analysis.kernels import KernelFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.damage_text import note_sentence
from traceanalyzer.doctor.finding import Abstained, Finding
from traceanalyzer.doctor.rule import us
from traceanalyzer.doctor.thresholds import all_thresholds
from traceanalyzer.report import model, units
from traceanalyzer.report.findings import finding_row
from traceanalyzer.report.ledger import ledger_rows
from traceanalyzer.report.operations import op_rows
from traceanalyzer.report.remarks import sentence_of
from traceanalyzer.report.steps import step_rows
from traceanalyzer.report.unit_model import UnitRow
from traceanalyzer.report.verdict import verdict
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import scrub_paths, short_names


def _us(ns: float) -> float:
    return round(float(ns) / 1000, 6)


def build_report(analysis: Analysis, findings: list[Finding], abstentions: list[Abstained]) -> model.ReportData:
    """Return the report. Folders in names are left out unless the options ask for them."""
    clean: Callable[[str], str] = (lambda text: text) if analysis.options.show_paths else scrub_paths
    abstained = [model.Abstention(a.rule, clean(a.reason)) for a in abstentions]
    abstained += [model.Abstention("report", reason) for reason in _other_abstentions(analysis)]
    kernels, copies = (_kernel_rows(analysis, table, clean) for table in (analysis.kernels, analysis.copies))
    ops = op_rows(analysis, clean, {row.name: row.short_name for row in (*copies, *kernels)})
    run_units: list[UnitRow] = []
    if analysis.options.samples:
        from traceanalyzer.report.run_units import unit_rows
        from traceanalyzer.report.samples import with_samples

        ops, kernels = with_samples(analysis, ops, kernels)
        run_units = unit_rows(analysis, clean)
    figures = None
    if analysis.options.figures:
        from traceanalyzer.report.charts.build import build_figures

        figures = build_figures(analysis, findings, ops, kernels, clean)
    return model.ReportData(
        schema=model.SCHEMA,
        version=__version__,
        verdict=_cleaned(verdict(analysis, findings), clean),
        trace=_trace(analysis, clean),
        clock=model.Clock(
            str(analysis.clocks.state), analysis.clocks.early, analysis.clocks.launches, _us(analysis.clocks.skew_ns)
        ),
        coverage=_coverage(analysis),
        devices=_devices(analysis),
        streams=_streams(analysis),
        threads=_threads(analysis),
        kernels=kernels,
        copies=copies,
        ops=ops,
        idle=[_idle(analysis, d.idle, clean) for d in analysis.devices],
        ledger=ledger_rows(analysis, clean),
        steps=step_rows(analysis, clean),
        findings=[finding_row(f, analysis.trace.meta.origin_ns, clean) for f in findings],
        abstentions=abstained,
        capture=analysis.trace.meta.sidecar,
        figures=figures,
        units=run_units,
        thresholds={name: analysis.options.threshold(t) for name, t in all_thresholds().items()},
    )


def _cleaned(found: model.Verdict, clean: Callable[[str], str]) -> model.Verdict:
    return model.Verdict(found.status, clean(found.headline))


def _trace(analysis: Analysis, clean: Callable[[str], str]) -> model.TraceSummary:
    trace, rows, meta = analysis.trace, analysis.trace.activities, analysis.trace.meta
    chosen = analysis.chosen.rows
    kernels = rows.dur_ns[chosen & (rows.kind == RowKind.KERNEL)]
    starts = [rows.start_ns[chosen], trace.calls.start_ns[analysis.host.launches & analysis.chosen.calls]]
    first = min((int(s.min()) for s in starts if len(s)), default=None)
    salvage = meta.salvage
    selection = analysis.options.selection.describe()
    if analysis.chosen.windows:
        selection = selection | {"range_instances": analysis.chosen.windows}
    return model.TraceSummary(
        name=clean(meta.name),
        format=meta.format,
        events=meta.events,
        device_activities=int(np.count_nonzero(chosen)),
        kernels=len(kernels),
        launches=analysis.coverage.launches,
        linked=analysis.coverage.linked,
        streams=len(analysis.streams),
        span_us=us(int(rows.end_ns[chosen].max()) - first) if chosen.any() and first is not None else None,
        kernel_total_us=_us(int(kernels.sum())) if len(kernels) else None,
        kernel_p50_us=us(stats.median(kernels)),
        devices=[model.DeviceRef(d.number, clean(d.name), d.owner) for d in trace.devices],
        salvaged=salvage.touched,
        incomplete=salvage.incomplete,
        excluded={k: v for k, v in sorted((d.key(), n) for d, n in salvage.excluded.items()) if v},
        repaired={k: v for k, v in sorted((d.key(), n) for d, n in salvage.repaired.items()) if v},
        notes=[
            clean(n)
            for n in (
                *map(sentence_of, meta.remarks),
                *map(note_sentence, salvage.notes),
                *([meta.sidecar_fault] if meta.sidecar_fault else []),
            )
        ],
        first_damage_byte=salvage.first_offset,
        resolution_us=meta.step_ns / 1000,
        start_ns=meta.base_ns + int(rows.start_ns[chosen].min()) if chosen.any() else None,
        flavour=meta.flavour,
        simulated=meta.simulated,
        versions=meta.versions,
        profiler_flags=meta.flags | ({"python_function_rows": meta.python_rows} if meta.python_rows else {}),
        unknown_categories={clean(k): v for k, v in sorted(meta.unknown_categories.items())},
        skipped={clean(k): v for k, v in sorted(meta.skipped.items())},
        selection=selection,
        annotations=meta.annotations,
    )


def _coverage(analysis: Analysis) -> model.Coverage:
    found = analysis.coverage
    unknown = set(found.unknown_apis)
    apis = ", ".join(f"{api} {n}" for api, n in found.by_api.items())
    sentence = f"{found.linked} of {found.rows} device rows linked" + (f": {apis}" if apis else "")
    if found.unlinked:
        sentence += f"; {found.unlinked} have no launch ({found.unlinked_head} of them before the first linked row)"
    if found.lost:
        sentence += f"; {len(found.lost)} of {found.launch_calls} kernel and graph launches have no device row"
    if found.captured:
        sentence += f"; {found.captured} launches were recorded into a graph and ran nothing"
    return model.Coverage(
        rows=found.rows,
        linked=found.linked,
        launches=found.launches,
        by_api=[model.CoverageRow(api, n, api not in unknown) for api, n in found.by_api.items()],
        unlinked=found.unlinked,
        unlinked_at_head=found.unlinked_head,
        launch_calls=found.launch_calls,
        launches_without_device_row=len(found.lost),
        launches_without_device_row_at_head=found.lost_head,
        captured_launches=found.captured,
        copy_calls_without_device_row=found.empty,
        reasons=dict(analysis.trace.link_notes),
        sentence=sentence,
    )


def _devices(analysis: Analysis) -> list[model.DeviceRow]:
    result = []
    for facts in analysis.devices:
        device, idle, queue = analysis.trace.devices[facts.device], facts.idle, facts.queue
        result.append(
            model.DeviceRow(
                device=device.number,
                owner=device.owner,
                name=device.name,
                span_us=_us(idle.span_ns),
                busy_us=_us(idle.busy_ns),
                idle_us=_us(idle.span_ns - idle.busy_ns),
                busy_fraction=round(idle.busy_ns / idle.span_ns, 6) if idle.span_ns else None,
                self_time_us=_us(idle.self_time_ns),
                copy_us=_us(idle.copy_ns),
                overlap_us=_us(idle.self_time_ns - idle.busy_ns),
                queue=str(queue.state),
                grade=str(queue.grade) if queue.grade else None,
                queue_reason=queue.reason,
                launches_counted=queue.counted,
                starved=queue.starved,
                starved_after_sync=queue.starved_after_sync,
            )
        )
    return result


def _streams(analysis: Analysis) -> list[model.StreamRow]:
    result = []
    for s in analysis.streams:
        lane = analysis.trace.lanes[s.lane]
        device = analysis.trace.devices[lane.device]
        result.append(
            model.StreamRow(
                device=device.number,
                owner=", ".join(filter(None, (device.owner, f"context {lane.context}" if lane.context else ""))),
                stream=lane.stream,
                activities=s.activities,
                busy_us=_us(s.busy_ns),
                gaps=len(s.gaps_ns),
                gap_total_us=_us(int(s.gaps_ns.sum())),
                gap_p50_us=us(stats.median(s.gaps_ns)),
                gap_max_us=us(int(s.gaps_ns.max())) if len(s.gaps_ns) else None,
                kernel_gaps=len(s.kernel_gaps_ns),
                kernel_gap_total_us=_us(int(s.kernel_gaps_ns.sum())),
                kernel_gap_p50_us=us(stats.median(s.kernel_gaps_ns)),
                kernel_gap_max_us=us(int(s.kernel_gaps_ns.max())) if len(s.kernel_gaps_ns) else None,
                overlaps=len(s.overlap_ns),
                overlap_max_us=us(int(s.overlap_ns.max())) if len(s.overlap_ns) else None,
                starved=s.starved,
                host_wait_us=_us(s.host_wait_ns),
                launch_wait_us=_us(s.launch_wait_ns),
                sync_wait_us=_us(s.sync_wait_ns),
                unattributed_us=_us(s.unattributed_ns),
                queue_depth_p50=stats.median(s.depth),
                queue_depth_max=int(s.depth.max()) if len(s.depth) else None,
                clocks_agree=analysis.clocks.state is not ClockState.DISAGREE,
            )
        )
    return result


def _threads(analysis: Analysis) -> list[model.ThreadRow]:
    return [
        model.ThreadRow(
            thread=analysis.trace.threads[t.thread].label,
            launches=t.launches,
            dispatch_total_us=_us(int(t.dispatch_ns.sum())),
            dispatch_p50_us=us(stats.median(t.dispatch_ns)),
            dispatch_p90_us=us(stats.quantile(t.dispatch_ns, 0.9)),
            steady_dispatch_p50_us=us(stats.median(t.steady_ns)),
            steady_intervals=len(t.steady_ns),
            left_out=t.left_out,
            kernel_launches=t.kernel_launches,
            kernel_dispatch_total_us=_us(int(t.kernel_dispatch_ns.sum())),
            kernel_dispatch_p50_us=us(stats.median(t.kernel_dispatch_ns)),
        )
        for t in analysis.threads
    ]


def _kernel_rows(analysis: Analysis, table: list[KernelFacts], clean: Callable[[str], str]) -> list[units.KernelRow]:
    names = _told_apart([k.name for k in table], [clean(analysis.trace.names[k.name]) for k in table])
    return [_kernel_row(analysis, k, n, s) for k, n, s in zip(table, names, short_names(names), strict=True)]


def _told_apart(codes: list[int], names: list[str]) -> list[str]:
    """Return the names with a number where two names of the trace have become one without their folders."""
    given: dict[int, str] = {}
    taken: dict[str, int] = {}
    counts: dict[str, int] = {}
    for code, name in zip(codes, names, strict=True):
        shown = given.get(code, name)
        while taken.setdefault(shown, code) != code:
            counts[name] = counts.get(name, 1) + 1
            shown = f"{name} #{counts[name]}"
        given[code] = shown
    return [given[code] for code in codes]


def _kernel_row(analysis: Analysis, k: KernelFacts, name: str, short: str) -> units.KernelRow:
    interval = k.time.p50_interval_ns
    judged = analysis.clocks.state is not ClockState.DISAGREE
    return units.KernelRow(
        name=name,
        short_name=short,
        count=k.time.count,
        total_us=_us(k.time.total_ns),
        mean_us=_us(k.time.mean_ns),
        min_us=_us(k.time.min_ns),
        p50_us=_us(k.time.p50_ns),
        p90_us=_us(k.time.p90_ns),
        max_us=_us(k.time.max_ns),
        mad_us=_us(k.time.mad_ns),
        p50_ci95_us=(_us(interval[0]), _us(interval[1])) if interval else None,
        share=round(k.time.share, 6),
        linked=k.linked,
        starved=k.starved,
        starved_after_sync=k.after_sync,
        in_graph=k.in_graph,
        launch_latency_p50_us=us(k.latency_p50_ns) if judged and (k.latency_p50_ns or 0) >= 0 else None,
        dispatch_p50_us=us(k.dispatch_p50_ns),
        event_reading_us=us(k.reading_p50_ns) if judged else None,
        inflation=round(k.inflation, 6) if judged and k.inflation is not None else None,
        queue_depth_p50=k.depth_p50 if judged else None,
        queue=str(k.queue.state) if k.queue else "unknown",
        grade=str(k.queue.grade) if k.queue and k.queue.grade else None,
        queue_reason=k.queue.reason if k.queue else "",
        config=_configuration(analysis, k.config),
        device=analysis.trace.devices[k.device].number,
        owner=analysis.trace.devices[k.device].owner,
        rank=analysis.origin.device_rank[k.device],
        exclusive_p50_us=_us(k.exclusive_p50_ns),
        event_reading_absent=str(k.no_reading or ("" if judged else Absent.CLOCKS)),
        variants=[_kernel_row(analysis, v, name, short) for v in k.variants],
    )


def _idle(analysis: Analysis, idle: IdleFacts, clean: Callable[[str], str]) -> model.IdleRow:
    device = analysis.trace.devices[idle.device]
    total = idle.span_ns - idle.busy_ns
    return model.IdleRow(
        device=device.number,
        owner=device.owner,
        idle_us=_us(total),
        idle_share=round(total / idle.span_ns, 6) if idle.span_ns else None,
        host_us=_us(idle.host_ns),
        sync_us=_us(idle.sync_ns),
        launch_us=_us(idle.launch_ns),
        unattributed_us=_us(idle.unattributed_ns),
        long_limit_us=_us(idle.long_limit_ns),
        long_pauses=idle.long_count,
        long_us=_us(idle.long_ns),
        long_share=round(idle.long_ns / total, 6) if total else None,
        short_gaps=idle.short_count,
        short_us=_us(idle.short_ns),
        short_p50_us=us(idle.short_p50_ns),
        late_launches=idle.late_count,
        late_us=_us(idle.late_ns),
        late_p50_us=us(idle.late_p50_ns),
        pauses=_pauses(analysis, idle, clean),
    )


def _pauses(analysis: Analysis, idle: IdleFacts, clean: Callable[[str], str]) -> list[model.PauseRow]:
    trace = analysis.trace

    def name(row: int) -> str:
        return short_names([clean(trace.names[trace.activities.name[row]])])[0]

    return [
        model.PauseRow(
            at_us=_us(p.start_ns - trace.meta.origin_ns),
            length_us=_us(p.length_ns),
            host_us=_us(p.host_ns),
            sync_us=_us(p.sync_ns),
            launch_us=_us(p.launch_ns),
            cause=_cause(analysis, p),
            before=name(p.before),
            after=name(p.row),
        )
        for p in idle.pauses
    ]


def _cause(analysis: Analysis, pause: Pause) -> str:
    """Return what most of a pause waited for, in two or three words."""
    if analysis.clocks.state is ClockState.DISAGREE:
        return "not judged: clocks disagree"
    if not analysis.waits.linked[pause.row]:
        return "no launch recorded"
    parts = {
        "host, after a synchronise": pause.sync_ns,
        "host": pause.host_ns - pause.sync_ns,
        "launch in flight": pause.launch_ns,
    }
    return max(parts, key=lambda cause: parts[cause])


def _other_abstentions(analysis: Analysis) -> list[str]:
    """Return what this trace cannot answer, rules apart."""
    reasons = []
    linkage = analysis.coverage
    if linkage.rows and not linkage.linked:
        reasons.append(
            "dispatch per kernel, launch latency, queue depth, queue state: no device row is linked to a launch"
        )
    if analysis.clocks.state is ClockState.DISAGREE:
        reasons.append(
            "launch latency, event reading and queue state: host and device clocks disagree; the waits and starved counts of the "
            "JSON streams are plain differences of the two and are marked clocks_agree: false"
        )
    if linkage.rows and analysis.trace.meta.step_ns >= 1000:
        reasons.append("anything under 1 us: times are written in whole microseconds, so a 0 us kernel is a short one")
    if analysis.no_operations and analysis.chosen.rows.any() and not analysis.replays:
        reasons.append(f"calls of one operation (iterations, protocol ladder): {analysis.no_operations}")
    reasons += [
        f"protocol ladder of {op.iterations.name}: {op.no_ladder}" for op in analysis.operations if op.no_ladder
    ]
    few = sum(k.time.p50_interval_ns is None for k in analysis.kernels)
    if few:
        reasons.append(
            f"interval of the median for {few} of {len(analysis.kernels)} kernels: it takes 6 runs, they have fewer"
        )
    nodes = sum(k.in_graph == k.time.count for k in analysis.kernels)
    if nodes:
        reasons.append(
            f"event reading and queue state for {nodes} kernels that run only inside graph launches: see the replays"
        )
    if analysis.options.selection.range_name is not None:
        reasons.append("idle time inside --range: work of the device outside the range counts as idle there")
    return reasons


def _configuration(analysis: Analysis, number: int | None) -> str | None:
    """Return a launch configuration as text; None for several, and where the trace does not say."""
    found = analysis.trace.configs[number] if number is not None else None
    return found.describe() if found is not None and found.known else None
