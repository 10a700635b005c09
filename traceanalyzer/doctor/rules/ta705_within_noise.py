"""TA705 within-noise: the difference between two runs is no claim.

What it checks
    The 95 % interval of the ratio of medians, per operation; of the kernels together where no operation is matched.

Why it matters
    Two runs of the same code differ. A ratio whose interval holds 1, or that is under 1 %, is what one gets by
    running twice.

How it is decided
    FASTER or SLOWER needs the whole interval beyond 1 % (and, over several operations, survival of
    Benjamini-Hochberg). SAME lies inside 1 % altogether; everything else is undecided, with the number of values per side
    that would be expected to decide. DERIVED.

Example
    1.5 % faster over 20 noisy calls: the interval reaches from 4 % faster to 1 % slower.

What to do
    Record more calls, interleaved (A B A B), or steady the clocks; or claim nothing.

When it is wrong
    Files hold one process each: what differs between processes (allocation, autotuning, placement) is in no interval.

References
    docs/compare.md, the interval and its coverage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traceanalyzer import number_text
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.comparison_rule import ComparisonRule, PairExample
from traceanalyzer.doctor.example import Event, kernel, launch, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import FALSE_DISCOVERY, SAME_WITHIN

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.comparison import Compared, ComparedRow

_INTERVAL = "[[ (95 % interval {low:ratio} to {high:ratio})]]"


def noisy(level: float) -> tuple[Event, ...]:
    """Return 20 calls around a level in us that scatter by a tenth, without order."""
    spread = [(7 * i * i + 3 * i) % 20 / 100 - 0.1 for i in range(20)]
    return tuple(
        e
        for i, s in enumerate(spread)
        for e in (launch(40.0 * i, i + 1), kernel(40.0 * i + 5, round(level * (1 + s), 3), i + 1))
    )


class WithinNoise(ComparisonRule):
    """The difference between two runs is no claim."""

    code = "TA705"
    name = "within-noise"
    family = "comparison"
    thresholds = (SAME_WITHIN, FALSE_DISCOVERY)
    messages: ClassVar[dict[str, Message]] = {
        "all-kernels": Message(
            "within noise",
            "Over {judged:plural kernel} the ratio is {ratio:ratio}"
            + _INTERVAL
            + ": no claim of a difference is supported.",
        ),
        "unit": Message(
            "within noise",
            "The {metric} of {name:name} has the ratio {ratio:ratio}"
            + _INTERVAL
            + ": no claim of a difference is supported.",
        ),
        "few-units": Message(
            "within noise",
            "The {metric} of {name:name} has the ratio {ratio:ratio}[[ (from {low:ratio} to {high:ratio} over all pairs of values)]]: no "
            "claim of a difference is supported.",
        ),
        "same": Message(
            "within noise", "{name:name} is the same: ratio {ratio:ratio}" + _INTERVAL + ", inside {within:share}."
        ),
        "same-without-ratio": Message("within noise", "{name:name} is the same: no ratio, inside {within:share}."),
        "undecided": Message(
            "within noise",
            "{name:name}: ratio {ratio:ratio}"
            + _INTERVAL
            + " supports no claim[[ ({reason})]].[[ About {needed:plural value} per side would decide.]]",
        ),
        "undecided-without-ratio": Message("within noise", "{name:name}: no ratio supports no claim[[ ({reason})]]."),
    }
    pair_positive = Examples(
        lambda: (
            PairExample("1.5 % between series that scatter by 10 %", noisy(10), noisy(9.85)),
            PairExample("half a percent, sharply measured", loop(40, 20, 10.001), loop(40, 20, 9.951)),
        )
    )
    pair_negative = Examples(
        lambda: (
            PairExample("a third less, sharply measured", loop(40, 20, 15), loop(40, 20, 10)),
            PairExample("a third less, noisily measured", noisy(15), noisy(10)),
        )
    )

    def check_pair(self, compared: Compared) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if compared.refused or compared.broken:
            return self.abstain("no ratio was formed")
        if compared.basis == "operations":
            return self._operations(compared, [r for r in compared.ops if r.verdict in ("SAME", "UNDECIDED")])
        if any(r.base and r.head for r in compared.ops) and compared.basis == "nothing":
            return self.abstain("no matched operation has a ratio")
        if compared.basis == "nothing":
            a, b = compared.shares
            return self.abstain(
                f"no operation is matched, and too little kernel time to stand for the whole: {number_text.percent(a)} of base, {number_text.percent(b)} of head"
            )
        if compared.status not in ("same", "undecided") or compared.geomean is None:
            return []
        low, high = compared.geomean_interval or (None, None)
        params: dict[str, Param] = {"judged": compared.judged, "ratio": compared.geomean, "low": low, "high": high}
        if len(compared.units) != 1 or compared.basis != "units":
            return [self._found(compared, "all-kernels", "all kernels", params)]
        unit = compared.units[0]
        code = "few-units" if unit.headline is not None and unit.headline.few else "unit"
        name = unit.pair.base.name
        return [self._found(compared, code, name, params | {"metric": compared.metric, "name": name})]

    def _operations(self, compared: Compared, rows: list[ComparedRow]) -> list[Finding]:
        within, found = compared.options.threshold(SAME_WITHIN), []
        for row in rows:
            ratio, same = row.ratio, row.verdict == "SAME"
            low, high = ratio.interval if ratio and ratio.interval else (None, None)
            params: dict[str, Param] = {
                "name": row.shown.name, "ratio": ratio.ratio if ratio else None, "low": low, "high": high, "within": max(0.0, within),
                "reason": "" if same else row.reason, "needed": (ratio.n_needed or None) if ratio and not same else None,
            }  # fmt: skip
            code = "same" if same else "undecided"
            code = code if params["ratio"] is not None else f"{code}-without-ratio"
            found.append(self._found(compared, code, row.shown.name, params))
        return found

    def _found(self, compared: Compared, code: str, subject: str, params: dict[str, Param]) -> Finding:
        numbers: dict[str, Param] = {
            "ratio": _rounded(params["ratio"]), "ratio_low": _rounded(params["low"]), "ratio_high": _rounded(params["high"]),
            "n_needed": params.get("needed"), "threshold_same_within": compared.options.threshold(SAME_WITHIN),
        }  # fmt: skip
        return self.say(
            code,
            Severity.NOTE,
            Grade.DERIVED,
            Subject(SubjectKind.OPERATION, name=subject),
            params,
            numbers=numbers,
            remedy=["claim no difference", "record more calls, interleaved, with steady clocks"],
        )


def _rounded(value: Param) -> float | None:
    return round(value, 6) if isinstance(value, float) else None
