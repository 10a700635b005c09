"""Findings as rows of a report."""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer.doctor.finding import Finding, Param
from traceanalyzer.doctor.rule import us
from traceanalyzer.report import model

MOST_EVIDENCE = 3


def finding_row(f: Finding, origin_ns: int = 0, clean: Callable[[str], str] = str) -> model.FindingRow:
    """Return a finding as a row; ``clean`` takes folders out of texts, evidence counts from ``origin_ns``."""

    def plain(values: dict[str, Param]) -> dict[str, Param]:
        return {k: clean(v) if isinstance(v, str) else v for k, v in values.items()}

    cost = f.cost
    return model.FindingRow(
        rule=f.rule,
        title=f.title,
        severity=f.severity.value,
        grade=str(f.grade),
        subject=clean(str(f.subject)),
        message=clean(f.message),
        numbers=plain(f.numbers),
        evidence=[
            model.Evidence(clean(e.what), round((e.start_ns - origin_ns) / 1000, 6), us(e.dur_ns), clean(e.note))
            for e in f.evidence[:MOST_EVIDENCE]
        ],
        remedy=f.remedy,
        code=f.code,
        params=plain(f.params),
        subject_of=model.SubjectOf(
            str(f.subject.kind), f.subject.device, f.subject.owner, f.subject.stream, clean(f.subject.name)
        ),
        cost_us=us(cost.ns) if cost else None,
        cost_share=round(cost.share, 6) if cost else None,
        window=clean(cost.window) if cost else None,
        worth=round(cost.worth, 6) if cost and cost.worth is not None else None,
    )
