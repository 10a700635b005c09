"""Two sides, matched and compared: ratios, verdicts, the ladder, and what forbids to compare them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceanalyzer import number_text
from traceanalyzer.analysis.compare.comparability import Factor, comparability
from traceanalyzer.analysis.compare.identical import same_rows
from traceanalyzer.analysis.compare.ladder import Ladders, ladders
from traceanalyzer.analysis.compare.matching import SHARED_WORK, Pair, match_kernels, match_operations
from traceanalyzer.analysis.compare.pairing import Pairing, pair_units
from traceanalyzer.analysis.compare.sides import ComparedWork, Side
from traceanalyzer.analysis.compare.statistics import (
    Ratio,
    compare_medians,
    differs_p,
    pooled,
    verdict_of,
    withdrawn,
)
from traceanalyzer.analysis.compare.unit_ratios import UnitResult, unit_result
from traceanalyzer.analysis.compare.unit_side import UnitSide
from traceanalyzer.analysis.protocols import PROTOCOLS
from traceanalyzer.options import CLOCK_CHANGE, FALSE_DISCOVERY, SAME_WITHIN, AnalysisOptions

END_TO_END = ("wall_sync_once", "wall_sync_each", "event_loop", "event_pair", "event_pair_sync", "wall_nosync", "do_bench", "backlog", "graph_unrolled")  # fmt: skip
"""Which measured protocol stands for a call where nothing ran on a device that was recorded; the first both sides have."""
LITTLE_SHARED = 0.2
"""Below this share of matched kernel time even a kernel of the same name and grid is taken for other work."""


@dataclass(frozen=True)
class ComparedRow:
    """One piece of work on both sides; ``status`` matched, changed (another configuration), new or gone.

    ``verdict`` is None where no ratio may be formed; ``reason`` says why, or why it is undecided. ``withdrawn`` marks a
    difference that does not survive the correction for many comparisons.
    """

    base: ComparedWork | None
    head: ComparedWork | None
    status: str
    how: str
    ratio: Ratio | None = None
    verdict: str | None = None
    withdrawn: bool = False
    reason: str = ""
    ladders: Ladders | None = None

    @property
    def shown(self) -> ComparedWork:
        """The side there is, the base if both are."""
        found = self.base or self.head
        assert found is not None
        return found


@dataclass(frozen=True)
class Difference:
    """A condition that differs, or that a row's two sides do not share. ``of_cache``: the treatment of the cache."""

    what: str
    base: str
    head: str
    refuses: bool
    of_cache: bool = False


@dataclass(frozen=True)
class Compared:
    """Everything a comparison found. ``basis`` is what the overall ratio was made of: units, operations, kernels or nothing.

    ``pairing`` and ``units``: what is compared with what, and its ratios; ``metric`` is what the overall ratio is a ratio of (period, busy or
    self), empty where there is none.

    ``refused``: differences forbid a ratio and nobody overrode that. ``shares`` of kernel time that is matched, ``judged``
    rows behind the overall ratio and the ``judged_share`` of the base's kernel time in them (1 for operations).
    """

    base: Side
    head: Side
    options: AnalysisOptions
    ops: list[ComparedRow]
    kernels: list[ComparedRow]
    differences: list[Difference]
    refused: bool
    broken: list[str]
    basis: str
    geomean: float | None
    geomean_interval: tuple[float, float] | None
    shares: tuple[float, float]
    judged: int
    judged_share: float
    winners: dict[str, str]
    same_recording: bool
    status: str
    pairing: Pairing
    units: list[UnitResult]
    metric: str
    factors: list[Factor]

    @property
    def inverted(self) -> list[ComparedRow]:
        """Operations that some protocol ranks against their self-times."""
        return [r for r in self.ops if r.ladders is not None and r.ladders.flips]


def compare_sides(
    base: Side, head: Side, options: AnalysisOptions | None = None, allow_different: bool = False,
    unit: tuple[str, str] | None = None, metric: str | None = None,
) -> Compared:  # fmt: skip
    """Return the comparison of two sides under the thresholds of the options.

    ``unit`` names what is compared on either side, ``metric`` (period, busy, self) what the verdict is about. Raises OptionError for a
    unit that a side does not have.
    """
    options = options or AnalysisOptions()
    pairing = pair_units(base.units, head.units, unit, tuple({w.name: w.inputs for w in s.ops} for s in (base, head)))  # type: ignore[arg-type]
    named = [(_operation_of(p.base, base.ops), _operation_of(p.head, head.ops)) for p in pairing.pairs]
    named = named or captured_alike(base.ops, head.ops)
    kernel_pairs = match_kernels(base.kernels, head.kernels)
    shares = _shares(base.kernels, head.kernels, kernel_pairs)
    op_pairs = match_operations(base.ops, head.ops, named)
    differences = _differences(base, head, options)
    for pair in op_pairs:
        if pair.base is not None and pair.head is not None:
            differences += _op_differences(base.ops[pair.base], head.ops[pair.head])
    if base.runs or head.runs:
        # intervals over the calls of one run hold nothing of what differs between runs
        op_pairs, kernel_pairs = [], []
    broken = [f"{side}: {s.broken}" for side, s in (("base", base), ("head", head)) if s.broken]
    broken += [
        f"{side}: the result of `{w.short_name}` is wrong: {w.wrong}"
        for side, s in (("base", base), ("head", head)) for w in s.ops if w.wrong
    ]  # fmt: skip
    refused = any(d.refuses for d in differences) and not allow_different
    silent = "not comparable" if refused else "cannot be judged" if broken else ""
    machine = not any(d.refuses and d.what == "device" for d in differences)
    ladder_ok = not (base.host_broken or head.host_broken)
    ops = _rows(base.ops, head.ops, op_pairs, silent, options)
    ops = [_with_ladder(r, machine and not silent, options) if ladder_ok and not silent else r for r in ops]
    kernels = _rows(base.kernels, head.kernels, kernel_pairs, silent, options)
    within = max(0.0, options.threshold(SAME_WITHIN))
    units = [unit_result(p, within, metric, n, machine) for n, p in enumerate(pairing.pairs)] if not silent else []
    if (
        not silent
        and base.kernels
        and head.kernels
        and min(shares) < SHARED_WORK
        and not any(r.base and r.head for r in ops)
    ):
        if not units:
            a, b = (f"{number_text.percent(share)} of its kernel time has a counterpart" for share in shares)
            differences.append(Difference("work", a, b, False))
        kernels = [_of_other_work(r, min(shares)) for r in kernels]
    basis, chosen, weights = _basis(ops, kernels, shares)
    if units and (metric is not None or not decided_by_operations(units, ops)):
        basis, chosen, weights = "units", [], []
    elif not silent and pairing.refused and basis != "operations":
        basis, chosen, weights = "nothing", [], []
    refused_work = basis == "nothing" and not silent and bool(pairing.refused)
    found = pooled([r.ratio for r in chosen if r.ratio is not None], weights) if not silent else None
    if basis == "units":
        found = units_ratio(units)
    judged_share = 1.0
    if basis == "kernels":
        total = sum(w.total_us for w in base.kernels)
        judged_share = sum(r.base.total_us for r in chosen if r.base is not None) / total if total > 0 else 0.0
    same = not silent and same_rows(base, head)
    if same:  # no chance is in it: an interval says what another recording might give
        ops, kernels = ([replace(r, verdict=r.verdict and "SAME", reason="") for r in rows] for rows in (ops, kernels))
        units = [
            replace(u, measured={name: replace(m, verdict="SAME") for name, m in u.measured.items()}) for u in units
        ]
    return Compared(
        base=base,
        head=head,
        options=options,
        ops=ops,
        kernels=kernels,
        differences=differences,
        refused=refused,
        broken=broken,
        basis=basis,
        geomean=found[0] if found else None,
        geomean_interval=found[1] if found else None,
        shares=shares,
        judged=len(chosen) if basis != "units" else len(units),
        judged_share=judged_share,
        winners=_winners(ops),
        same_recording=same,
        status="cannot-judge"
        if refused_work
        else units_status(units, found, same, options)
        if basis == "units"
        else _status(found, basis, chosen, same, bool(silent), options),
        pairing=pairing,
        units=units,
        metric=(units[0].metric if basis == "units" else "self") if found is not None else "",
        factors=comparability(
            base,
            head,
            pairing.pairs[0].work if pairing.pairs else None,
            (sum(r.head is None for r in kernels), sum(r.base is None for r in kernels)),
            [(d.base, d.head) for d in differences if d.of_cache],
            max(0.0, options.threshold(CLOCK_CHANGE)),
        ),
    )


def _shares(base: Sequence[ComparedWork], head: Sequence[ComparedWork], pairs: list[Pair]) -> tuple[float, float]:
    """Return the share of each side's kernel time in pairs of one configuration."""
    totals = [sum(w.total_us for w in side) for side in (base, head)]
    matched = [0.0, 0.0]
    for p in pairs:
        if p.base is not None and p.head is not None and _same_configuration(base[p.base], head[p.head]):
            matched[0] += base[p.base].total_us
            matched[1] += head[p.head].total_us
    a, b = (m / t if t > 0 else 0.0 for m, t in zip(matched, totals, strict=True))
    return a, b


def _differences(base: Side, head: Side, options: AnalysisOptions) -> list[Difference]:
    theirs = {c.what: c for c in head.conditions}
    found = [
        Difference(c.what, c.value, theirs[c.what].value, c.refuses)
        for c in base.conditions
        if c.what in theirs and c.value and theirs[c.what].value and c.value != theirs[c.what].value
    ]
    limit = max(0.0, options.threshold(CLOCK_CHANGE))
    a, b = base.clock_mhz, head.clock_mhz
    if a and b and abs(math.log(b / a)) > math.log1p(limit):
        found.append(Difference("SM clock", f"{a:.0f} MHz", f"{b:.0f} MHz", False))
    if base.throttled != head.throttled:
        found.append(Difference("clock held down by", base.throttled or "nothing", head.throttled or "nothing", False))
    return sorted(found, key=lambda d: not d.refuses)


def _op_differences(base: ComparedWork, head: ComparedWork) -> list[Difference]:
    found = []
    keys = [k for k in base.inputs if k in head.inputs and base.inputs[k] != head.inputs[k]]
    keys += [k for k in base.inputs.keys() ^ head.inputs.keys() if base.inputs and head.inputs]
    for key in keys[:8]:
        found.append(
            Difference(
                f"input {key} of {base.short_name}", base.inputs.get(key, "none"), head.inputs.get(key, "none"), True
            )
        )
    measure = _one_measure(base, head)[0].measure
    a, b = base.flush.get(measure, ""), head.flush.get(measure, "")
    if a and b and a != b:
        # another treatment is another number; whether rows were cleared in passing is only seen, not stated
        found.append(Difference(f"cache of {base.short_name} ({measure})", a, b, measure != "self-time", True))
    if base.method and head.method and base.method != head.method:
        found.append(Difference(f"calls of {base.short_name} told apart by", base.method, head.method, False))
    return found


def _rows(
    base: Sequence[ComparedWork], head: Sequence[ComparedWork], pairs: list[Pair], silent: str, options: AnalysisOptions
) -> list[ComparedRow]:
    within = max(0.0, options.threshold(SAME_WITHIN))
    rows = []
    for pair in pairs:
        one = base[pair.base] if pair.base is not None else None
        other = head[pair.head] if pair.head is not None else None
        if one is None or other is None:
            rows.append(ComparedRow(one, other, "gone" if other is None else "new", ""))
            continue
        same_config = _same_configuration(one, other)
        status = "matched" if same_config else "changed"
        one, other, why = _one_measure(one, other)
        if silent or why:
            rows.append(ComparedRow(one, other, status, pair.how, reason=silent or why))
            continue
        ratio = compare_medians(one.times, other.times, within, len(rows))
        rows.append(ComparedRow(one, other, status, pair.how, ratio, verdict_of(ratio, within), reason=ratio.reason))
    lost = withdrawn(
        [differs_p(r.ratio, within) if r.ratio else None for r in rows], options.threshold(FALSE_DISCOVERY)
    )
    tested = sum(r.ratio is not None and r.ratio.interval is not None for r in rows)
    for n, gone in enumerate(lost):
        if gone and rows[n].verdict in ("FASTER", "SLOWER"):
            reason = f"does not survive the correction for {tested} comparisons (Benjamini-Hochberg)"
            rows[n] = replace(rows[n], verdict="UNDECIDED", withdrawn=True, reason=reason)
    return rows


def _one_measure(base: ComparedWork, head: ComparedWork) -> tuple[ComparedWork, ComparedWork, str]:
    """Return both works with times of one kind: self-times, or the first protocol that both captures measured."""
    if base.measure == head.measure == "self-time":
        return base, head, ""
    for protocol in (*END_TO_END, *sorted(base.measured)):
        if protocol in base.measured and protocol in head.measured:
            return (
                replace(base, times=base.measured[protocol], measure=protocol),
                replace(head, times=head.measured[protocol], measure=protocol),
                "",
            )
    return base, head, "no protocol was measured on both sides"


def _of_other_work(row: ComparedRow, share: float) -> ComparedRow:
    """Take back the verdict of a kernel between sides that are not the same work: its shapes need not be the same either."""
    if row.verdict is None or (row.status == "matched" and row.how == "name" and share >= LITTLE_SHARED):
        return row
    return replace(
        row, verdict="UNDECIDED", reason="the sides are mostly different work, so this need not be the same shape"
    )


def _with_ladder(row: ComparedRow, one_machine: bool, options: AnalysisOptions) -> ComparedRow:
    if row.base is None or row.head is None or row.verdict is None:
        return row
    winner = {"FASTER": "head", "SLOWER": "base"}.get(row.verdict, "tie")
    least = max(0.0, options.threshold(SAME_WITHIN))
    return replace(row, ladders=ladders(row.base, row.head, winner, one_machine, least))


def _basis(
    ops: list[ComparedRow], kernels: list[ComparedRow], shares: tuple[float, float]
) -> tuple[str, list[ComparedRow], list[float]]:
    """Return what the overall ratio is made of, its rows and their weights."""
    matched = [r for r in ops if r.ratio is not None and r.ratio.ratio is not None]
    if matched:
        return "operations", matched, [1.0] * len(matched)
    known = [r for r in kernels if r.base and r.head and r.ratio is not None and r.ratio.interval is not None]
    if not known or min(shares) < SHARED_WORK:
        return "nothing", [], []
    return "kernels", known, [r.base.total_us for r in known if r.base is not None]


def _operation_of(unit: UnitSide, ops: Sequence[ComparedWork]) -> str:
    """Return the name of the operation that a unit is: its own, else that of the only one with as many kernels and calls."""
    if any(w.name == unit.name for w in ops):
        return unit.name
    alike = [w.name for w in ops if w.kernels_per_call == unit.kernels and w.times.count == unit.repeats]
    return alike[0] if len(alike) == 1 else unit.name


def captured_alike(base: Sequence[ComparedWork], head: Sequence[ComparedWork]) -> list[tuple[str, str]]:
    """Return the names of the one operation that each side captured, if both were given the same inputs."""
    if len(base) != 1 or len(head) != 1 or not (base[0].captured and head[0].captured):
        return []
    same = bool(base[0].inputs) and base[0].inputs == head[0].inputs
    return [(base[0].name, head[0].name)] if same else []


def decided_by_operations(units: list[UnitResult], ops: list[ComparedRow]) -> bool:
    """Return whether the units are kernels under test whose self-times compare as operations: no step, no overlap."""
    if any(u.step or u.overlapping for u in units):
        return False
    judged = {r.base.name for r in ops if r.base is not None and r.ratio is not None}
    return all(u.pair.base.name in judged for u in units)


def units_ratio(units: list[UnitResult]) -> tuple[float, tuple[float, float] | None] | None:
    """Return the ratio of the units' headline metric, over several the geometric mean, each alike."""
    measured = [u.headline for u in units]
    if len(measured) == 1 and measured[0] is not None and measured[0].ratio.ratio is not None:
        return measured[0].ratio.ratio, measured[0].ratio.interval
    known = [m.ratio for m in measured if m is not None and len(m.ratio.log_draws)]
    return pooled(known, [1.0] * len(known)) if len(known) == len(measured) and known else None


def units_status(
    units: list[UnitResult], found: tuple[float, tuple[float, float] | None] | None, same: bool, options: AnalysisOptions
) -> str:  # fmt: skip
    """Return the status of a comparison of units: of one its own verdict, of several that of their mean."""
    measured = units[0].headline
    if len(units) == 1 and measured is not None and not same:
        return measured.verdict.lower()
    return _status(found, "units", [], same, False, options)


def _winners(ops: list[ComparedRow]) -> dict[str, str]:
    """Return the winner of each protocol over all operations: by the mean of log ratios, a tie where any operation disagrees."""
    result = {}
    for protocol in PROTOCOLS:
        found = [r.ladders.winners[protocol] for r in ops if r.ladders is not None and protocol in r.ladders.winners]
        if found:
            sides = set(found) - {"tie"}
            result[protocol] = sides.pop() if len(sides) == 1 else "tie"
    return result


def _status(
    found: tuple[float, tuple[float, float] | None] | None, basis: str, chosen: list[ComparedRow], same: bool, silent: bool, options: AnalysisOptions
) -> str:  # fmt: skip
    if silent:
        return "cannot-judge"
    if same:
        return "same"
    if found is None or found[1] is None:
        return "undecided"
    if basis == "operations" and len(chosen) == 1 and chosen[0].verdict is not None:
        return chosen[0].verdict.lower()
    low, high = found[1]
    within = max(0.0, options.threshold(SAME_WITHIN))
    if high < 1 - within:
        return "faster"
    if low > 1 + within:
        return "slower"
    return "same" if low >= 1 - within and high <= 1 + within else "undecided"


def _same_configuration(one: ComparedWork, other: ComparedWork) -> bool:
    """Return whether nothing says that the configurations differ; a side may not have recorded its own."""
    return one.config == other.config or not (one.config and other.config)
