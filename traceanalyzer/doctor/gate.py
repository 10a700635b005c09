"""When findings fail somebody's gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

LEVELS = ("note", "warning", "error")
"""Severities that ``--fail-on`` takes, least first."""
INTERNAL_RULE = "TA000"
"""A rule that failed: told, and never a reason to fail a gate."""


class Graded(Protocol):
    """A finding as a gate needs it."""

    @property
    def rule(self) -> str: ...  # noqa: D102
    @property
    def severity(self) -> str: ...  # noqa: D102


def fails(findings: Iterable[Graded], level: str) -> bool:
    """Return whether a finding is of this level or above."""
    failing = LEVELS[LEVELS.index(level) :]
    return any(f.severity in failing and f.rule != INTERNAL_RULE for f in findings)
