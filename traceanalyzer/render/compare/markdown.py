"""A comparison for a pull request: GitHub Markdown, at most 60 lines and 65,000 characters whatever the traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.render import format as show
from traceanalyzer.render.base import ComparisonResult, RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.compare import blocks as parts
from traceanalyzer.render.compare import units
from traceanalyzer.render.escape import markdown, markdown_code
from traceanalyzer.render.markdown import MAX_CHARACTERS, MAX_LINES, pipe_table
from traceanalyzer.render.marker import marker
from traceanalyzer.report.compare.model import ComparisonData
from traceanalyzer.report.model import FindingRow

MARKER = "traceanalyzer:compare"
_MOST_HEADS = 20
_MOST_SAID = 12


@dataclass(frozen=True)
class _PairLimits:
    """How many rows are open, and how many characters of the traces one text may hold."""

    ops: int
    kernels: int
    unmatched: int
    findings: int
    sentence: int = 600
    note: int = 240
    notes: int = 6


def render_comparison_markdown(found: Sequence[ComparisonData], *, top: int = 10, command: str = "") -> str:
    """Return comparisons as one comment; ``top`` kernels, fewer where the bounds ask for it.

    The first line is hidden and always the same, so that a bot finds the comment it wrote. ``command`` is printed as
    how to reproduce it.
    """
    rounds = (
        _PairLimits(8, top, 5, 6), _PairLimits(6, min(top, 8), 3, 4), _PairLimits(4, min(top, 5), 2, 3), _PairLimits(2, 3, 1, 2, 400, 120, 3), _PairLimits(1, 1, 1, 1, 200, 60, 2),
    )  # fmt: skip
    for limits in rounds:
        text = _text(found, limits, command)
        if _fits(text):
            return text
    for limits in (_PairLimits(0, 0, 0, 1, 200, 60, 2), _PairLimits(0, 0, 0, 0, 120, 40, 1)):
        text = _text(found, limits, command, summary=True)
        if _fits(text):
            break
    return text


def _fits(text: str) -> bool:
    return text.count("\n") <= MAX_LINES and len(text) <= MAX_CHARACTERS


def _text(found: Sequence[ComparisonData], limits: _PairLimits, command: str, summary: bool = False) -> str:
    lines = [marker(kind=MARKER)]
    if len(found) > 1 or summary:
        lines += [
            f"### GPU trace comparison: {show.plural(len(found), 'head')} against {markdown_code(found[0].base.name, 80)}",
            "",
        ]
        lines += [*_heads(found, limits), ""]
        if summary and len(found) > 1:
            lines += [
                f"- {markdown_code(d.head.name, 80)}: {markdown(d.verdict.headline, limits.sentence)}"
                for d in found[:_MOST_SAID]
            ]
            lines += [f"- and {len(found) - _MOST_SAID} more" if len(found) > _MOST_SAID else "", ""]
    if not summary:
        for data in found:
            lines += _one(data, limits, several=len(found) > 1)
    if command:
        lines += [f"<sub>Reproduce: {markdown_code(command, 400)}</sub>"]
    lines += [f"<sub>{markdown(parts.conditions(found[0]), limits.sentence)}</sub>"]
    return "\n".join(lines) + "\n"


def _heads(found: Sequence[ComparisonData], limits: _PairLimits) -> list[str]:
    rows = [
        [d.head.name, parts.STATUS_WORDS[d.verdict.status], parts.ratio(d.geomean_ratio), parts.interval(d.geomean_ci95), str(len(d.losses)),
         "yes" if d.rank_inversion else "no"]
        for d in found[:_MOST_HEADS]
    ]  # fmt: skip
    table = pipe_table(Block("", ["head", "verdict", "ratio", "95% CI", "losses", "ranking flips"], rows))
    hidden = len(found) - _MOST_HEADS
    table += ["", f"<sub>{markdown(found[0].verdict.headline, limits.sentence)}</sub>"] if len(found) == 1 else []
    return table + (["", f"<sub>and {hidden} more</sub>"] if hidden > 0 else [])


def _one(data: ComparisonData, limits: _PairLimits, several: bool) -> list[str]:
    status = parts.STATUS_WORDS[data.verdict.status]
    title = f"#### {markdown_code(data.head.name, 80)}: {status}" if several else f"### GPU trace comparison: {status}"
    lines = [title, "", f"**{markdown(data.verdict.headline, limits.sentence).strip()}**", ""]
    about = parts.about(data) if data.basis != "units" or len(data.units) > 1 else []
    said = "".join(f" {markdown(line, limits.sentence)}." for line in about)
    lines += [f"Base {markdown_code(data.base.name, 80)}, head {markdown_code(data.head.name, 80)}.{said}"]
    lines += [f"<br>{markdown(parts.comparability(data), limits.sentence)}", ""]
    if data.basis == "units" and limits.ops:
        for unit in data.units[:1]:
            lines += _table(units.ratios(unit), limits)
            if (block := units.why(unit, 4)) is not None:
                lines += _table(block, limits)
            if not several and (block := units.parts(unit, min(limits.kernels, 8))) is not None:
                lines += _folded(block.title, _table(block, limits))
        lines += _findings(data.findings, limits)
        return lines if several else lines + _folded("Sides and conditions", _conditions(data, limits))
    operations = parts.operations(data, limits.ops) if limits.ops else None
    kernels = parts.kernels(data, limits.kernels)
    if operations is not None:
        lines += _table(operations, limits)
    if kernels is not None and operations is None:
        lines += _table(kernels, limits)
    lines += _findings(data.findings, limits)
    if several:
        return lines
    if kernels is not None and operations is not None:
        lines += _folded(kernels.title, _table(kernels, limits))
    inverted = [op for op in data.ops if op.flips] or [op for op in data.ops if op.winners]
    block = parts.ladder(inverted[0]) if inverted else None
    if block is not None:
        across = Block(
            "",
            [r[0] for r in block.rows],
            [[r[1] for r in block.rows], [r[2] for r in block.rows], [r[4] for r in block.rows]],
            frozenset(),
        )
        lines += _folded(block.title, [*_labelled(across, ["base", "head", "winner"]), "", _notes(block, limits), ""])
    one_sided = [b for s in ("gone", "new") if (b := parts.unmatched(data, s, limits.unmatched)) is not None]
    if one_sided:
        said = "<br>".join(_listed(b) for b in one_sided)
        lines += _folded("On one side only", [said, ""])
    lines += _folded("Sides and conditions", _conditions(data, limits))
    if data.abstentions:
        said = "<br>".join(markdown(f"{a.rule}: {a.reason}", limits.note) for a in data.abstentions[: limits.notes])
        lines += _folded(f"Not judged ({len(data.abstentions)})", [said, ""])
    return lines


def _conditions(data: ComparisonData, limits: _PairLimits) -> list[str]:
    sides = parts.sides(data)
    lines = [*pipe_table(sides), ""]
    said = [markdown(n, limits.note) for n in sides.notes[: limits.notes]]
    said += [
        f"{markdown(d.what, 60)}: base {markdown_code(d.base, 60)}, head {markdown_code(d.head, 60)}"
        for d in data.differences[: limits.notes]
    ]
    return [*lines, "<br>".join(said), ""] if said else lines


def _listed(block: Block) -> str:
    names = ", ".join(f"{markdown_code(row[0], 60)} ({row[1]} us x {row[2]})" for row in block.rows)
    more = f"; {block.notes[0]}" if block.notes else ""
    return f"{markdown(block.title, 120)}: {names}{more}"


def _labelled(block: Block, labels: list[str]) -> list[str]:
    rows = [[label, *row] for label, row in zip(labels, block.rows, strict=True)]
    return pipe_table(Block("", ["", *block.columns], rows, frozenset()))


def _table(block: Block, limits: _PairLimits) -> list[str]:
    return [*pipe_table(block), "", _notes(block, limits), ""]


def _notes(block: Block, limits: _PairLimits) -> str:
    said = " · ".join(markdown(n, limits.note) for n in [block.title, *block.notes[: limits.notes]])
    return f"<sub>{said}</sub>"


def _findings(findings: Sequence[FindingRow], limits: _PairLimits) -> list[str]:
    shown = [
        f"- **{markdown(f.rule, 20)} {markdown(f.title, 60)}** ({f.severity}, {markdown(f.grade, 20)}): {markdown(f.message, limits.sentence)}"
        + (f" *{markdown(f.remedy[0], 200)}.*" if f.remedy else "")
        for f in findings[: limits.findings]
    ]
    rest = findings[limits.findings :]
    if rest:
        codes = ", ".join(dict.fromkeys(f.rule for f in rest[:20]))
        shown.append(f"- and {len(rest)} more: {markdown(codes, 200)}")
    return [*shown, ""] if shown else []


def _folded(title: str, body: list[str]) -> list[str]:
    # GitHub renders Markdown inside <details> only behind an empty line
    return [f"<details><summary>{markdown(title, 120)}</summary>", "", *body, "</details>", ""]


def markdown_comparison(results: Sequence[ComparisonResult], settings: RenderSettings) -> str:
    """Return the results of a comparison as one comment."""
    return render_comparison_markdown([r.data for r in results], top=settings.top or 10, command=settings.command)
