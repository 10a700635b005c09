"""TL110 wrong-barrier: the barrier waits for another framework, or for another device, than the work.

``torch.cuda.synchronize`` does not know what JAX has enqueued, nor what runs on an Intel or Apple GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script

_OTHERS = {"torch-cuda": "cuda", "torch-xpu": "xpu", "torch-mps": "mps"}


class WrongBarrier(LintRule):
    """The barrier waits for another framework, or for another device, than the work."""

    code = "TL110"
    name = "wrong-barrier"
    messages: ClassVar[dict[str, str]] = {
        "framework": "`{barrier}` waits for {waits}, and this file runs {runs}: use {better}",
        "device": "`{barrier}` waits for cuda, and this file names only {runs}: use {better}",
    }
    bad = (
        LintExample(
            "torch's barrier after jax",
            "import time, jax, torch\nf = jax.jit(g)\nt0 = time.perf_counter()\ny = jax.numpy.dot(a, b)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "cuda's barrier on an Intel GPU",
            "import time, torch\nx = x.to('xpu')\nt0 = time.perf_counter()\nf(x)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "each has its own",
            "import time, jax, torch\nf = jax.jit(g)\nt0 = time.perf_counter()\ny = jax.numpy.dot(a, b)\njax.block_until_ready(y)\nprint(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "a choice by device",
            "import time, torch\nx = x.to('cuda' if torch.cuda.is_available() else 'xpu')\nt0 = time.perf_counter()\nf(x)\ntorch.cuda.synchronize()\n"
            "print(time.perf_counter() - t0)\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each region whose only barriers are of another kind than its work."""
        for region in script.regions:
            barriers = [s for s in region.waits if s.framework]
            if not barriers or len(barriers) < len(region.waits):
                continue
            kinds = {b.framework.partition("-")[0] for b in barriers}
            named = {w.name.partition(".")[0] for w in region.work}
            for runs, better in (
                ("jax", "jax.block_until_ready(result)"),
                ("torch", script.barrier or "torch.cuda.synchronize()"),
            ):
                if runs in named and kinds and runs not in kinds and not named & kinds:
                    params = {
                        "barrier": barriers[-1].name,
                        "waits": barriers[-1].framework.partition("-")[0],
                        "runs": runs,
                        "better": better,
                    }
                    yield self.problem(script, barriers[-1], params, code="framework")
            if {b.framework for b in barriers} == {"torch-cuda"}:
                rest = re.sub(r"torch\.cuda\.\w+", "", script.text)
                others = [d for d in ("xpu", "mps") if re.search(rf"['\"]{d}['\":]", rest)]
                if len(others) == 1 and not re.search(r"cuda", rest):
                    params = {
                        "barrier": barriers[-1].name,
                        "runs": others[0],
                        "better": f"torch.{others[0]}.synchronize()",
                    }
                    yield self.problem(script, barriers[-1], params, code="device")
