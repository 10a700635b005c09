"""TL103 no-barrier-before-start: work from before the region is still running when the clock starts.

Warm-up calls return before they have run. Without a barrier between them and the first reading, the region pays for
what is left of them. ``--fix`` puts the barrier in front of the first reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Edit, Insert, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind

_LOOK_BACK = 200
"""Steps: work from further back is no warm-up of this region, and a long script stays linear."""


class NoBarrierBeforeStart(LintRule):
    """Work from before the region is still running when the clock starts."""

    code = "TL103"
    name = "no-barrier-before-start"
    fixable = True
    messages: ClassVar[dict[str, str]] = {
        "no-barrier": "`{work}` may still run when the clock starts: no barrier lies between them",
    }
    bad = (
        LintExample(
            "warm-up without a barrier",
            "import time, torch\nfor _ in range(3):\n    fn(x.cuda())\nt0 = time.time()\nfn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.time() - t0)\n",
            "import time, torch\nfor _ in range(3):\n    fn(x.cuda())\ntorch.cuda.synchronize()\nt0 = time.time()\nfn(x.cuda())\ntorch.cuda.synchronize()\n"
            "print(time.time() - t0)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "warm-up with a barrier",
            "import time, torch\nfor _ in range(3):\n    fn(x.cuda())\ntorch.cuda.synchronize()\nt0 = time.time()\nfn(x.cuda())\ntorch.cuda.synchronize()\n"
            "print(time.time() - t0)\n",
        ),
        LintExample(
            "nothing ran before",
            "import time, torch\nt0 = time.time()\nfn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.time() - t0)\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each region that follows a call of what it times, without a barrier between them."""
        if not script.on_device or "torch" not in script.frameworks:
            return
        for region in script.regions:
            if region.events or region.has_events or region.long or region.yields or not region.waits:
                continue  # without a barrier at its end it is TL101's
            names = {w.name for w in region.work if w.kind is Kind.WORK or region.counted(w)}
            for step in reversed(region.scope.steps[max(0, region.at - _LOOK_BACK) : region.at]):
                if step.kind in (Kind.BARRIER, Kind.TRANSFER, Kind.OPAQUE):
                    break
                if step.kind in (Kind.WORK, Kind.UNKNOWN) and step.name in names:
                    line = region.start.statement
                    edits: tuple[Edit, ...] = ()
                    if script.barrier and ";" not in script.lines[line - 1]:
                        edits = (Insert(line, script.indent(line), script.barrier),)
                    yield self.problem(script, region.start, {"work": step.name}, edits=edits)
                    break
