"""Comparisons as one HTML page, with the parts of the report's page: ratios with intervals, protocols, both sides' values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from traceanalyzer.render.base import ComparisonResult, RenderSettings
from traceanalyzer.render.blocks import LADDER_TITLES, Block
from traceanalyzer.render.compare import blocks as parts
from traceanalyzer.render.compare import units
from traceanalyzer.render.compare.charts import protocol_chart, unit_ratios, work_ratios
from traceanalyzer.render.compare.markdown import render_comparison_markdown
from traceanalyzer.render.compare.sides import ledger_bars, timelines, timelines_data
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.assets import page_assets, page_data
from traceanalyzer.render.page.content import clean_block, finding_card
from traceanalyzer.render.page.svg import RowChart, distribution_chart
from traceanalyzer.render.page.templates import render_template
from traceanalyzer.report.charts.model import ComparisonFigures
from traceanalyzer.report.compare.model import ComparisonData

ROWS = 500
LADDERS, UNITS = 12, 4
POPULATIONS = {
    "base self-time": "base", "head self-time": "head", "base dispatch": "base", "head dispatch": "head",
}  # fmt: skip
"""One colour for each side."""


def render_comparison_page(
    found: Sequence[ComparisonData], figures: Sequence[ComparisonFigures], *, top: int = ROWS
) -> str:
    """Return the page of one base against several heads; ``figures`` belong to the comparisons, in order."""
    assets = page_assets()
    rules = {r.code: r for f in figures for r in f.rules}
    first = found[0]
    several = len(found) > 1
    headline = (
        f"{len(found)} runs against {first.base.name}: "
        + "; ".join(f"{d.head.name} {parts.STATUS_WORDS[d.verdict.status].lower()}" for d in found[:6])
        if several
        else first.verdict.headline
    )
    context: dict[str, Any] = {
        "assets": assets,
        "title": terminal(f"{_names(found)}: {headline[:200]}", 400),
        "status": _overall(found),
        "status_word": parts.STATUS_WORDS[_overall(found)],
        "base": terminal(first.base.name, 200),
        "heads": [terminal(d.head.name, 200) for d in found[:6]],
        "heads_left": max(0, len(found) - 6),
        "file_parts": _file_parts(first),
        "headline": terminal(_behind_the_word(headline, _overall(found)), 4000),
        "comparisons": [_comparison(d, n, several, set(rules), top) for n, d in enumerate(found)],
        "rules": list(rules.values()),
        "conditions": terminal(parts.conditions(first), 4000),
    }
    suffixes = [f" ({d.head.name})" if several else "" for d in found]
    context["ratios"] = [chart for d, s in zip(found, suffixes, strict=True) for chart in _ratio_charts(d, s)]
    context["protocols"] = [
        chart
        for d, s in zip(found, suffixes, strict=True)
        for op in d.ops[:LADDERS]
        if op.winners and (chart := protocol_chart(op, s)) is not None
    ]
    context["distributions"] = [
        distribution_chart(replace(x, title=x.title + s), POPULATIONS)
        for s, f in zip(suffixes, figures, strict=True)
        for x in f.distributions
    ]
    # one pair of timelines: of several heads the first
    context["timelines"] = timelines(first, figures[0])
    context["heads_shown_of"] = len(found)
    context["ledgers"] = [bars for d in found[:1] for u in d.units[:1] if (bars := ledger_bars(u)) is not None]
    data: dict[str, Any] = {"markdown": render_comparison_markdown(found)}
    if (drawn := timelines_data(figures[0])) is not None:
        data["timelines"] = drawn
    context["data"] = page_data(data)
    return render_template("comparison.html.j2", context)


def _names(found: Sequence[ComparisonData]) -> str:
    """Return base and head by name."""
    heads = found[0].head.name if len(found) == 1 else f"{len(found)} runs"
    return f"{found[0].base.name} \u2192 {heads}"


def _behind_the_word(headline: str, status: str) -> str:
    """Return the headline without its first word where the pill beside it says the same."""
    text = headline.removeprefix(f"{parts.STATUS_WORDS[status].capitalize()}: ")
    return text[:1].upper() + text[1:]


def _overall(found: Sequence[ComparisonData]) -> str:
    """Return the status of the gravest comparison."""
    order = ("cannot-judge", "slower", "undecided", "same", "faster")
    return min((d.verdict.status for d in found), key=order.index)


def _comparison(data: ComparisonData, number: int, several: bool, texts: set[str], top: int) -> dict[str, Any]:
    deciding: list[Block | None] = []
    for unit in data.units[:1]:
        deciding += [units.parts(unit, top), units.why(unit, 12), units.ratios(unit)]
    rest: list[Block | None] = []
    for unit in data.units[1:LADDERS]:
        rest += [units.ratios(unit), units.why(unit, 12), units.parts(unit, top)]
    rest += [parts.operations(data, top), parts.kernels(data, top)]
    if not data.units:
        deciding, rest = rest, []
    rest += [parts.ladder(op) for op in data.ops[:LADDERS]]
    rest += [
        parts.unmatched(data, "gone", top),
        parts.unmatched(data, "new", top),
        parts.differences(data),
        parts.sides(data),
    ]
    return {
        "anchor": f"comparison-{number}",
        "title": terminal(f"{data.head.name} against {data.base.name}", 400) if several else "",
        "headline": terminal(_behind_the_word(data.verdict.headline, data.verdict.status), 4000),
        "status": data.verdict.status,
        "word": parts.STATUS_WORDS[data.verdict.status],
        "about": [terminal(line, 2000) for line in (*parts.about(data), parts.comparability(data)) if line],
        "winners": _cleaned([_winners(data)]),
        "deciding": _cleaned(deciding),
        "rest": _cleaned(rest),
        "findings": [finding_card(f, "", {}, texts) for f in data.findings],
        "abstentions": [(terminal(a.rule, 40), terminal(a.reason, 2000)) for a in data.abstentions[:100]],
    }


def _file_parts(data: ComparisonData) -> list[str]:
    """Return the device, and how many runs of each side there are."""
    devices = list(dict.fromkeys(s.conditions.get("device", "") for s in (data.base, data.head)))
    parts_ = [terminal(d, 100) for d in devices if d]
    if data.base.runs:
        parts_.append(f"{sum(r.used for r in data.base.runs)} and {sum(r.used for r in data.head.runs)} runs")
    return parts_


def _ratio_charts(data: ComparisonData, suffix: str) -> list[RowChart]:
    """Return the four ratios of each unit, and those of the operations and kernels."""
    charts = [unit_ratios(u, u.name + suffix) for u in data.units[:UNITS]]
    return [c for c in (*charts, work_ratios(data, suffix)) if c is not None]


def _cleaned(blocks: Sequence[Block | None]) -> list[Block]:
    return [clean_block(b) for b in blocks if b is not None]


def _winners(data: ComparisonData) -> Block | None:
    """Return who wins under each protocol over all operations."""
    if not data.winners:
        return None
    own = data.winners.get("profiler_self_time")
    rows = []
    for protocol, title in LADDER_TITLES.items():
        winner = data.winners.get(protocol)
        if winner is not None:
            turned = (
                "the order turns" if own in ("base", "head") and winner in ("base", "head") and winner != own else ""
            )
            rows.append([title, winner, turned])
    note = [] if data.rank_inversion else ["no protocol turns the order that self-time shows"]
    columns = ["protocol", "winner", "against self-time"]
    if not any(turned for _, _, turned in rows):
        columns, rows = columns[:2], [row[:2] for row in rows]
    title = "Winner under each protocol, over all operations"
    return Block(title, columns, rows, notes=note, labels=frozenset({1, 2}))


def page_comparison(results: Sequence[ComparisonResult], settings: RenderSettings) -> str:
    """Return the results of a comparison as one page."""
    return render_comparison_page([r.data for r in results], [r.figures for r in results], top=settings.top or ROWS)
