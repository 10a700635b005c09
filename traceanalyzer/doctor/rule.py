"""The base of every rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Cost, Finding, Param, SeenRow, Severity
from traceanalyzer.doctor.message import Message, sentence, short, show_us
from traceanalyzer.doctor.subject import Subject
from traceanalyzer.options import Threshold
from traceanalyzer.record import record

if TYPE_CHECKING:
    from traceanalyzer.trace.sidecar import Sidecar


@record(frozen=True)
class Example:
    """A small trace (its events) and what it shows; positive examples fire the rule, negative ones do not.

    ``allows`` names other rules that may fire on it as well; ``claims`` are given with ``--claim``; ``sidecar``
    makes what lies beside the trace.
    """

    title: str
    events: tuple[dict[str, Any], ...]
    allows: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    sidecar: Callable[[], Sidecar] | None = None


class RuleBase(ABC):
    """What every rule has. The docstring of its module is its documentation, in the sections of :data:`SECTIONS`."""

    code: ClassVar[str]
    name: ClassVar[str]
    family: ClassVar[str]
    since: ClassVar[str] = "0.1.0"
    thresholds: ClassVar[tuple[Threshold, ...]] = ()
    """What it decides by: its own, declared in its file, and those of the analyses that it rests on."""
    messages: ClassVar[dict[str, Message]] = {}
    """Its messages by code: templates over parameters."""

    def say(
        self, code: str, severity: Severity, grade: Grade, subject: Subject, params: dict[str, Param], *,
        numbers: Mapping[str, Param], remedy: list[str], evidence: list[SeenRow] | None = None, cost: Cost | None = None,
    ) -> Finding:  # fmt: skip
        """Return the finding of one of this rule's messages, its sentences made from the parameters."""
        message = self.messages[code]
        return Finding(
            self.code, self.name, severity, grade, subject, sentence(message.headline, params), sentence(message.text, params),
            dict(numbers), evidence or [], remedy, code, params, cost, sentence(message.brief, params),
        )  # fmt: skip

    def abstain(self, reason: str) -> Abstained:
        """Return an abstention of this rule."""
        return Abstained(self.code, reason)

    @classmethod
    def titles(cls, fires: bool) -> list[str]:
        """Return the titles of the examples that fire it, or of those that do not."""
        kind = "positive" if fires else "negative"
        examples = (*getattr(cls, kind, ()), *getattr(cls, f"pair_{kind}", ()))
        return [e.title for e in examples]


class Rule(RuleBase):
    """One rule on one trace."""

    positive: ClassVar[Examples[Example]]
    negative: ClassVar[Examples[Example]]

    @abstractmethod
    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return findings (none: nothing wrong), or why this cannot be judged."""


__all__ = [
    "SECTIONS", "Example", "Rule", "RuleBase", "activity_evidence", "call_evidence", "overhead_evidence", "range_evidence", "short", "show_us", "us",
]  # fmt: skip

SECTIONS = (
    "What it checks", "Why it matters", "How it is decided", "Example", "What to do", "When it is wrong", "References",
)  # fmt: skip
"""Sections every rule's module docstring has, in this order."""


def activity_evidence(analysis: Analysis, row: int, note: str = "") -> SeenRow:
    """Return a device row as evidence."""
    rows, trace = analysis.trace.activities, analysis.trace
    return SeenRow(trace.names[rows.name[row]], int(rows.start_ns[row]), int(rows.dur_ns[row]), note)


def call_evidence(analysis: Analysis, row: int, note: str = "") -> SeenRow:
    """Return a host call as evidence."""
    calls, trace = analysis.trace.calls, analysis.trace
    start = int(calls.start_ns[row])
    return SeenRow(trace.apis[calls.api[row]], start, int(calls.end_ns[row]) - start, note)


def range_evidence(analysis: Analysis, row: int, note: str = "") -> SeenRow:
    """Return an annotation as evidence."""
    ranges, trace = analysis.trace.ranges, analysis.trace
    start = int(ranges.start_ns[row])
    return SeenRow(trace.names[ranges.name[row]], start, int(ranges.end_ns[row]) - start, note)


def overhead_evidence(analysis: Analysis, row: int, note: str = "") -> SeenRow:
    """Return a record of the profiler's own work as evidence."""
    table, trace = analysis.trace.overheads, analysis.trace
    start = int(table.start_ns[row])
    return SeenRow(trace.names[table.name[row]], start, int(table.end_ns[row]) - start, note)


def us(ns: float | None) -> float | None:
    """Return microseconds of nanoseconds, exact to a thousandth of a nanosecond; None stays None."""
    return None if ns is None else round(float(ns) / 1000, 6)
