"""A history as text, and as what benchmark services read; its page is render/page/history.py."""

from __future__ import annotations

import json
from collections.abc import Callable

from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.history.trends import Trend


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


def _page(trends: list[Trend], name: str) -> str:
    from traceanalyzer.render.page.history import history_page

    return history_page(trends, name)


RENDERERS: dict[str, Callable[[list[Trend], str], str]] = {
    "text": lambda trends, _: render_text(trends),
    "html": _page,
    "bmf": lambda trends, _: render_bmf(trends),
    "github-action-benchmark": lambda trends, _: render_github_action_benchmark(trends),
}
"""By format: a function of the trends and the history's name."""
