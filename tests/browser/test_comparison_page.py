"""The page of a comparison in a real browser."""

from __future__ import annotations

import json

import numpy as np
import pytest

import traceanalyzer as ta
from tests.browser.pages import frame, sample
from tests.browser.test_hostile_page import EVIL
from tests.builders import trace
from tests.conftest import shared_files
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.api import compare_all
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.compare.page import render_comparison_page

PAIR = shared_files("traces/leimao_mlp_*.json.gz")


def simulated(tmp_path_factory, name: str, kernel: int, dispatch: int, seed: int):
    machine = Machine(gap=1000, jitter=0.03, rng=np.random.default_rng(seed))
    for _ in range(60):
        machine.launch("my_kernel", kernel, host_cost=dispatch, call=4000)
    machine.sync()
    path = tmp_path_factory.mktemp("pair") / name
    path.write_text(to_json(document(machine)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def inverted(tmp_path_factory) -> str:
    """A head whose kernel is faster and whose dispatch is slower."""
    base = simulated(tmp_path_factory, "base.json", 20_000, 20_000, 1)
    head = simulated(tmp_path_factory, "head.json", 14_000, 42_000, 2)
    return ta.compare(base, head, options=AnalysisOptions(figures=True)).to_html()


BOTH = "['base', 'head'].map((side) => { const t = TA.views[side]; return [t.from - t.zero, t.to - t.zero]; })"


def test_both_timelines_lie_on_one_axis_and_move_together(open_page, inverted):
    page = open_page(inverted)
    base, head = page.evaluate(BOTH)
    assert base == head
    assert base[0] == 0
    periods = page.evaluate("['base', 'head'].map((side) => TA.views[side].home[1] - TA.views[side].home[0])")
    assert periods[0] == periods[1] == pytest.approx(42_000 * 1.02, rel=0.1), "the longer repeat fills the axis"
    page.locator("#chart-timeline-head").focus()
    for key in "wwd":
        page.keyboard.press(key)
    frame(page)
    moved = page.evaluate(BOTH)
    assert moved[0] == pytest.approx(moved[1])
    assert moved[0] != base


def test_names_ratios_ledgers_and_timelines_come_first_and_in_this_order(open_page, inverted):
    page = open_page(inverted)
    places = ["verdict", "ratios", "ledger", "timeline-base", "timeline-head", "comparison-0"]
    tops = page.evaluate(f"{places}.map((id) => document.getElementById(id).getBoundingClientRect().top)")
    assert tops == sorted(tops)
    assert page.locator("p.file").inner_text().startswith("base.json \u2192 head.json")
    labels = page.locator("#ratios figure.rows").first.locator(".label").all_inner_texts()
    assert sorted(labels) == ["device busy", "kernels, overlap once", "launches", "period"]


def test_the_two_ledgers_are_drawn_to_one_scale(open_page, inverted):
    page = open_page(inverted)
    widths = page.evaluate(
        "[...document.querySelectorAll('#ledger svg.bar')].map((b) => [...b.querySelectorAll('rect')].reduce((w, r) => w + r.width.baseVal.value, 0))"
    )
    said = page.locator("#ledger .side .muted").all_inner_texts()
    times = [float(s.split()[0]) for s in said]
    assert max(widths) == pytest.approx(1000, abs=1)
    assert widths[0] / widths[1] == pytest.approx(times[0] / times[1], rel=0.01)


def test_folders_of_runs_have_the_same_page(open_page, tmp_path_factory):
    sides = []
    for side, dispatch in enumerate((20_000, 42_000)):
        paths = [simulated(tmp_path_factory, f"run{n}.json", 14_000, dispatch, 10 * side + n) for n in range(2)]
        folder = tmp_path_factory.mktemp(f"side{side}")
        for n, path in enumerate(paths):
            (folder / f"run{n}.json").write_bytes(path.read_bytes())
        sides.append(folder)
    page = open_page(ta.compare(*sides, options=AnalysisOptions(figures=True)).to_html())
    assert "2 and 2 runs" in page.locator("p.file").inner_text()
    assert page.evaluate(BOTH)[0] == page.evaluate(BOTH)[1]


def test_copy_markdown_is_the_comment_that_the_command_writes(open_page, inverted, tmp_path_factory):
    base = simulated(tmp_path_factory, "base.json", 20_000, 20_000, 1)
    head = simulated(tmp_path_factory, "head.json", 14_000, 42_000, 2)
    page = open_page(inverted)
    assert page.evaluate("TA.data.markdown") == ta.compare(base, head).to_markdown()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_a_comparison_opens_without_a_complaint_and_fits_the_width(open_page, inverted, width, scheme):
    assert len(inverted.encode()) < 1_000_000
    page = open_page(inverted, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title().startswith("base.json \u2192 head.json: ")
    for chart in ("#ratios", "#protocols", "#distributions"):
        assert page.locator(f"{chart} figure.rows").first.is_visible()


def test_the_protocols_that_turn_the_order_are_named_in_the_table(open_page, inverted):
    page = open_page(inverted)
    table = page.locator("table", has=page.locator("caption", has_text="Winner under each protocol"))
    rows = {r.split("\t")[0]: r.strip().split("\t")[1:] for r in table.locator("tbody").all_inner_texts()}
    assert rows["profiler self-time"][0] == "head"
    assert rows["wall clock, synchronise each call"] == ["base", "the order turns"]
    assert "TA208" in page.locator("article.finding").inner_text()
    assert page.locator("#rule-TA208").count() == 1


def test_both_sides_stand_on_one_axis(open_page, inverted):
    page = open_page(inverted)
    rows = page.locator("#distributions figure.rows").first.locator("li").all_inner_texts()
    values = dict(r.split("\n") for r in rows)
    assert values["base self-time"].startswith("p50 20")
    assert values["head self-time"].startswith("p50 14")
    assert values["head dispatch"].startswith("p50 4")


def test_several_heads_stand_in_one_page(open_page, tmp_path_factory):
    base = simulated(tmp_path_factory, "base.json", 20_000, 20_000, 1)
    heads = [simulated(tmp_path_factory, f"head{i}.json", 14_000 + 6000 * i, 20_000, 5 + i) for i in range(3)]
    found = compare_all(base, heads, options=AnalysisOptions(figures=True))
    page = open_page(render_comparison_page([c.data for c in found], [c.figures for c in found]))
    assert page.locator("section[id^=comparison-]").count() == 3
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    assert page.locator("#protocols figure.rows").count() == 3
    assert "Of 3 heads the first is drawn." in page.locator("#timelines").inner_text()


def test_without_scripts_the_tables_stand(open_page, inverted):
    page = open_page(inverted, scripts=False)
    assert page.locator("#ratios figure.rows").first.is_visible()
    assert page.locator("table").count() >= 4
    assert "FASTER" in page.locator("#ratios").inner_text()
    assert "my_kernel" in page.locator("table").first.inner_text()


def test_hostile_names_are_text(open_page, tmp_path):
    paths = []
    for side in range(2):
        built = trace()
        for i in range(8 * len(EVIL)):
            built.call(100 * i + 10, 100 * i + 20, 10 + side, name=EVIL[i % len(EVIL)] + ("" if i % 3 else str(side)))
        content = json.loads(to_json(built.document()))
        paths.append(tmp_path / f"<script>{side}.json")
        paths[-1].write_text(json.dumps(content), encoding="utf-8")
    page = open_page(ta.compare(*paths).to_html(), width=400)
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.skipif(len(PAIR) < 2, reason="the shared traces are not here")
def test_a_real_pair_opens_without_a_complaint(open_page):
    page = open_page(ta.compare(*PAIR).to_html(), width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("table").count() >= 4


def test_a_saved_report_has_no_timeline_and_the_page_says_so(open_page, tmp_path):
    saved = tmp_path / "saved.json"
    saved.write_text(
        ta.analyze(sample("cpu_bound_loop"), options=AnalysisOptions(samples=True)).to_json(), encoding="utf-8"
    )
    page = open_page(ta.compare(saved, sample("graph_replay"), options=AnalysisOptions(figures=True)).to_html())
    assert page.locator("#timeline-base").count() == 0
    assert "No timelines" in page.locator("main").inner_text()
