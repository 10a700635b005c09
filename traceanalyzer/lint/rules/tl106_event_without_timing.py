"""TL106 event-without-timing: an event that is used for a time was made without timing.

``torch.cuda.Event()`` records no time unless it is made with ``enable_timing=True``; ``elapsed_time`` of it raises.
``--fix`` adds the argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Edit, Problem, Replace
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind


class EventWithoutTiming(LintRule):
    """An event that is used for a time was made without timing."""

    code = "TL106"
    name = "event-without-timing"
    fixable = True
    messages: ClassVar[dict[str, str]] = {
        "no-timing": "`{event}` is made without enable_timing=True: elapsed_time of it raises",
    }
    bad = (
        LintExample(
            "no argument",
            "import torch\na = torch.cuda.Event()\nb = torch.cuda.Event()\na.record()\nfn()\nb.record()\nb.synchronize()\nprint(a.elapsed_time(b))\n",
            "import torch\na = torch.cuda.Event(enable_timing=True)\nb = torch.cuda.Event(enable_timing=True)\na.record()\nfn()\nb.record()\nb.synchronize()\n"
            "print(a.elapsed_time(b))\n",
        ),
        LintExample(
            "two events made in one statement",
            "import torch\na, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event()\na.record()\nfn()\nb.record()\nb.synchronize()\n"
            "print(a.elapsed_time(b))\n",
            "import torch\na, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)\na.record()\nfn()\nb.record()\n"
            "b.synchronize()\nprint(a.elapsed_time(b))\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "an event for order alone", "import torch\na = torch.cuda.Event()\na.record()\ntorch.cuda.current_stream().wait_event(a)\n"
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each event without timing that elapsed_time reads in the same scope."""
        for scope in script.scopes:
            timed = {v for s in scope.steps if s.kind is Kind.ELAPSED for v in (s.first, s.second)}
            for step in scope.steps:
                if step.kind is Kind.EVENT and not step.argument and step.target in timed:
                    line = script.lines[step.line - 1]
                    call = line.find("Event()", step.column)
                    edits: tuple[Edit, ...] = ()
                    if call >= 0:
                        edits = (Replace(step.line, call, "Event()", "Event(enable_timing=True)"),)
                    yield self.problem(script, step, {"event": step.target}, edits=edits)
