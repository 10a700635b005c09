"""Frozen values of a second opinion: another tool's numbers next to ours, each difference with its verified causes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cause:
    """Why two numbers differ, and by how much: what the number changed when the cause alone was taken away."""

    cause: str
    amount: float


@dataclass(frozen=True)
class OpinionRow:
    """One quantity. ``unit``: us or rows. ``ours - theirs`` is the sum of the causes and ``unexplained``.

    ``theirs`` is None where the other tool gives no number, ``ours`` where the two cannot be compared; ``note`` says why.
    ``unexplained`` is what no cause accounts for, None where nothing is left over. ``theirs_unrounded`` is what the other
    tool gives with times as the file writes them where its rounding alone leaves it without a number.
    """

    quantity: str
    unit: str
    ours: float | None
    theirs: float | None
    causes: list[Cause] = field(default_factory=list)
    unexplained: float | None = None
    note: str = ""
    theirs_unrounded: float | None = None


@dataclass(frozen=True)
class SecondOpinion:
    """What another tool says of the same file. ``error`` is one line, empty where it ran; then there are no rows."""

    tool: str
    error: str
    rows: list[OpinionRow] = field(default_factory=list)
