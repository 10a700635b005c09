"""TL104 first-call-in-region: the first call of the function lies inside of what is timed.

The first call compiles, tunes, loads modules and allocates: milliseconds to minutes that no later call pays. An
average over a loop holds it, a single reading is nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

from traceanalyzer.lint.model import Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Region, Script
from traceanalyzer.lint.steps import Kind, Scope, Step
from traceanalyzer.lint.vocabulary import COMPILES_LATER, WARM_NAME

_WARMS = re.compile(r"warm|dry.?run|burn.?in", re.I)


class FirstCallInRegion(LintRule):
    """The first call of the function lies inside of what is timed."""

    code = "TL104"
    name = "first-call-in-region"
    messages: ClassVar[dict[str, str]] = {
        "first": "`{work}` is called for the first time inside of the timed region: the reading holds compilation and loading",
    }
    bad = (
        LintExample(
            "no warm-up",
            "import time, torch\ndef main(fn):\n    x = torch.ones(3, device='cuda')\n    torch.cuda.synchronize()\n    t0 = time.time()\n    for _ in range(9):\n"
            "        fn(x)\n    torch.cuda.synchronize()\n    return (time.time() - t0) / 9\n",
        ),
        LintExample(
            "a compiled function: compiled at its first call, not before",
            "import time, torch\ndef main(g):\n    x = torch.ones(3, device='cuda')\n    compiled = torch.compile(g)\n    torch.cuda.synchronize()\n"
            "    t0 = time.time()\n    for _ in range(9):\n        compiled(x)\n    torch.cuda.synchronize()\n    return (time.time() - t0) / 9\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "compiled ahead of time",
            "import time, jax\ndef main(g, x):\n    f = jax.jit(g).lower(x).compile()\n    t0 = time.time()\n    for _ in range(9):\n        y = f(x)\n"
            "    y.block_until_ready()\n    return (time.time() - t0) / 9\n",
        ),
        LintExample(
            "a warm-up loop",
            "import time, torch\ndef main(fn):\n    for _ in range(3):\n        fn(x.cuda())\n    torch.cuda.synchronize()\n    t0 = time.time()\n    fn(x.cuda())\n"
            "    torch.cuda.synchronize()\n    return time.time() - t0\n",
        ),
        LintExample(
            "a function that warms up",
            "import time, torch\ndef main(fn):\n    warmup(fn, x.cuda())\n    t0 = time.time()\n    fn()\n    torch.cuda.synchronize()\n    return time.time() - t0\n",
        ),
        LintExample(
            "a helper that is called for the warm-up first",
            "import time, torch\ndef run(fn, n):\n    torch.cuda.synchronize()\n    t0 = time.time()\n    for _ in range(n):\n        fn()\n"
            "    torch.cuda.synchronize()\n    return (time.time() - t0) / n\nrun(f, 3)  # warm-up\nprint(run(f, 100))\n",
        ),
        LintExample(
            "a helper for other files: function and inputs are those of a caller, who may have warmed up",
            "import time, torch\ndef timed(model, inputs, times=1):\n    torch.cuda.synchronize()\n    t0 = time.perf_counter()\n    for _ in range(times):\n"
            "        model(*inputs)\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n",
        ),
        LintExample(
            "a training loop: each turn has a reading of its own",
            "import time, torch\nfor batch in data:\n    t0 = time.time()\n    train(batch.cuda())\n    torch.cuda.synchronize()\n    log(time.time() - t0)\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each region whose work was not called before, in that scope."""
        if not script.on_device:
            return
        if _WARMS.search(script.text):
            return  # a helper may be called for the warm-up as well
        for region in script.regions:
            looped = [
                w
                for w in region.work
                if w.kind is Kind.WORK
                and not w.name.endswith(".replay")
                and region.counted(w)
                and not w.ifs > region.start.ifs
            ]
            if (
                region.start.loops
                or _repeated(script, region)
                or region.long
                or region.yields
                or not looped
                or _warmed(region)
                or _callers_own(script, region, looped[0])
            ):
                continue
            yield self.problem(script, looped[0], {"work": looped[0].name})


def _repeated(script: Script, region: Region) -> bool:
    """Whether the function is called again and again: ``[timed(f) for _ in range(9)]``; then the first reading alone is cold."""
    name = region.scope.name
    return (
        bool(name)
        and re.search(rf"\b{re.escape(name)}\((?:[^\n]*\n){{0,3}}?[^\n]*\bfor \w+ in range\b", script.text) is not None
    )


def _callers_own(script: Script, region: Region, work: Step) -> bool:
    """Whether both function and arguments are a caller's, who is in another file and may have called them before."""
    given = region.scope.parameters
    call = re.search(rf"\b{re.escape(work.name)}\(([^()\n]*)\)", script.lines[work.line - 1])
    if call is None or work.name.partition(".")[0] not in given - {"self"}:
        return False
    used = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\w+\s*=(?!=)", "", call[1])))
    elsewhere = re.search(rf"(?<!def )\b{re.escape(region.scope.name)}\(", script.code) is None
    return bool(used) and used <= given and elsewhere


def _warmed(region: Region) -> bool:
    first, warm = _firsts(region.scope)
    if any(first.get(w.name, region.at) < region.at for w in region.work) or warm < region.at:
        return True
    if any(_warms(s) for s in region.steps):
        return True
    # a helper that gets the number of calls may be called for the warm-up as well
    return bool(WARM_NAME.search(region.scope.name))


def _warms(step: Step) -> bool:
    """Whether a call warms up, by its name or that of its result."""
    if step.name in COMPILES_LATER:
        return False
    return bool(WARM_NAME.search(step.name) or WARM_NAME.search(step.target))


@lru_cache(maxsize=8)
def _firsts(scope: Scope) -> tuple[dict[str, int], int]:
    """Return the first step that calls each function, and the first whose name says that it warms up."""
    first: dict[str, int] = {}
    warm = len(scope.steps)
    for i, step in enumerate(scope.steps):
        if step.kind in (Kind.WORK, Kind.UNKNOWN):
            first.setdefault(step.name, i)
        if warm > i and _warms(step):
            warm = i
    return first, warm
