"""TL102 barrier-in-timed-loop: each turn of the timed loop waits for the device.

With a barrier in every iteration each call meets an empty queue: the loop reads dispatch plus latency plus kernel plus
the return of the barrier, the sum, where a run without it reads the larger of the two. Rankings invert.

``--fix`` takes the barrier out of the loop and puts it behind it. A loop that stores a reading of its own for each turn
is left alone: there the barrier belongs to the reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Delete, Edit, Insert, Problem
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind


class BarrierInTimedLoop(LintRule):
    """Each turn of the timed loop waits for the device."""

    code = "TL102"
    name = "barrier-in-timed-loop"
    fixable = True
    messages: ClassVar[dict[str, str]] = {
        "barrier": "`{barrier}` in each turn of the timed loop: the average is dispatch plus kernel, not the larger of the two",
    }
    bad = (
        LintExample(
            "an average over a loop that waits",
            "import time, torch\nt0 = time.time()\nfor _ in range(9):\n    fn(x.cuda())\n    torch.cuda.synchronize()\ndt = (time.time() - t0) / 9\n",
            "import time, torch\nt0 = time.time()\nfor _ in range(9):\n    fn(x.cuda())\ntorch.cuda.synchronize()\ndt = (time.time() - t0) / 9\n",
        ),
        LintExample(
            "between two events",
            "import torch\na = torch.cuda.Event(enable_timing=True)\nb = torch.cuda.Event(enable_timing=True)\na.record()\nfor _ in range(9):\n    fn()\n"
            "    torch.cuda.synchronize()\nb.record()\ntorch.cuda.synchronize()\nprint(a.elapsed_time(b) / 9)\n",
        ),
    )  # fmt: skip
    good = (
        LintExample(
            "a name that speaks of synchronisation and does not wait",
            "import time, torch\nt0 = time.time()\nfor _ in range(9):\n    sync_allowed(fn(x.cuda()))\nprint(time.time() - t0)\n",
        ),
        LintExample(
            "a reading for each turn",
            "import time, torch\nts = []\nfor _ in range(9):\n    t0 = time.time()\n    fn(x.cuda())\n    torch.cuda.synchronize()\n    ts.append(time.time() - t0)\n",
        ),
        LintExample(
            "a barrier after the loop",
            "import time, torch\nt0 = time.time()\nfor _ in range(9):\n    fn(x.cuda())\ntorch.cuda.synchronize()\ndt = (time.time() - t0) / 9\n",
        ),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each barrier in a loop inside of a region."""
        if not script.on_device:
            return
        for region in script.regions:
            if region.whole:
                continue
            for step in region.steps:
                inner = region.inner_loops(step)
                works = [w for w in region.work if inner and w.loops == step.loops]
                if step.kind is not Kind.BARRIER or not inner or not works or step.name == "await":
                    continue
                if any(s.kind is Kind.CLOCK and region.inner_loops(s) for s in region.steps):
                    continue  # readings of their own inside of the loop
                if step.framework == "" and "sync" not in step.name.lower():
                    continue  # a wait for something else than a device
                yield self.problem(
                    script, step, {"barrier": step.name}, edits=_edits(script, region.scope.loop_ends, step)
                )


def _edits(script: Script, ends: dict[int, int], step: object) -> tuple[Edit, ...]:
    from traceanalyzer.lint.steps import Step

    assert isinstance(step, Step)
    loop = step.loops[-1]
    text = script.lines[step.statement - 1].strip()
    if not step.alone or step.statement != step.last or ";" in text or ends.get(loop, 0) <= 0:
        return ()
    body = [
        n
        for n in range(loop + 1, ends[loop] + 1)
        if script.lines[n - 1].strip() and not script.lines[n - 1].strip().startswith("#")
    ]
    if body == [step.statement] or (len(step.loops) > 1 and step.statement != max(body)):
        return ()
    behind = text.split("#")[0].strip()
    return (Delete(step.statement, text), Insert(ends[loop] + 1, script.indent(loop), behind))
