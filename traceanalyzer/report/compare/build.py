"""A comparison and its findings, frozen into a :class:`~traceanalyzer.report.compare.model.ComparisonData`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traceanalyzer import number_text
from traceanalyzer._version import __version__
from traceanalyzer.analysis.compare.comparison import Compared, ComparedRow
from traceanalyzer.analysis.compare.pairing import distinct_part
from traceanalyzer.analysis.compare.sides import Side
from traceanalyzer.analysis.protocols import TITLES
from traceanalyzer.doctor.comparison_rule import diagnose_pair
from traceanalyzer.doctor.registry import COMPARISON_RULES
from traceanalyzer.doctor.rules.ta208_rank_inversion import inversion_sentence
from traceanalyzer.doctor.rules.ta704_not_comparable import said
from traceanalyzer.options import ANALYSIS_THRESHOLDS, SAME_WITHIN
from traceanalyzer.report.compare.model import (
    COMPARE_SCHEMA,
    ComparabilityFactor,
    CompareVerdict,
    ComparisonData,
    Condition,
    SideSummary,
)
from traceanalyzer.report.compare.rows import kernel_rows, operation_row, rounded, rounded_pair
from traceanalyzer.report.compare.runs import RunSet
from traceanalyzer.report.compare.unit_headline import unit_headline
from traceanalyzer.report.compare.unit_rows import ledger_silence, unit_comparison
from traceanalyzer.report.findings import finding_row
from traceanalyzer.report.model import Abstention, ReportData, WorthRow

CLAIM_RULES = ("TA706", "TA709")
_THRESHOLDS = ("same_within", "false_discovery", "clock_change", "claim_tolerance")
_LOSSES = 50


def build_comparison(
    compared: Compared, base: ReportData, head: ReportData, claims_asked: bool = False, allow_different: bool = False
) -> ComparisonData:
    """Return the comparison; ``base`` and ``head`` are the reports its sides were made of."""
    findings, abstained = diagnose_pair(compared, COMPARISON_RULES)
    rows = [finding_row(f) for f in findings]
    abstentions = [Abstention(a.rule, a.reason) for a in abstained]
    abstentions += [Abstention("compare", reason) for reason in _silence(compared)]
    abstentions += [Abstention("compare", reason) for u in compared.units for reason in ledger_silence(u)]
    for name, report, side in (("base", base, compared.base), ("head", head, compared.head)):
        rows += [replace(f, subject=f"{name}: {f.subject}") for f in report.findings if f.rule in CLAIM_RULES]
        if claims_asked and side.source == "report":
            abstentions.append(Abstention("claims", f"{name} is a saved report: a claim is judged on a trace"))
    losses = [
        r for r in (compared.ops if compared.basis == "operations" else compared.kernels) if r.verdict == "SLOWER"
    ]
    return ComparisonData(
        schema=COMPARE_SCHEMA,
        version=__version__,
        verdict=CompareVerdict(compared.status, _headline(compared, losses, base, head)),  # type: ignore[arg-type]
        base=_side(compared.base, base),
        head=_side(compared.head, head),
        ops=[operation_row(r) for r in compared.ops],
        kernels=kernel_rows(compared.kernels),
        basis=compared.basis,
        geomean_ratio=rounded(compared.geomean),
        geomean_ci95=rounded_pair(compared.geomean_interval),
        matched_share=(round(compared.shares[0], 6), round(compared.shares[1], 6)),
        losses=[r.shown.name for r in losses[:_LOSSES]],
        winners=compared.winners,
        rank_inversion=bool(compared.inverted),
        differences=[Condition(d.what, d.base, d.head, d.refuses) for d in compared.differences],
        allowed_different=allow_different,
        regression_pct=_regression(compared),
        findings=sorted(rows, key=lambda f: ("error", "warning", "note").index(f.severity)),
        abstentions=abstentions,
        thresholds={n: compared.options.threshold(ANALYSIS_THRESHOLDS[n]) for n in _THRESHOLDS},
        metric=compared.metric,
        units=[unit_comparison(u, _worth_of(base)) for u in compared.units],
        comparability=[ComparabilityFactor(f.name, f.state, f.base, f.head) for f in compared.factors],
    )


def with_runs(
    data: ComparisonData, compared: Compared, base: RunSet, head: RunSet, middle: Sequence[Sequence[Path]]
) -> ComparisonData:
    """Return the comparison with the runs of both sides, and how many they are in the headline; what is left out is named.

    ``middle``: per side, the files of the runs of median length.
    """
    pair = compared.units[0].pair if compared.units else None
    ends = (pair.base, pair.head) if pair is not None else (None, None)
    rows = [
        runs.rows(unit.name, unit.method) if unit is not None else runs.lost
        for runs, unit in zip((base, head), ends, strict=True)
    ]
    text = data.verdict.headline
    if pair is not None and compared.basis == "units":
        used = [sum(r.used for r in side) for side in rows]
        text += f" Over {used[0]} and {used[1]} runs."
    out = [
        Abstention("compare", f"run {r.file} of {name}: {r.reason}")
        for name, side in (("base", rows[0]), ("head", rows[1]))
        for r in side
        if not r.used
    ]
    return replace(
        data,
        verdict=replace(data.verdict, headline=text),
        base=replace(data.base, runs=rows[0], median_runs=[p.name for p in middle[0]]),
        head=replace(data.head, runs=rows[1], median_runs=[p.name for p in middle[1]]),
        abstentions=[*out, *data.abstentions],
    )


def _side(side: Side, report: ReportData) -> SideSummary:
    conditions = {c.what: c.value for c in side.conditions if c.value}
    if side.clock_mhz is not None:
        conditions["SM clock"] = f"{side.clock_mhz:.0f} MHz"
    threads = [t for t in report.threads if t.kernel_dispatch_p50_us is not None]
    busiest = max(threads, key=lambda t: t.kernel_launches, default=None)
    return SideSummary(
        name=side.name,
        source=side.source,
        verdict=report.verdict,
        trace=report.trace,
        devices=report.devices,
        dispatch_p50_us=busiest.kernel_dispatch_p50_us if busiest and not side.host_broken else None,
        conditions=conditions,
        findings=list(dict.fromkeys(f.rule for f in report.findings)),
        kernels_left_out=side.kernels_left_out,
    )


def _regression(compared: Compared) -> float | None:
    """Return the percent by which the worst operation, or the unit, got slower at least: the near end of its interval or range.

    Of the kernels together where no operation is matched. A loss that is not judged SLOWER counts nothing.
    """
    if compared.basis == "units":
        if compared.status != "slower" or compared.geomean is None:
            return 0.0 if compared.geomean is not None else None
        near = compared.geomean_interval[0] if compared.geomean_interval else compared.geomean
        return round(100 * (near - 1), 3)
    if compared.basis == "operations":
        judged = [r for r in compared.ops if r.ratio is not None and r.ratio.interval is not None]
        lows = [r.ratio.interval[0] for r in judged if r.verdict == "SLOWER" and r.ratio and r.ratio.interval]
        return round(100 * (max(lows) - 1), 3) if lows else 0.0 if judged else None
    if compared.geomean_interval is None:
        return None
    return round(100 * (compared.geomean_interval[0] - 1), 3) if compared.status == "slower" else 0.0


def _silence(compared: Compared) -> list[str]:
    reasons = list(compared.broken)
    for name, side in (("base", compared.base), ("head", compared.head)):
        if side.host_broken:
            reasons.append(f"dispatch, readings and ladder of {name}: {side.host_broken}; self-times remain valid")
        if side.kernels_left_out:
            reasons.append(f"{side.kernels_left_out} more kernels of {name}, beyond the {len(side.kernels)} largest")
        without = sum(not len(w.times.values) for w in (*side.ops, *side.kernels) if w.measure)
        if without:
            reasons.append(
                f"dependence and shape of {without} rows of {name}: its report kept no samples; the interval of its median, widened, stands in (save it with report --format json)"
            )
    ops = [r for r in compared.ops if r.base and r.head and r.base.measure not in ("", "self-time")]
    if ops and ops[0].base:
        protocols = ", ".join(dict.fromkeys(TITLES.get(r.base.measure, r.base.measure) for r in ops if r.base))
        reasons.append(
            f"self-time: a side has no device rows; compared is what the captures measured end to end ({protocols})"
        )
    if compared.basis == "kernels" and compared.judged_share < 0.995:
        reasons.append(
            f"the overall ratio of kernels with {number_text.percent(1 - compared.judged_share)} of base's kernel time: no counterpart, or too few runs"
        )
    return reasons


def _headline(compared: Compared, losses: list[ComparedRow], base: ReportData, head: ReportData) -> str:
    if compared.broken:
        return f"Cannot judge: {compared.broken[0].rstrip('.')}."
    if compared.refused:
        hard = [d for d in compared.differences if d.refuses]
        return f"Not comparable: {said(hard)}. --allow-different compares anyway."
    if compared.basis == "nothing" and compared.pairing.refused:
        return _refusal(compared)
    if compared.basis == "units" and len(compared.units) == 1 and not compared.same_recording:
        return unit_headline(unit_comparison(compared.units[0]), _percent(compared)) + _host_change(base, head)
    text = _ratio_sentence(compared)
    if losses and compared.status != "slower":
        names = ", ".join(f"{r.shown.short_name} {r.ratio.ratio:.3g}x" for r in losses[:3] if r.ratio and r.ratio.ratio)
        text += f" Slower: {names}{f' and {len(losses) - 3} more' if len(losses) > 3 else ''}."
    for row in compared.inverted[:1]:
        sentence = inversion_sentence(row.ladders) if row.ladders else ""
        if sentence:
            text += f" The ranking depends on the protocol: {sentence}."
    return text + _end_to_end(compared) + (_host_change(base, head) if compared.basis != "nothing" else "")


def _worth_of(base: ReportData) -> list[WorthRow]:
    """Return what the base's ledger says changes are worth, of the device that was busiest."""
    spans = [row for row in base.ledger if row.window == "span"]
    busiest = max(spans, key=lambda row: row.classes.get("compute", 0.0), default=None)
    return busiest.worth if busiest is not None else []


def _refusal(compared: Compared) -> str:
    """Return why no units are compared, and what to give."""
    named = [", ".join(f"`{n[:60]}`" for n in names[:3]) or "nothing that repeats" for names in compared.pairing.units]
    if compared.pairing.refused == "captures":
        why = "the captures hold other operations, of other inputs"
    else:
        a, b = compared.pairing.share
        why = f"no unit has one name on both sides, and {number_text.percent(a)} of base's and {number_text.percent(b)} of head's device time has a counterpart by name"
    return f"Not comparable: {why}. Base repeats {named[0]}; head {named[1]}. {_advice(compared.pairing.units)}"


def _advice(units: tuple[list[str], list[str]]) -> str:
    """Return the option that compares the first unit of either side, as a shell takes it."""
    if not all(units):
        return "--unit BASE=HEAD says which are the same work; a range around it on both sides gives it a name."
    first = "=".join(distinct_part(names[0], names) for names in units)
    return f"If those are the same work: --unit={shlex.quote(first)}"


def _end_to_end(compared: Compared) -> str:
    """Return what a call costs on the whole where kernels tie and dispatch does not: what a graph is for."""
    rows = [r for r in compared.ops if r.ladders is not None]
    found = rows[0].ladders if len(rows) == 1 else None
    if found is None or found.winners.get("profiler_self_time") != "tie":
        return ""
    base, head = found.base_us["wall_sync_once"], found.head_us["wall_sync_once"]
    winner = found.winners.get("wall_sync_once", "tie")
    if winner == "tie" or not base or not head or max(base / head, head / base) < 1.05:
        return ""
    read = "reads" if "wall_sync_once" in found.measured else "would read"
    return f" End to end they differ: a wall clock around the loop {read} {max(base / head, head / base):.3g}x less in {winner}."


def _host_change(base: ReportData, head: ReportData) -> str:
    """Return what became of the queue, where it changed: a graph changes no kernel, but who waits for whom."""
    busiest = [max(r.devices, key=lambda d: d.busy_us, default=None) for r in (base, head)]
    if busiest[0] is None or busiest[1] is None:
        return ""
    states = [d.queue for d in busiest if d is not None]
    if states[0] == states[1] or "unknown" in states:
        return ""
    said = [
        f"{d.queue}, busy {number_text.percent(d.busy_fraction)}"
        for d in busiest
        if d is not None and d.busy_fraction is not None
    ]
    return f" The queue changed: base {said[0]}; head {said[1]}." if len(said) == 2 else ""


def _four(value: float) -> str:
    return f"{value:.4f}" if value < 10 else f"{value:.4g}"


def _named(row: ComparedRow) -> str:
    names = list(dict.fromkeys(w.short_name for w in (row.base, row.head) if w is not None))
    return f"`{names[0]}`" if len(names) == 1 else f"`{names[1]}` against `{names[0]}`"


def _percent(compared: Compared) -> str:
    return f"{100 * max(0.0, compared.options.threshold(SAME_WITHIN)):.3g}"


def _ratio_sentence(compared: Compared) -> str:
    if compared.same_recording:
        return (
            "Same: the two folders hold the same runs."
            if compared.base.runs
            else "Same: the two files have the same rows."
        )
    if compared.basis == "nothing" or compared.geomean is None:
        a, b = compared.shares
        if not compared.ops and not compared.kernels:
            return "Undecided: neither side has work to compare."
        matched = [r for r in compared.ops if r.base and r.head]
        if matched:
            why = next((f": {r.reason}" for r in matched if r.reason), "")
            return f"Undecided: no ratio for {_named(matched[0]) if len(matched) == 1 else f'{len(matched)} matched operations'}{why}."
        return (
            f"Undecided: no operation is matched and {number_text.percent(a)} of base's and {number_text.percent(b)} of head's kernel time has a counterpart; no overall ratio. "
            "The rows are listed one by one."
        )  # fmt: skip
    ratio, interval = compared.geomean, compared.geomean_interval
    single = compared.ops and compared.judged == 1 and compared.basis == "operations"
    rows = [r for r in compared.ops if r.ratio is not None and r.base is not None]
    measure = rows[0].base.measure if rows and rows[0].base and compared.basis == "operations" else "self-time"
    what = TITLES.get(measure, measure) if measure != "self-time" else "self-time"
    where = _named(rows[0]) if single else f"{compared.judged} {compared.basis}"
    mean = "" if single else " (geometric mean)" if compared.basis == "operations" else " (weighted by base's time)"
    bounds = f", 95 % interval {_four(interval[0])} to {_four(interval[1])}" if interval else ", no interval"
    said_ratio = f"ratio {_four(ratio)}{bounds}"
    if compared.status == "faster":
        return f"Faster: head is {1 / ratio:.3g}x faster by {what} over {where}{mean}; {said_ratio}."
    if compared.status == "slower":
        return f"Slower: head is {ratio:.3g}x slower by {what} over {where}{mean}; {said_ratio}."
    if compared.status == "same":
        return f"Same: {what} over {where}{mean} within {_percent(compared)} %; {said_ratio}."
    needed = rows[0].ratio.n_needed if single and rows[0].ratio else None
    more = f" About {needed:,} values per side would decide." if needed else ""
    why = f" ({rows[0].reason})" if single and rows[0].reason else ""
    return f"Undecided: {what} over {where}{mean} supports no claim; {said_ratio}{why}.{more}"
