"""The first line of a comparison of units: what the unit takes on both sides, and what its other numbers say against it."""

from __future__ import annotations

from traceanalyzer import number_text
from traceanalyzer.report.compare.unit_model import UnitComparison, UnitRatio
from traceanalyzer.trace.names import short_names

_STATUS = {"FASTER": "Faster", "SLOWER": "Slower", "SAME": "Same", "UNDECIDED": "Undecided"}
_OTHER_BY = 0.05
_ONE_TIME = ("first_use", "code_load", "compile", "before_window")
"""Classes of the ledger that a run which repeats does not pay again (docs/ledger.md)."""
_MUCH_ONCE = 0.2
_UNNAMED = ("repeating launches", "graph replay")


def unit_headline(unit: UnitComparison, same_percent: str) -> str:
    """Return the sentence on one pair of units."""
    main = unit.ratio_of(unit.metric)
    if main is None or main.ratio is None or main.verdict is None:
        why = f": {main.reason}" if main is not None and main.reason else ""
        return f"Undecided: {subject(unit)} has no {unit.metric} on both sides{why}."
    text = f"{_STATUS[main.verdict]}: {subject(unit)} {_verb(main)} {took(main.base, main.head)}"
    if "other-work" in unit.caveats:
        a, b = unit.shared_work
        return (
            f"{text} ({times(main.ratio)}), but only {number_text.percent(a)} of base's and {number_text.percent(b)} of head's kernel and copy time has a counterpart by name: "
            f"two different pieces of work, it seems. --unit {unit.name}={unit.head_name} compares them all the same."
        )
    if main.verdict == "SAME":
        text += f" (within {same_percent} %)"
    else:
        text += f" ({times(main.ratio)})"
    if main.verdict == "UNDECIDED":
        text += f": {_doubt(main)}"
    return text + _others(unit, main) + _once(unit, main) + "." + _caveats(unit)


def subject(unit: UnitComparison) -> str:
    """Return what is compared, in words."""
    if unit.method == "whole trace":
        return "the whole trace"
    if unit.step and unit.method in _UNNAMED and unit.head_method in _UNNAMED:
        both = list(dict.fromkeys(f"{k:,.0f}" for k in (unit.head_kernels, unit.base_kernels)))
        return f"the step of {both[0]} kernels" + (f" (base: {both[1]})" if len(both) > 1 else "")
    names = list(dict.fromkeys(short_names([n])[0] for n in (unit.head_name, unit.name)))
    word = "the step" if unit.step else "the kernel" if unit.method == "repeating launches" else "the operation"
    name = f"`{names[0]}`" if len(names) == 1 else f"`{names[0]}` (base: `{names[1]}`)"
    return f"{word} {name}"


def took(base_us: float, head_us: float) -> str:
    """Return ``2.56 -> 1.24 ms``: both in the unit of the larger."""
    largest = max(base_us, head_us)
    divisor, word = (1.0, "us") if largest < 10_000 else (1e3, "ms") if largest < 10_000_000 else (1e6, "s")
    return f"{_four(base_us / divisor)} -> {_four(head_us / divisor)} {word}"


def times(ratio: float) -> str:
    """Return how many times the slower side takes: ``4.75x``."""
    factor = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    return f"{factor:.3g}x" if factor < 1000 else f"{factor:,.0f}x"


def _four(value: float) -> str:
    return f"{value:#.4g}" if value < 999.95 else f"{value:,.0f}"


def _verb(main: UnitRatio) -> str:
    if main.metric == "period":
        return "spans" if main.basis == "span" else "takes"
    return "keeps the device busy for" if main.metric == "busy" else "has kernels of"


def _doubt(main: UnitRatio) -> str:
    if main.ratio_range is not None:
        low, high = main.ratio_range
        n = f"n {main.base_n} and {main.head_n}"
        if main.base_n == main.head_n == 1:
            return "one value a side has no scatter of its own, and such a difference may be chance"
        return f"not beyond the scatter (from {low:.3g} to {high:.3g} of base over all pairs of values, {n})"
    if main.ratio_ci95 is None:
        return main.reason or "no interval"
    return f"the 95 % interval, {main.ratio_ci95[0]:.4f} to {main.ratio_ci95[1]:.4f}, supports no claim"


def _others(unit: UnitComparison, main: UnitRatio) -> str:
    """Return what the number that is not the headline's says where it disagrees."""
    if main.metric == "period":
        other = unit.ratio_of("busy")
        if other is None or other.verdict is None or other.ratio is None or other.verdict == main.verdict == "SAME":
            return ""
        if other.verdict == "SAME" or abs(other.ratio - 1) < 0.005:
            return "; the device's busy time is the same" if main.verdict != "SAME" else ""
        if other.verdict != main.verdict or abs(other.ratio / (main.ratio or 1) - 1) > _OTHER_BY:
            return f"; the device is busy for {took(other.base, other.head)} of it"
        return ""
    other = unit.ratio_of("period")
    if other is None or other.verdict is None or other.ratio is None or other.basis != "start-to-start":
        return ""
    if other.verdict == main.verdict and abs(other.ratio / (main.ratio or 1) - 1) <= _OTHER_BY:
        return ""
    same = "the same" if other.verdict == "SAME" else took(other.base, other.head)
    return f"; from call to call it is {same}"


def _once(unit: UnitComparison, main: UnitRatio) -> str:
    """Return how much of the difference a run pays once, where that is much of it: a steady step does not differ by it."""
    difference = main.base - main.head
    if main.metric != "period" or not difference:
        return ""
    terms = [(d.what, d.base_us - d.head_us) for d in unit.ledger_difference if d.what in _ONE_TIME]
    once = [(us, what) for what, us in terms if us / difference > 0]
    total = sum(us for us, _ in once)
    if total / difference < _MUCH_ONCE:
        return ""
    what = max(once, key=lambda pair: abs(pair[0]))[1].replace("_", " ")
    rest = "" if len(once) == 1 else " and the like"
    side = "base" if difference > 0 else "head"
    took = number_text.duration(1000 * abs(total))
    return f"; {what}{rest} in {side} is {took} of the difference, which a run pays once"


def _caveats(unit: UnitComparison) -> str:
    text = ""
    if "little-work" in unit.caveats:
        a, b = unit.shared_work
        text += f" Only {number_text.percent(a)} of base's and {number_text.percent(b)} of head's kernel and copy time has a counterpart by name: this may not be the same work."
    if "other-kernels" in unit.caveats:
        a, b = unit.shared_work
        shared, work = number_text.percent(unit.shared_operators), number_text.percent(min(a, b))
        text += f" The kernels have other names: both run {shared} of the framework's operators, but share {work} of kernel and copy time."
    if "scaled" in unit.caveats:
        text += f" The head does the work {unit.scale:.3g} times as often; its times are per base's work."
    period = unit.ratio_of("period")
    known = (
        unit.value == "repeat" and unit.metric == "period" and period is not None and period.ratio and unit.mean_ratio
    )
    if known and abs(unit.mean_ratio / period.ratio - 1) > 2 * _OTHER_BY:  # type: ignore[operator, union-attr]
        text += f" Over all repeats the mean is {unit.mean_ratio:.3g} of base's: long repeats weigh in it."
    return text
