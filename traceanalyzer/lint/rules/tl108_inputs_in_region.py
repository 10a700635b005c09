"""TL108 inputs-in-region: inputs are made or moved inside of the timed loop.

A random tensor, an allocation or a copy from the host in each turn is timed with the work; often it takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind


class InputsInRegion(LintRule):
    """Inputs are made or moved inside of the timed loop."""

    code = "TL108"
    name = "inputs-in-region"
    messages: ClassVar[dict[str, str]] = {
        "made": "`{maker}` makes an input in each turn of the timed loop: its time is part of the reading",
        "moved": "`{maker}` moves data in each turn of the timed loop: its time is part of the reading",
    }
    bad = (
        LintExample(
            "a random input in each turn",
            "import time, torch\nt0 = time.perf_counter()\nfor _ in range(9):\n    x = torch.randn(9, device='cuda')\n    fn(x)\ntorch.cuda.synchronize()\n"
            "print(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "an input that is made before",
            "import time, torch\nx = torch.randn(9, device='cuda')\nt0 = time.perf_counter()\nfor _ in range(9):\n    fn(x)\ntorch.cuda.synchronize()\n"
            "print(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "the making is what is timed",
            "import time, torch\nt0 = time.perf_counter()\nfor _ in range(9):\n    torch.randn(9, device='cuda')\ntorch.cuda.synchronize()\n"
            "print(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for the first maker in each loop of a region that holds other work too."""
        if not script.on_device:
            return
        for region in script.regions:
            seen: set[tuple[int, ...]] = set()
            for step in region.steps:
                inner = region.inner_loops(step)
                if step.kind is not Kind.MAKE or not region.counted(step) or inner in seen or region.long:
                    continue
                if step.argument == "move" and not step.target:
                    continue  # an argument of the call, or a result that is fetched
                if any(w.loops == step.loops and w.line > step.line for w in region.work):
                    seen.add(inner)
                    moved = step.argument == "move"
                    yield self.problem(
                        script, step, {"maker": step.name}, code="moved" if moved else "made",
                        level=Level.NOTE if moved else None,
                    )  # fmt: skip
