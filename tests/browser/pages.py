"""Pages for the browser tests, and where their bars lie."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import report_on
from traceanalyzer.render.page.content import render_page

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.json"))
RANGE = "TA.views.timeline.range().map((ns) => ns / 1000)"
_PLACE = """([us, kind]) => {
  const t = TA.views.timeline, box = t.chart.getBoundingClientRect(), lane = t.shown.find((l) => l.kind === kind);
  return [box.left + t.chart.clientLeft + t.x(us * 1000), box.top + t.chart.clientTop + lane.y + lane.h / 2];
}"""


@cache
def page_of(path: Path) -> str:
    """Return the page of a trace, made once; no test writes a file a second time."""
    return render_page(report_on(path).data)


def sample(name: str) -> Path:
    """Return a trace of samples/ by its name."""
    return next(p for p in SAMPLES if p.stem == name)


def place(page: Any, at_us: float, kind: str = "stream") -> tuple[float, float]:
    """Return where on the screen a moment lies on the first lane of a kind."""
    x, y = page.evaluate(_PLACE, [at_us, kind])
    return x, y


def until(page: Any, expression: str) -> None:
    """Wait for an expression to hold. Playwright's own waiting evaluates texts inside the page, which its policy forbids."""
    for _ in range(500):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"never true: {expression}")


def frame(page: Any) -> None:
    """Wait for what was asked for to be drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
