"""Steps and kernels of several devices as people see them: nothing pooled, what overlaps said."""

from __future__ import annotations

import pytest

from tests.render.fakes import kernel, make, op, report
from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.console import render_console
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.screen import render_screen
from traceanalyzer.report.units import SlowStep, StepRow


def step(name: str = "ProfilerStep", **given) -> StepRow:
    slow = SlowStep(3, 28_878.8, 27_549.6, 17_940.0, "data_loading", "enumerate(DataLoader)", "", 17_940.0)
    usual = {
        "name": name, "method": "ProfilerStep", "n": 24, "p50_us": 9609.6, "min_us": 9601.0, "max_us": 27_549.6, "wait_p50_us": 6242.6,
        "busy_p50_us": 9457.6, "slowest": slow,
    }  # fmt: skip
    return make(StepRow, **{**usual, **given})


def test_steps_take_the_place_of_operations_and_say_why_the_slowest_is_slow():
    text = render_screen(report(steps=[step()], ops=[op("ProfilerStep")]))
    assert "Operations" not in text
    row = next(line for line in text.splitlines() if line.startswith("ProfilerStep"))
    assert row.split() == ["ProfilerStep", "24", "9.61", "ms", "9.6-27.5", "ms", "9.46", "ms", "6.24", "ms"]
    said = " ".join(text.split())
    assert (
        "slowest: the 4th, at 28.879 ms: 27.5 ms, 17.9 ms over the median; 17.9 ms more data loading (enumerate(DataLoader))"
        in said
    )
    assert "24 steps (ProfilerStep): median 9.61 ms" in render_markdown(report(steps=[step()]))


def test_a_step_near_the_median_is_not_called_slow():
    calm = SlowStep(1, 5.0, 9700.0, 90.0, "data_loading", "x", "", 80.0)
    assert "slowest" not in render_console(report(steps=[step(slowest=calm)]), sections=("steps",))


@pytest.mark.parametrize(("kernels", "shown"), [(2.0, "Operations"), (300.0, "Steps")])
def test_what_repeats_is_an_operation_or_a_step_by_its_size(kernels, shown):
    made = report(steps=[step("my_op", method="range")], ops=[op("my_op", kernels_per_iteration=kernels)])
    assert (("Steps (" in render_screen(made)), ("Operations (" in render_screen(made))) == (
        shown == "Steps",
        shown == "Operations",
    )


def test_a_kernel_of_several_devices_has_one_row_with_the_range_of_their_medians():
    rows = [
        kernel("gemm", device=n, p50_us=100.0 + 10 * n, event_reading_us=None, share=0.25, count=10) for n in range(4)
    ]
    block = render_screen(report(kernels=rows))
    line = next(x for x in block.splitlines() if x.startswith("gemm"))
    assert line.split() == ["gemm", "100.0-130.0", "us", "40", "100", "%", "n/a", "cpu-bound", "P", "4"]
    full = blocks.kernels(report(kernels=rows), 9)
    assert [row[-1] for row in full.rows] == ["0", "1", "2", "3"] and full.columns[-1] == "device"
    assert "device" not in blocks.kernels(report(kernels=rows[:1]), 9).columns


def test_where_runs_overlap_what_a_run_adds_is_a_column():
    made = report(
        kernels=[kernel("pdl", p50_us=20.0, exclusive_p50_us=5.0), kernel("gemm", p50_us=20.0, exclusive_p50_us=20.0)]
    )
    for text in (render_screen(made), render_console(made, sections=("kernels",))):
        assert "adds" in text and "5.000" in text
    alone = report(kernels=[kernel("gemm", p50_us=20.0, exclusive_p50_us=19.9)])
    assert "adds" not in render_screen(alone)


@pytest.mark.parametrize(
    ("n", "shown"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st"), (113, "113th")],
)
def test_ordinals(n, shown):
    assert show.nth(n) == shown
