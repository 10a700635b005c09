"""The text report: one screen, all of it, or some of its sections."""

from __future__ import annotations

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.console import render_console
from traceanalyzer.render.screen import render_screen
from traceanalyzer.report.model import ReportData


def text_report(report: ReportData, settings: RenderSettings) -> str:
    """Return the report that fits a screen, all of it where it was asked for in full, or the sections that were named."""
    if settings.full or settings.sections:
        return render_console(
            report, top=settings.top or 20, width=settings.width, color=settings.color, sections=settings.sections
        )
    return render_screen(report, top=settings.top or 10, width=settings.width, color=settings.color)
