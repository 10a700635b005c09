"""What the step has to say: the gravest verdicts, the blocks of the summary and the comment, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from traceanalyzer.action.inputs import Fault
from traceanalyzer.errors import ExitCode

SUMMARY_BYTES = 1_000_000
"""A step summary takes 1 MiB."""
COMMENT_BYTES = 65_000
"""A comment takes 65,536 characters; bytes are no fewer."""
MARKER = "<!-- traceanalyzer:report -->"
"""First line of summary and comment: the same for every set of traces, so that a bot finds its comment by it."""

_GRAVEST_FIRST = ("bad-input", "slower", "cannot-judge", "undecided", "suspect", "same", "ok", "faster")
_ROOM_FOR_NOTES = 200
_MOST_CHARACTERS = 2_000


@dataclass
class Outcome:
    """Grows with each trace. ``comparison`` is empty where nothing was compared."""

    verdict: str = "ok"
    comparison: str = ""
    gate_failed: bool = False
    blocks: list[str] = field(default_factory=list)

    def bad_input(self, fault: Fault) -> None:
        """Note an input, a trace or a pattern that is wrong."""
        self.verdict = "bad-input"
        # an indented line is code, and one line holds nothing that ends it
        text = "".join(c if c.isprintable() else " " for c in f"{fault.what}: {fault.message}")
        self.blocks.append(f"### GPU trace report: BAD INPUT\n\n    {text[:_MOST_CHARACTERS]}\n")

    @property
    def status(self) -> ExitCode:
        """What the step found, whether or not it has a gate."""
        verdicts = (self.verdict, self.comparison)
        if "bad-input" in verdicts:
            return ExitCode.BAD_INPUT
        if self.gate_failed:
            return ExitCode.FINDINGS
        return ExitCode.CANNOT_JUDGE if "cannot-judge" in verdicts else ExitCode.OK


def graver(verdicts: Iterable[str]) -> str:
    """Return the gravest of the verdicts; one that is not known is no pass."""
    known = (v if v in _GRAVEST_FIRST else "cannot-judge" for v in verdicts)
    return min(known, key=_GRAVEST_FIRST.index)


def assembled(blocks: Sequence[str], most_bytes: int) -> str:
    """Return the blocks that fit into so many bytes of UTF-8, and how many do not."""
    size, left, shown = _ROOM_FOR_NOTES, 0, [MARKER]
    for block in blocks:
        taken = len(block.encode("utf-8", "surrogateescape")) + 1
        if size + taken > most_bytes:
            left += 1
            continue
        size += taken
        shown.append(block)
    if left:
        shown.append(f"Left out for want of room: {left} more. The log has every verdict.")
    return "\n".join(shown) + "\n"
