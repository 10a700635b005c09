"""The blocks of a comparison as plain cells, shared by its text and Markdown renderers."""

from __future__ import annotations

from collections import Counter

from traceanalyzer import number_text
from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import LADDER_TITLES, Block
from traceanalyzer.report.compare.model import (
    ComparabilityFactor,
    ComparisonData,
    KernelComparison,
    OpComparison,
    SideSummary,
)

STATUS_WORDS = {"faster": "FASTER", "slower": "SLOWER", "same": "SAME", "undecided": "UNDECIDED", "cannot-judge": "CANNOT JUDGE"}  # fmt: skip
_VERDICTS = {None: "-", "UNDECIDED": "undecided"}


def sides(data: ComparisonData) -> Block:
    """Return both files: device, queue, host pace and each report's own verdict."""
    rows = [_side("base", data.base), _side("head", data.head)]
    columns = ["side", "file", "device", "kernel time us", "kernels", "busy", "queue", "dispatch p50 us", "own verdict"]
    notes = [
        f"{name}: {s.verdict.headline}"
        for name, s in (("base", data.base), ("head", data.head))
        if s.verdict.status != "ok"
    ]
    notes += [
        f"{name} is SIMULATED, not recorded on a device"
        for name, s in (("base", data.base), ("head", data.head))
        if s.trace.simulated
    ]
    return Block("Sides", columns, rows, frozenset({1, 2}), notes)


def _side(name: str, side: SideSummary) -> list[str]:
    device = max(side.devices, key=lambda d: d.busy_us, default=None)
    return [
        name, side.name, side.conditions.get("device", "not stated"), show.us(side.trace.kernel_total_us), show.count(side.trace.kernels),
        show.percent(device.busy_fraction) if device else show.NA, show.queue(device.queue, device.grade) if device else show.NA,
        show.us(side.dispatch_p50_us), side.verdict.status,
    ]  # fmt: skip


def side_lines(data: ComparisonData) -> list[str]:
    """Return one line per side: file, device time, queue and what its own report says."""
    return [_side_line(name, side) for name, side in (("base", data.base), ("head", data.head))]


def _side_line(name: str, side: SideSummary) -> str:
    device = max(side.devices, key=lambda d: d.busy_us, default=None)
    said = (
        [f"{show.plural(sum(r.used for r in side.runs), 'run')}, here {side.median_runs[0]}"]
        if side.median_runs
        else []
    )
    if device is not None:
        said += [f"busy {show.percent(device.busy_fraction)}"]
        said += [device.queue] if device.queue != "unknown" else []
    if side.dispatch_p50_us is not None:
        said.append(f"a launch every {show.duration(side.dispatch_p50_us)}")
    codes = ", ".join(side.findings[:4]) + (", ..." if len(side.findings) > 4 else "")
    said.append(
        f"its own report: {side.verdict.status}" + (f" ({codes})" if codes and side.verdict.status != "ok" else "")
    )
    simulated = " (SIMULATED, not recorded on a device)" if side.trace.simulated else ""
    return f"{name} {side.name}{simulated}: " + "; ".join(said)


def comparability(data: ComparisonData) -> str:
    """Return on one line what both runs share, factor by factor."""
    return "Comparable? " + "; ".join(_factor(f) for f in data.comparability) if data.comparability else ""


def _factor(f: ComparabilityFactor) -> str:
    if f.state == "unknown":
        return f"{f.factor} unknown"
    both_sides = "" if not f.base else f" ({f.base})" if f.base == f.head else f" ({f.base} -> {f.head})"
    if f.factor == "work" and f.base != f.head:
        both_sides = f" (kernels and copies: {f.base}, {f.head})"
    verb = "differ" if f.factor in ("versions", "clocks") else "differs"
    return f"{f.factor} {'same' if f.state == 'same' else verb}{both_sides}"


def operations(data: ComparisonData, top: int) -> Block | None:
    """Return operations on both sides, in the base's order; those on one side only come last."""
    if not data.ops:
        return None
    rows = [_operation(op) for op in data.ops[:top]]
    measures = [m for m in dict.fromkeys(op.measure for op in data.ops) if m not in ("nothing", "self-time")]
    title = "self-time" if not measures else ", ".join(LADDER_TITLES.get(m, m) for m in measures)
    notes = [
        f"{op.short_name}: paired with {op.head_name} by {op.matched_by}"
        for op in data.ops[:top]
        if op.matched_by not in ("", "name")
    ]
    notes += [f"{op.short_name}: {op.reason}" for op in data.ops[:top] if op.reason and op.verdict is not None]
    notes += [
        f"{op.short_name}: about {op.n_needed:,} values per side would decide"
        for op in data.ops[:top]
        if op.n_needed and op.verdict == "UNDECIDED"
    ]
    dependent = [op for op in data.ops[:top] if op.block_bootstrap]
    notes += [
        f"{op.short_name}: values depend on one another (block bootstrap): worth {show.count(op.base_effective_n)} of {show.count(op.base_n)} "
        f"and {show.count(op.head_effective_n)} of {show.count(op.head_n)}"
        + ("; too few: the interval is the range of all values" if min(op.base_effective_n or 6, op.head_effective_n or 6) < 6 else "")
        for op in dependent
    ]  # fmt: skip
    notes += _hidden(len(data.ops) - top, "operation")
    columns = ["operation", "base p50", "head p50", "ratio", "95% CI", "verdict", "n", "dispatch", "event pair reads"]
    return Block(f"Operations ({title} per call in us; base > head)", columns, rows, notes=list(dict.fromkeys(notes)))


def _operation(op: OpComparison) -> list[str]:
    return [
        op.short_name, show.us(op.base_p50_us), show.us(op.head_p50_us), ratio(op.ratio), interval(op.ratio_ci95),
        _verdict(op.status, op.verdict), both(show.count(op.base_n), show.count(op.head_n)),
        both(show.us(op.base_dispatch_p50_us), show.us(op.head_dispatch_p50_us)),
        both(show.us(op.base_event_reading_us), show.us(op.head_event_reading_us)),
    ]  # fmt: skip


def ladder(op: OpComparison) -> Block | None:
    """Return what each protocol would have read on both sides, who wins, and where that is not the self-time's order."""
    if not op.winners:
        return None
    rows = []
    for protocol, title in LADDER_TITLES.items():
        base, head = op.base_readings.get(protocol), op.head_readings.get(protocol)
        if protocol not in op.winners:
            continue
        flips = " FLIPS" if protocol in op.flips else ""
        rows.append(
            [title + (" (measured)" if protocol in op.measured else ""), show.us(base), show.us(head),
             ratio(head / base if base and head is not None else None), op.winners[protocol] + flips]
        )  # fmt: skip
    notes = [op.inversion[0].upper() + op.inversion[1:]] if op.inversion else []
    if len(rows) > 1:
        notes.append(
            "on one machine: latency, record, sync, gap and clear are the same for both sides; tie: within the noise"
        )
    return Block(
        f"Ladder of {op.short_name} (per call, us)", ["protocol", "base", "head", "ratio", "winner"], rows, notes=notes
    )


def kernels(data: ComparisonData, top: int) -> Block | None:
    """Return kernels that both sides have, largest total first."""
    found = [k for k in data.kernels if k.status in ("matched", "changed")]
    if not found:
        return None
    labels = kernel_labels(found)
    rows = [
        [
            name, show.us(k.base_p50_us), show.us(k.head_p50_us), ratio(k.ratio),
            interval(k.ratio_ci95), _verdict(k.status, k.verdict), both(show.count(k.base_n), show.count(k.head_n)),
            both(show.us(k.base_dispatch_p50_us), show.us(k.head_dispatch_p50_us)),
            both(show.us(k.base_event_reading_us), show.us(k.head_event_reading_us)),
        ]
        for name, k in zip(labels, found[:top], strict=False)
    ]  # fmt: skip
    notes = [f"{k.short_name}: {_change(k)}" for k in found[:top] if k.status == "changed" or k.matched_by != "name"][
        :8
    ]
    few = sum(k.ratio is not None and k.ratio_ci95 is None for k in found)
    if few:
        notes.append(
            f"{show.plural(few, 'kernel')} of {len(found)} without interval: fewer than 6 independent runs on a side"
        )
    withdrawn = sum("Benjamini" in k.reason for k in found)
    if withdrawn:
        notes.append(f"{withdrawn} differences do not survive the correction for many comparisons (Benjamini-Hochberg)")
    other = sum("different work" in k.reason for k in found)
    if other:
        notes.append(
            f"{other} without verdict: the sides are mostly different work, so the same name need not be the same shape"
        )
    notes += _hidden(len(found) - top, "kernel")
    columns = ["kernel", "base p50", "head p50", "ratio", "95% CI", "verdict", "n", "dispatch", "event pair reads"]
    return Block(
        "Kernels on both sides (self-time in us, largest total first; base > head)", columns, rows, notes=notes
    )


def kernel_labels(found: list[KernelComparison]) -> list[str]:
    """Return a name for each kernel: its short name, with the configuration where several share that."""
    alike = Counter(k.short_name for k in found)
    return [k.short_name + (f" ({_config(k.grid or k.head_grid)})" if alike[k.short_name] > 1 else "") for k in found]


def _change(k: KernelComparison) -> str:
    if k.status == "changed":
        return (
            f"changed: {k.grid or 'configuration unknown'} -> {k.head_grid or 'configuration unknown'} ({k.matched_by})"
        )
    other = k.head_name if len(k.head_name) <= 90 else f"{k.head_name[:89]}…"
    return f"paired with {other} by {k.matched_by}"


def _config(grid: str) -> str:
    text = grid.partition(" regs")[0]
    return text.replace("grid ", "").replace(" block ", "/") or "configuration unknown"


def unmatched(data: ComparisonData, status: str, top: int) -> Block | None:
    """Return kernels that only one side has: ``gone`` (base) or ``new`` (head)."""
    found = [k for k in data.kernels if k.status == status]
    if not found:
        return None
    gone = status == "gone"
    rows = [
        [k.short_name, show.us(k.base_p50_us if gone else k.head_p50_us), show.count(k.base_n if gone else k.head_n),
         show.us(k.base_total_us if gone else k.head_total_us), _config(k.grid if gone else k.head_grid)]
        for k in found[:top]
    ]  # fmt: skip
    totals = [(k.base_total_us if gone else k.head_total_us) or 0.0 for k in data.kernels]
    own = sum((k.base_total_us if gone else k.head_total_us) or 0.0 for k in found)
    share = f", {show.percent(own / sum(totals))} of its kernel time" if sum(totals) else ""
    title = f"{'Gone: only in base' if gone else 'New: only in head'} ({show.plural(len(found), 'kernel')}{share})"
    return Block(
        title,
        ["kernel", "p50", "n", "total us", "grid/block"],
        rows,
        frozenset({0, 4}),
        _hidden(len(found) - top, "kernel"),
    )


def differences(data: ComparisonData) -> Block | None:
    """Return the conditions that differ."""
    if not data.differences:
        return None
    word = "overridden" if data.allowed_different else "REFUSES a ratio"
    rows = [[d.what, d.base, d.head, word if d.refuses else "marked"] for d in data.differences[:20]]
    return Block(
        "Conditions that differ",
        ["condition", "base", "head", "effect"],
        rows,
        frozenset({0, 1, 2}),
        _hidden(len(data.differences) - 20, "condition"),
    )


_MEANS = {"units": "units, each alike", "operations": "operations, each alike"}


def about(data: ComparisonData) -> list[str]:
    """Return what the overall ratio is made of, losses, and the winners by protocol."""
    lines = []
    several = {
        "units": len(data.units) > 1,
        "operations": sum(op.ratio is not None for op in data.ops) > 1,
    }.get(data.basis, True)
    if data.geomean_ratio is not None and several:
        kind = _MEANS.get(data.basis, "kernels, weighted by the base's time in them")
        lines.append(f"Geometric mean of ratios: {data.geomean_ratio:.4f} {interval(data.geomean_ci95)} over {kind}")
    if data.losses:
        named: list[tuple[str, OpComparison | KernelComparison]] = [(op.short_name, op) for op in data.ops]
        if data.basis != "operations":
            named = list(zip(kernel_labels(data.kernels), data.kernels, strict=True))
        names = [f"{name} {ratio(r.ratio)}" for name, r in named if r.verdict == "SLOWER"][:5]
        more = f" and {len(data.losses) - len(names)} more" if len(data.losses) > len(names) else ""
        lines.append(f"Losses ({len(data.losses)}): {'; '.join(names)}{more}")
    elif data.basis not in ("nothing", "units") and data.geomean_ratio is not None:
        lines.append("Losses: none that the intervals support")
    if data.kernels and data.basis != "operations":
        a, b = data.matched_share
        lines.append(
            f"Kernels with a counterpart of the same configuration hold {number_text.percent(a)} of base's kernel time and {number_text.percent(b)} of head's"
        )
    return lines


def conditions(data: ComparisonData) -> str:
    """Return versions and conditions that both sides share on one line."""
    shared = [f"{k} {v}" for k, v in data.base.conditions.items() if data.head.conditions.get(k) == v]
    return "; ".join([f"traceanalyzer {data.version}", data.schema, *shared[:16]])


def ratio(value: float | None) -> str:
    """Return a ratio with three decimals."""
    return show.NA if value is None else f"{value:.3f}" if value < 100 else f"{value:,.0f}"


def interval(pair: tuple[float, float] | None) -> str:
    """Return an interval of ratios."""
    return show.NA if pair is None else f"{pair[0]:.3f}-{pair[1]:.3f}"


def both(base: str, head: str) -> str:
    """Return base and head in one cell; once where they are alike."""
    return base if base == head else f"{base} -> {head}"


def _verdict(status: str, verdict: str | None) -> str:
    if status in ("new", "gone"):
        return status
    word = _VERDICTS.get(verdict, verdict or "-")
    return f"{word} (changed)" if status == "changed" else word


def _hidden(more: int, word: str) -> list[str]:
    return [f"{show.plural(more, f'more {word}')} not shown (all in JSON)"] if more > 0 else []
