"""TL113 output-in-region: the timed loop prints.

Writing to a terminal takes longer than most kernels, and its time is part of the reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind


class OutputInRegion(LintRule):
    """The timed loop prints."""

    code = "TL113"
    name = "output-in-region"
    level = Level.NOTE
    messages: ClassVar[dict[str, str]] = {
        "prints": "`{output}` in each turn of the timed loop: its time is part of the reading",
    }
    bad = (
        LintExample(
            "a print in each turn",
            "import time, torch\nt0 = time.perf_counter()\nfor i in range(9):\n    fn(x.cuda())\n    print(i)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "a print afterwards",
            "import time, torch\nt0 = time.perf_counter()\nfor i in range(9):\n    fn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each loop of a region that prints beside other work."""
        if not script.on_device:
            return
        for region in script.regions:
            seen: set[tuple[int, ...]] = set()
            for step in region.steps:
                inner = region.inner_loops(step)
                if (
                    step.kind is Kind.OUTPUT
                    and region.counted(step)
                    and inner not in seen
                    and not region.long
                    and any(w.loops == step.loops and w.ifs >= step.ifs for w in region.work)
                ):
                    seen.add(inner)
                    yield self.problem(script, step, {"output": step.name})
