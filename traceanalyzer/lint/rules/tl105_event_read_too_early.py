"""TL105 event-read-too-early: elapsed_time is called before the end event has been reached.

Recording an event enqueues it. ``elapsed_time`` of an event that the device has not come to raises, or on some
frameworks returns what the events held before. ``--fix`` puts ``end.synchronize()`` in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Edit, Insert, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind


class EventReadTooEarly(LintRule):
    """elapsed_time is called before the end event has been reached."""

    code = "TL105"
    name = "event-read-too-early"
    fixable = True
    messages: ClassVar[dict[str, str]] = {
        "early": "`{event}` may not have been reached when elapsed_time reads it: no synchronise follows its record",
    }
    bad = (
        LintExample(
            "no synchronise",
            "import torch\na = torch.cuda.Event(enable_timing=True)\nb = torch.cuda.Event(enable_timing=True)\na.record()\nfn()\nb.record()\nprint(a.elapsed_time(b))\n",
            "import torch\na = torch.cuda.Event(enable_timing=True)\nb = torch.cuda.Event(enable_timing=True)\na.record()\nfn()\nb.record()\nb.synchronize()\n"
            "print(a.elapsed_time(b))\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "the event is waited for",
            "import torch\na = torch.cuda.Event(enable_timing=True)\nb = torch.cuda.Event(enable_timing=True)\na.record()\nfn()\nb.record()\nb.synchronize()\n"
            "print(a.elapsed_time(b))\n",
        ),
        LintExample(
            "a barrier after the loop over lists of events",
            "import torch\nfor i in range(9):\n    a[i].record()\n    fn()\n    b[i].record()\ntorch.cuda.synchronize()\nprint([s.elapsed_time(e) for s, e in zip(a, b)])\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each pair that is read with no wait behind its second record."""
        for scope in script.scopes:
            for i, step in enumerate(scope.steps):
                if step.kind is not Kind.ELAPSED:
                    continue
                recorded = max(
                    (j for j in range(i) if scope.steps[j].kind is Kind.RECORD and scope.steps[j].first == step.second),
                    default=-1,
                )
                if recorded < 0:
                    continue
                between = scope.steps[recorded + 1 : i]
                if any(s.kind in (Kind.BARRIER, Kind.TRANSFER) or "query" in s.name for s in between):
                    continue
                edits: tuple[Edit, ...] = ()
                if step.second.replace(".", "_").isidentifier() and ";" not in script.lines[step.statement - 1]:
                    edits = (Insert(step.statement, script.indent(step.statement), f"{step.second}.synchronize()"),)
                yield self.problem(script, step, {"event": step.second}, edits=edits)
