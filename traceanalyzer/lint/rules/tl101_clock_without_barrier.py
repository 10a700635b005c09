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
        "no-barrier": "the clock is read without a barrier after `{work}`: it reads the time to enqueue, not the work",
        "timeit": "`{work}` reads the clock around `{call}`, which does not wait for the device: it reads the time to enqueue",
    }
    bad = (
        LintExample(
            "timeit",
            "import timeit, torch\nx = torch.randn(9, device='cuda')\nprint(timeit.timeit(lambda: torch.mm(x, x), number=9))\n",
        ),
        LintExample(
            "a product of matrices, and a machine that may have no device",
            "import time, torch\nx = torch.randn(9, 9).to('cuda' if torch.cuda.is_available() else 'cpu')\nt0 = time.perf_counter()\ny = x @ x\n"
            "print(time.perf_counter() - t0)\n",
            "import time, torch\nx = torch.randn(9, 9).to('cuda' if torch.cuda.is_available() else 'cpu')\nif torch.cuda.is_available():\n"
            "    torch.cuda.synchronize()\nt0 = time.perf_counter()\ny = x @ x\nif torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
            "print(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "a step of training that a method of the class makes",
            "import time, torch\nclass T:\n    def train_step(self, x):\n        self.model(x).mean().backward()\n        self.optimizer.step()\n"
            "    def fit(self, x):\n        t0 = time.perf_counter()\n        self.train_step(x.cuda())\n        return time.perf_counter() - t0\n",
        ),
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
            "a barrier after the loop",
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
        LintExample(
            "the cache of a compiler",
            "import time, jax\nt0 = time.time()\nfound, spent = _cache_read(module, key, backend)\nprint(time.time() - t0)\n",
        ),
        LintExample(
            "a context manager: what is timed is its caller's",
            "import time, torch\nfrom contextlib import contextmanager\n@contextmanager\ndef timer(x):\n    t0 = time.time()\n    torch.mm(x.cuda(), x)\n"
            "    yield\n    print(time.time() - t0)\n",
        ),
        LintExample(
            "tensors of the host, in a file that has a device too",
            "import time, torch\nd = torch.ones(9).cuda()\na = torch.randn(9, 9)\nt0 = time.time()\nb = torch.mm(a, a)\nprint(time.time() - t0)\n"
            "def measure_cpu(model, x):\n    t0 = time.time()\n    model(x)\n    return time.time() - t0\n",
        ),
        LintExample(
            "the branch for machines without a device",
            "import time, torch\ndef run(model, x):\n    if x.is_cuda:\n        torch.cuda.synchronize()\n    else:\n        t0 = time.time()\n"
            "        model(x)\n        return time.time() - t0\n",
        ),
        LintExample(
            "a function that is handed to the host's benchmark",
            "import time, torch\ndef fn():\n    torch.mm(x.cuda(), x)\ndef benchmark_cpu(fn):\n    t0 = time.time()\n    fn()\n    return time.time() - t0\n",
        ),
        LintExample(
            "a regular expression is compiled for the host",
            "import re, time, jax\nR = re.compile('a')\nt0 = time.time()\nm = R.match(path)\nprint(time.time() - t0)\n",
        ),
        LintExample(
            "a script whose one device is the host",
            "import time, torch\ndevice = 'cpu'\nmodel = Net().to(device)\nx = torch.ones(9).to(device)\nt0 = time.time()\nmodel(x)\nprint(time.time() - t0)\n",
        ),
        LintExample(
            "copies on the host, by their names",
            "import time, torch\nx_cpu = x.cuda().cpu()\nt0 = time.time()\nwalk(x_cpu, mask_cpu)\nprint(time.time() - t0)\n",
        ),
        LintExample(
            "a limit of time",
            "import time, torch\ndef wait_until(model, x):\n    t0 = time.time()\n    while time.time() - t0 < 9:\n        model(x.cuda())\n"
            "    assert time.time() - t0 < 10\n",
        ),
        LintExample(
            "a transfer in each turn: one turn at most is missing",
            "import time, torch\nt0 = time.time()\nfor x in data:\n    loss = model(x.cuda())\n    total += loss.item()\n    loss.backward()\nprint(time.time() - t0)\n",
        ),
        LintExample(
            "whole steps of a program, which fetch their own results",
            "import time, torch\nt0 = time.time()\nout = model.generate(x.cuda())\nprint(time.time() - t0)\nt0 = time.time()\nimages = pipe(x.cuda())\n"
            "print(time.time() - t0)\n",
        ),
        LintExample(
            "a wait inside of a function that is mapped",
            "import time, jax\nf = jax.jit(g)\nt0 = time.time()\ny = f(x)\njax.tree_util.tree_map(lambda a: a.block_until_ready(), y)\nprint(time.time() - t0)\n",
        ),
        LintExample("no device in the file", "import time, torch\nt0 = time.time()\ntorch.mm(x, x)\nprint(time.time() - t0)\n"),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each region that no barrier ends."""
        if not script.on_device:
            return
        for scope in script.scopes:
            for step in scope.steps:
                if step.kind is Kind.REPEAT:
                    yield self.problem(script, step, {"work": step.name, "call": step.first}, code="timeit")
        for region in script.regions:
            if region.events or region.has_events:
                continue
            if region.yields or region.whole or (last := _unwaited(region)) is None:
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
    if last.statement == end.statement or end.statement <= start.last:
        return  # no line lies between the work and the reading
    if "jax" in script.frameworks and "torch" not in script.frameworks:
        # behind a loop the name may be unset, and other work may run beside what it holds
        if (
            script.binds("jax")
            and last.target.isidentifier()
            and not region.inner_loops(last)
            and not last.ifs > end.ifs
        ):
            yield Insert(end.statement, script.indent(end.statement), f"jax.block_until_ready({last.target})")
        return
    if not script.barrier or ";" in script.lines[end.statement - 1] or ";" in script.lines[start.statement - 1]:
        return
    yield Insert(end.statement, script.indent(end.statement), script.barrier)
    before = region.scope.steps[region.at - 1] if region.at else None
    if before is None or before.kind not in (Kind.BARRIER, Kind.TRANSFER):
        yield Insert(start.statement, script.indent(start.statement), script.barrier)
