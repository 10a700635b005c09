"""TL114 mean-of-readings: single readings are averaged.

Times of calls have a long right tail: a scheduler's pause or a garbage collection moves the mean and not the median. With
few readings the mean is decided by the slowest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind

_APPENDED = re.compile(r"(\w+)\.append\(\s*(\w+)\b")


class MeanOfReadings(LintRule):
    """Single readings are averaged."""

    code = "TL114"
    name = "mean-of-readings"
    level = Level.NOTE
    messages: ClassVar[dict[str, str]] = {
        "mean": "the mean of `{readings}` follows its slowest readings: give the median (statistics.median) with its interval",
    }
    bad = (
        LintExample(
            "numpy's mean",
            "import time, torch, numpy as np\nts = []\nfor _ in range(9):\n    t0 = time.perf_counter()\n    fn(x.cuda())\n    torch.cuda.synchronize()\n"
            "    ts.append(time.perf_counter() - t0)\nprint(np.mean(ts))\n",
        ),
        LintExample(
            "sum over len",
            "import time, torch\nts = []\nfor _ in range(9):\n    t0 = time.perf_counter()\n    fn(x.cuda())\n    torch.cuda.synchronize()\n"
            "    ts.append(time.perf_counter() - t0)\nprint(sum(ts) / len(ts))\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "the median",
            "import time, torch, statistics\nts = []\nfor _ in range(9):\n    t0 = time.perf_counter()\n    fn(x.cuda())\n    torch.cuda.synchronize()\n"
            "    ts.append(time.perf_counter() - t0)\nprint(statistics.median(ts))\n",
        ),
        LintExample(
            "the mean beside the median",
            "import time, torch, numpy as np\nts = []\nfor _ in range(9):\n    t0 = time.perf_counter()\n    fn(x.cuda())\n    torch.cuda.synchronize()\n"
            "    ts.append(time.perf_counter() - t0)\nprint(np.mean(ts), np.median(ts))\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each list of readings whose mean is taken, and neither median nor quantile."""
        if not script.on_device:
            return
        for scope in script.scopes:
            clocks = {s.target for s in scope.steps if s.kind is Kind.CLOCK}
            lines = {r.end.statement for r in script.regions if r.scope is scope} | {
                s.statement
                for s in scope.steps
                if s.kind is Kind.ELAPSED or (s.kind is Kind.DIFFERENCE and s.first in clocks)
            }
            lists = {m[1] for n in lines for m in re.finditer(r"(\w+)\.append\(", script.lines[n - 1])}
            readings = {s.target for s in scope.steps if s.statement in lines and s.target}
            for each in scope.steps:
                found = _APPENDED.search(script.lines[each.line - 1]) if each.name.endswith(".append") else None
                if found is not None and found[2] in readings:
                    lists.add(found[1])
            for name in sorted(lists):
                mean = re.compile(
                    rf"\b(?:mean|fmean|nanmean|average)\(\s*{name}\b|\b{name}\)\.mean\(|sum\(\s*{name}\s*\)\s*/\s*len\(\s*{name}"
                )
                robust = re.search(
                    rf"(?:median|quantile|percentile|min|sorted|std|stdev|var|clip\w*|trim\w*|outlier\w*)\w*\([^)]*\b{name}\b|{name}\.sort",
                    script.text,
                )
                at = next((n for n, text in enumerate(script.lines, 1) if mean.search(text)), 0)
                step = next((s for s in scope.steps if s.statement in lines), None)
                if at and not robust and step is not None:
                    from dataclasses import replace

                    yield self.problem(script, replace(step, line=at, column=0), {"readings": name})
