"""The charts of a comparison's page: ratios with their intervals around 1, and the same work under each protocol."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import LADDER_TITLES
from traceanalyzer.render.compare import blocks as parts
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.svg import Axis, ChartMark, ChartRow, RowChart
from traceanalyzer.report.compare.model import ComparisonData, KernelComparison, OpComparison
from traceanalyzer.report.compare.unit_model import UnitComparison

SAME = 0.01
"""The band around 1 in which both sides are the same."""
MOST = 30
_NAME = 120
_TONES = {
    "FASTER": "ok",
    "SLOWER": "bad",
    "SAME": "muted",
    "UNDECIDED": "warn",
    "head": "ok",
    "base": "bad",
    "tie": "muted",
}
_METRICS = {"period": "period", "busy": "device busy", "self": "kernels, overlap once", "launches": "launches"}

Row = tuple[str, str, float, tuple[float, float] | None, str]
"""Label, value in words, ratio, its interval, and the verdict that gives the colour."""


def ratio_chart(title: str, rows: Sequence[Row]) -> RowChart | None:
    """Return a row per ratio on one logarithmic axis around 1, None without any."""
    shown = [r for r in rows if r[2] > 0][:MOST]
    if not shown:
        return None
    ends = [v for _, _, ratio, pair, _ in shown for v in (ratio, *(pair or ())) if v > 0]
    axis = Axis(min(*ends, 1 / 1.05) / 1.04, max(*ends, 1.05) * 1.04, True)
    made = []
    for label, value, ratio, pair, verdict in shown:
        tone = _TONES.get(verdict, "muted")
        marks = [ChartMark("span", tone, axis.at(pair[0]), axis.at(pair[1]))] if pair else []
        made.append(
            ChartRow(terminal(label, _NAME), terminal(value, _NAME), [*marks, ChartMark("dot", tone, axis.at(ratio))])
        )
    band = (axis.at(1 - SAME), round(axis.at(1 + SAME) - axis.at(1 - SAME), 2), "muted")
    return RowChart(terminal(title, 200), made, _ticks(axis), "logarithmic", lines=[band, (axis.at(1.0), 0.0, "fg")])


def _ticks(axis: Axis) -> list[tuple[float, str, str]]:
    decades = log10(axis.high / axis.low)
    steps = [0.1, 0.2, 0.5] if decades > 1 else [0.25, 0.5, 0.67, 0.8, 0.9] if decades > 0.25 else [0.85, 0.9, 0.95]
    values = sorted({1.0, *steps, *(round(1 / s, 2) for s in steps)})
    if decades > 2:
        values = [10.0**p for p in range(floor(log10(axis.low)), ceil(log10(axis.high)) + 1)]
    found: list[tuple[float, str, str]] = []
    # 1 is the one place that every reader looks for
    for value in [1.0, *(v for v in values if v != 1.0)]:
        x = axis.at(value)
        if axis.low <= value <= axis.high and all(abs(x - other) > 12 for other, _, _ in found):
            found.append((x, f"{value:g}x", "start" if x < 6 else "end" if x > 94 else "middle"))
    return sorted(found)


def unit_ratios(unit: UnitComparison, name: str) -> RowChart | None:
    """Return the four ratios of a unit, the one that the headline speaks of first."""
    rows: list[Row] = []
    for r in sorted(unit.ratios, key=lambda r: r.metric != unit.metric):
        if r.ratio is None:
            continue
        pair = r.ratio_ci95 or r.ratio_range
        number = show.count if r.metric == "launches" else show.time
        between = (
            ""
            if pair is None or r.metric == "launches"
            else f" ({pair[0]:.3f}-{pair[1]:.3f}{'' if r.ratio_ci95 else ' range'})"
        )
        value = f"{number(r.base)} -> {number(r.head)}: {r.ratio:.3f}{between} {(r.verdict or '').replace('UNDECIDED', 'undecided')}"
        rows.append(
            (_METRICS[r.metric], value.strip(), r.ratio, None if r.metric == "launches" else pair, r.verdict or "")
        )
    return ratio_chart(f"Head over base, {name}: below 1 the head is faster", rows)


def work_ratios(data: ComparisonData, suffix: str) -> RowChart | None:
    """Return the ratios of operations and kernels with their intervals, and their geometric mean last."""
    found: list[OpComparison | KernelComparison] = [op for op in data.ops if op.ratio is not None]
    labels = [op.short_name for op in found]
    with_ratio = [k for k in data.kernels if k.ratio is not None]
    found += with_ratio
    labels += [f"kernel {name}" for name in parts.kernel_labels(with_ratio)]
    rows: list[Row] = [
        (
            label + suffix,
            _value(r.ratio or 0.0, r.ratio_ci95, r.verdict or ""),
            r.ratio or 0.0,
            r.ratio_ci95,
            r.verdict or "",
        )
        for label, r in zip(labels, found[:MOST], strict=False)
    ]
    if data.geomean_ratio is not None and len(found) > 1 and not (data.basis == "units" and len(data.units) == 1):
        text = _value(data.geomean_ratio, data.geomean_ci95, "")
        rows = [
            *rows[: MOST - 1],
            (f"geometric mean over {data.basis}{suffix}", text, data.geomean_ratio, data.geomean_ci95, ""),
        ]
    return ratio_chart("Operations and kernels: head over base, below 1 the head is faster", rows)


def _value(ratio: float, pair: tuple[float, float] | None, verdict: str) -> str:
    between = f" ({pair[0]:.3f}-{pair[1]:.3f})" if pair else ""
    return f"{ratio:.3f}{between} {verdict.replace('UNDECIDED', 'undecided')}".strip()


def protocol_chart(op: OpComparison, suffix: str) -> RowChart | None:
    """Return who wins under each protocol: where the order of the two turns."""
    rows: list[Row] = []
    for protocol, title in LADDER_TITLES.items():
        base, head, winner = op.base_readings.get(protocol), op.head_readings.get(protocol), op.winners.get(protocol)
        if winner is not None and base and head:
            turns = ", the order turns" if protocol in op.flips else ""
            text = f"{show.time(base)} -> {show.time(head)}: {head / base:.3f}, {winner}{' wins' if winner != 'tie' else ''}{turns}"
            rows.append((title, text, head / base, None, winner))
    return ratio_chart(f"{op.short_name}{suffix}: who wins under each protocol", rows)
