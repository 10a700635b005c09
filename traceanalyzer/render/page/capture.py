"""The page of a capture that left readings and no trace; with a trace they are a section of the report's page."""

from __future__ import annotations

from traceanalyzer.render.measured import conditions_lines, measured
from traceanalyzer.render.page.measured import clocks, measured_charts
from traceanalyzer.render.page.sheet import Sheet, SheetPart, sheet_page
from traceanalyzer.report.captured import Sidecar


def capture_page(capture: Sidecar, name: str) -> str:
    """Return the page of a capture that left readings and no trace; ``name`` is its file."""
    records = capture.operations
    wrong = [r.name for r in records if r.correctness.passed is False]
    unsteady = [r.name for r in records if not r.warm_up.steady]
    unchecked = [r.name for r in records if r.correctness.passed is None]
    status, word, said = "ok", "Result right", "its result is right"
    if wrong:
        status, word, said = "cannot-judge", "Wrong result", f"the result of {', '.join(wrong[:4])} is wrong"
    elif unsteady:
        status, word, said = "cannot-judge", "Not steady", f"the times of {', '.join(unsteady[:4])} never became steady"
    elif unchecked:
        status, word, said = "undecided", "Not checked", "its result was not checked"
    clock = clocks(capture)
    parts = [
        SheetPart("readings", "Readings", charts=measured_charts(capture), tables=measured(capture, [])),
        SheetPart(
            "conditions", "Conditions", tables=[clock] if clock is not None else [], lines=conditions_lines(capture)
        ),
    ]
    names = ", ".join(r.name for r in records[:4])
    headline = f"{names} was measured without a trace; {said}."
    device = capture.device.name or capture.device.kind
    return sheet_page(Sheet(name, headline, parts, status, word, [device], f"{capture.tool}; {capture.schema}"))
