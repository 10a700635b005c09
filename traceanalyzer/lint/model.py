"""What lint finds: a problem at a place, and the edits that would mend it."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceanalyzer.strenum import StrEnum


class Level(StrEnum):
    """``warning``: the number that the script prints is of something else. ``note``: it may mislead, or says less than it could."""

    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Insert:
    """Put a statement (of one line or more) in front of line ``line`` (from 1), indented by ``indent``."""

    line: int
    indent: str
    text: str


@dataclass(frozen=True)
class Delete:
    """Take out line ``line`` (from 1), which holds ``text`` and nothing else."""

    line: int
    text: str


@dataclass(frozen=True)
class Replace:
    """Put ``text`` in the place of ``old``, which begins at column ``column`` (from 0) of line ``line`` (from 1)."""

    line: int
    column: int
    old: str
    text: str


Edit = Insert | Delete | Replace


@dataclass(frozen=True)
class Problem:
    """One finding of a rule. ``line`` from 1, ``column`` from 1. ``edits`` is empty where only a person can mend it.

    ``cell``: of a notebook, from 1; the line is in that cell then.
    """

    rule: str
    name: str
    level: Level
    path: str
    line: int
    column: int
    params: dict[str, str] = field(default_factory=dict)
    code: str = ""
    edits: tuple[Edit, ...] = ()
    cell: int = 0


@dataclass(frozen=True)
class FileResult:
    """One file: its problems in order of place; ``fault`` where it could not be read; ``timed`` regions that were looked at."""

    path: str
    problems: list[Problem] = field(default_factory=list)
    fault: str = ""
    timed: int = 0
    ignored: int = 0
