"""bench over a function of the user's: axes, implementations, turns, and what a crash in one of them costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.fake_device import FakeDevice
from traceanalyzer.capture import survey as survey_module
from traceanalyzer.capture.api import begin, together
from traceanalyzer.capture.bench import BenchAsked, bench, parse_value, plan
from traceanalyzer.capture.session import Operation, Settings
from traceanalyzer.capture.survey import Survey
from traceanalyzer.errors import CaptureUnavailable, OptionError
from traceanalyzer.trace.sidecar import DeviceFacts

MODULE = """
import os
import torch
AXES = {"n": [4, 8], "dtype": ["float32"]}
def double(x):
    '''Twice of it.'''
    return x * 2
def added(x):
    return x + x
def ends_the_process(x):
    os._exit(3)
def wrong(x):
    return x * 3
IMPLEMENTATIONS = {"added": added}
def double_inputs(n, dtype, device, seed):
    return torch.full((n,), float(seed + 1), dtype=getattr(torch, dtype), device=device)
def bytes_moved(x):
    return 2 * x.numel() * 4
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("ops") / "my_ops.py"
    path.write_text(MODULE)
    return path


def asked(**more):
    return BenchAsked("my_ops.py:double", **more)


FOUND = Survey(
    "double", "", DeviceFacts("cpu", "cpu"), "", {}, [], [], ["double", "added"], [], {"n": [4, 8], "dtype": ["float32"]}, ["wrong"]
)  # fmt: skip


def test_rows_are_every_combination_of_the_axes_and_each_implementation():
    _, rows = plan(asked(), FOUND)
    assert [r.label for r in rows] == [
        "n=4 dtype=float32 double", "n=4 dtype=float32 added", "n=8 dtype=float32 double", "n=8 dtype=float32 added"
    ]  # fmt: skip
    _, rows = plan(asked(axes={"n": (2,), "layout": ("row", "col")}, against=("wrong",)), FOUND)
    assert [r.label for r in rows][:2] == ["n=2 dtype=float32 layout=row double", "n=2 dtype=float32 layout=row wrong"]


def test_a_name_that_is_not_there_and_too_many_rows_are_refused():
    with pytest.raises(OptionError, match="addde"):
        plan(asked(against=("addde",)), FOUND)
    with pytest.raises(OptionError, match="cases"):
        plan(asked(axes={"a": tuple(range(100)), "b": tuple(range(100))}), FOUND)


@pytest.mark.parametrize(
    ("text", "value"), [("16", 16), ("1.5", 1.5), ("fp16", "fp16"), ("nan", "nan"), ("1e400", "1e400")]
)
def test_values_of_axes_are_numbers_where_they_are_finite_numbers(text, value):
    assert parse_value(text) == value


def test_captures_in_turns_share_each_round_and_a_failure_costs_its_own(tmp_path):
    device, order = FakeDevice(), []

    def begun(name, call):
        settings = Settings(("wall_sync_once",), iterations=20)
        observe = lambda what, turn, _: order.append((name, turn)) if what == "wall_sync_once" else None  # noqa: E731
        return begin(device, Operation(name, call), settings, tmp_path / name, observe=observe)

    def fails():
        raise ValueError("no")

    three = [begun("a", device.op([(40_000, 10_000)])), begun("bad", fails), begun("b", device.op([(20_000, 10_000)]))]
    found = together(three)
    assert order == [(name, turn) for turn in range(10) for name in "ab"]
    assert found[0].operation.protocols[0].p50_us > found[2].operation.protocols[0].p50_us > 0
    assert found[1] is None and isinstance(three[1].failure, CaptureUnavailable)


def run(file, *words):
    return subprocess.run(
        [sys.executable, "-m", "traceanalyzer", "bench", "my_ops.py:double", "--device", "cpu", "--iters", "6", "--budget", "0.5s", *words],
        capture_output=True, text=True, cwd=file.parent, timeout=300,
    )  # fmt: skip


def test_a_function_is_measured_and_held_to_the_others(file):
    done = run(file, "--axis", "n=4", "--against", "added,wrong,ends_the_process", "-o", "out")
    assert done.returncode == 1, done.stderr
    rows = {r["implementation"]: r for r in json.loads((file.parent / "out" / "bench.json").read_text())["rows"]}
    assert list(rows) == ["double", "added", "wrong", "ends_the_process"]
    assert rows["added"]["result"]["passed"] is True and rows["added"]["end_to_end"]["p50_us"] > 0
    assert rows["wrong"]["result"]["passed"] is False and "wrong_result: n=4 dtype=float32 wrong" in done.stderr
    assert rows["ends_the_process"]["missing_kind"] == "crashed" and rows["double"]["bytes_moved"] == 32
    assert rows["double"]["axes"] == [["n", "4"], ["dtype", "float32"]]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("AXES = {", "AXES = 5 #{"), "bad_axes"), (("IMPLEMENTATIONS = {", "IMPLEMENTATIONS = 3 #{"), "bad_implementations"),
        (("def double(", "def other("), "no_such_function"),
    ],
)  # fmt: skip
def test_a_file_that_declares_something_else_is_told_so(tmp_path, change, kind):
    pytest.importorskip("torch")
    (tmp_path / "ops_changed.py").write_text(MODULE.replace(*change))
    with pytest.raises(OptionError) as error:
        survey_module.function_survey(f"{tmp_path / 'ops_changed.py'}:double", "cpu")
    assert error.value.kind == kind


def test_a_table_of_a_function_needs_no_kernel_of_this_project(tmp_path):
    """The survey's process fails: one line, no table."""

    def runner(job, seconds):
        return CaptureUnavailable("import_failed", "no torch")

    with pytest.raises(CaptureUnavailable, match="no torch"):
        bench(asked(), tmp_path, run=runner)


def test_the_five_minutes_of_the_manual_are_three_shapes_two_dtypes_and_right(tmp_path):
    import re
    import runpy

    torch = pytest.importorskip("torch")

    from traceanalyzer.capture.job import Job
    from traceanalyzer.capture.survey import read_survey, write_survey

    page = (Path(__file__).resolve().parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")
    code = re.search(r"## In five minutes.*?```python\n(.*?)```", page, re.DOTALL).group(1)
    file = tmp_path / "quick_ops.py"
    file.write_text(code)
    asked = BenchAsked(f"{file}:gelu")
    write_survey(Job(out=str(tmp_path / "survey"), status="", survey=asked.operator, device="cpu"))
    _, rows = plan(asked, read_survey(tmp_path / "survey"))
    assert len({r.axes for r in rows}) == 3 * 2 and {r.implementation for r in rows} == {"gelu", "torch"}
    made = runpy.run_path(str(file))
    (x,) = made["gelu_inputs"](64, "float32", "cpu", 0)
    torch.testing.assert_close(made["gelu"](x), made["reference"](x.double()).float())
    assert made["bytes_moved"](x) == 2 * 64 * 1024 * 4
