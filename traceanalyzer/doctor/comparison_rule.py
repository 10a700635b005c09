"""The base of rules on two traces, and how they are run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding
from traceanalyzer.doctor.rule import RuleBase
from traceanalyzer.record import record

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.comparison import Compared
    from traceanalyzer.trace.sidecar import Sidecar


@record(frozen=True)
class PairExample:
    """Two small traces (their events, other fields of the file, a sidecar) and what they show together."""

    title: str
    base: tuple[dict[str, Any], ...]
    head: tuple[dict[str, Any], ...]
    base_fields: dict[str, Any] = field(default_factory=dict)
    head_fields: dict[str, Any] = field(default_factory=dict)
    base_sidecar: Callable[[], Sidecar] | None = None
    head_sidecar: Callable[[], Sidecar] | None = None


class ComparisonRule(RuleBase):
    """One rule on a comparison; documented and tested like every rule."""

    pair_positive: ClassVar[Examples[PairExample]]
    pair_negative: ClassVar[Examples[PairExample]]

    @abstractmethod
    def check_pair(self, compared: Compared) -> list[Finding] | Abstained:
        """Return findings (none: nothing wrong), or why this cannot be judged."""


def diagnose_pair(compared: Compared, rules: Sequence[type[ComparisonRule]]) -> tuple[list[Finding], list[Abstained]]:
    """Return findings, gravest first and in rule order within a severity, and abstentions."""
    findings: list[Finding] = []
    abstentions: list[Abstained] = []
    for rule in rules:
        result = rule().check_pair(compared)
        if isinstance(result, Abstained):
            abstentions.append(result)
        else:
            findings += result
    return sorted(findings, key=lambda f: f.severity.rank), abstentions
