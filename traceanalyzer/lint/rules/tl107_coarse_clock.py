"""TL107 coarse-clock: the clock can step, or stops while the process waits.

``time.time`` follows the wall clock, which is corrected while a benchmark runs; ``time.process_time`` does not count the
time in which the process waits for the device. ``time.perf_counter`` is monotonic and the finest there is.

``--fix`` takes ``time.perf_counter`` in the place of ``time.time`` where both readings are written that way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from traceanalyzer.lint.model import Edit, Level, Problem, Replace
from traceanalyzer.lint.rule import LintExample, LintRule
from traceanalyzer.lint.source import Script
from traceanalyzer.lint.steps import Kind, Step
from traceanalyzer.lint.vocabulary import COARSE_CLOCKS

_ASSIGNED = re.compile(r"\s*[\w.]+\s*(:[^=]+)?=\s*time\.\w+\(\)\s*(#.*)?$")


class CoarseClock(LintRule):
    """The clock can step, or stops while the process waits."""

    code = "TL107"
    name = "coarse-clock"
    level = Level.NOTE
    fixable = True
    messages: ClassVar[dict[str, str]] = {
        "steps": "{clock} follows the wall clock, which can be set while this runs: use {better}",
        "stops": "{clock} does not count the time in which the process waits for the device: use {better}",
    }
    bad = (
        LintExample(
            "time.time",
            "import time, torch\ntorch.cuda.synchronize()\nt0 = time.time()\nfn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.time() - t0)\n",
            "import time, torch\ntorch.cuda.synchronize()\nt0 = time.perf_counter()\nfn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n",
        ),
        LintExample(
            "process_time", "import time, torch\nt0 = time.process_time()\nfn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.process_time() - t0)\n"
        ),
    )  # fmt: skip
    good = (
        LintExample("the host alone is timed", "import time, torch\nd = 'cuda'\nt0 = time.time()\nsave_checkpoint(model)\nprint(time.time() - t0)\n"),
        LintExample("perf_counter", "import time, torch\nt0 = time.perf_counter()\nfn(x.cuda())\ntorch.cuda.synchronize()\nprint(time.perf_counter() - t0)\n"),
        LintExample("the time of day in a log", "import time, torch\nprint(time.time())\n"),
    )  # fmt: skip

    def check(self, script: Script) -> Iterator[Problem]:
        """Yield a problem for each scope that times with such a clock, once."""
        seen: set[tuple[int, str]] = set()
        for region in script.regions:
            clock = region.start.name
            if region.events or not script.on_device or clock not in COARSE_CLOCKS or region.long:
                continue
            if not any(s.kind is Kind.WORK or (s.kind is Kind.BARRIER and s.framework) for s in region.steps):
                continue
            if (id(region.scope), clock) in seen:
                continue
            seen.add((id(region.scope), clock))
            better = COARSE_CLOCKS[clock]
            # all readings of that clock in the scope belong together: one alone would mix two clocks
            readings = [s for s in region.scope.steps if s.name == clock]
            edits = [e for s in readings if (e := _edit(script, s, clock, better)) is not None]
            code = "stops" if "process_time" in clock else "steps"
            yield self.problem(
                script, region.start, {"clock": clock, "better": better}, code=code,
                edits=tuple(dict.fromkeys(edits)) if len(edits) == len(readings) and _only_subtracted(script, readings) else (),
                level=Level.WARNING if code == "stops" else None,
            )  # fmt: skip


def _only_subtracted(script: Script, readings: list[Step]) -> bool:
    """Whether the readings serve differences alone: one that is stored, printed or handed on may have to be the time of day."""
    differences = [s for scope in script.scopes for s in scope.steps if s.kind is Kind.DIFFERENCE]
    within = {(d.line, d.column) for d in differences}
    names = set()
    for reading in readings:
        if (reading.line, reading.column) in within:
            continue
        if not reading.target or not _ASSIGNED.match(script.lines[reading.statement - 1]):
            return False
        names.add(reading.target)
    clocks = [s for scope in script.scopes for s in scope.steps if s.kind is Kind.CLOCK]
    for name in names:
        uses = len(re.findall(rf"(?<![\w.]){re.escape(name)}\b", script.code))
        known = sum(name in (d.first, d.second) for d in differences)
        set_by = sum(c.target == name and (c.line, c.column) not in within for c in clocks)
        if uses != known + set_by:
            return False
    return True


def _edit(script: Script, step: Step, clock: str, better: str) -> Edit | None:
    found = script.lines[step.line - 1].find(f"{clock}(", step.column)
    return Replace(step.line, step.column, f"{clock}(", f"{better}(") if found == step.column else None
