"""TA704 not-comparable: two runs differ in more than what is compared.

What it checks
    Device, simulated or recorded, selection, input shapes and cache treatment of the operations (these refuse a
    ratio); versions, profiler options, clocks, throttling, environment switches, how calls were told apart,
    resolution (these are marked). From both traces and their sidecars, as far as each side says.

Why it matters
    A ratio between two GPUs, two shapes or a warm and a cleared cache is a correct number that answers no question.

How it is decided
    Both sides state the condition and state it differently; clocks differ by over 5 %. PROVEN. What one side does
    not say cannot differ.

Example
    Base on a V100, head on a B200.

What to do
    Record both under the same conditions. `--allow-different` compares anyway, and the finding stays.

When it is wrong
    The condition is what is being compared: two GPUs, two versions.

References
    docs/compare.md, what cannot be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.comparison_rule import ComparisonRule, PairExample
from traceanalyzer.doctor.example import loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.subject import Subject
from traceanalyzer.options import CLOCK_CHANGE

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.comparison import Compared, Difference

_SAID = 4


def said(differences: list[Difference]) -> str:
    """Return differences in words: ``device (base A, head B), selection (base x, head y)``."""
    parts = [f"{d.what} (base {_cut(d.base)}, head {_cut(d.head)})" for d in differences[:_SAID]]
    more = len(differences) - _SAID
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}…{text[-19:]}"


def _device(name: str) -> dict[str, object]:
    return {"deviceProperties": [{"id": 0, "name": name}]}


class NotComparable(ComparisonRule):
    """Two runs differ in more than what is compared."""

    code = "TA704"
    name = "not-comparable"
    family = "comparison"
    thresholds = (CLOCK_CHANGE,)
    messages: ClassVar[dict[str, Message]] = {
        "refused": Message("not comparable: {differences}", "The sides differ in {differences}: no ratio is formed."),
        "compared-as-asked": Message(
            "not comparable: {differences}", "The sides differ in {differences}: compared all the same, as asked."
        ),
        "conditions-differ": Message(
            "conditions differ: {differences}",
            "The sides also differ in {differences}: part of any difference may be due to it.",
        ),
    }
    pair_positive = Examples(lambda: (
        PairExample("two GPUs", loop(40, 20, 14), loop(40, 20, 10), _device("Tesla V100"), _device("NVIDIA B200")),
        PairExample(
            "two versions of CUDA", loop(40, 20, 14), loop(40, 20, 10), {"cuda_runtime_version": 12040}, {"cuda_runtime_version": 13000}
        ),
    ))  # fmt: skip
    pair_negative = Examples(
        lambda: (
            PairExample("one GPU", loop(40, 20, 14), loop(40, 20, 10), _device("NVIDIA B200"), _device("NVIDIA B200")),
            PairExample("one side does not name its GPU", loop(40, 20, 14), loop(40, 20, 10), _device("NVIDIA B200")),
        )
    )

    def check_pair(self, compared: Compared) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        hard = [d for d in compared.differences if d.refuses]
        soft = [d for d in compared.differences if not d.refuses]
        found = []
        if hard and compared.refused:
            found.append(self._found("refused", Severity.ERROR, hard))
        elif hard:
            found.append(self._found("compared-as-asked", Severity.WARNING, hard))
        if soft:
            found.append(self._found("conditions-differ", Severity.NOTE, soft))
        return found

    def _found(self, code: str, severity: Severity, differences: list[Difference]) -> Finding:
        numbers: dict[str, float | int | str | None] = {}
        for d in differences[:20]:
            numbers |= {f"base {_cut(d.what)}": _cut(d.base), f"head {_cut(d.what)}": _cut(d.head)}
        remedy = ["record both sides under the same conditions"]
        if severity is Severity.ERROR:
            remedy.append("if the difference is what you compare: --allow-different")
        return self.say(
            code,
            severity,
            Grade.PROVEN,
            Subject(text="comparison"),
            {"differences": said(differences)},
            numbers=numbers,
            evidence=[],
            remedy=remedy,
        )
