"""Runs the rules. A rule that crashes is a finding about us, not the end of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.recording import not_recorded
from traceanalyzer.doctor.registry import RULES, SUPPRESSES
from traceanalyzer.doctor.rule import Rule
from traceanalyzer.doctor.subject import Subject
from traceanalyzer.options import COST_SHARE

INTERNAL = "TA000"
"""Code of a finding about this tool itself."""


def diagnose(analysis: Analysis, rules: Sequence[type[Rule]] = RULES) -> tuple[list[Finding], list[Abstained]]:
    """Return findings, gravest first, then the costliest, then in rule order, and abstentions in rule order."""
    findings: list[Finding] = []
    abstentions: list[Abstained] = []
    for rule_type in rules:
        if why := not_recorded(rule_type.code, analysis.trace):
            abstentions.append(Abstained(rule_type.code, why))
            continue
        try:
            result = rule_type().check(analysis)
        except Exception as error:  # a rule's fault must not lose the report
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            line = where.tb_lineno if where is not None else 0
            findings.append(
                Finding(
                    INTERNAL, "internal-error", Severity.NOTE, Grade.PROVEN, Subject(text=rule_type.code), "a rule failed",
                    f"Rule {rule_type.code} failed ({type(error).__name__}, line {line}); its subject was not judged. This is a fault "
                    "of traceanalyzer, not of the trace.",
                    {}, [], ["please report it with the trace"], "rule-failed",
                    {"rule": rule_type.code, "error": type(error).__name__, "line": line},
                )
            )  # fmt: skip
            abstentions.append(Abstained(rule_type.code, "the rule itself failed"))
            continue
        if isinstance(result, Abstained):
            abstentions.append(result)
        else:
            findings.extend(result)
    limit = analysis.options.threshold(COST_SHARE)
    findings = [_weighed(f, limit) for f in _without_suppressed(findings)]
    findings.sort(key=lambda f: (f.severity.rank, -(f.cost.matters if f.cost else 0.0)))
    return findings, abstentions


def _weighed(finding: Finding, limit: float) -> Finding:
    """Return a warning as a note where what it cost, and what its end would be worth, are under the limit."""
    if finding.severity is Severity.WARNING and finding.cost is not None and finding.cost.matters < limit:
        return replace(finding, severity=Severity.NOTE)
    return finding


def _without_suppressed(findings: list[Finding]) -> list[Finding]:
    """Drop findings whose cause another finding already names: of the same subject, or of one that lies within it."""
    by_rule: dict[str, list[Subject]] = {}
    for f in findings:
        for code in SUPPRESSES.get(f.rule, ()):
            by_rule.setdefault(code, []).append(f.subject)
    return [f for f in findings if not any(s.covers(f.subject) for s in by_rule.get(f.rule, ()))]
