"""What a capture measured as parts of a page: each protocol's median with its interval against self-time, and the clocks."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.measured import TITLES, WRONG
from traceanalyzer.render.page.svg import ChartMark, ChartRow, RowChart, short_time, time_axis
from traceanalyzer.report.captured import OperationRecord, Sidecar
from traceanalyzer.report.units import OpRow

SELF = "profiler_self_time"
CHARTS = 4
_CLOCKS = 60


def measured_charts(capture: Sidecar | None, ops: Sequence[OpRow] = ()) -> list[RowChart]:
    """Return a chart for each captured operation with readings, as many as it has tables; none without a sidecar.

    Self-time is what the capture measured, else that of the operation's row of the trace.
    """
    if capture is None:
        return []
    own = {op.name: op.self_time_p50_us for op in ops}
    charts = [_chart(record, own.get(record.name)) for record in capture.operations[:CHARTS]]
    return [c for c in charts if c is not None]


def _chart(record: OperationRecord, traced_us: float | None) -> RowChart | None:
    found = [p for p in record.protocols if p.p50_us is not None]
    if not found:
        return None
    wrong = record.correctness.passed is False
    own = next((p.p50_us for p in found if p.protocol == SELF), traced_us)
    values = [v for p in found for v in (p.p50_us, *(p.ci95_us or ())) if v is not None]
    axis = time_axis([*values, *([own] if own else [])])
    rows = []
    for p in found:
        assert p.p50_us is not None
        marks = [ChartMark("span", "measured", axis.at(p.ci95_us[0]), axis.at(p.ci95_us[1]))] if p.ci95_us else []
        marks.append(ChartMark("diamond", "measured", axis.at(p.p50_us)))
        sure = f" (95 % {show.time_interval(p.ci95_us)})" if p.ci95_us else ""
        over = f", {show.ratio(p.p50_us / own)} self-time" if own and p.protocol != SELF else ""
        text = f"{show.time(p.p50_us)}{sure}{over}, n {show.count(p.n)}"
        rows.append(ChartRow(terminal(TITLES.get(p.protocol, p.protocol), 80), text, marks, "wrong" if wrong else ""))
    title = f"{record.name}: what each protocol read, per call{f' ({WRONG})' if wrong else ''}"
    return RowChart(
        title=terminal(title, 200),
        rows=rows,
        ticks=axis.ticks(short_time),
        axis="logarithmic" if axis.logarithmic else "",
        lines=[(axis.at(own), 0.0, "self")] if own else [],
        notes=["diamond: median, bar: its 95 % interval" + ("; line: self-time" if own else "")],
    )


def clocks(capture: Sidecar | None) -> Block | None:
    """Return the samples of clock, power and temperature in their order; None without any."""
    if capture is None or not capture.clocks:
        return None
    rows = [
        [
            c.when, show.count(c.sm_clock_mhz), show.count(c.max_sm_clock_mhz), show.count(c.memory_clock_mhz), show.count(c.power_w), show.count(c.power_limit_w),
            show.count(c.temperature_c), show.count(c.other_processes), ", ".join(c.throttle_reasons) or "nothing",
        ]
        for c in capture.clocks[:_CLOCKS]
    ]  # fmt: skip
    left = len(capture.clocks) - len(rows)
    columns = [
        "when",
        "SM MHz",
        "of MHz",
        "memory MHz",
        "power W",
        "of W",
        "temperature C",
        "other processes",
        "held down by",
    ]
    notes = [f"{left:,} more samples are in the sidecar"] if left > 0 else []
    return Block("Clocks during the run", columns, rows, frozenset(), notes, labels=frozenset({0, 8}))
