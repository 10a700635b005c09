"""Every threshold by name, derived from where each is declared: the analyses and the rule files."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

from traceanalyzer.doctor.registry import ALL_RULES
from traceanalyzer.errors import OptionError
from traceanalyzer.options import ANALYSIS_THRESHOLDS, Threshold


@cache
def all_thresholds() -> dict[str, Threshold]:
    """Return the thresholds of the analyses, then those of the rules in the order of the rules. Do not change it."""
    found = dict(ANALYSIS_THRESHOLDS)
    for rule in ALL_RULES:
        found |= {t.name: t for t in rule.thresholds}
    return found


def check_thresholds(names: Iterable[str]) -> None:
    """Raise OptionError for a name that no threshold has."""
    for name in names:
        known = all_thresholds()
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(known))}"
            raise OptionError("unknown_threshold", f"no threshold is called '{name}'", hint=hint)
