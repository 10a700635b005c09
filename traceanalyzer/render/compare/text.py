"""A comparison as text: the verdict, operations, ladder, kernels, what is on one side only, conditions, findings."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.render.base import WIDTH, Compared, RenderSettings
from traceanalyzer.render.blocks import Block, numbers
from traceanalyzer.render.compare import blocks as parts
from traceanalyzer.render.compare import units
from traceanalyzer.render.console import render_blocks
from traceanalyzer.report.compare.model import ComparisonData
from traceanalyzer.report.model import FindingRow

_FINDINGS, _LADDERS, _REASONS, _DECIDING = 30, 3, 30, 8


def render_comparison_console(found: Sequence[ComparisonData], *, top: int = 20, width: int = WIDTH) -> str:
    """Return comparisons as text of at most ``width`` columns, one after the other; ``top`` rows per table."""
    head = render_blocks([_heads(found)], [], width=width) + "\n" if len(found) > 1 else ""
    return head + ("\n" + "=" * width + "\n\n").join(_one(data, top, width) for data in found)


def _heads(found: Sequence[ComparisonData]) -> Block:
    """Return one row per head, all over the one base."""
    rows = [
        [d.head.name, parts.STATUS_WORDS[d.verdict.status], parts.ratio(d.geomean_ratio), parts.interval(d.geomean_ci95), d.metric]
        for d in found
    ]  # fmt: skip
    return Block(
        f"{len(found)} heads over {found[0].base.name}", ["head", "verdict", "ratio", "95% CI or range", "of"], rows
    )


def _one(data: ComparisonData, top: int, width: int) -> str:
    inverted = [op for op in data.ops if op.flips]
    laddered = inverted or [op for op in data.ops if op.winners][:1]
    blocks: list[Block | None] = []
    if data.basis == "units":
        for unit in data.units[:_LADDERS]:
            blocks += [units.ratios(unit), units.why(unit), units.parts(unit, min(top, _DECIDING))]
        blocks += [parts.sides(data), parts.differences(data)]
        return _text(data, blocks, width)
    blocks = [
        parts.operations(data, top),
        *(parts.ladder(op) for op in laddered[:_LADDERS]),
        parts.kernels(data, top),
        parts.unmatched(data, "gone", top),
        parts.unmatched(data, "new", top),
        parts.sides(data),
        parts.differences(data),
    ]
    return _text(data, blocks, width)


def _text(data: ComparisonData, blocks: list[Block | None], width: int) -> str:
    lines = parts.about(data) if data.basis != "units" or len(data.units) > 1 else []
    lines += [""] if lines else []
    lines.append(f"Findings ({len(data.findings)})" if data.findings else "Findings: none")
    for finding in data.findings[:_FINDINGS]:
        lines += _finding(finding)
    if len(data.findings) > _FINDINGS:
        lines.append(f"  and {len(data.findings) - _FINDINGS} more (all in JSON)")
    if data.abstentions:
        lines += ["", "Not judged", *(f"  {a.rule}: {a.reason}" for a in data.abstentions[:_REASONS])]
    lines += ["", parts.conditions(data)]
    head = render_blocks([], [data.verdict.headline], width=width)
    return head + "\n" + render_blocks([b for b in blocks if b is not None], lines, width=width)


def _finding(f: FindingRow) -> list[str]:
    lines = [f"  {f.rule} {f.title}, {f.severity}, {f.grade}", f"    {f.message.lstrip()}"]
    if f.numbers:
        lines.append(f"    numbers: {numbers(f)[:600]}")
    return lines + [f"    -> {r}" for r in f.remedy]


def text_comparison(results: Sequence[Compared], settings: RenderSettings) -> str:
    """Return the results of a comparison, one after the other."""
    return render_comparison_console([r.data for r in results], top=settings.top or 20, width=settings.width)
