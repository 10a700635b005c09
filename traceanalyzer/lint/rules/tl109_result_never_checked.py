"""TL109 result-never-checked: nothing in the file compares a result with anything.

A kernel that leaves work out is fast. A benchmark that compares implementations, and never their results, can crown a
wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.vocabulary import CHECKS


class ResultNeverChecked(LintRule):
    """Nothing in the file compares a result with anything."""

    code = "TL109"
    name = "result-never-checked"
    level = Level.NOTE
    messages: ClassVar[dict[str, str]] = {
        "unchecked": "{regions} timed regions, and nothing in this file compares their results: a wrong implementation may win",
    }
    bad = (
        LintExample(
            "two implementations",
            "import time, torch\ndef a(f):\n    t0 = time.perf_counter()\n    f()\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n"
            "def b(g):\n    t0 = time.perf_counter()\n    g()\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "results are compared",
            "import time, torch\ndef a(f):\n    t0 = time.perf_counter()\n    f()\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n"
            "def b(g):\n    t0 = time.perf_counter()\n    g()\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n"
            "torch.testing.assert_close(f(), g())\n",
        ),
        LintExample("a single timing", "import time, torch\nt0 = time.perf_counter()\nf()\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n"),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield one problem for a file of several timed regions without any comparison."""
        timed = [r for r in script.regions if r.work]
        if len(timed) > 1 and script.on_device and not CHECKS.search(script.text):
            yield self.problem(script, timed[0].start, {"regions": str(len(timed))})
