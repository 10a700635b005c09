"""TL109 result-never-checked: nothing in the file compares a result with anything.

A kernel that leaves work out is fast. A benchmark that compares implementations, and never their results, can crown a
wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.vocabulary import CHECKS

_COMPARES = re.compile(r"speed[-_ ]?up|times faster|x faster", re.I)
"""The script compares implementations."""


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
            "def b(g):\n    t0 = time.perf_counter()\n    g()\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n"
            "print('speedup', a(f) / b(g))\n",
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
        if not script.on_device or not _COMPARES.search(script.text) or CHECKS.search(script.text):
            return
        timed = [r for r in script.regions if r.work and not r.long]
        if len({frozenset(w.name for w in r.work) for r in timed}) > 1:
            yield self.problem(script, timed[0].start, {"regions": str(len(timed))})
