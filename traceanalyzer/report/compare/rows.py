"""Operations and kernels on both sides, frozen into rows."""

from __future__ import annotations

from typing import Any, cast

from traceanalyzer.analysis.compare.comparison import ComparedRow
from traceanalyzer.analysis.compare.sides import ComparedWork
from traceanalyzer.doctor.rules.ta208_rank_inversion import inversion_sentence
from traceanalyzer.report.compare.model import KernelComparison, OpComparison, RowStatus, RowVerdict
from traceanalyzer.trace.names import short_names

_SAMPLES = 512


def operation_row(row: ComparedRow) -> OpComparison:
    """Return an operation."""
    base, head, ladder = row.base, row.head, row.ladders
    return OpComparison(
        **_both(row, row.shown.short_name),
        measure=row.shown.measure or "nothing",
        base_span_p50_us=base.span_us if base else None,
        head_span_p50_us=head.span_us if head else None,
        base_period_p50_us=base.period_us if base else None,
        head_period_p50_us=head.period_us if head else None,
        base_readings=_readings(ladder.base_us) if ladder else dict(base.readings_us) if base else {},
        head_readings=_readings(ladder.head_us) if ladder else dict(head.readings_us) if head else {},
        measured=sorted(ladder.measured) if ladder else [],
        winners=ladder.winners if ladder else {},
        flips=list(ladder.flips) if ladder else [],
        inversion=inversion_sentence(ladder) if ladder is not None and ladder.flips else "",
        base_dispatch_samples_us=base.dispatch_samples_us[:_SAMPLES] if base else [],
        head_dispatch_samples_us=head.dispatch_samples_us[:_SAMPLES] if head else [],
    )


def kernel_rows(rows: list[ComparedRow]) -> list[KernelComparison]:
    """Return the kernels, by the larger of both totals; short names are told apart over both sides."""
    ordered = sorted(rows, key=lambda r: -max(r.base.total_us if r.base else 0.0, r.head.total_us if r.head else 0.0))
    names = short_names([r.shown.name for r in ordered])
    return [_kernel(r, n) for r, n in zip(ordered, names, strict=True)]


def _kernel(row: ComparedRow, short: str) -> KernelComparison:
    base, head = row.base, row.head
    return KernelComparison(
        **_both(row, short),
        grid=base.config if base else "",
        head_grid=head.config if head else "",
        base_total_us=base.total_us if base else None,
        head_total_us=head.total_us if head else None,
    )


def _both(row: ComparedRow, short: str) -> dict[str, Any]:
    """Return the columns that operations and kernels share."""
    base, head, ratio = row.base, row.head, row.ratio
    return {
        "name": row.shown.name,
        "short_name": short,
        "head_name": head.name if head else "",
        "status": cast(RowStatus, row.status),
        "matched_by": row.how,
        "base_p50_us": _p50(base),
        "head_p50_us": _p50(head),
        "ratio": rounded(ratio.ratio) if ratio else None,
        "ratio_ci95": rounded_pair(ratio.interval) if ratio else None,
        "verdict": cast("RowVerdict | None", row.verdict),
        "reason": row.reason,
        "n_needed": ratio.n_needed if ratio else None,
        "base_n": base.times.count if base else None,
        "head_n": head.times.count if head else None,
        "base_effective_n": round(ratio.effective[0], 1) if ratio else None,
        "head_effective_n": round(ratio.effective[1], 1) if ratio else None,
        "block_bootstrap": bool(ratio and ratio.blocks),
        "base_dispatch_p50_us": base.dispatch_us if base else None,
        "head_dispatch_p50_us": head.dispatch_us if head else None,
        "base_event_reading_us": base.event_reading_us if base else None,
        "head_event_reading_us": head.event_reading_us if head else None,
        "base_queue": base.queue if base else "",
        "head_queue": head.queue if head else "",
        "base_samples_us": _samples(base),
        "head_samples_us": _samples(head),
    }


def rounded(value: float | None) -> float | None:
    """Return a ratio with six decimals."""
    return None if value is None else round(value, 6)


def rounded_pair(values: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return an interval of ratios with six decimals."""
    return None if values is None else (round(values[0], 6), round(values[1], 6))


def _p50(work: ComparedWork | None) -> float | None:
    return None if work is None or not work.measure else round(work.times.p50_ns / 1000, 6)


def _samples(work: ComparedWork | None) -> list[float]:
    return [] if work is None else [v / 1000 for v in work.times.values[:_SAMPLES].tolist()]


def _readings(values: dict[str, float | None]) -> dict[str, float | None]:
    return {p: rounded(v) for p, v in values.items()}
