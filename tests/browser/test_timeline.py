"""The timeline under the hand of someone who knows Perfetto: mouse, wheel, fingers, keys, search, and the address."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.browser.pages import RANGE, frame, page_of, place, sample, until

KERNEL_AT = 1245.0
"""A moment (us) in which a kernel of the sample runs; the kernel starts at 1240.549 us and met an empty stream."""


@pytest.fixture(scope="module")
def cpu_bound() -> str:
    return page_of(sample("cpu_bound_loop"))


@pytest.fixture
def page(open_page, cpu_bound):
    return open_page(cpu_bound)


def width(page) -> float:
    low, high = page.evaluate(RANGE)
    return high - low


def test_the_page_opens_on_the_whole_trace_with_findings_pinned_on_it(page):
    assert page.evaluate(RANGE) == page.evaluate("[TA.data.timeline.begin / 1000, TA.data.timeline.end / 1000]")
    pins = page.locator("a.pin")
    assert pins.count() >= 1
    assert pins.first.get_attribute("href") == "#finding-1"
    left = sorted(page.evaluate("[...document.querySelectorAll('a.pin')].map((p) => p.getBoundingClientRect().left)"))
    assert all(b - a >= 18 for a, b in pairwise(left)), "no pin lies over another"


def test_dragging_moves_what_is_in_sight_with_the_hand(page):
    page.locator('[data-tools="timeline"]').get_by_label("Zoom in").click()
    before = page.evaluate(RANGE)
    x, y = place(page, sum(before) / 2)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 150, y, steps=5)
    page.mouse.up()
    after = page.evaluate(RANGE)
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])
    pixels = page.evaluate("TA.views.timeline.width - TA.views.timeline.gutter")
    assert after[0] - before[0] == pytest.approx(150 / pixels * (before[1] - before[0]), rel=0.02)


def test_a_drag_with_shift_zooms_into_the_stretch(page):
    whole = page.evaluate(RANGE)
    (x0, y), (x1, _) = place(page, whole[0] + 500), place(page, whole[0] + 900)
    page.mouse.move(x0, y)
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(x1, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.evaluate(RANGE) == pytest.approx([whole[0] + 500, whole[0] + 900], abs=4)


def test_a_plain_wheel_scrolls_the_page_until_the_chart_has_the_focus(page):
    x, y = place(page, KERNEL_AT)
    page.mouse.move(x, y)
    before = page.evaluate(RANGE)
    page.mouse.wheel(0, 60)
    until(page, "scrollY > 0")
    assert page.evaluate(RANGE) == before
    page.evaluate("scrollTo(0, 0)")
    page.locator("#chart-timeline").focus()
    page.mouse.wheel(0, -200)
    until(page, f"{RANGE}[1] - {RANGE}[0] < {before[1] - before[0] - 1}")
    low, high = page.evaluate(RANGE)
    assert low < KERNEL_AT < high, "it zooms at the pointer"
    assert page.evaluate("scrollY") == 0


def test_ctrl_and_wheel_zooms_without_the_focus(page):
    x, y = place(page, KERNEL_AT)
    page.mouse.move(x, y)
    before = width(page)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    until(page, f"{RANGE}[1] - {RANGE}[0] < {before - 1}")


def test_a_double_click_comes_closer_and_another_shows_everything(page):
    whole = page.evaluate(RANGE)
    page.mouse.dblclick(*place(page, 1500, "calls"))
    assert width(page) < (whole[1] - whole[0]) / 3
    page.mouse.dblclick(*place(page, 1500, "calls"))
    assert page.evaluate(RANGE) == whole


def touch(session, kind: str, *points: tuple[float, float]) -> None:
    session.send(
        "Input.dispatchTouchEvent",
        {"type": kind, "touchPoints": [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]},
    )


def test_two_fingers_pinch_and_one_drags(page):
    whole = page.evaluate(RANGE)
    x, y = place(page, sum(whole) / 2)
    fingers = page.context.new_cdp_session(page)
    touch(fingers, "touchStart", (x - 40, y), (x + 40, y))
    for step in range(1, 6):
        touch(fingers, "touchMove", (x - 40 - 16 * step, y), (x + 40 + 16 * step, y))
    touch(fingers, "touchEnd")
    pinched = page.evaluate(RANGE)
    assert pinched[1] - pinched[0] == pytest.approx((whole[1] - whole[0]) / 3, rel=0.05)
    assert pinched[0] < sum(whole) / 2 < pinched[1]
    touch(fingers, "touchStart", (x, y))
    for step in range(1, 6):
        touch(fingers, "touchMove", (x + 20 * step, y))
    touch(fingers, "touchEnd")
    moved = page.evaluate(RANGE)
    assert moved[0] < pinched[0]
    assert moved[1] - moved[0] == pytest.approx(pinched[1] - pinched[0])


def test_the_keys_of_perfetto_work_without_a_click_first(page):
    whole = page.evaluate(RANGE)
    page.keyboard.press("w")
    page.keyboard.press("w")
    closer = page.evaluate(RANGE)
    assert closer[1] - closer[0] < (whole[1] - whole[0]) / 1.8
    page.keyboard.press("d")
    right = page.evaluate(RANGE)
    assert right[0] > closer[0]
    page.keyboard.press("a")
    assert page.evaluate(RANGE)[0] < right[0]
    page.keyboard.press("s")
    assert width(page) > right[1] - right[0]
    page.keyboard.press("0")
    assert page.evaluate(RANGE) == whole


def test_arrows_go_from_finding_to_finding_and_say_so(page):
    page.locator("#chart-timeline").focus()
    said = set()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        frame(page)
        low, high = page.evaluate(RANGE)
        at, dur = page.evaluate("(() => { const v = TA.views.timeline.active; return [v.at / 1000, v.dur / 1000]; })()")
        assert low <= at
        assert at + dur <= high
        said.add(page.locator('#timeline [aria-live="polite"]').inner_text())
        assert page.evaluate("location.hash").startswith("#finding-")
    assert len(said) == 3
    assert all(s.startswith("Finding ") for s in said)
    first = page.evaluate(RANGE)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(RANGE) == first


def facts(page) -> dict[str, str]:
    names = page.locator("#timeline .panel dt").all_inner_texts()
    return dict(zip(names, page.locator("#timeline .panel dd").all_inner_texts(), strict=True))


def test_a_click_pins_what_is_known_of_a_kernel(page):
    page.mouse.click(*place(page, KERNEL_AT))
    found = facts(page)
    assert "triton_poi_fused_add_mul_0" in page.locator("#timeline .panel .what").inner_text()
    assert found["start"] == "1.240549 ms"
    assert found["stream"] == "stream 0/7"
    assert "cuLaunchKernel" in found["launched by"]
    assert "from the end of its call" in found["launch latency"]
    assert "the device was idle" in found["gap before"]
    assert found["starved"].startswith("yes")
    assert page.locator("#kernel-table > tbody.marked").get_attribute("id") == "kernel-1"
    assert "#row=" in page.evaluate("location.hash")
    # the launch is a step away, and leads back
    page.locator("#timeline .panel dd button").click()
    assert facts(page)["launches"].startswith("triton_poi_fused_add_mul_0 at 1.240549 ms")
    page.locator("#chart-timeline").focus()
    page.keyboard.press("Escape")
    assert page.locator("#timeline .panel").is_hidden()


def test_the_idle_time_before_a_kernel_is_the_ledger_s(page):
    streams = page.evaluate(
        "TA.views.timeline.model.lanes.filter((l) => l.kind === 'stream').map((l) => [l.gap, l.start[0], l.reach[l.reach.length - 1]])"
    )
    [(gaps, first, last)] = streams
    busy = page.locator("#ledger .bar-title").inner_text()
    share = float(busy.split("busy ")[1].split(" %")[0]) / 100
    span = sum(
        page.evaluate("[...document.querySelectorAll('#ledger svg.bar rect')].map((r) => r.width.baseVal.value)")
    )
    assert span == pytest.approx(1000, abs=1)
    assert sum(gaps) / (last - first) == pytest.approx(1 - share, abs=0.01)


def test_every_row_is_reached_and_told_by_keys_alone(page):
    page.locator("#chart-timeline").focus()
    page.keyboard.press("Enter")
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown", "."):
        seen.append(page.locator('#timeline [aria-live="polite"]').inner_text())
        page.keyboard.press(key)
    assert seen[0].startswith("kernel ")
    assert seen[1] != seen[0]
    assert "start: " in seen[0]
    assert not seen[3].startswith("kernel")
    page.keyboard.press("f")
    r = page.evaluate("TA.views.timeline.model.row(TA.views.timeline.selected)")
    assert width(page) * 1000 == pytest.approx(3 * r["dur"], rel=0.2)


def test_a_slash_searches_and_enter_goes_from_row_to_row(page):
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.dataset.part") == "search"
    page.keyboard.type("fused")
    count = page.locator('[data-part="count"]')
    found = int(count.inner_text().split()[0])
    names = page.evaluate(
        "TA.views.timeline.model.lanes.flatMap((l) => l.name).filter((n) => TA.data.timeline.names[n].toLowerCase().includes('fused')).length"
    )
    assert found == names > 1
    page.keyboard.press("Enter")
    first = page.evaluate("TA.views.timeline.selected")
    number = int(count.inner_text().removesuffix(f" of {found}"))
    page.keyboard.press("Enter")
    assert count.inner_text() == f"{number + 1} of {found}"
    assert page.evaluate("TA.views.timeline.selected") != first
    page.keyboard.press("Shift+Enter")
    assert page.evaluate("TA.views.timeline.selected") == first
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "chart-timeline"
    assert page.evaluate("TA.views.timeline.chosen") is None


def test_the_stretch_and_the_row_are_in_the_address_and_back_undoes_a_step(page):
    page.mouse.click(*place(page, KERNEL_AT))
    row = page.evaluate("TA.views.timeline.selected")
    page.locator("#chart-timeline").focus()
    for key in "wwd":
        page.keyboard.press(key)
    low, high = page.evaluate(RANGE)
    until(page, f"location.hash === '#t={low:.3f},{high:.3f}&row={row}'")
    page.keyboard.press(".")
    assert page.evaluate("TA.views.timeline.selected") == row + 1
    page.go_back()
    until(page, f"TA.views.timeline.selected === {row}")
    assert page.evaluate(RANGE) == pytest.approx([low, high], abs=0.01)
    page.go_forward()
    until(page, f"TA.views.timeline.selected === {row + 1}")


@pytest.mark.parametrize(
    ("fragment", "then"),
    [
        ("#t=1000.000,1300.000", "TA.views.timeline.from === 1e6 && TA.views.timeline.to === 1.3e6"),
        ("#t=1000.000,1300.000&row=3", "TA.views.timeline.selected === 3"),
        ("#finding-2", "TA.views.timeline.active.finding === 1"),
        ("#kernel-1", "document.querySelector('#kernel-1').classList.contains('marked') && TA.views.timeline.chosen"),
        ("#t=1,2&row=99999999", "TA.views.timeline.selected === -1"),
        ("#t=NaN,x", "TA.views.timeline.whole()"),
        ("#rule-TA201", "document.getElementById('rule-TA201').open"),
    ],
)
def test_a_link_opens_what_it_says(open_page, cpu_bound, fragment, then):
    until(open_page(cpu_bound, fragment=fragment), f"Boolean({then})")


def test_a_kernel_of_the_table_marks_its_bars(page):
    page.locator("#kernel-1 a.mark").click()
    until(page, "location.hash === '#kernel-1' && TA.views.timeline.chosen !== null")
    dim = page.evaluate(
        "TA.views.timeline.model.lanes.filter((l) => l.kind !== 'stream').every((l) => l.name.every((_, i) => !TA.views.timeline.chosen(l, i)))"
    )
    assert dim
    page.mouse.move(1, 1)
    page.go_back()
    until(page, "TA.views.timeline.chosen === null")


def test_pointing_at_a_kernel_names_it_and_its_launch(page):
    page.mouse.move(*place(page, KERNEL_AT))
    text = page.locator("#timeline-readout").inner_text()
    assert "kernel triton_poi_fused_add_mul_0 at 1.240549 ms" in text
    assert "launched by launch cuLaunchKernel" in text
    assert "met an empty stream" in text


def test_pointing_at_the_queue_depth_reads_it(page):
    page.mouse.move(*place(page, KERNEL_AT, "depth"))
    assert "queued (most in sight" in page.locator("#timeline-readout").inner_text()


def test_arrows_are_drawn_where_a_launch_meets_its_kernel(page):
    red = """() => { const t = TA.views.timeline, c = t.chart.querySelector('canvas').getContext('2d'), r = t.ratio;
        const lane = t.shown.find((l) => l.kind === 'stream'), d = c.getImageData(t.gutter * r, (lane.y - 4) * r, (t.width - t.gutter) * r, 4 * r).data;
        let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] > 130 && d[i + 1] < 120 && d[i + 3] > 60) n++; return n; }"""
    assert page.evaluate(red) > 5


def test_the_strip_over_the_timeline_chooses_a_stretch(page):
    box = page.locator('[data-part="overview"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 15, steps=3)
    page.mouse.up()
    low, high = page.evaluate("[TA.data.timeline.begin / 1000, TA.data.timeline.end / 1000]")
    assert page.evaluate(RANGE) == pytest.approx(
        [low + 0.25 * (high - low), low + 0.5 * (high - low)], abs=0.01 * (high - low)
    )
