"""The report page in a real browser: sorting, filtering, zooming, links to evidence, width, colours, without scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.builders import trace
from tests.conftest import shared_files
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.page.content import render_page

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.json"))
REAL = shared_files("traces/*.json.gz")
RANGE = "TA.views.timeline.made.range()"


def page_of(path: Path) -> str:
    return render_page(ta.analyze(path, options=AnalysisOptions(figures=True)).data)


@pytest.fixture(scope="module")
def several_kernels(tmp_path_factory) -> str:
    built = trace()
    for i in range(30):
        for j, (name, dur) in enumerate((("alpha", 5), ("beta", 30), ("gamma", 12))):
            at = 1000 + 300 * i + 100 * j
            built.call(at, at + 6, dur + i % 3, name=name)
    path = tmp_path_factory.mktemp("several") / "several.json"
    built.write(path)
    return page_of(path)


@pytest.fixture(scope="module")
def cpu_bound() -> str:
    return page_of(next(p for p in SAMPLES if p.stem == "cpu_bound_loop"))


def until(page, expression: str) -> None:
    """Wait for an expression to hold. Playwright's own waiting evaluates texts inside the page, which its policy forbids."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def names(page) -> list[str]:
    return page.locator("#kernel-table tbody:not([hidden]) td.name span.name").all_inner_texts()


@pytest.mark.parametrize("path", SAMPLES, ids=[p.stem for p in SAMPLES])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_samples_open_without_a_complaint_and_fit_the_width(open_page, path, width, scheme):
    text = page_of(path)
    assert len(text.encode()) < 2_000_000
    page = open_page(text, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("canvas").count() >= 4
    assert page.title().startswith(("OK:", "Suspect:", "Cannot judge:"))


@pytest.mark.parametrize("path", REAL, ids=[p.name.split(".")[0] for p in REAL])
def test_real_traces_open_without_a_complaint_and_fit_a_telephone(open_page, path):
    text = page_of(path)
    assert len(text.encode()) < 2_000_000
    page = open_page(text, width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_click_on_a_title_sorts_and_a_second_one_turns_the_order(open_page, several_kernels):
    page = open_page(several_kernels)
    assert names(page) == ["beta", "gamma", "alpha"]  # largest total first
    title = page.locator("#kernel-table th", has_text="self p50")
    title.get_by_role("button").click()
    assert names(page) == ["beta", "gamma", "alpha"]
    assert title.get_attribute("aria-sort") == "descending"
    title.get_by_role("button").click()
    assert names(page) == ["alpha", "gamma", "beta"]
    assert title.get_attribute("aria-sort") == "ascending"
    assert page.locator("#kernel-table th[aria-sort]").count() == 1


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_sorts_too(open_page, several_kernels, key):
    page = open_page(several_kernels)
    page.locator("#kernel-table th.name button").focus()
    page.keyboard.press(key)
    assert names(page) == ["alpha", "beta", "gamma"]


def test_numbers_sort_by_value_and_what_has_none_stays_last(open_page, tmp_path):
    built = trace()
    for i, (name, dur) in enumerate([("ten", 10.5), ("nine", 9.25), ("thousand", 1234)] * 8):
        built.call(5000 * i, 5000 * i + 6, dur, name=name)
    built.kernel(200_000, 3, corr=99_999, name="unlinked")
    path = tmp_path / "t.json"
    built.write(path)
    page = open_page(page_of(path))
    title = page.locator("#kernel-table th", has_text="total").get_by_role("button")
    title.click()
    assert names(page) == ["unlinked", "nine", "ten", "thousand"]
    dispatch = page.locator("#kernel-table th", has_text="dispatch p50").get_by_role("button")
    for _ in range(2):
        dispatch.click()
        assert names(page)[-1] == "unlinked"


def test_the_filter_narrows_the_table_and_says_by_how_much(open_page, several_kernels):
    page = open_page(several_kernels)
    page.locator("#filter").fill("MM")
    assert names(page) == ["gamma"]
    assert page.locator("#filter-count").inner_text() == "1 of 3 shown"
    page.locator("#filter").fill("nothing like this")
    assert names(page) == []
    page.locator("#filter").fill("")
    assert len(names(page)) == 3


def test_a_finding_opens_the_timeline_at_its_evidence(open_page, cpu_bound):
    page = open_page(cpu_bound)
    links = page.locator("article.finding a.show")
    seen = set()
    for i in range(links.count()):
        link = links.nth(i)
        at = float(link.inner_text().removeprefix("at ").removesuffix(" us").replace(",", ""))
        link.click()
        low, high = page.evaluate(RANGE)
        assert low <= at <= high
        assert high - low < 1000  # of 2.4 ms: zoomed, not the whole
        assert f"At the evidence of {link.evaluate('e => e.closest(`article`).querySelector(`h3 a`).textContent')}" in (
            page.locator("#timeline-readout").inner_text()
        )
        seen.add((low, high))
    assert len(seen) == links.count() == 6
    assert page.evaluate("document.activeElement.id") == "chart-timeline"


def test_the_page_opens_on_the_whole_trace_with_findings_pinned_on_it(open_page, cpu_bound):
    page = open_page(cpu_bound)
    low, high = page.evaluate(RANGE)
    assert (low, high) == tuple(page.evaluate("[TA.data.timeline.begin / 1000, TA.data.timeline.end / 1000]"))
    pins = page.locator("a.pin")
    assert pins.count() >= 1 and pins.first.get_attribute("href") == "#finding-0"
    left = page.evaluate("[...document.querySelectorAll('a.pin')].map((p) => p.getBoundingClientRect().left)")
    assert len(set(left)) == len(left), "each at its own place"


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
def test_ledger_and_timeline_are_on_the_first_screen(open_page, cpu_bound, width, height):
    page = open_page(cpu_bound)
    page.set_viewport_size({"width": width, "height": height})
    for place in ("verdict", "ledger", "chart-timeline"):
        assert page.evaluate(f"document.getElementById('{place}').getBoundingClientRect().bottom") <= height, place


def test_the_stretch_in_sight_is_in_the_address_and_a_link_leads_to_it(open_page, cpu_bound):
    page = open_page(cpu_bound)
    page.locator("#chart-timeline").focus()
    for key in "wwd":
        page.keyboard.press(key)
    page.wait_for_timeout(700)  # the address follows once the range rests
    low, high = page.evaluate(RANGE)
    assert page.evaluate("location.hash") == f"#t={low:.3f},{high:.3f}"
    page.keyboard.press("0")
    page.evaluate(f"location.hash = '#t={low},{high}'")
    page.wait_for_timeout(200)
    assert page.evaluate(RANGE) == pytest.approx((low, high), abs=0.01)


def test_buttons_keys_and_drags_change_the_range_of_the_timeline(open_page, cpu_bound):
    page = open_page(cpu_bound)
    tools = page.locator('[data-tools="timeline"]')
    tools.get_by_text("whole").click()
    whole = page.evaluate(RANGE)
    tools.get_by_label("Zoom in").click()
    closer = page.evaluate(RANGE)
    assert closer[1] - closer[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.locator("#chart-timeline").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(RANGE)[0] > closer[0]
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert page.evaluate(RANGE) == whole
    page.keyboard.press("n")
    first = page.evaluate(RANGE)
    page.keyboard.press("n")
    assert page.evaluate(RANGE) != first != whole
    page.keyboard.press("0")
    box = page.locator("#chart-timeline .u-over").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 25, steps=4)
    page.mouse.up()
    dragged = page.evaluate(RANGE)
    assert dragged[1] - dragged[0] == pytest.approx((whole[1] - whole[0]) * 200 / box["width"], rel=0.05)
    page.mouse.dblclick(box["x"] + 200, box["y"] + 20)
    assert page.evaluate(RANGE) == whole


def test_a_plain_wheel_scrolls_the_page_and_ctrl_wheel_zooms(open_page, cpu_bound):
    page = open_page(cpu_bound)
    page.locator("#chart-timeline").scroll_into_view_if_needed()
    box = page.locator("#chart-timeline .u-over").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 20)
    before = page.evaluate(RANGE)
    page.mouse.wheel(0, 100)
    assert page.evaluate(RANGE) == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    until(page, f"{RANGE}[1] - {RANGE}[0] < {before[1] - before[0]}")


def test_queue_depth_shows_the_same_stretch_as_the_timeline(open_page, cpu_bound):
    page = open_page(cpu_bound)
    depth = "(() => { const u = TA.charts.find((c) => document.getElementById('chart-depth').contains(c.root)); return [u.scales.x.min, u.scales.x.max]; })()"
    page.locator('[data-tools="timeline"]').get_by_label("Zoom in").click()
    assert page.evaluate(depth) == page.evaluate(RANGE)
    page.locator("#chart-depth").focus()
    page.keyboard.press("+")
    assert page.evaluate(depth) == page.evaluate(RANGE)


def test_pointing_at_a_kernel_names_it_and_its_launch(open_page, cpu_bound):
    page = open_page(cpu_bound)
    page.locator("#chart-timeline").scroll_into_view_if_needed()
    at = page.evaluate(
        """() => { const u = TA.views.timeline.made.chart, b = u.over.getBoundingClientRect();
        const streams = TA.data.timeline.lanes.findIndex((l) => l.kind === 'stream');
        return [b.left + u.valToPos(1245, 'x'), b.top + streams * 40 + 20]; }"""
    )
    page.mouse.move(*at)
    text = page.locator("#timeline-readout").inner_text()
    assert "kernel triton_poi_fused_add_mul_0 at 1,240.549 us" in text
    assert "launched by launch cuLaunchKernel" in text
    assert "met an empty stream" in text


def test_arrows_are_drawn_where_a_launch_meets_its_kernel(open_page, cpu_bound):
    page = open_page(cpu_bound)
    red = """() => { const u = TA.views.timeline.made.chart, c = u.ctx, r = devicePixelRatio, b = u.bbox;
        const y = Math.round(b.top + (2 * 40 + 4) * r), d = c.getImageData(b.left, y, b.width, 4).data; let n = 0;
        for (let i = 0; i < d.length; i += 4) if (d[i] > 150 && d[i + 1] < 110 && d[i + 2] < 110) n++; return n; }"""
    assert page.evaluate(red) > 5


def test_choosing_another_population_redraws_the_distribution(open_page, several_kernels):
    page = open_page(several_kernels)
    picks = page.locator("#distribution-pick option").all_inner_texts()
    assert {"kernel: alpha", "kernel: beta", "kernel: gamma"} <= set(picks)
    page.locator("#distribution-pick").select_option(label="kernel: gamma")
    assert "Distribution of gamma: self-time median 13" in page.locator("#chart-distribution").get_attribute(
        "aria-label"
    )
    before = page.evaluate(
        "(() => { const u = TA.charts[TA.charts.length - 1]; return u.scales.x.max - u.scales.x.min; })()"
    )
    page.locator('[data-tools="distribution"]').get_by_label("Zoom in").click()
    after = page.evaluate(
        "(() => { const u = TA.charts[TA.charts.length - 1]; return u.scales.x.max - u.scales.x.min; })()"
    )
    assert after < before


def test_a_rule_code_opens_the_text_of_the_rule(open_page, cpu_bound):
    page = open_page(cpu_bound)
    text = page.locator("#rule-TA201")
    assert text.get_attribute("open") is None
    page.locator("article.finding h3 a", has_text="TA201").click()
    until(page, "document.getElementById('rule-TA201').open")
    assert "Starvation decides" in text.inner_text()


def test_a_link_to_a_kernel_shows_its_row_even_if_the_filter_hid_it(open_page, cpu_bound):
    page = open_page(cpu_bound)
    page.locator("#filter").fill("nothing like this")
    page.locator("article.finding a.name").first.click()
    until(page, "!document.getElementById('k-0').hidden")


def test_colours_follow_the_scheme(open_page, cpu_bound):
    backgrounds, pixels = [], []
    for scheme in ("light", "dark"):
        page = open_page(cpu_bound, scheme=scheme)
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        pixels.append(page.evaluate("TA.colour('fg')"))
    assert backgrounds == ["rgb(255, 255, 255)", "rgb(20, 23, 28)"]
    assert pixels[0] != pixels[1]
    page.emulate_media(color_scheme="light")
    until(page, f"TA.colour('fg') === {json.dumps(pixels[0])}")


def test_without_scripts_the_tables_stand_and_nothing_else_pretends(open_page, cpu_bound):
    page = open_page(cpu_bound, scripts=False)
    assert "Without JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("#kernel-table").is_visible()
    assert page.locator("table").count() >= 6
    assert page.locator("#chart-timeline").is_hidden()
    assert page.locator("#filter").is_hidden()
    assert "39.95" in page.locator("#kernel-table").inner_text()
    assert page.locator("details#rule-TA201").is_visible()


def test_every_control_is_reached_by_the_tab_key(open_page, cpu_bound):
    page = open_page(cpu_bound)
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.id || document.activeElement.textContent.trim().slice(0, 20)")
        )
    wanted = {
        "filter",
        "chart-timeline",
        "chart-depth",
        "chart-distribution",
        "distribution-pick",
        "ladder-pick",
        "self p50",
        "whole",
    }
    assert wanted <= reached


def test_the_policy_stops_a_script_and_a_style_that_are_not_the_page_s_own(browser, cpu_bound, tmp_path):
    path = tmp_path / "p.html"
    path.write_text(cpu_bound, encoding="utf-8")
    page = browser.new_page()
    errors = []
    page.on("console", lambda m: errors.append(m.text))
    page.goto(path.as_uri())
    page.evaluate(
        """() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);
        const i = document.createElement('img'); i.setAttribute('onerror', 'window.ran = 1'); i.src = 'data:,'; document.body.append(i);
        document.body.setAttribute('style', 'color: rgb(1, 2, 3)'); }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert page.evaluate("getComputedStyle(document.body).color") != "rgb(1, 2, 3)"
    assert any("Content Security Policy" in e for e in errors)
    page.close()


def test_paper_shows_the_charts_in_light_colours(open_page, cpu_bound):
    page = open_page(cpu_bound, scheme="dark")
    page.emulate_media(media="print", color_scheme="light")
    assert page.locator("nav").is_hidden()
    assert page.locator("#chart-timeline canvas").is_visible()
