"""The documentation of rules as values, for pages that print it with the findings."""

from __future__ import annotations

from collections.abc import Iterable

from traceanalyzer.doctor.docs import sections, summary
from traceanalyzer.doctor.registry import ALL_RULES
from traceanalyzer.report.charts.model import RuleText


def rule_texts(codes: Iterable[str]) -> list[RuleText]:
    """Return the documentation of the given rules, each once, in the order of the registry."""
    wanted = set(codes)
    return [
        RuleText(
            code=rule.code,
            name=rule.name,
            summary=summary(rule),
            sections=[(title, " ".join(body.split())) for title, body in sections(rule).items()],
            thresholds=[f"{t.name} = {t.default:g} {t.unit}: {t.reason}" for t in rule.thresholds],
        )
        for rule in ALL_RULES
        if rule.code in wanted
    ]
