"""Runs the rules. A rule that crashes is a finding about us, not the end of the report."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.registry import RULES, SUPPRESSES
from traceanalyzer.doctor.rule import Rule

INTERNAL = "TA000"
"""Code of a finding about this tool itself."""


def diagnose(analysis: Analysis, rules: Sequence[type[Rule]] = RULES) -> tuple[list[Finding], list[Abstained]]:
    """Return findings, gravest first and in rule order within a severity, and abstentions in rule order."""
    findings: list[Finding] = []
    abstentions: list[Abstained] = []
    for rule_type in rules:
        try:
            result = rule_type().check(analysis)
        except Exception as error:  # a rule's fault must not lose the report
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            line = where.tb_lineno if where is not None else 0
            findings.append(
                Finding(
                    INTERNAL, "internal-error", Severity.NOTE, Grade.PROVEN, rule_type.code, "a rule failed",
                    f"Rule {rule_type.code} failed ({type(error).__name__}, line {line}); its subject was not judged. This is a fault "
                    "of traceanalyzer, not of the trace.",
                    {}, [], ["please report it with the trace"],
                )
            )  # fmt: skip
            abstentions.append(Abstained(rule_type.code, "the rule itself failed"))
            continue
        if isinstance(result, Abstained):
            abstentions.append(result)
        else:
            findings.extend(result)
    findings = _without_suppressed(findings)
    findings.sort(key=lambda f: f.severity.rank)
    return findings, abstentions


def _without_suppressed(findings: list[Finding]) -> list[Finding]:
    """Drop findings whose cause another finding already names."""
    silenced = {(code, f.subject) for f in findings for code in SUPPRESSES.get(f.rule, ())}
    devices = {code for f in findings if f.subject.startswith("device ") for code in SUPPRESSES.get(f.rule, ())}
    return [f for f in findings if (f.rule, f.subject) not in silenced and f.rule not in devices]
