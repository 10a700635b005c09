"""What a rule says: a finding, or an abstention with its reason."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.subject import Subject
from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum


class Severity(StrEnum):
    """How much a finding matters; it says nothing about how sure it is (that is its grade)."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


@record(frozen=True)
class SeenRow:
    """A row of the trace: what it is, its absolute start and its length in nanoseconds (None: an instant)."""

    what: str
    start_ns: int
    dur_ns: int | None
    note: str = ""


Param = float | int | str | None
"""A parameter of a message or a number of a finding."""


@record(frozen=True)
class Cost:
    """Device time that a cause cost: ``ns`` of the ``window_ns`` of a window ("span", or the name of an operation).

    ``worth`` is the share of the period that goes when the cause goes, None where no replay says.
    """

    ns: int
    window_ns: int
    window: str = "span"
    worth: float | None = None

    @property
    def share(self) -> float:
        """The cost as a part of its window, 0 to 1."""
        return min(1.0, self.ns / self.window_ns) if self.window_ns > 0 else 0.0

    @property
    def matters(self) -> float:
        """The larger of the cost's share and the worth."""
        return max(self.share, self.worth or 0.0)


@record(frozen=True)
class Finding:
    """Something a reader should know.

    ``code`` says which of its messages a rule gives and ``params`` what is in it. Made from them, and read by nothing: ``headline``
    (the start of the verdict's sentence if this finding decides it), ``brief`` (its beginning, for where it follows another; empty for
    all of it) and ``message``. ``numbers`` holds each number with its unit in its name, thresholds included. ``remedy`` lists next
    steps, most useful first. ``cost`` is None where a finding is not about time that was lost.
    """

    rule: str
    title: str
    severity: Severity
    grade: Grade
    subject: Subject
    headline: str
    message: str
    numbers: dict[str, Param] = field(default_factory=dict)
    evidence: list[SeenRow] = field(default_factory=list)
    remedy: list[str] = field(default_factory=list)
    code: str = ""
    params: dict[str, Param] = field(default_factory=dict)
    cost: Cost | None = None
    brief: str = ""


@record(frozen=True)
class Abstained:
    """A rule that could not judge, and why."""

    rule: str
    reason: str
