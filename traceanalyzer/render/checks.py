"""Findings alone: text, JSON, GitHub annotations and SARIF 2.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from traceanalyzer.render import blocks
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.json_v1 import dump
from traceanalyzer.report.model import FindingRow, ReportData

_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def text_check(reports: Sequence[ReportData], settings: RenderSettings) -> str:  # noqa: ARG001 - a line has no width
    """Return verdict and findings of each report, one line each."""
    return "\n".join(_text(r) for r in reports)


def json_check(reports: Sequence[ReportData], settings: RenderSettings) -> str:  # noqa: ARG001
    """Return verdict, findings and abstentions of each report."""
    found = [
        {
            "trace": r.trace.name,
            **{k: v for k, v in r.to_dict().items() if k in ("verdict", "findings", "abstentions")},
        }
        for r in reports
    ]
    return dump({"schema": "traceanalyzer.check/1", "traces": found})


def github_check(reports: Sequence[ReportData], settings: RenderSettings) -> str:  # noqa: ARG001
    """Return workflow commands that GitHub shows as annotations."""
    lines = [_annotation(r, f) for r in reports for f in r.findings] + [_verdict_annotation(r) for r in reports]
    return "\n".join(lines) + "\n"


def sarif_check(reports: Sequence[ReportData], settings: RenderSettings) -> str:  # noqa: ARG001
    """Return :func:`sarif` as text."""
    return dump(sarif(reports))


def _text(report: ReportData) -> str:
    name = terminal(report.trace.name, 200)
    lines = [f"{name}: {terminal(report.verdict.headline, 2000)}"]
    for f in report.findings:
        lines.append(f"{name}: {f.severity}: {f.rule} {f.title} [{f.grade}]: {terminal(f.message, 2000)}")
        if f.numbers:
            lines.append(f"    {terminal(blocks.numbers(f))}")
        lines += [f"    -> {terminal(r, 400)}" for r in f.remedy[:1]]
    rules = replace(report, abstentions=[a for a in report.abstentions if a.rule != "report"])
    lines += [f"{name}: not judged: {codes}: {terminal(why, 400)}" for codes, why in blocks.abstentions(rules)]
    return "\n".join(lines) + "\n"


def _escaped(text: str, *, prop: bool = False) -> str:
    """Escape for a workflow command: GitHub reads %, line ends and, in properties, colon and comma."""
    text = terminal(text, 2000).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if prop else text


def _annotation(report: ReportData, f: FindingRow) -> str:
    title = _escaped(f"{f.rule} {f.title} ({report.trace.name})", prop=True)
    return f"::{_GITHUB[f.severity]} title={title}::{_escaped(f.message)}"


def _verdict_annotation(report: ReportData) -> str:
    level = "notice" if report.verdict.status == "ok" else "warning"
    return f"::{level} title={_escaped(f'traceanalyzer: {report.trace.name}', prop=True)}::{_escaped(report.verdict.headline)}"


def sarif(reports: Sequence[ReportData]) -> dict[str, Any]:
    """Return one SARIF 2.1.0 run: a result per finding, located in its trace file."""
    rules: dict[str, str] = {}
    results = []
    for report in reports:
        for f in report.findings:
            rules.setdefault(f.rule, f.title)
            results.append(
                {
                    "ruleId": f.rule,
                    "level": f.severity,
                    "message": {"text": terminal(f.message, 4000)},
                    "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(report.trace.name)}}}],
                    "properties": {"grade": f.grade, "subject": terminal(f.subject, 400), "numbers": f.numbers},
                }
            )
    driver = {
        "name": "traceanalyzer",
        "version": reports[0].version if reports else "0",
        "rules": [
            {"id": code, "name": name.title().replace("-", ""), "shortDescription": {"text": name}}
            for code, name in sorted(rules.items())
        ],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return {"$schema": schema, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _uri(name: str) -> str:
    from urllib.parse import quote

    return quote(terminal(name, 400))
