"""Steps for people: how long a step takes, what it is made of, and why the slowest is slow."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block, Part, short_names
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.ledger import word
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import StepRow

STEPS = 4
MODEL_SIZED = 50
"""Kernels in a call from which the repeating thing is a step of a model rather than an operation under test."""
_SLOW = 0.05
_NAME = 60


def of_models(report: ReportData) -> list[StepRow]:
    """Return the steps that are those of a model: marked as steps, or of many kernels."""
    sizes = {op.name: op.kernels_per_iteration for op in report.ops}
    return [s for s in report.steps if s.method == "ProfilerStep" or sizes.get(s.name, 0) >= MODEL_SIZED]


def brief_steps(report: ReportData) -> Block | None:
    """Return the steps of a model with what the slowest of the first kind waited for; None where there are none."""
    found = of_models(report)
    if not found:
        return None
    short = short_names(report)
    shown = _table(found[:STEPS], short)
    more = f"{STEPS} of {len(found)}; " if len(found) > STEPS else ""
    title = f"Steps ({more}per step; all: --section steps)"
    notes = [text for step in found[:1] if (text := slowest(step))]
    return Block(title, shown.columns, shown.rows, notes=notes, compact=True)


def _table(steps: list[StepRow], short: dict[str, str]) -> Block:
    rows = [
        [
            short.get(s.name, s.name), show.count(s.n), show.duration(s.p50_us), _range(s.min_us, s.max_us),
            show.duration(s.busy_p50_us), show.duration(s.wait_p50_us),
        ]
        for s in steps
    ]  # fmt: skip
    return Block("", ["step", "n", "median", "range", "device busy", "host waits"], rows)


def _range(low_us: float, high_us: float) -> str:
    low, high = show.duration(low_us), show.duration(high_us)
    if low == high:
        return low
    # one unit for both where they have the same
    return f"{low.split()[0]}-{high}" if low.split()[1] == high.split()[1] else f"{low}-{high}"


def slowest(step: StepRow) -> str:
    """Return why the slowest step is slow, empty where it is within 5 % of the median or nothing explains it."""
    slow = step.slowest
    if slow.over_p50_us < _SLOW * step.p50_us:
        return ""
    text = f"slowest: the {show.nth(slow.index + 1)}, at {show.moment(round(slow.at_us))}: {show.duration(slow.us)}, {show.duration(slow.over_p50_us)} over the median"
    if slow.cause and slow.cause_us is not None:
        name = terminal(slow.cause_name, _NAME)
        what = "host work outside of the device's span" if slow.cause == "outside" else word(slow.cause)
        text += f"; {show.duration(slow.cause_us)} more {what}{f' ({name})' if name else ''}"
    return text


def full_steps(report: ReportData, top: int) -> list[Part]:
    """Return all steps, with the slowest of each kind."""
    if not report.steps:
        return []
    short = short_names(report)
    shown = report.steps[:top]
    table = _table(shown, short)
    margins = [[show.duration(s.before_first_p50_us), show.duration(s.after_last_p50_us)] for s in shown]
    table = replace(
        table, columns=[*table.columns, "before first", "after last"],
        rows=[[*row, *ends] for row, ends in zip(table.rows, margins, strict=True)],
    )  # fmt: skip
    notes = [
        "a step is its time on the host, from its begin to its end; device busy: of its launches' device; host waits: in calls "
        "that wait for the device; before first, after last: its time before the first and after the last device row in it"
    ]
    notes += [
        f"{terminal(short.get(s.name, s.name), _NAME)}: {text}" for s in report.steps[:top] if (text := slowest(s))
    ]
    if len(report.steps) > top:
        notes.append(f"{show.plural(len(report.steps) - top, 'more kind')} of step (all in JSON)")
    return [Block("Steps", table.columns, table.rows, notes=notes)]


def steps_line(report: ReportData) -> str:
    """Return the steps of a model as one sentence, empty where there are none."""
    found = of_models(report)
    if not found:
        return ""
    s = found[0]
    name = short_names(report).get(s.name, s.name)
    text = f"{show.plural(s.n, 'step')} ({name}): median {show.duration(s.p50_us)}, {_range(s.min_us, s.max_us)}"
    return text + (f"; and {show.plural(len(found) - 1, 'more kind')} of step" if len(found) > 1 else "")
