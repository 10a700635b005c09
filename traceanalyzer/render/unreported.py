"""A capture without a report: its readings and conditions as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.console import render_blocks
from traceanalyzer.render.measured import conditions_lines, measured

if TYPE_CHECKING:
    from traceanalyzer.report.captured import Sidecar


def render_measured(capture: Sidecar, *, width: int = 100) -> str:
    """Return the text of a capture that has no report: its readings and conditions."""
    return render_blocks(measured(capture, []), conditions_lines(capture), width=width)
