"""One trace of the action: read and analysed once, compared with its base, and rendered in every form that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from traceanalyzer.action.apart import attempt
from traceanalyzer.action.inputs import ActionInputs
from traceanalyzer.api import analyze, compare, load_report
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.base import Renderer, RenderSettings, render
from traceanalyzer.render.formats import COMPARISON, REPORT
from traceanalyzer.render.shell import shell_line
from traceanalyzer.report.compare.build import CLAIM_RULES
from traceanalyzer.report.public import Report


@dataclass(frozen=True)
class Judged:
    """A report or a comparison: ``failed`` is the gate's word, ``block`` its Markdown; empty texts where it was not made.

    ``fault`` says why there is none; ``page_fault`` why a page that was asked for could not be made.
    """

    status: str = ""
    headline: str = ""
    failed: bool = False
    block: str = ""
    page: str = ""
    page_fault: str = ""
    fault: str = ""


@dataclass(frozen=True)
class TraceAnswer:
    """What came of a trace; ``comparison`` is None where there is nothing to compare with."""

    report: Judged
    comparison: Judged | None = None


def options_of(inputs: ActionInputs) -> AnalysisOptions:
    """Return the options of the one analysis that serves report, comparison and pages."""
    return AnalysisOptions(claims=inputs.claims, figures=inputs.pages, samples=bool(inputs.base))


def base_report(path: str, inputs: ActionInputs) -> Report:
    """Return the report of a base: a trace, or a saved report. Claims are about the traces, not about their base."""
    return load_report(path, replace(options_of(inputs), claims=()))


def judge(path: str, base: tuple[str, Report | None] | None, inputs: ActionInputs) -> TraceAnswer:
    """Return the report of a trace and its comparison with a base: the base's path, and its report where it is known."""
    report = analyze(path, options=options_of(inputs))
    claims = [word for claim in inputs.claims for word in ("--claim", claim.text)]
    failed = bool(inputs.fail_on) and report.fails(inputs.fail_on)
    judged = _judged(report.data.verdict, failed, REPORT, "summary", report.data, ("report", [path], claims), inputs)
    if base is None:
        return TraceAnswer(judged)
    why, compared = attempt(_compared, path, report, base, inputs)
    return TraceAnswer(judged, compared if compared is not None else Judged(fault=why or ""))


def _compared(path: str, report: Report, base: tuple[str, Report | None], inputs: ActionInputs) -> Judged:
    place, known = base
    # the report says what a claim is; the comparison has no second word on it
    about = Report(replace(report.data, findings=[f for f in report.data.findings if f.rule not in CLAIM_RULES]))
    options = replace(options_of(inputs), claims=())
    result = compare(known or place, about, options=options)
    limit = inputs.fail_on_regression
    judgeable = result.verdict.status != "cannot-judge"
    failed = limit is not None and judgeable and (result.data.regression_pct or 0) > limit
    command: tuple[str, list[str], list[str]] = ("compare", [place, path], [])
    return _judged(result.verdict, failed, COMPARISON, "markdown", [result], command, inputs)


def _judged(
    verdict: Any, failed: bool, renderers: Sequence[Renderer], block: str, data: Any,
    command: tuple[str, list[str], list[str]], inputs: ActionInputs,
) -> Judged:  # fmt: skip
    name, paths, options = command
    form = ["markdown", "--summary"] if block == "summary" else [block]
    line = shell_line(name, paths, ["--format", *form, *options])
    text = render(renderers, block, data, RenderSettings(command=line))
    page_fault, page = None, ""
    if inputs.pages:
        line = shell_line(name, paths, ["--format", "html", *options])
        # without its page a report is still whole
        page_fault, made = attempt(render, renderers, "html", data, RenderSettings(command=line))
        page = made or ""
    return Judged(verdict.status, verdict.headline, failed, text, page, page_fault or "")
