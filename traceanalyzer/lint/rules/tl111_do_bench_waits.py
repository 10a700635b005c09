"""TL111 do-bench-waits: the function that do_bench times waits for the device, or is a long program of its own.

do_bench hides the dispatch of a call behind its cache clear of 256 MiB: about 80 us on an H100. A call that waits inside
(``.item()``, a synchronise) begins with an empty queue, and one that dispatches for longer than the clear runs is read
with its dispatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Level, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind

_WAITS = re.compile(r"\.item\(|\.cpu\(|\.tolist\(|\.numpy\(|synchronize\(")
_LAMBDA = re.compile(r"do_bench\w*\(\s*(?:lambda[^:]*:\s*)?(?:lambda:\s*)?([A-Za-z_]\w*)")


class DoBenchWaits(LintRule):
    """The function that do_bench times waits for the device."""

    code = "TL111"
    name = "do-bench-waits"
    messages: ClassVar[dict[str, str]] = {
        "waits": "what do_bench times here waits for the device: the reading holds dispatch and latency",
        "loops": "what do_bench times here is a loop of calls: its dispatch may outlast the cache clear that is to hide it",
    }
    bad = (
        LintExample("item in the call", "from triton.testing import do_bench\nprint(do_bench(lambda: fn(x).item()))\n"),
        LintExample(
            "a function that waits",
            "import torch, triton\ndef step():\n    fn()\n    torch.cuda.synchronize()\nprint(triton.testing.do_bench(step))\n",
        ),
        LintExample(
            "a loop", "import triton\ndef step():\n    for layer in layers:\n        layer(x)\nprint(triton.testing.do_bench(lambda: step()))\n"
        ),
    )  # fmt: skip
    good = (
        LintExample("one call", "from triton.testing import do_bench\nprint(do_bench(lambda: fn(x)))\n"),
        LintExample("a result that is fetched afterwards", "from triton.testing import do_bench\nt = do_bench(lambda: fn(x))\nprint(fn(x).item())\n"),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each do_bench of a function that waits or loops."""
        for scope in script.scopes:
            for step in scope.steps:
                if step.name.rpartition(".")[2] != "do_bench" or step.name.startswith(("self.", "cls.")):
                    continue
                text = _call_text(script, step.line, step.column)
                if _WAITS.search(text):
                    yield self.problem(script, step, code="waits")
                    continue
                named = _LAMBDA.match(text)
                inner = script.functions.get(named[1]) if named else None
                if inner is None:
                    continue
                if any(s.kind in (Kind.BARRIER, Kind.TRANSFER) for s in inner.steps):
                    yield self.problem(script, step, code="waits")
                elif any(s.loops for s in inner.steps if s.kind is Kind.WORK):
                    yield self.problem(script, step, code="loops", level=Level.NOTE)


def _call_text(script: Script, line: int, column: int) -> str:
    """Return the text of the call that begins there, to its closing bracket."""
    text = "\n".join([script.lines[line - 1][column:], *script.lines[line : line + 20]])
    start = text.find("do_bench")
    depth = 0
    for i in range(max(start, 0), len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0 and text[i] == ")":
            return text[max(start, 0) : i + 1]
    return text[max(start, 0) :]
