"""Everything a page draws, made from an analysis once and bounded; the renderers only draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.depth import depth_over_time, thinned
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.report.charts.distributions import distributions
from traceanalyzer.report.charts.model import DepthSeries, Figures
from traceanalyzer.report.charts.timeline import ROWS, timeline
from traceanalyzer.report.rule_texts import rule_texts
from traceanalyzer.report.units import KernelRow, OpRow

DEPTH_STREAMS, DEPTH_BINS, REPEATS = 6, 600, 3


def build_figures(
    analysis: Analysis, findings: Sequence[Finding], ops: list[OpRow], kernels: list[KernelRow], clean: Callable[[str], str]
) -> Figures:  # fmt: skip
    """Return the figures; ``ops`` and ``kernels`` are the report's tables, in the order of the analysis."""
    names = {facts.name: row.short_name for facts, row in zip(analysis.kernels, kernels, strict=True)}
    repeats: dict[tuple[str, str], tuple[int, int]] = {}
    if analysis.options.samples:
        # of a comparison the repeats are drawn, not the evidence of either side
        from traceanalyzer.report.run_units import typical_repeats

        repeats = typical_repeats(analysis, clean)
        lanes = timeline(analysis, [], clean, names, rows=ROWS // 4, around=list(repeats.values())[:REPEATS])
    else:
        lanes = timeline(analysis, findings, clean, names)
    depth, no_depth = _depth(analysis, lanes.windows if lanes else [])
    shown, left_out = distributions(analysis, ops, kernels)
    return Figures(
        timeline=lanes,
        depth=depth,
        no_depth=no_depth,
        distributions=shown,
        distributions_left_out=left_out,
        rules=rule_texts(f.rule for f in findings),
        repeats=repeats,
    )


def _depth(analysis: Analysis, windows: list[tuple[int, int]]) -> tuple[list[DepthSeries], str]:
    """Return the series, whole within the windows (ns from the origin) whose rows are shown, and why there is none."""
    trace, rows, waits = analysis.trace, analysis.trace.activities, analysis.waits
    if analysis.clocks.state is ClockState.DISAGREE:
        return [], "host and device clocks disagree, so launches and ends cannot be put in one order"
    if not waits.linked.any():
        return [], "no device row is linked to a launch"
    result = []
    for stream in sorted(analysis.streams, key=lambda s: -s.activities)[:DEPTH_STREAMS]:
        at = np.flatnonzero((rows.lane == stream.lane) & analysis.chosen.rows & waits.linked)
        if not len(at):
            continue
        when, depth = depth_over_time(waits.launch_start_ns[at], rows.end_ns[at])
        keep = thinned(when, depth, DEPTH_BINS)
        for low, high in windows:
            ends = np.searchsorted(when - trace.meta.origin_ns, [low, high])
            # with the step before, so that the first depth inside is right
            keep = np.union1d(keep, np.arange(max(0, ends[0] - 1), min(len(when), ends[1] + 1)))
        starved = np.sort(waits.launch_start_ns[at[analysis.starved[at] & waits.opens_call[at]]])
        apart = thinned(starved, np.zeros(len(starved), dtype=np.int64), DEPTH_BINS)
        lane = trace.lanes[stream.lane]
        result.append(
            DepthSeries(
                label=f"stream {trace.devices[lane.device].label}/{lane.label}",
                at_ns=(when[keep] - trace.meta.origin_ns).tolist(),
                depth=depth[keep].tolist(),
                steps=len(when),
                starved_ns=(starved[apart] - trace.meta.origin_ns).tolist(),
                starved=len(starved),
            )
        )
    return result, ""
