"""Hostile and huge traces in a real browser: shown as text, never run, still usable."""

from __future__ import annotations

import json
import time

import pytest

import traceanalyzer as ta
from tests.builders import trace
from tests.kineto_writer import to_json
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.content import render_page

EVIL = [
    "<script>window.ran = 1; alert(1)</script>",
    "</script><script>window.ran = 1</script>",
    "<!--<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "' onmouseover='window.ran = 1",
    "]]></style><svg onload=window.ran=1>",
    "javascript:window.ran=1//",
    "{{ 7 * 7 }}{% raw %}",
    "\x00\x1b[31m\u202egnp.exe\ud800",
    "__proto__",
    "constructor",
    "&lt;b&gt; \u2028\u2029",
]


@pytest.fixture(scope="module")
def evil_page(tmp_path_factory) -> str:
    built = trace()
    for i in range(8 * len(EVIL)):
        name = EVIL[i % len(EVIL)]
        built.host("cpu_op", name, 100 * i, 50)
        built.host("user_annotation", name, 100 * i - 5, 70)
        built.call(100 * i + 10, 100 * i + 20, 10, name=name)
    document = json.loads(to_json(built.document()))
    document["deviceProperties"] = [{"id": 0, "name": EVIL[0]}]
    path = tmp_path_factory.mktemp("evil") / "evil <script>window.ran=1<script>.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return render_page(ta.analyze(path, options=AnalysisOptions(figures=True)).data)


def test_names_stand_as_text_and_nothing_runs(open_page, evil_page):
    page = open_page(evil_page)
    full = {e.get_attribute("title").split(" grid ")[0] for e in page.locator("#kernel-table span.name").all()}
    # half of a surrogate pair is no text: reading makes it a replacement character
    assert {terminal(name.replace("\ud800", "\ufffd")) for name in EVIL} <= full
    shown = page.locator("#kernel-table").inner_text()
    assert "{{ 7 * 7 }}" in shown
    assert "\\x1b[31m\\u202e" in shown
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for link in page.locator("article.finding a.show").all():
        link.click()
    box = page.locator("#chart-timeline").bounding_box()
    for x in range(0, int(box["width"]), 60):
        page.mouse.move(box["x"] + x, box["y"] + 60)
    page.locator("#filter").fill("<img src=x onerror=window.ran=1>")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0


def test_names_of_ten_megabytes_neither_break_nor_fill_the_page(open_page, tmp_path):
    built = trace()
    for i in range(6):
        built.call(100 * i, 100 * i + 10, 10, name=chr(97 + i) + "x" * 10_000_000)
    path = tmp_path / "long.json"
    built.write(path)
    text = render_page(ta.analyze(path, options=AnalysisOptions(figures=True)).data)
    assert len(text) < 400_000
    page = open_page(text, width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("#kernel-table > tbody").count() == 6


def big_trace(kernels: int, names: int) -> str:
    """Return a trace of a full queue, written straight to text: a builder would take a minute."""
    rows, device = [], 0.0
    for i in range(kernels):
        host = 10.0 * i
        device = max(device, host + 8) + 12
        shared = f'"pid":1,"tid":1,"args":{{"correlation":{i + 1}'
        rows.append(
            f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{host:.3f},"dur":3.000,{shared}}}}}'
        )
        rows.append(
            f'{{"ph":"X","cat":"kernel","name":"kernel_{i % names}","ts":{device:.3f},"dur":{9 + i % 7 / 10:.3f},"pid":0,"tid":7,'
            f'"args":{{"device":0,"stream":7,"correlation":{i + 1}}}}}'
        )
    return '{"traceEvents":[' + ",\n".join(rows) + "]}"


def test_a_hundred_thousand_kernels_stay_usable_and_the_page_says_what_it_left_out(open_page, tmp_path):
    path = tmp_path / "big.json"
    path.write_text(big_trace(100_000, 300), encoding="utf-8")
    text = render_page(ta.analyze(path, options=AnalysisOptions(figures=True)).data)
    assert len(text.encode()) < 1_000_000
    begun = time.monotonic()
    page = open_page(text)
    assert time.monotonic() - begun < 10
    notes = page.locator("#timeline").inner_text()
    assert "of 100,000 device rows" in notes
    assert "in 1,500 bins" in notes
    begun = time.monotonic()
    page.locator('[data-tools="timeline"]').get_by_text("whole").click()
    for _ in range(8):
        page.locator('[data-tools="timeline"]').get_by_label("Zoom in").click()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert time.monotonic() - begun < 5
    painted = page.evaluate(
        """async () => { const t = TA.views.timeline, all = []; t.reset();
        for (let i = 0; i < 30; i++) { t.zoom(i < 20 ? 0.75 : 1.3); await new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d))); all.push(t.painted); }
        return all.sort((a, b) => a - b)[15]; }"""
    )
    assert painted < 50, "milliseconds for a frame while zooming"
    page.locator("#kernel-table > thead th", has_text="self p50").get_by_role("button").click()
    page.locator("#filter").fill("kernel_299")
    assert page.locator("#kernel-table > tbody:not([hidden])").count() == 1


def test_five_thousand_kernel_names_are_cut_with_a_word(open_page, tmp_path):
    path = tmp_path / "names.json"
    path.write_text(big_trace(10_000, 5000), encoding="utf-8")
    text = render_page(ta.analyze(path, options=AnalysisOptions(figures=True)).data)
    page = open_page(text)
    assert page.locator("#kernel-table > tbody").count() == 250
    assert "4,750 more kernels" in page.locator("#kernels").inner_text()
