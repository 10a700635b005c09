"""The base of rules on the ledger: a cause, the segments that it owns, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.ledger import LedgerClass, UnitKind, WorthUnit
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.advice import Advice
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.causes import causes as causes_of
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.rule import Rule, us
from traceanalyzer.options import COST_SHARE, MENTION_SHARE, Threshold
from traceanalyzer.trace.tables import Bool

CLOCKS = "host and device clocks disagree; what the host did while the device was idle cannot be told"
WORTH = (
    "[[ By a replay, {change:without} {unit:unit} would take {then_ns:time} instead of {now_ns:time}.]]"
    "[[ Ending this alone would gain little: by a replay, {change:without} {unit:unit} would take {little_ns:time} instead of {now_ns:time}.]]"
)
"""What the end of a cause would be worth, by a replay of the run's own rows (docs/worth.md)."""
Remedy = str | Callable[[Analysis], str]
"""A sentence, or what makes it of the trace."""
LEAST_GAIN = 0.005
"""A replay that gains less says that the change is worth nothing."""
LITTLE_OF_COST = 0.25
"""A gain this far below the cost is said to be little: something else takes the place of the cause."""
NO_LEDGER = "there is no device row, so that no time can be given a cause"


class LedgerRule(Rule):
    """A rule whose cause is a part of each device's ledger. It fires from ``mention_share`` of the span on, and warns from ``cost_share`` on."""

    thresholds: ClassVar[tuple[Threshold, ...]] = (MENTION_SHARE, COST_SHARE)
    causes: ClassVar[tuple[LedgerClass, ...]] = ()
    change: ClassVar[str] = ""
    """The counterfactual replay that takes the cause away; empty where there is none."""
    least: ClassVar[Threshold] = MENTION_SHARE
    """The share of the span from which on it is spoken of."""
    warns_from: ClassVar[Threshold] = COST_SHARE
    """The share of the span from which on it is a warning."""
    needs_host: ClassVar[bool] = True
    """Whether the cause lies between host and device rows, so that their clocks must agree."""
    grade: ClassVar[Grade] = Grade.PROVEN
    remedies: ClassVar[tuple[Remedy, ...]]
    """What to do, most useful first."""

    def __init_subclass__(cls) -> None:
        """Let each message end with what the end of the cause would be worth, where that is known."""
        super().__init_subclass__()
        cls.messages = {code: replace(m, text=m.text + WORTH) for code, m in cls.messages.items()}

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on each device whose ledger holds the cause."""
        devices = causes_of(analysis)
        if not devices:
            return self.abstain(NO_LEDGER)
        if self.needs_host and analysis.clocks.state is ClockState.DISAGREE:
            return self.abstain(CLOCKS)
        least = analysis.options.threshold(self.least)
        found = []
        for device in devices:
            found += [
                self.judged(analysis, device, mask)
                for mask in self.parts(device)
                if mask.any() and device.share(mask) >= least
            ]
        return found

    def parts(self, device: DeviceCauses) -> list[Bool]:
        """Return the segments of each finding of a device: of one, unless a rule knows the cause in several forms."""
        return [self.mask(device)]

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments of the cause."""
        return device.of(*self.causes)

    def severity(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Severity:
        """Return how much the cost matters."""
        return Severity.WARNING if device.share(mask) >= analysis.options.threshold(self.warns_from) else Severity.NOTE

    def more(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> dict[str, Param]:  # noqa: ARG002 - for rules that say more
        """Return parameters of the message besides those that all share."""
        return {}

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device."""
        params = cost_params(device, mask, self.change) | self.more(analysis, device, mask)
        return self.say(
            self.name, self.severity(analysis, device, mask), self.grade, device.subject, params,
            numbers=cost_numbers(analysis, params), evidence=device.evidence(mask), remedy=self.remedy(analysis),
            cost=device.cost(mask, self.change),
        )  # fmt: skip

    def remedy(self, analysis: Analysis) -> list[str]:
        """Return what to do, most useful first, in the words of the tool that made the run."""
        return [r if isinstance(r, str) else r(analysis) for r in self.remedies]


def cost_params(device: DeviceCauses, mask: Bool, change: str = "") -> dict[str, Param]:
    """Return the parameters that all messages on a cost share: cost, span, share, intervals, the three largest items and what the end of it is worth."""
    items = device.items(mask)
    worth = device.worth(change)
    gain = worth is not None and worth.share >= LEAST_GAIN
    little = worth is not None and worth.share < LITTLE_OF_COST * device.share(mask)
    params: dict[str, Param] = {
        "device": device.label, "cost_ns": device.ns(mask), "span_ns": device.ledger.span_ns, "share": round(device.share(mask), 6),
        "busy": round(device.busy_share, 6), "intervals": device.count(mask),
    }  # fmt: skip
    params |= {
        "change": change if worth else None,
        "unit": _unit(device.ledger.unit),
        "now_ns": worth.now_ns if worth and gain else None,
        "then_ns": worth.period_ns if worth and gain and not little else None,
        "little_ns": worth.period_ns if worth and gain and little else None,
    }
    for place, prefix in enumerate(("top", "second", "third")):
        item = items[place] if place < len(items) else None
        params |= {
            prefix: item.what if item else None, f"{prefix}_ns": item.ns if item else None, f"{prefix}_count": item.count if item else None,
            f"{prefix}_longest_ns": item.longest_ns if item else None, f"{prefix}_unnamed": item.cls.label if item and not item.named else None,
        }  # fmt: skip
    params["within"] = items[0].within if items else ""
    return params


EXCEPTIONS = "[[, {few_share:share} of it in {few:plural pause} of up to {few_longest_ns:time}]]"
LOOK_AT_PAUSES = Advice(
    "look at what the program does after the wait in the long pauses",
    " (a checkpoint, logging, garbage collection); with_stack=True names the lines",
)


def exception_params(device: DeviceCauses, mask: Bool) -> dict[str, Param]:
    """Return the parameters of EXCEPTIONS: the few long pauses that are most of a cost, None where it is spread."""
    few = device.exceptions(mask)
    if not len(few):
        return {"few": None, "few_longest_ns": None, "few_share": None}
    return {"few": len(few), "few_longest_ns": int(few[0]), "few_share": round(int(few.sum()) / device.ns(mask), 6)}


def _unit(unit: WorthUnit | None) -> str:
    """Return what is replayed as a parameter: ``step:``, ``call:NAME`` or ``iteration:KERNELS``."""
    if unit is None:
        return ""
    what = {UnitKind.STEP: "", UnitKind.CALL: unit.name, UnitKind.ITERATION: str(unit.kernels)}
    return f"{unit.kind}:{what[unit.kind]}"


def cost_numbers(analysis: Analysis, params: dict[str, Param]) -> dict[str, Param]:
    """Return the numbers of a finding on a cost."""
    cost, span = params["cost_ns"], params["span_ns"]
    assert isinstance(cost, int) and isinstance(span, int)
    return {
        "cost_us": us(cost), "span_us": us(span), "share": params["share"], "threshold_cost_share": analysis.options.threshold(COST_SHARE),
        "idle_intervals": params["intervals"], "busy_share": params["busy"], "largest": params["top"],
    }  # fmt: skip
