"""The base of every lint rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from traceanalyzer.lint.model import Edit, Level, Problem
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Step


@dataclass(frozen=True)
class LintExample:
    """A script and what it shows; ``fixed`` is what --fix makes of it, where the rule has a fix."""

    title: str
    text: str
    fixed: str = ""


class LintRule(ABC):
    """One mistake. The docstring of its module is its documentation; ``bad`` examples fire it, ``good`` ones do not.

    ``messages``: a template for each code, over the parameters of a problem.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    level: ClassVar[Level] = Level.WARNING
    fixable: ClassVar[bool] = False
    messages: ClassVar[dict[str, str]]
    bad: ClassVar[tuple[LintExample, ...]]
    good: ClassVar[tuple[LintExample, ...]]

    @abstractmethod
    def check(self, script: Script) -> Iterator[Problem]:
        """Yield the problems of a script."""

    def problem(
        self, script: Script, step: Step, params: dict[str, str] | None = None, *, code: str = "",
        edits: tuple[Edit, ...] = (), level: Level | None = None,
    ) -> Problem:  # fmt: skip
        """Return a problem at a step."""
        return Problem(
            self.code, self.name, level or self.level, script.path, step.line, step.column + 1, params or {},
            code or next(iter(self.messages)), edits,
        )  # fmt: skip
