"""What the page of a comparison draws: both sides' values on one axis, per operation and for the largest kernels."""

from __future__ import annotations

import numpy as np

from traceanalyzer.report.charts.distributions import KERNELS, OPERATIONS, distribution
from traceanalyzer.report.charts.model import ComparisonFigures, Distribution, Figures, Mark, SideFigures
from traceanalyzer.report.compare.model import ComparisonData
from traceanalyzer.report.rule_texts import rule_texts


def comparison_figures(
    data: ComparisonData, base: Figures | None = None, head: Figures | None = None
) -> ComparisonFigures:
    """Return the figures; sides without samples (saved by an older version, or made without them) have no distribution.

    ``base`` and ``head`` are the figures of the reports that were compared.
    """
    found: list[Distribution | None] = []
    for op in [o for o in data.ops if o.status in ("matched", "changed")][:OPERATIONS]:
        values = {
            f"base {op.measure}": op.base_samples_us, f"head {op.measure}": op.head_samples_us,
            "base dispatch": op.base_dispatch_samples_us, "head dispatch": op.head_dispatch_samples_us,
        }  # fmt: skip
        marks = {"base": op.base_event_reading_us, "head": op.head_event_reading_us}
        found.append(_distribution(op.short_name, "operation", values, marks))
    for kernel in [k for k in data.kernels if k.status in ("matched", "changed")][:KERNELS]:
        values = {"base self-time": kernel.base_samples_us, "head self-time": kernel.head_samples_us}
        marks = {"base": kernel.base_event_reading_us, "head": kernel.head_event_reading_us}
        found.append(_distribution(kernel.short_name, "kernel", values, marks))
    unit = data.units[0] if data.units else None
    sides = (
        _side(base, (unit.name, unit.method) if unit else None),
        _side(head, (unit.head_name, unit.head_method) if unit else None),
    )
    both = (sides[0], sides[1]) if sides[0] is not None and sides[1] is not None else None
    return ComparisonFigures([d for d in found if d is not None], rule_texts(f.rule for f in data.findings), both)


def _side(found: Figures | None, unit: tuple[str, str] | None) -> SideFigures | None:
    if found is None or found.timeline is None:
        return None
    return SideFigures(found.timeline, found.depth, found.repeats.get(unit) if unit else None)


def _distribution(
    title: str, kind: str, values: dict[str, list[float]], readings: dict[str, float | None]
) -> Distribution | None:
    in_ns = [(label, np.rint(np.array(v) * 1000).astype(np.int64)) for label, v in values.items()]
    marks = [Mark(f"{side}: event pair reads", r * 1000) for side, r in readings.items() if r is not None]
    return distribution(title, kind, in_ns, marks)
