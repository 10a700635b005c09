"""Problems of scripts: text, JSON, GitHub annotations and SARIF 2.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceanalyzer._version import __version__
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.json_v1 import dump

if TYPE_CHECKING:
    from traceanalyzer.lint.model import FileResult, Problem
    from traceanalyzer.lint.rule import LintRule

_GITHUB = {"warning": "warning", "note": "notice"}


@dataclass(frozen=True)
class LintReport:
    """``results`` by file; ``mended``: problems that --fix took out; ``rules`` that were looked for.

    ``diff``: what --fix would change, where that was asked for.
    """

    results: Sequence[FileResult]
    mended: int
    rules: Sequence[type[LintRule]]
    diff: str = ""

    def message(self, problem: Problem) -> str:
        """Return the sentence of a problem."""
        rule = next(r for r in self.rules if r.code == problem.rule)
        return rule.messages[problem.code].format(**problem.params)


def text_lint(report: LintReport, settings: RenderSettings) -> str:  # noqa: ARG001 - a line has no width
    """Return a line a problem, and a line that counts."""
    lines = [terminal(line, 4000) for line in report.diff.splitlines()]
    for result in report.results:
        if result.fault:
            lines.append(f"{terminal(result.path, 400)}: not read: {terminal(result.fault, 200)}")
        for p in result.problems:
            fix = " [*]" if p.edits else ""
            lines.append(
                f"{terminal(p.path, 400)}{_cell(p)}:{p.line}:{p.column}: {p.level}: {p.rule} {terminal(report.message(p), 400)}{fix}"
            )
    return "\n".join([*lines, _count(report)]) + "\n"


def _cell(p: Problem) -> str:
    return f":cell {p.cell}" if p.cell else ""


def _count(report: LintReport) -> str:
    problems = [p for r in report.results for p in r.problems]
    timed = sum(r.timed for r in report.results)
    levels = Counter(str(p.level) for p in problems)
    what = (
        ", ".join(f"{n} {level}{'s' if n > 1 else ''}" for level, n in sorted(levels.items(), reverse=True))
        or "no problem"
    )
    files = len(report.results)
    line = f"{what} in {files} file{'s' if files != 1 else ''} with {timed} timed region{'s' if timed != 1 else ''}"
    if report.mended:
        line += f"; {report.mended} {'would be ' if report.diff else ''}mended"
    if fixable := sum(bool(p.edits) for p in problems):
        line += f"; [*] {fixable} can be mended with --fix"
    return line


def json_lint(report: LintReport, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return files and problems."""
    files = [
        {
            "path": r.path,
            "fault": r.fault or None,
            "timed_regions": r.timed,
            "ignored": r.ignored,
            "problems": [
                {
                    "rule": p.rule, "name": p.name, "level": str(p.level), "cell": p.cell or None, "line": p.line, "column": p.column, "code": p.code, "params": p.params,
                    "message": report.message(p), "fixable": bool(p.edits),
                }
                for p in r.problems
            ],
        }
        for r in report.results
    ]  # fmt: skip
    return dump({"schema": "traceanalyzer.lint/1", "files": files, "mended": report.mended})


def github_lint(report: LintReport, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return workflow commands that GitHub shows as annotations."""
    lines = [
        f"::{_GITHUB[p.level]} {_github_place(p)},title={_escaped(f'{p.rule} {p.name}')}::{_data(_in_cell(p) + report.message(p))}"
        for r in report.results
        for p in r.problems
    ]
    lines += [f"::error file={_escaped(r.path)}::not read: {_data(r.fault)}" for r in report.results if r.fault]
    return "\n".join([*lines, _count(report)]) + "\n"


def _github_place(p: Problem) -> str:
    # a line of a cell is no line of the notebook's file
    return f"file={_escaped(p.path)}" if p.cell else f"file={_escaped(p.path)},line={p.line},col={p.column}"


def _data(text: str) -> str:
    return terminal(text, 1000).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif_lint(report: LintReport, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return one SARIF 2.1.0 run: a result per problem at its line."""
    results: list[dict[str, Any]] = [
        {
            "ruleId": p.rule,
            "level": str(p.level),
            "message": {"text": terminal(_in_cell(p) + report.message(p), 1000)},
            "locations": [_location(p)],
        }
        for r in report.results
        for p in r.problems
    ]
    rules = [
        {
            "id": r.code,
            "name": r.name.title().replace("-", ""),
            "shortDescription": {"text": (r.__doc__ or r.name).strip()},
        }
        for r in report.rules
    ]
    driver = {"name": "traceanalyzer-lint", "version": __version__, "rules": rules}
    notes = [
        {
            "level": "error",
            "message": {"text": f"not read: {terminal(r.fault, 400)}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(r.path)}}}],
        }
        for r in report.results
        if r.fault
    ]
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notes}
    schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
    return dump(
        {
            "$schema": schema,
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
        }
    )


def _in_cell(p: Problem) -> str:
    return f"cell {p.cell}, line {p.line}: " if p.cell else ""


def _location(p: Problem) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(p.path)}}
    if not p.cell:
        place["region"] = {"startLine": p.line, "startColumn": p.column}
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.replace("\\", "/"))
