"""The report page in a real browser: sorting, filtering, links to evidence, width, colours, first screen, paper, without scripts."""

from __future__ import annotations

import json

import pytest

from tests.browser.pages import RANGE, SAMPLES, page_of, sample, until
from tests.builders import trace
from tests.conftest import shared_files

REAL = shared_files("traces/*.json.gz") + shared_files("verdicts/real/*.json.gz")


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
    return page_of(sample("cpu_bound_loop"))


def names(page) -> list[str]:
    return page.locator("#kernel-table > tbody:not([hidden]) > tr > th.name span.name").all_inner_texts()


@pytest.mark.parametrize("path", SAMPLES, ids=[p.stem for p in SAMPLES])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_samples_open_without_a_complaint_and_fit_the_width(open_page, path, width, scheme):
    text = page_of(path)
    assert len(text.encode()) < 1_000_000
    page = open_page(text, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("canvas").count() == 1
    assert page.locator("figure.rows").count() >= 1
    assert page.title().startswith(f"{path.name}: ")


def bottoms(page, *selectors: str) -> list[float]:
    return page.evaluate(f"{list(selectors)}.map((s) => document.querySelector(s).getBoundingClientRect().bottom)")


@pytest.mark.parametrize("path", [*SAMPLES, *REAL], ids=[p.name.split(".")[0] for p in [*SAMPLES, *REAL]])
def test_the_first_screen_shows_what_matters_at_every_width(open_page, path):
    text = page_of(path)
    assert len(text.encode()) < 1_000_000
    page = open_page(text, width=400, height=850)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    finding = ["#finding-1 h3"] if 'id="finding-1"' in text else []
    assert max(bottoms(page, "#verdict", "#ledger", *finding)) <= 850
    for width, height in ((1440, 900), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        until(
            page,
            f"Math.abs(TA.views.timeline.width - TA.views.timeline.chart.clientWidth) < 2 && innerHeight === {height}",
        )
        assert max(bottoms(page, "#verdict", "#ledger", "#chart-timeline")) <= height, width


def test_a_click_on_a_title_sorts_and_a_second_one_turns_the_order(open_page, several_kernels):
    page = open_page(several_kernels)
    assert names(page) == ["beta", "gamma", "alpha"]  # largest total first
    title = page.locator("#kernel-table > thead th", has_text="self p50")
    title.get_by_role("button").click()
    assert names(page) == ["beta", "gamma", "alpha"]
    assert title.get_attribute("aria-sort") == "descending"
    title.get_by_role("button").click()
    assert names(page) == ["alpha", "gamma", "beta"]
    assert title.get_attribute("aria-sort") == "ascending"
    assert page.locator("#kernel-table > thead th[aria-sort]").count() == 1


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_sorts_too(open_page, several_kernels, key):
    page = open_page(several_kernels)
    page.locator("#kernel-table > thead th.name button").focus()
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
    title = page.locator("#kernel-table > thead th", has_text="total").get_by_role("button")
    title.click()
    assert names(page) == ["unlinked", "nine", "ten", "thousand"]
    dispatch = page.locator("#kernel-table > thead th", has_text="dispatch p50").get_by_role("button")
    for _ in range(2):
        dispatch.click()
        assert names(page)[-1] == "unlinked"


@pytest.mark.parametrize(
    "order",
    [
        ["64 ns", "9.500 us", "39.95 us", "1.078 ms", "2.5 s"],
        ["0.064", "9.500", "1,078,288"],
        ["<0.1 %", "0.4 %", "47 %", "100 %"],
        ["1.02x", "8.7x", "23x"],
        ["12.80-12.90 us", "1.310-2.617 ms"],
        ["9.500 us > 1 s", "20 us > 3 us"],
        ["-3.1 %", "+0.4 %", "+37 %"],
        ["0.81x?", "2.20x"],
        ["1e-05", "0.064", "2.5e6"],
    ],
)
def test_cells_sort_by_what_they_say_with_their_unit(open_page, several_kernels, order):
    found = open_page(several_kernels).evaluate(f"{order}.map(TA.number)")
    assert found == sorted(found)
    assert len(set(found)) == len(order)


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
    page.evaluate("document.querySelectorAll('article.finding details').forEach((d) => { d.open = true; })")
    links = page.locator("article.finding a.show")
    seen = set()
    for i in range(links.count()):
        link = links.nth(i)
        _, number, unit = link.inner_text().split()
        at = float(number.replace(",", "")) * {"us": 1, "ms": 1000}[unit]
        link.click()
        low, high = page.evaluate(RANGE)
        assert low <= at <= high
        assert high - low < 1000  # of 2.4 ms: zoomed, not the whole
        assert f"At the evidence of {link.evaluate('e => e.closest(`article`).querySelector(`h3`).dataset.code')}" in (
            page.locator("#timeline-readout").inner_text()
        )
        seen.add((low, high))
    assert len(seen) == links.count() == 6
    assert page.evaluate("document.activeElement.id") == "chart-timeline"


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
    until(page, "!document.getElementById('kernel-1').hidden")


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
