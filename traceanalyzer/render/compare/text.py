"""A comparison as text that fits a screen: the verdict, the unit, where the time went, what decides, what is shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceanalyzer.render import format as show
from traceanalyzer.render.base import WIDTH, ComparisonResult, RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.compare import blocks as parts
from traceanalyzer.render.compare import units
from traceanalyzer.render.console import render_blocks
from traceanalyzer.report.compare.model import ComparisonData
from traceanalyzer.report.model import FindingRow

_FINDINGS, _LADDERS, _REASONS = 3, 3, 4
_TOP, _DECIDING, _ALONE, _BRIEF = 8, 5, 3, 3
"""Rows where --top does not say: of a table, of the kernels that decide, of kernels on one side."""


def render_comparison_console(found: Sequence[ComparisonData], *, top: int | None = None, width: int = WIDTH) -> str:
    """Return comparisons as text of at most ``width`` columns, one after the other; ``top`` rows per table."""
    head = render_blocks([_heads(found)], [], width=width) + "\n" if len(found) > 1 else ""
    if len(found) > 1 and top is None:
        below = [_brief(data, width) for data in found]
        alone = "One head alone has it all: ratios, kernels, findings. --top N shows it of each here."
        return head + "\n".join([*below, render_blocks([], [alone], width=width)])
    return head + ("\n" + "=" * width + "\n\n").join(_one(data, top, width) for data in found)


def _brief(data: ComparisonData, width: int) -> str:
    """Return the headline of one of several heads, where its time went, and what it does not share with the base."""
    lines = [f"{data.head.name}: {data.verdict.headline}"]
    found = (
        [units.why(u, _BRIEF) for u in data.units[:1]] if data.basis == "units" else [parts.operations(data, _BRIEF)]
    )
    blocks = [block for block in found if block is not None]
    apart = [f for f in data.comparability if f.state == "differs"]
    said = [parts.comparability(data)] if apart else []
    return render_blocks([], lines, width=width) + render_blocks(
        [replace(b, compact=True) for b in blocks], said, width=width
    )


def _heads(found: Sequence[ComparisonData]) -> Block:
    """Return one row per head, all over the one base."""
    rows = [
        [d.head.name, parts.STATUS_WORDS[d.verdict.status], parts.ratio(d.geomean_ratio), parts.interval(d.geomean_ci95), d.metric]
        for d in found
    ]  # fmt: skip
    return Block(
        f"{len(found)} heads over {found[0].base.name}", ["head", "verdict", "ratio", "95% CI or range", "of"], rows
    )


def _one(data: ComparisonData, top: int | None, width: int) -> str:
    blocks: list[Block | None] = []
    if data.basis == "units":
        for unit in data.units[:_LADDERS]:
            blocks += [units.ratios(unit), units.why(unit), units.parts(unit, top or _DECIDING)]
    elif data.verdict.status != "cannot-judge" or top is not None:
        laddered = [op for op in data.ops if op.flips] or [op for op in data.ops if op.winners][:1]
        blocks = [
            parts.operations(data, top or _TOP),
            *(parts.ladder(op) for op in laddered[:1]),
            parts.kernels(data, top or (_ALONE if data.ops else _TOP)),
            parts.unmatched(data, "gone", top or _ALONE),
            parts.unmatched(data, "new", top or _ALONE),
        ]
    blocks.append(parts.differences(data))
    return _text(data, [replace(b, compact=True) for b in blocks if b is not None], width)


def _text(data: ComparisonData, blocks: list[Block], width: int) -> str:
    lines = [*parts.side_lines(data), parts.comparability(data)]
    lines += parts.about(data) if data.basis != "units" or len(data.units) > 1 else []
    if data.findings:
        lines.append("")
    for finding in data.findings[:_FINDINGS]:
        lines += _finding(finding)
    if len(data.findings) > _FINDINGS:
        lines.append(f"and {show.plural(len(data.findings) - _FINDINGS, 'more finding')} (--format json)")
    lines += _silence(data)
    head = render_blocks([], [data.verdict.headline], width=width)
    return head + "\n" + render_blocks(blocks, lines, width=width)


def _silence(data: ComparisonData) -> list[str]:
    """Return what was not judged: the comparison's own reasons in words, rules by their codes."""
    own = [f"Not judged: {a.reason}" for a in data.abstentions if not a.rule.startswith("TA")]
    codes = ", ".join(dict.fromkeys(a.rule for a in data.abstentions if a.rule.startswith("TA")))
    more = [f"and {len(own) - _REASONS} more reasons (--format json)"] if len(own) > _REASONS else []
    return [*own[:_REASONS], *more, *([f"Not judged: {codes} (reasons: --format json)"] if codes else [])]


def _finding(f: FindingRow) -> list[str]:
    lines = [f"{f.rule} {f.title}, {f.severity}, {f.grade}: {f.message.lstrip()}"]
    return lines + [f"  -> {r}" for r in f.remedy[:1]]


def text_comparison(results: Sequence[ComparisonResult], settings: RenderSettings) -> str:
    """Return the results of a comparison, one after the other."""
    return render_comparison_console([r.data for r in results], top=settings.top, width=settings.width)
