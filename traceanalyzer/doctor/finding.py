"""What a rule says: a finding, or an abstention with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from traceanalyzer.analysis.queue import Grade


class Severity(StrEnum):
    """How much a finding matters; it says nothing about how sure it is (that is its grade)."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Evidence:
    """A row of the trace: what it is, its absolute start and its length in nanoseconds (None: an instant)."""

    what: str
    start_ns: int
    dur_ns: int | None
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """Something a reader should know.

    ``headline`` is the start of the verdict sentence if this finding decides it. ``numbers`` holds each
    number with its unit in its name, thresholds included. ``remedy`` lists next steps, most useful first.
    """

    rule: str
    title: str
    severity: Severity
    grade: Grade
    subject: str
    headline: str
    message: str
    numbers: dict[str, float | int | str | None] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    remedy: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Abstained:
    """A rule that could not judge, and why."""

    rule: str
    reason: str
