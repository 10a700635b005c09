"""TA503 throttle: the device's clock was held down while it was measured.

What it checks
    The clock, and what NVML says holds it down, before, during and after the readings. Only a capture knows it: the
    facts come from the sidecar, not from the trace.

Why it matters
    A hot or power-limited device runs its kernels slower than the same device did a minute before. Two such numbers
    differ for no reason that lies in the kernels.

How it is decided
    Proven by a thermal or hardware slowdown during or after the readings, or by a clock under 75 % of the highest
    during them. A software power cap alone is a note: a power-capped fleet is normal.

Example
    A device at 1,005 of 1,980 MHz during the readings.

What to do
    Let it cool, lock the clocks lower, or state the clock with the time.

When it is wrong
    Clocks that were set lower on purpose (NVML then names the application clocks setting, and the rule only notes it).

References
    NVIDIA/nvbench (discards samples under 75 % of the default clock); flashinfer-ai/flashinfer#2899.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.captured import NO_SIDECAR
from traceanalyzer.doctor.example import captured, clock, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example, Rule
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold

CLOCK_SHARE = Threshold(
    "clock_share", 0.75, "clock / highest clock", "a quarter off the clock is a quarter off most kernels"
)
GRAVE = frozenset(
    {"hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "hardware power brake"}
)
ON_PURPOSE = "application clocks setting"

_HEADLINE = "the device's clock was held down during the readings"
_SPEED = "The device ran at {clock_mhz} of {most_mhz} MHz {when} the readings[[ (held down by: {reasons})]]. "


class Throttle(Rule):
    """The device's clock was held down while it was measured."""

    code = "TA503"
    name = "throttle"
    family = "clocks"
    thresholds = (CLOCK_SHARE,)
    messages: ClassVar[dict[str, Message]] = {
        "held-down": Message(_HEADLINE, _SPEED + "Its times are those of this clock, not of the device."),
        "capped": Message(_HEADLINE, _SPEED + "Times compare only with others under the same setting or cap."),
    }
    positive = Examples(
        lambda: (
            Example(
                "half the clock during the readings",
                loop(40, 10, 30),
                sidecar=lambda: captured(clocks=[clock("before", 1980, 1980), clock("during", 1005, 1980)]),
            ),
            Example(
                "a thermal slowdown",
                loop(40, 10, 30),
                sidecar=lambda: captured(clocks=[clock("during", 1900, 1980, "hardware thermal slowdown")]),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "full clock during the readings, low before them on an idle device",
                loop(40, 10, 30),
                sidecar=lambda: captured(clocks=[clock("before", 345, 1980), clock("during", 1950, 1980)]),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        sidecar = analysis.trace.meta.sidecar
        if sidecar is None:
            return self.abstain(NO_SIDECAR)
        if not sidecar.clocks:
            return self.abstain(f"no clocks were recorded: {sidecar.clocks_missing or 'no reason given'}")
        limit = analysis.options.threshold(CLOCK_SHARE)
        loaded = [c for c in sidecar.clocks if c.when != "before"]
        low = [
            c for c in loaded
            if c.when == "during" and c.sm_clock_mhz is not None and c.max_sm_clock_mhz and c.sm_clock_mhz < limit * c.max_sm_clock_mhz
        ]  # fmt: skip
        reasons = list(dict.fromkeys(r for c in loaded for r in c.throttle_reasons))
        grave = [r for r in reasons if r in GRAVE]
        if not low and not reasons:
            return []
        shown = low[0] if low else next(c for c in loaded if c.throttle_reasons)
        # a lower clock that was asked for is no fault, and it has a name
        wanted = ON_PURPOSE in reasons and not grave
        suspect = bool(grave or low) and not wanted
        return [
            self.say(
                "held-down" if suspect else "capped",
                Severity.WARNING if suspect else Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {
                    "clock_mhz": shown.sm_clock_mhz or "an unknown number",
                    "most_mhz": shown.max_sm_clock_mhz or "unknown",
                    "when": shown.when,
                    "reasons": ", ".join(reasons),
                },
                numbers={
                    "sm_clock_mhz": shown.sm_clock_mhz,
                    "max_sm_clock_mhz": shown.max_sm_clock_mhz,
                    "threshold_clock_share": limit,
                    "temperature_c": shown.temperature_c,
                    "power_w": shown.power_w,
                },
                evidence=[],
                remedy=["let the device cool and record again, or lock its clocks and state the clock with the time"],
            )
        ]
