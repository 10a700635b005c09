"""The pages for everybody: axe finds nothing, colours can be told from their ground, paper and forced colours lose nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.browser.pages import SAMPLES, page_of, place, sample, until
from traceanalyzer.options import AnalysisOptions

CSS = Path(__file__).resolve().parents[2] / "traceanalyzer" / "render" / "assets" / "page.css"
PAPER = 718
"""Pixels between the margins of A4 at 96 to the inch."""


@pytest.fixture(scope="module")
def cpu_bound() -> str:
    return page_of(sample("cpu_bound_loop"))


@pytest.fixture(scope="module")
def compared() -> str:
    pair = [sample("cpu_bound_loop"), sample("graph_replay")]
    return ta.compare(*pair, options=AnalysisOptions(figures=True)).to_html()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_axe_finds_nothing(open_page, violations, cpu_bound, compared, kind, scheme):
    page = open_page(cpu_bound if kind == "report" else compared, scheme=scheme, policy=False)
    if kind == "report":
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        page.mouse.click(*place(page, 1245))
        assert page.locator("#timeline .panel").is_visible()
    # colours are all that differs in the dark
    assert violations(page, *(["color-contrast"] if scheme == "dark" else [])) == []


def colours(scheme: str) -> dict[str, str]:
    """Return the style sheet's colours of a scheme; what dark does not name it has from light."""
    text = CSS.read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\n\s*\}", text, re.S)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    return found | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark)) if scheme == "dark" else found


def contrast(one: str, other: str) -> float:
    """Return the ratio of WCAG 2 between two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


KERNELS = [f"c{n}" for n in range(6)]
DID = ["self", "communication", "copy", "host", "call", "code", "data", "wait", "memory", "gap", "rest"]


def test_contrast_is_computed_as_the_standard_says():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_the_canvas_draws_can_be_told_from_its_ground_and_read(scheme):
    found = colours(scheme)
    for name in [*KERNELS, *DID, "starved", "quiet", "reading", "measured", "base", "head", "accent"]:
        assert contrast(found[name], found["bg"]) >= 3, f"{name} on the ground"
    # names are written into bars of kernels, calls and operators
    for name in [*KERNELS, "copy", "host", "call", "wait", "quiet"]:
        assert contrast(found["on-bar"], found[name]) >= 4.5, f"text on {name}"
    assert contrast(found["fg"], found["range"]) >= 4.5
    for name in ("fg", "muted", "accent", "ok", "warn", "bad"):
        assert contrast(found[name], found["bg"]) >= 4.5, name
        assert contrast(found[name], found["panel"]) >= 4.5, name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_colour_has_one_meaning(scheme):
    found = colours(scheme)
    marks = [
        found[name]
        for name in [*KERNELS, *DID, "starved", "quiet", "depth", "excess", "reading", "measured", "base", "head"]
    ]
    assert len(set(marks)) == len(marks)


def test_sections_tables_and_charts_are_all_on_paper_within_its_width(open_page, cpu_bound):
    page = open_page(cpu_bound, width=PAPER)
    on_screen = page.evaluate("[...document.querySelectorAll('main section')].map((s) => s.id)")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER
    for section in on_screen:
        assert page.locator(f"#{section}").is_visible(), section
    hidden = page.evaluate(
        "[...document.querySelectorAll('main table, main figure, main p:not(.readout):not(.away):not([hidden])')]"
        ".filter((e) => !e.closest('.panel, .help, noscript') && !e.getClientRects().length).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert hidden == []
    cut = page.evaluate(
        f"[...document.querySelectorAll('main td, main th')].filter((c) => c.getBoundingClientRect().right > {PAPER} + 1).map((c) => c.textContent)"
    )
    assert cut == []


def test_the_printed_page_holds_what_is_folded_on_the_screen(open_page, cpu_bound, tmp_path):
    page = open_page(cpu_bound)
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0, "the fold is back after printing"
    # without a script nothing opens the folds but the style sheet
    plain = open_page(cpu_bound, scripts=False)
    plain.emulate_media(media="print")
    text = plain.locator("#rule-TA201")
    assert text.locator("p").first.evaluate("e => e.getClientRects().length") > 0


def test_forced_colours_keep_the_colours_that_say_something(open_page, cpu_bound):
    page = open_page(cpu_bound)
    seen = "['svg.bar rect', '.swatch.c0'].map((s) => { const c = getComputedStyle(document.querySelector(s)); return [c.fill, c.backgroundColor]; })"
    before = page.evaluate(seen)
    page.emulate_media(forced_colors="active")
    assert page.evaluate(seen) == before
    until(page, "TA.colour('fg') === 'CanvasText'")


@pytest.mark.parametrize("path", SAMPLES, ids=[p.stem for p in SAMPLES])
def test_no_label_of_a_chart_lies_over_a_mark_on_a_telephone(open_page, path):
    page = open_page(page_of(path), width=400)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    over = page.evaluate("""() => { const found = [];
      for (const figure of document.querySelectorAll('figure.rows')) {
        const texts = [...figure.querySelectorAll('.label, .value, .ticks text')].map((e) => e.getBoundingClientRect());
        const marks = [...figure.querySelectorAll('.marks circle, .marks rect, .marks path, .histogram path')].map((e) => e.getBoundingClientRect());
        for (const t of texts) for (const m of marks)
          if (t.left < m.right - 1 && m.left < t.right - 1 && t.top < m.bottom - 2 && m.top < t.bottom - 2) found.push(figure.textContent.slice(0, 60));
        const ticks = [...figure.querySelectorAll('.ticks text')].map((e) => e.getBoundingClientRect()).sort((a, b) => a.left - b.left);
        ticks.forEach((t, i) => { if (i && ticks[i - 1].right > t.left) found.push('ticks of ' + figure.textContent.slice(0, 60)); });
      }
      const labels = [...document.querySelectorAll('.lane-labels span')].map((e) => e.getBoundingClientRect().right);
      const t = TA.views.timeline, left = t.chart.getBoundingClientRect().left + t.gutter;
      if (labels.some((right) => right > left)) found.push('lane label');
      return found; }""")
    assert over == []
