"""TL101 clock-without-barrier: the clock is read before the device has done the work.

A launch returns when the work is in the queue. Between two readings of the host's clock with no barrier in between lies
the time to enqueue, not the time of the work: a kernel of any length reads the same.

``--fix`` puts the framework's barrier in front of the second reading, and in front of the first where work came before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Insert, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Region, Script
from traceanalyzer.lint.steps import Kind, Step


class ClockWithoutBarrier(LintRule):
    """The clock is read before the device has done the work."""

    code = "TL101"
    name = "clock-without-barrier"
    fixable = True
    messages: ClassVar[dict[str, str]] = {
        "no-barrier": "the clock is read without a barrier behind `{work}`: it reads the time to enqueue, not the work",
    }
    bad = (
        LintExample(
            "torch",
            "import time, torch\nx = torch.randn(9, device='cuda')\nt0 = time.perf_counter()\ny = torch.mm(x, x)\nprint(time.perf_counter() - t0)\n",
            "import time, torch\nx = torch.randn(9, device='cuda')\ntorch.cuda.synchronize()\nt0 = time.perf_counter()\ny = torch.mm(x, x)\n"
            "torch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "a loop in a function",
            "import time\nimport torch\ndef bench(fn, n):\n    start = time.time()\n    for _ in range(n):\n        fn()\n    end = time.time()\n"
            "    return (end - start) / n\nbench(lambda: torch.ones(3, device='cuda'), 3)\n",
            "import time\nimport torch\ndef bench(fn, n):\n    torch.cuda.synchronize()\n    start = time.time()\n    for _ in range(n):\n        fn()\n"
            "    torch.cuda.synchronize()\n    end = time.time()\n    return (end - start) / n\nbench(lambda: torch.ones(3, device='cuda'), 3)\n",
        ),
        LintExample(
            "jax",
            "import time, jax\nf = jax.jit(step)\nt0 = time.time()\nout = f(x)\nt1 = time.time()\nprint(t1 - t0)\n",
            "import time, jax\nf = jax.jit(step)\nt0 = time.time()\nout = f(x)\njax.block_until_ready(out)\nt1 = time.time()\nprint(t1 - t0)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "a barrier behind the loop",
            "import time, torch\ntorch.cuda.synchronize()\nt0 = time.time()\nfor _ in range(9):\n    fn()\ntorch.cuda.synchronize()\nprint(time.time() - t0)\n",
        ),
        LintExample("a result that is fetched", "import time, torch\nt0 = time.time()\ny = model(x.cuda()).cpu()\nprint(time.time() - t0)\n"),
        LintExample(
            "a barrier in a function of the file",
            "import time, torch\ndef done():\n    torch.cuda.synchronize()\nt0 = time.time()\nfn()\ndone()\nprint(time.time() - t0)\n",
        ),
        LintExample("host work alone", "import time, torch, json\nd = 'cuda'\nt0 = time.time()\njson.load(open('a'))\nprint(time.time() - t0)\n"),
        LintExample(
            "a compiler and an exception",
            "import time, torch\nd = 'cuda'\nt0 = time.time()\nk = triton_precompile(src)\nif k is None:\n    raise Failed(d)\nprint(time.time() - t0)\n",
        ),
        LintExample("no device in the file", "import time, torch\nt0 = time.time()\ntorch.mm(x, x)\nprint(time.time() - t0)\n"),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each region that no barrier ends."""
        if not script.on_device:
            return
        for region in script.regions:
            if region.events or region.has_events:
                continue
            if region.yields or (last := _unwaited(region)) is None:
                continue
            yield self.problem(script, region.end, {"work": last.name}, edits=tuple(_edits(script, region, last)))


def _unwaited(region: Region) -> Step | None:
    """Return the last work that nothing waits for; None where something does, or might."""
    proven = [s for s in region.steps if s.kind is Kind.WORK]
    if not proven and not region.waits:
        proven = region.work
    if not proven:
        return None
    last = proven[-1]
    at = max(i for i, s in enumerate(region.steps) if s is last)
    turn = region.inner_loops(last)[:1]
    for i, step in enumerate(region.steps):
        if step.kind not in (Kind.BARRIER, Kind.TRANSFER, Kind.OPAQUE):
            continue
        # behind the work, around it in one statement (float(f(x))), or in each turn of its loop: then one turn at most is missing
        if i > at or step.statement == last.statement or (turn and region.inner_loops(step)[:1] == turn):
            return None
    return last


def _edits(script: Script, region: Region, last: Step) -> Iterator[Insert]:
    end, start = region.end, region.start
    if "jax" in script.frameworks and "torch" not in script.frameworks:
        if last.target and last.target.isidentifier() and not last.loops[len(start.loops) :]:
            yield Insert(end.statement, script.indent(end.statement), f"jax.block_until_ready({last.target})")
        return
    if not script.barrier or ";" in script.lines[end.statement - 1] or ";" in script.lines[start.statement - 1]:
        return
    yield Insert(end.statement, script.indent(end.statement), script.barrier)
    before = region.scope.steps[region.at - 1] if region.at else None
    if before is None or before.kind not in (Kind.BARRIER, Kind.TRANSFER):
        yield Insert(start.statement, script.indent(start.statement), script.barrier)
