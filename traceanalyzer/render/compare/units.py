"""The blocks of compared units: the four ratios with their evidence, where the time went, and the kernels that decide."""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer import number_text
from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.ledger import word
from traceanalyzer.report.compare.unit_model import KernelsDifference, LedgerDifference, UnitComparison, UnitRatio

_WORDS = {"period": "period", "busy": "device busy", "self": "kernels, overlap once", "launches": "launches"}
_BASIS = {"start-to-start": "", "window": " (host range to its end)", "span": " (whole trace)"}
_EVIDENCE = {
    "asked": "as asked", "name": "one name on both sides", "inputs": "captured for the same inputs", "work": "by the work they share",
    "operators": "by the framework's operators, which they share",
    "whole": "whole traces: no unit is known to be the same",
}  # fmt: skip
_OUTSIDE = {"before_first_row": "before the first device row", "after_last_row": "after the last device row"}
_KERNELS = {"shared": "of kernels on both sides", "gone": "of kernels of base alone", "new": "of kernels of head alone"}
_LEAST_SHARE = 0.02
_SMALL = 3


def ratios(unit: UnitComparison) -> Block:
    """Return the ratios of a unit, the one that the headline speaks of marked, and on what evidence it is one unit."""
    times = [us for r in unit.ratios if r.metric != "launches" for us in (r.base, r.head)]
    number, of_time = show.in_common(times)
    rows = [_row(r, r.metric == unit.metric, number) for r in unit.ratios]
    a, b = unit.shared_work
    evidence = f"{_EVIDENCE[unit.matched_by]}; {number_text.percent(a)} of base's and {number_text.percent(b)} of head's kernel and copy time is shared by name"
    notes = [f"unit: {unit.method}, {unit.base_repeats} and {unit.head_repeats} repeats; {evidence}"]
    if any(r.ratio_range for r in unit.ratios):
        notes.append("range: under six values on a side; from the least to the greatest ratio of single values")
    notes += list(dict.fromkeys(r.reason for r in unit.ratios if r.ratio is not None and r.ratio_ci95 is None and r.ratio_range is None and r.reason))  # fmt: skip
    if unit.value == "run":
        notes.append("each value is the median of a run: what differs from run to run is in the interval")
    elif min(unit.base_repeats, unit.head_repeats) > 0:
        notes.append("one recording a side: nothing here says what differs from run to run")
    columns = [f"per unit ({of_time})", "base", "head", "ratio", "95% CI or range", "verdict", "n"]
    return Block("Unit", columns, rows, notes=notes, labels=frozenset({0}), names=frozenset())


def _row(r: UnitRatio, main: bool, number: Callable[[float | None], str]) -> list[str]:
    pair = r.ratio_ci95 or r.ratio_range
    between = show.NA if pair is None else f"{pair[0]:.3f}-{pair[1]:.3f}" + ("" if r.ratio_ci95 else " range")
    number = show.count if r.metric == "launches" else number
    return [
        ("> " if main else "  ") + _WORDS[r.metric] + _BASIS.get(r.basis, ""), number(r.base), number(r.head),
        show.NA if r.ratio is None else f"{r.ratio:.3f}", between if r.verdict else "", (r.verdict or "").replace("UNDECIDED", "undecided"),
        f"{r.base_n} -> {r.head_n}",
    ]  # fmt: skip


def why(unit: UnitComparison, top: int = 6) -> Block | None:
    """Return the difference of the ledgers per unit, largest first; what is small is one row, so that the rows add up."""
    if not unit.ledger_difference:
        return None
    total = sum(t.saved_us for t in unit.ledger_difference)
    limit = _LEAST_SHARE * max(abs(t.saved_us) for t in unit.ledger_difference)
    shown = [t for t in unit.ledger_difference if abs(t.saved_us) > limit][:top]
    number, of_time = show.in_common(us for t in shown for us in (t.base_us, t.head_us, t.saved_us))
    rows: list[list[str]] = []
    for t in shown:
        rows.append(_times(_OUTSIDE.get(t.what) or word(t.what), t, number))
        if len(t.kernels) > 1:
            rows += [_times(f"  {_KERNELS[k.what]}", k, number) for k in t.kernels]
    rest = unit.ledger_difference[len(shown) :]
    if rest:
        sums = [sum(getattr(t, f) for t in rest) for f in ("base_us", "head_us", "saved_us")]
        rows.append([f"{show.plural(len(rest), 'more class')}", *map(number, sums)])
    of = f"ledger of the median {unit.value}" + (f", device {unit.ledger_device}" if unit.other_devices else "")
    title = (
        f"{'Saved' if total >= 0 else 'Lost'} per unit: {show.duration(abs(total))}, by class of time ({of}; {of_time})"
    )
    notes = []
    if unit.other_devices:
        others = ", ".join(d.device for d in unit.other_devices[:8])
        notes.append(
            f"device {unit.ledger_device} is the one the unit keeps busy longest; ledgers of device {others} are in JSON"
        )
    test = unit.back_test
    if test is not None:
        notes.append(
            f"back-test: base's ledger predicted {test.predicted_factor:.2f}x for {test.change}; measured {test.measured_factor:.2f}x"
        )
    return Block(title, ["class", "base", "head", "saved"], rows, notes=notes, labels=frozenset({0}), names=frozenset())


def _times(label: str, t: LedgerDifference | KernelsDifference, number: Callable[[float | None], str]) -> list[str]:
    return [label, number(t.base_us), number(t.head_us), number(t.saved_us)]


def parts(unit: UnitComparison, top: int) -> Block | None:
    """Return kernels and copies by time saved per unit; what did not change is one line."""
    if not unit.parts:
        return None
    limit = max(0.01 * max((r.base for r in unit.ratios if r.metric == "busy"), default=0.0), 0.001)
    deciding = [p for p in unit.parts if abs(p.saved_us) >= limit][:top]
    if not deciding and abs(sum(p.saved_us for p in unit.parts)) >= 2 * limit:
        deciding = unit.parts[:_SMALL]
    rest = unit.parts[len(deciding) :]
    number, of_time = show.in_common(us for p in deciding for us in (p.base_us, p.head_us))
    rows = [
        [p.short_name, number(p.base_us), number(p.head_us), number(p.saved_us), f"{show.count(p.base_count)} -> {show.count(p.head_count)}", p.status]
        for p in deciding
    ]  # fmt: skip
    notes = []
    if rest:
        more = "more " if deciding else ""
        what = f"{more}kernel or copy differs" if len(rest) == 1 else f"{more}kernels and copies differ"
        together = "" if len(rest) == 1 else " together"
        notes.append(f"{len(rest):,} {what} by {show.time(sum(p.saved_us for p in rest))}{together}")
    return Block(
        f"Kernels and copies by time saved per unit ({of_time})",
        ["kernel", "base", "head", "saved", "runs", "status"],
        rows,
        notes=notes,
    )
