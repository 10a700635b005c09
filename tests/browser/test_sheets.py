"""Pages of ranks, a bench, a history, a fleet and a capture in a browser: readable at every width, on paper and for everybody."""

from __future__ import annotations

import pytest

from tests.bench.fake_runner import Runner
from tests.bench.test_bench_renderers import SPEEDS
from tests.browser.test_accessibility import PAPER
from tests.fleet.jobs import write_job
from tests.render.test_sheets import HOSTILE, query, recording
from traceanalyzer.api import ranks
from traceanalyzer.capture.bench import BenchAsked, bench
from traceanalyzer.doctor.example import captured
from traceanalyzer.render.base import render
from traceanalyzer.render.formats import BENCH, RANKS
from traceanalyzer.render.page.capture import capture_page
from traceanalyzer.render.page.history import history_page
from traceanalyzer.report.history.trends import trends

OVER = """() => { const found = [];
      const box = (e) => e.getBoundingClientRect();
      const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
      for (const place of document.querySelectorAll('figure, .bars')) {
        const texts = [...place.querySelectorAll('.label, .value, .side, text')].map(box).filter((b) => b.width);
        const marks = [...place.querySelectorAll('.marks circle, .marks rect, .marks path, svg.bar rect, .trend circle, .trend path')].map(box);
        texts.forEach((t, i) => {
          if (marks.some((m) => meet(t, m))) found.push('text over a mark');
          if (texts.some((o, k) => k > i && meet(t, o))) found.push('text over text');
        });
      }
      return found; }"""
KINDS = ["ranks", "bench", "history", "query", "capture"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = write_job(tmp_path_factory.mktemp("t") / "job", 30, late_rank=27, steps=6)
    levels = [recording(i, 40.0 + 20 * (i >= 12) + i % 3 / 10, HOSTILE, HOSTILE) for i in range(30)]
    return {
        "ranks": render(RANKS, "html", ranks(folder, hta=False)),
        "bench": render(BENCH, "html", bench(BenchAsked("msda", iterations=20), run=Runner(SPEEDS))),
        "history": history_page(trends([*levels, recording(1, 5.0, "one")]), HOSTILE),
        "query": query(40, HOSTILE, columns=25),
        "capture": capture_page(captured(), "trace.sidecar.json"),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(open_page, violations, pages: dict[str, str], kind: str, scheme: str):
    # colours are all that differs in the dark
    rules = ["color-contrast"] if scheme == "dark" else []
    assert violations(open_page(pages[kind], scheme=scheme, policy=False), *rules) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_is_wider_than_its_window_and_no_text_lies_over_a_mark(open_page, pages, kind):
    page = open_page(pages[kind])
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for width in (400, 768, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVER) == [], width


@pytest.mark.parametrize("kind", KINDS)
def test_paper_loses_nothing(open_page, pages, kind):
    page = open_page(pages[kind], width=PAPER)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER
    hidden = page.evaluate(
        "[...document.querySelectorAll('main tr, main svg, main li, main figure')].filter((e) => !e.getClientRects().length).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert hidden == []
    cut = page.evaluate(
        f"[...document.querySelectorAll('main td, main th')].filter((c) => c.getBoundingClientRect().right > {PAPER} + 1).map((c) => c.textContent)"
    )
    assert cut == []


def test_a_link_to_a_rank_that_is_folded_away_shows_it(open_page, pages):
    page = open_page(pages["ranks"], fragment="#rank-27")
    assert page.locator("#rank-27").is_visible()
    assert page.locator(".bar-row.marked").is_visible()
