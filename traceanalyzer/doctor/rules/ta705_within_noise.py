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

from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.comparison_rule import ComparisonRule, PairExample
from traceanalyzer.doctor.example import Event, kernel, launch, loop
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import short
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import FALSE_DISCOVERY, SAME_WITHIN

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.comparison import Compared, Row

_MOST = 4


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
    pair_positive: ClassVar[tuple[PairExample, ...]] = (
        PairExample("1.5 % between series that scatter by 10 %", noisy(10), noisy(9.85)),
        PairExample("half a percent, sharply measured", loop(40, 20, 10.001), loop(40, 20, 9.951)),
    )
    pair_negative: ClassVar[tuple[PairExample, ...]] = (
        PairExample("a third less, sharply measured", loop(40, 20, 15), loop(40, 20, 10)),
        PairExample("a third less, noisily measured", noisy(15), noisy(10)),
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
                f"no operation is matched, and too little kernel time to stand for the whole: {a:.0%} of base, {b:.0%} of head"
            )
        if compared.status not in ("same", "undecided") or compared.geomean is None:
            return []
        low, high = compared.geomean_interval or (None, None)
        message = f"Over {compared.judged} kernels the ratio is {compared.geomean:.4f}{_interval(low, high)}: no claim of a difference is supported."
        return [self._found(compared, "all kernels", message, compared.geomean, (low, high), None)]

    def _operations(self, compared: Compared, rows: list[Row]) -> list[Finding]:
        if not rows:
            return []
        more = f" And {len(rows) - _MOST} more operations." if len(rows) > _MOST else ""
        within = compared.options.threshold(SAME_WITHIN)
        message = " ".join(_sentence(r, within) for r in rows[:_MOST]) + more
        ratio = rows[0].ratio
        interval = ratio.interval if ratio and ratio.interval else (None, None)
        needed = [r.ratio.n_needed for r in rows if r.ratio and r.ratio.n_needed]
        subject = rows[0].shown.name if len(rows) == 1 else f"{len(rows)} operations"
        return [
            self._found(compared, subject, message, ratio.ratio if ratio else None, interval, max(needed, default=None))
        ]

    def _found(
        self, compared: Compared, subject: str, message: str, ratio: float | None, interval: tuple[float | None, float | None], needed: int | None
    ) -> Finding:  # fmt: skip
        numbers: dict[str, float | int | str | None] = {
            "ratio": _rounded(ratio), "ratio_low": _rounded(interval[0]), "ratio_high": _rounded(interval[1]), "n_needed": needed,
            "threshold_same_within": compared.options.threshold(SAME_WITHIN),
        }  # fmt: skip
        remedy = ["claim no difference", "record more calls, interleaved, with steady clocks"]
        return self.finding(
            Severity.NOTE,
            Grade.DERIVED,
            Subject(SubjectKind.OPERATION, name=subject),
            "within noise",
            message,
            numbers,
            [],
            remedy,
        )


def _sentence(row: Row, within: float) -> str:
    ratio, name = row.ratio, short(row.shown.name)
    low, high = ratio.interval if ratio and ratio.interval else (None, None)
    text = f"ratio {ratio.ratio:.4f}{_interval(low, high)}" if ratio and ratio.ratio is not None else "no ratio"
    if row.verdict == "SAME":
        return f"`{name}` is the same: {text}, inside {100 * max(0.0, within):.3g} %."
    why = f" ({row.reason})" if row.reason else ""
    needed = f" About {ratio.n_needed:,} values per side would decide." if ratio and ratio.n_needed else ""
    return f"`{name}`: {text} supports no claim{why}.{needed}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" (95 % interval {low:.4f} to {high:.4f})"
