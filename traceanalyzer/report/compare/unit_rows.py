"""Compared units, frozen into rows."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.analysis.compare.ledger_terms import LedgerTerm
from traceanalyzer.analysis.compare.shared_work import PartPair
from traceanalyzer.analysis.compare.unit_ratios import METRICS, MeasuredRatio, UnitResult
from traceanalyzer.report.compare.back_test import back_test
from traceanalyzer.report.compare.unit_model import (
    DeviceDifference,
    KernelsDifference,
    LedgerDifference,
    PartChange,
    UnitComparison,
    UnitRatio,
)
from traceanalyzer.report.model import WorthRow
from traceanalyzer.trace.names import short_names

MOST_PARTS = 200


def unit_comparison(result: UnitResult, worth: Sequence[WorthRow] = ()) -> UnitComparison:
    """Return a compared unit as a row; ``worth`` is what the base's ledger says changes are worth."""
    pair = result.pair
    base, head = pair.base, pair.head
    ratios = [_ratio(m) for name in METRICS if (m := result.measured.get(name)) is not None]
    first, second = result.launches
    if first > 0 and second > 0:
        launches = UnitRatio("launches", "", first, round(second, 3), base.repeats, head.repeats, _six(second / first), None, None, None)  # fmt: skip
        ratios.append(launches)
    return UnitComparison(
        name=base.name,
        head_name=head.name,
        method=base.method,
        head_method=head.method,
        matched_by=pair.evidence,
        shared_work=(round(pair.work.share[0], 6), round(pair.work.share[1], 6)),
        scale=round(pair.work.scale, 6),
        caveats=list(pair.caveats),
        step=result.step,
        base_repeats=base.repeats,
        head_repeats=head.repeats,
        base_kernels=base.kernels,
        head_kernels=head.kernels,
        shared_operators=round(pair.operators, 6),
        base_coverage=base.coverage,
        head_coverage=head.coverage,
        metric=result.metric,
        mean_ratio=_six(result.mean_ratio),
        ratios=ratios,
        parts=_parts(pair.work.pairs[:MOST_PARTS]),
        ledger_difference=_difference(result.ledger.terms),
        ledger_device=result.ledger.devices[0].base_device if result.ledger.terms else "",
        other_devices=[
            DeviceDifference(
                d.base_device,
                [name for name, is_it in (("base", d.base_decides), ("head", d.head_decides)) if is_it],
                _difference(d.terms),
            )
            for d in result.ledger.devices[1 if result.ledger.terms else 0 :]
        ],
        back_test=back_test(result, worth),
        value="run" if base.of_runs else "repeat",
    )


def _difference(terms: Sequence[LedgerTerm]) -> list[LedgerDifference]:
    return [
        LedgerDifference(t.cls, *_micro(t), [KernelsDifference(k.cls, *_micro(k)) for k in t.kernels])  # type: ignore[arg-type]
        for t in terms
    ]


def _micro(t: LedgerTerm) -> tuple[float, float, float]:
    return round(t.base_ns / 1000, 6), round(t.head_ns / 1000, 6), round(t.saved_ns / 1000, 6)


def ledger_silence(result: UnitResult) -> list[str]:
    """Return why a unit has no difference of the ledgers, or not of every device."""
    change = result.ledger
    if change.missing:
        return [f"the ledger difference: the report of {' and '.join(change.missing)} has no ledger of the unit"]
    if not (change.base_alone or change.head_alone):
        return []
    sides = [
        f"{side} alone on device {', '.join(found)}"
        for side, found in (("base", change.base_alone), ("head", change.head_alone))
        if found
    ]
    decides = [
        f"device {next((x.device for x in ledgers if x.decides), '?')} decides {side}"
        for side, ledgers in (("base", result.pair.base.period_ledgers), ("head", result.pair.head.period_ledgers))
        if ledgers
    ]
    return [f"the ledger difference of every device: the unit runs in {'; in '.join(sides)} ({', '.join(decides)})"]


def _ratio(m: MeasuredRatio) -> UnitRatio:
    interval = None if m.ratio.interval is None else (round(m.ratio.interval[0], 6), round(m.ratio.interval[1], 6))
    return UnitRatio(
        metric=m.name,  # type: ignore[arg-type]
        basis=m.basis,
        base=round(m.base.p50_ns / 1000, 6),
        head=round(m.head.p50_ns / 1000, 6),
        base_n=m.base.count,
        head_n=m.head.count,
        ratio=_six(m.ratio.ratio),
        ratio_ci95=None if m.few else interval,
        ratio_range=interval if m.few else None,
        verdict=m.verdict,  # type: ignore[arg-type]
        reason=m.ratio.reason,
    )


def _parts(pairs: list[PartPair]) -> list[PartChange]:
    names = [(p.base or p.head).name for p in pairs]  # type: ignore[union-attr]
    found = []
    for p, short in zip(pairs, short_names(names), strict=True):
        status = "new" if p.base is None else "gone" if p.head is None else "matched"
        base_us, head_us = (0.0 if x is None else round(x.time_ns / 1000, 6) for x in (p.base, p.head))
        found.append(
            PartChange(
                name=(p.base or p.head).name,  # type: ignore[union-attr]
                head_name=p.head.name if p.head else "",
                short_name=short,
                status=status,  # type: ignore[arg-type]
                base_us=base_us,
                head_us=head_us,
                base_count=round(p.base.count, 3) if p.base else 0.0,
                head_count=round(p.head.count, 3) if p.head else 0.0,
                saved_us=round(base_us - head_us, 6),
            )
        )
    return found


def _six(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
