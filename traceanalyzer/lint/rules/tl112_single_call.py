"""TL112 single-call: one call is timed once.

A single reading has no spread: nothing says whether the next one would be half or twice of it. A host clock around one
short kernel reads the dispatch, the latency and the barrier as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind


class SingleCall(LintRule):
    """One call is timed once."""

    code = "TL112"
    name = "single-call"
    level = Level.NOTE
    messages: ClassVar[dict[str, str]] = {
        "single": "`{work}` is timed once: one reading has no spread; repeat it and give the median with its interval",
    }
    bad = (
        LintExample(
            "no loop around it",
            "import time, torch\ntorch.cuda.synchronize()\nt0 = time.perf_counter()\ny = torch.mm(x, x)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "a loop inside",
            "import time, torch\nt0 = time.perf_counter()\nfor _ in range(9):\n    torch.mm(x, x)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "a loop around it",
            "import time, torch\nfor _ in range(9):\n    t0 = time.perf_counter()\n    torch.mm(x, x)\n    torch.cuda.synchronize()\n    ts.append(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "a whole program", "import time, torch\nt0 = time.perf_counter()\nmain(x.cuda())\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n"
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each region at the module's level that times one operation of a framework, once."""
        if not script.on_device:
            return
        for region in script.regions:
            direct = [w for w in region.work if w.name.partition(".")[0] in ("torch", "jax", "triton")]
            looped = any(s.loops for s in (*region.steps, region.start))
            if region.scope.name or region.events or looped or len(region.work) != 1 or not direct:
                continue
            if not any(s.kind is Kind.BARRIER for s in region.steps):
                continue
            yield self.problem(script, region.start, {"work": direct[0].name})
