"""A history as text, as a page with a trend, and as what benchmark services read."""

from __future__ import annotations

import json
from html import escape

from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.history.trends import Trend

_WIDTH, _HEIGHT, _EDGE = 900, 220, 30


def render_text(trends: list[Trend], last: int = 20) -> str:
    """Return each trend's last recordings, a mark where the level changes."""
    lines = [] if trends else ["The history holds no unit with a period."]
    for t in trends:
        lines.append(
            f"{terminal(t.unit, 60)} on {terminal(t.device, 40) or 'a device not named'}: period per recording (us), {len(t.entries)} in all"
        )
        at = {c.index: c for c in t.changes}
        first = max(0, len(t.entries) - last)
        for i in range(first, len(t.entries)):
            e, ratio = t.entries[i], t.ratios[i]
            mark = f"  level {show.us(at[i].before)} -> {show.us(at[i].after)}" if i in at else ""
            said = "" if ratio is None else f"{ratio:.3f}"
            commit = terminal(e.commit_id, 12) or "-"
            lines.append(
                f"  {_day(e.added):16}  {commit:12}  {show.us(e.period_us):>10}  {said:>7}  busy {show.us(e.busy_us):>10}  {terminal(e.verdict, 12)}{mark}"
            )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _day(added: str) -> str:
    """Return day and minute of an ISO time."""
    return terminal(added[:16].replace("T", " "), 16)


def render_html(trends: list[Trend]) -> str:
    """Return one page without scripts: a line per unit, changepoints as dashed lines."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>traceanalyzer history</title>",
        "<style>body{font:14px system-ui;margin:2em;max-width:960px}svg{border:1px solid #ccc;width:100%}polyline{fill:none;stroke:#2563eb;stroke-width:2}",
        "line{stroke:#dc2626;stroke-dasharray:4}circle{fill:#2563eb}</style><h1>History</h1>",
    ]
    for t in trends:
        parts.append(
            f"<h2>{escape(terminal(t.unit, 120))}</h2><p>{escape(terminal(t.device, 80))}; period in us</p>{_svg(t)}<ul>"
        )
        parts += [
            f"<li>{escape(terminal(t.entries[c.index].commit_id, 40) or _day(t.entries[c.index].added))}: "
            f"{show.us(c.before)} to {show.us(c.after)} us ({c.after / c.before:.3f})</li>"
            for c in t.changes
        ]
        parts.append("</ul>" if t.changes else "</ul><p>No change of level.</p>")
    return "".join(parts) + "</html>\n"


def _svg(t: Trend) -> str:
    values = [float(e.period_us or 0) for e in t.entries]
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    wide = _WIDTH - 2 * _EDGE

    def x(i: float) -> float:
        return round(_EDGE + wide * i / max(1, len(values) - 1), 1)

    points = [
        (x(i), round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * (v - low) / room, 1)) for i, v in enumerate(values)
    ]
    dots = "".join(
        f'<circle cx="{a}" cy="{b}" r="3"><title>{escape(terminal(e.commit_id, 40))} {show.us(e.period_us)} us</title></circle>'
        for (a, b), e in zip(points, t.entries, strict=True)
    )
    cuts = "".join(f'<line x1="{x(c.index - 0.5)}" x2="{x(c.index - 0.5)}" y1="0" y2="{_HEIGHT}"/>' for c in t.changes)
    line = " ".join(f"{a},{b}" for a, b in points)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}"><polyline points="{line}"/>{cuts}{dots}<text x="4" y="14">{show.us(high)}</text><text x="4" y="{_HEIGHT - 4}">{show.us(low)}</text></svg>'


def render_bmf(trends: list[Trend]) -> str:
    """Return the newest recording of each unit in Bencher's metric format (nanoseconds)."""
    found = {}
    for t in trends:
        e = t.entries[-1]
        value: dict[str, float] = {"value": round(1000 * float(e.period_us or 0), 3)}
        if e.period_low_us is not None and e.period_high_us is not None:
            value |= {"lower_value": round(1000 * e.period_low_us, 3), "upper_value": round(1000 * e.period_high_us, 3)}
        found[_label(t, trends)] = {"latency": value}
    return json.dumps(found, indent=1) + "\n"


def render_github_action_benchmark(trends: list[Trend]) -> str:
    """Return the newest recording of each unit as customSmallerIsBetter of github-action-benchmark."""
    found = []
    for t in trends:
        e = t.entries[-1]
        row = {
            "name": _label(t, trends),
            "unit": "us",
            "value": e.period_us,
            "extra": f"busy {show.us(e.busy_us)} us, n {e.repeats}, {e.verdict}",
        }
        if e.period_low_us is not None and e.period_high_us is not None:
            row["range"] = f"{(e.period_high_us - e.period_low_us) / 2:.3f}"
        found.append(row)
    return json.dumps(found, indent=1) + "\n"


def _label(t: Trend, trends: list[Trend]) -> str:
    alone = sum(o.unit == t.unit for o in trends) == 1
    return t.unit if alone else f"{t.unit} ({t.device})"


RENDERERS = {
    "text": render_text,
    "html": render_html,
    "bmf": render_bmf,
    "github-action-benchmark": render_github_action_benchmark,
}
