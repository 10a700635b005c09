"""Every threshold by name, derived from where each is declared: the analyses and the rule files."""

from __future__ import annotations

from functools import cache

from traceanalyzer.doctor.registry import ALL_RULES
from traceanalyzer.options import ANALYSIS_THRESHOLDS, Threshold


@cache
def all_thresholds() -> dict[str, Threshold]:
    """Return the thresholds of the analyses, then those of the rules in the order of the rules. Do not change it."""
    found = dict(ANALYSIS_THRESHOLDS)
    for rule in ALL_RULES:
        found |= {t.name: t for t in rule.thresholds}
    return found
