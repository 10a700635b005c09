"""The GPU check driven on the simulated device: the error columns, the budget, and steps that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.bench.fake_runner import Runner, Speed
from traceanalyzer.capture.device import Capability
from traceanalyzer.errors import CaptureUnavailable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu_check  # noqa: E402
import gpu_check_table  # noqa: E402

ALL_WELL = ("done", "12 passed in 30 s")
NAMES = [s.name for s in gpu_check.STEPS]
FEW = tuple(s for s in gpu_check.STEPS if s.name in ("empty", "vector_add", "tests"))
"""Steps enough for a claim that is not about the order or the number of them."""


class Clock:
    """Every job takes ``seconds``; nothing else takes any time."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.now, self.seconds = 0.0, seconds

    def __call__(self) -> float:
        return self.now


class Timed(Runner):
    """A runner on a clock: a job that would take longer than it may ends at its bound."""

    clock: Clock = Clock()

    def __call__(self, job, seconds):
        if not job.survey and not job.others:
            assert seconds > 0
            self.clock.now += min(self.clock.seconds, seconds)
        return super().__call__(job, seconds)


def checked(
    folder, speeds=None, *, seconds=10.0, budget=360.0, tests=lambda *_: ALL_WELL, runner=None, steps=gpu_check.STEPS
):
    runner = runner or Timed(
        speeds or {"triton": Speed(40, 10), **{n: Speed(20, 50) for n in ("reference", "compiled", "mmcv")}}
    )
    runner.clock = Clock(seconds)
    return gpu_check.check(folder, budget, run=runner, steps=steps, tests=tests, now=runner.clock), runner


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    return checked(folder)[0], folder


def test_every_protocol_of_every_capture_has_its_reading_its_prediction_and_the_error(good):
    found, _ = good
    assert len(found.ladder) == 5 * 10
    for row in found.ladder:
        assert row.measured_us is not None, row.protocol
        if row.protocol == "profiler_self_time":
            assert row.predicted_us is None and row.error is None
        else:
            assert row.error == pytest.approx(row.predicted_us / row.measured_us - 1) and abs(row.error) < 0.1


def test_a_model_that_is_off_is_a_fault_and_the_sign_says_which_way(tmp_path):
    """A sleep kernel beside the call: the device runs 5 us between calls that no launch of the trace accounts for."""
    found, _ = checked(tmp_path, steps=FEW)
    row = next(r for r in found.ladder if r.protocol == "event_pair")
    off = replace(row, predicted_us=row.measured_us * 0.8, error=-0.2, within=False)
    found.ladder[found.ladder.index(row)] = off
    (fault,) = found.faults()
    assert fault == "empty, event_pair: predicted -20.0% off, over 10% and the floor of the machine"
    line = next(x for x in gpu_check_table.text(found).splitlines() if x.startswith("event_pair ") and "OVER" in x)
    assert "-20.0%" in line


def test_a_graph_that_disagrees_with_self_time_is_a_fault(tmp_path):
    found, _ = checked(tmp_path, steps=FEW)
    found.captures[1] = replace(found.captures[1], agreement=0.2, agrees=False)
    assert found.faults() == [
        "vector_add: the unrolled graph is +20.0% off self-time and gaps, over 3% and the floor of the machine"
    ]
    assert "OVER" in gpu_check_table.text(found)


def test_where_all_is_well_it_says_so_and_there_is_no_fault(good):
    found, folder = good
    assert found.faults() == [] and [s.state for s in found.steps] == ["done"] * len(NAMES)
    assert "all that was measured lies within its targets" in (folder / "gpu-check.txt").read_text()


def test_a_check_that_compared_nothing_is_not_called_good(tmp_path):
    lacking = {"missing": dict.fromkeys((Capability.PROFILER, Capability.GRAPH, Capability.EVENTS), "no permission")}
    names = ("triton", "reference", "compiled", "mmcv")
    found, _ = checked(tmp_path, {n: Speed(40, 10, device=lacking) for n in names}, steps=FEW)
    assert "empty: no reading could be compared with a prediction" in found.faults()
    assert any(f.startswith("empty: no cross-check: no profiler self-time: no permission") for f in found.faults())
    assert "within its targets" not in (tmp_path / "gpu-check.txt").read_text()


def test_a_budget_without_room_for_any_step_is_not_called_good(tmp_path):
    found, _ = checked(tmp_path, budget=15.0)
    assert found.faults() == ["nothing was captured"] and {s.state for s in found.steps} == {"left out"}


def test_everything_lies_in_one_folder(good):
    _, folder = good
    for step in gpu_check.STEPS:
        if step.kind == "ladder":
            assert {"trace.json.gz", "trace.sidecar.json", "report.txt"} <= {
                p.name for p in (folder / step.name).iterdir()
            }
    assert {"gpu-check.json", "gpu-check.md", "gpu-check.txt"} <= {p.name for p in folder.iterdir()}
    assert {"bench.json", "bench.md", "bench.txt", "forward-fp16-triton"} <= {
        p.name for p in (folder / "bench").iterdir()
    }
    assert not list(folder.rglob("*.part"))


def test_text_markdown_and_json_say_the_same(good):
    _, folder = good
    text, html = (
        (folder / "gpu-check.txt").read_text(),
        MarkdownIt("gfm-like", {"linkify": False}).render((folder / "gpu-check.md").read_text()),
    )
    assert max(len(line) for line in text.splitlines()) <= 100
    assert html.count("<table>") == 5 + 3
    data = json.loads((folder / "gpu-check.json").read_text())
    assert data["schema"] == "traceanalyzer.gpu-check/1" and data["faults"] == [] and len(data["ladder"]) == 50
    for words in ("Prediction error per protocol", "vector_add", "event pair per call"):
        assert words in text and words in html


def test_the_order_is_that_of_worth_and_each_capture_has_its_bound(good):
    _, runner = good[0], checked(good[1].parent / "again")[1]
    ladder = [s for s in gpu_check.STEPS if s.kind == "ladder"]
    jobs = [j for j in runner.jobs if "event_pair" in j.protocols]
    assert NAMES[0] == "bench", "the table that people ask for comes first"
    assert [(j.target, j.preset, j.dtype, j.direction) for j in jobs] == [
        ("empty", "one", "fp32", "forward"), ("vector_add", "small", "fp32", "forward"), ("msda", "decoder", "fp16", "forward"),
        ("msda", "decoder", "fp16", "backward"), ("msda", "encoder", "fp16", "forward"),
    ]  # fmt: skip
    bounds = [t for t, j in zip(runner.times, runner.jobs, strict=True) if "event_pair" in j.protocols]
    assert bounds[:1] == [ladder[0].most_s] and all(b <= s.most_s for b, s in zip(bounds, ladder, strict=False))


@pytest.mark.parametrize("seconds", [40.0, 200.0])
def test_it_never_takes_longer_than_it_may_and_says_what_was_left_out(tmp_path, seconds):
    found, runner = checked(tmp_path, seconds=seconds, budget=150.0)
    assert runner.clock.now <= 150.0
    left_out = [s for s in found.steps if s.state == "left out"]
    assert [s.step for s in found.steps] == NAMES
    assert left_out and all("of 150 s were left" in s.reason for s in left_out)
    assert left_out[0].step in (tmp_path / "gpu-check.txt").read_text()


def test_a_step_that_crashes_costs_no_other(tmp_path):
    class Crashes(Timed):
        def __call__(self, job, seconds):
            if job.target == "vector_add":
                return CaptureUnavailable("crashed", "the code under capture was ended by SIGSEGV")
            if job.direction == "backward" and "event_pair" in job.protocols:
                raise OSError("no space left")
            return super().__call__(job, seconds)

    found, _ = checked(
        tmp_path,
        runner=Crashes(
            {"triton": Speed(40, 10), "reference": Speed(1, 1), "compiled": Speed(1, 1), "mmcv": Speed(1, 1)}
        ),
    )
    states = {s.step: s for s in found.steps}
    assert "SIGSEGV" in states["vector_add"].reason and states["vector_add"].state == "failed"
    assert states["msda-decoder-bwd"].reason == "OSError: no space left"
    assert {r.capture for r in found.ladder} == {"empty", "msda-decoder", "msda-encoder"}
    assert len(found.faults()) == 2


def test_what_was_measured_before_an_end_stands_in_the_table(tmp_path):
    class Late(Timed):
        def __call__(self, job, seconds):
            failure = super().__call__(job, seconds)
            if job.target == "empty":
                (Path(job.out) / "trace.json.gz").unlink()
                return CaptureUnavailable("timed_out", "not done after 80 s")
            return failure

    found, _ = checked(
        tmp_path,
        runner=Late({"triton": Speed(40, 10), "reference": Speed(1, 1), "compiled": Speed(1, 1), "mmcv": Speed(1, 1)}),
        steps=FEW,
    )
    rows = [r for r in found.ladder if r.capture == "empty"]
    assert [r for r in rows if r.measured_us is not None and r.error is None and r.reason == "there is no trace"]
    assert next(s for s in found.steps if s.step == "empty").state == "ended early"


def test_results_are_written_after_each_step(tmp_path):
    seen = []

    def tests(folder, seconds):
        seen.append(json.loads((folder / "gpu-check.json").read_text()))
        return ALL_WELL

    checked(tmp_path, tests=tests, steps=FEW)
    names = [s.name for s in FEW]
    assert [s["step"] for s in seen[0]["steps"]] == names[: names.index("tests")] and len(seen[0]["ladder"]) == 20


def test_an_interrupt_ends_it_with_what_there_is(tmp_path):
    def tests(folder, seconds):
        raise KeyboardInterrupt

    found, _ = checked(tmp_path, tests=tests, steps=FEW)
    assert found.steps[-1] == gpu_check_table.StepRow("tests", "ended early", 0.0, "interrupted")
    assert json.loads((tmp_path / "gpu-check.json").read_text())["steps"][-1]["reason"] == "interrupted"


def test_a_wrong_kernel_is_a_fault(tmp_path):
    found, _ = checked(
        tmp_path,
        steps=FEW,
        speeds={"triton": Speed(40, 10, result=2.0), **{n: Speed(1, 1) for n in ("reference", "compiled", "mmcv")}},
    )
    assert (
        any("the result is wrong" in f for f in found.faults()) and "WRONG" in (tmp_path / "gpu-check.txt").read_text()
    )


def test_failing_tests_are_a_fault(tmp_path):
    found, _ = checked(tmp_path, steps=FEW, tests=lambda *_: ("failed", "1 failed, 11 passed"))
    assert found.faults() == ["tests failed: 1 failed, 11 passed"]


def script(*words, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "gpu_check.py"), *words], capture_output=True, text=True, timeout=200,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment},
    )  # fmt: skip


def test_without_a_gpu_it_is_one_line_and_exit_four(tmp_path):
    pytest.importorskip("torch")
    done = script(str(tmp_path / "out"))
    assert done.returncode == 4 and done.stderr.startswith("gpu-check: no_device: torch sees no cuda device")
    assert len(done.stderr.splitlines()) == 1 and done.stdout == "" and not (tmp_path / "out").exists()


def test_it_runs_where_the_project_is_not_installed(tmp_path):
    """As on a lent machine: the packages are found in the repository, also by the processes it starts."""
    pytest.importorskip("torch")
    code = (
        "import sys, runpy\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
        "sys.path[:] = [p for p in sys.path if 'editable' not in p]\n"
        f"sys.argv = ['gpu_check.py', {str(tmp_path / 'out')!r}]\n"
        f"runpy.run_path({str(ROOT / 'benchmarks' / 'gpu_check.py')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )  # fmt: skip
    assert done.returncode == 4 and "torch sees no cuda device" in done.stderr, done.stderr


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    assert script(str(tmp_path / "out")).returncode == 2


def test_the_marked_tests_skip_here_with_a_reason_and_their_log_is_kept(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: they run")
    state, said = gpu_check.run_tests(tmp_path, 120)
    assert state == "failed" and said.startswith("no test ran: ") and "skipped" in said
    assert "torch sees no CUDA or ROCm device" in (tmp_path / "tests.txt").read_text()


def test_tests_that_hang_are_ended(tmp_path):
    state, said = gpu_check.run_tests(tmp_path, 0.2)
    assert state == "ended early" and "0 s" in said


def doubled(measure):
    return lambda self, device, call, calls: [2 * t for t in measure(self, device, call, calls)]


def with_a_barrier_in_each_call(measure):
    def broken(self, device, call, calls):
        return measure(self, device, lambda: device.synchronize(call()), calls)

    return broken


def without_a_barrier(measure):
    def broken(self, device, call, calls):
        device.synchronize()
        start = device.now_ns()
        for _ in range(calls):
            call()
        return [(device.now_ns() - start) / calls] * (calls if self.per_call else 1)

    return broken


def without_a_blocker(measure):
    def broken(self, device, call, calls):
        events = []
        for _ in range(calls):
            start = device.record()
            call()
            events.append((start, device.record()))
        device.synchronize()
        return [device.elapsed_ns(*pair) for pair in events]

    return broken


def around_the_clear(measure):
    def broken(self, device, call, calls):
        events = []
        for _ in range(calls):
            start = device.record()
            device.clear()
            call()
            events.append((start, device.record()))
        device.synchronize()
        return [device.elapsed_ns(*pair) for pair in events]

    return broken


MUTATIONS = [
    ("wall_nosync", with_a_barrier_in_each_call, (40, 10)), ("wall_sync_each", without_a_barrier, (40, 10)),
    ("wall_sync_once", without_a_barrier, (20, 60)), ("event_pair", with_a_barrier_in_each_call, (20, 60)),
    ("event_pair_sync", without_a_blocker, (40, 10)), ("event_loop", with_a_barrier_in_each_call, (40, 10)),
    ("do_bench", around_the_clear, (40, 10)), ("backlog", without_a_blocker, (40, 10)), ("graph_unrolled", doubled, (40, 10)),
    ("profiler_self_time", doubled, (40, 10)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "mutation", "speed"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_a_protocol_that_is_broken_on_purpose_is_found(tmp_path, monkeypatch, key, mutation, speed):
    from traceanalyzer.capture.protocols import TIMED
    from traceanalyzer.capture.protocols.profiler import Profiler

    step = next(s for s in gpu_check.STEPS if s.name == "empty")

    def faults(folder):
        runner = Timed({"triton": Speed(*speed)})
        return gpu_check.check(folder, 360.0, run=runner, steps=(step,), tests=lambda *_: ALL_WELL, now=Clock()).wrong()

    assert faults(tmp_path / "sound") == []
    protocol = Profiler if key == Profiler.key else next(p for p in TIMED if p.key == key)
    monkeypatch.setattr(protocol, "measure", mutation(protocol.measure))
    found = faults(tmp_path / "broken")
    assert any(key in f or "unrolled graph" in f for f in found), found


@pytest.mark.parametrize("gap", [0, 300, 900, 2000])
def test_a_device_that_obeys_the_model_passes_whatever_the_gap_between_its_nodes(tmp_path, gap, monkeypatch):
    from tests.capture.fake_device import FakeDevice

    made = FakeDevice.__init__

    def with_gap(self, *a, **k):
        made(self, *a, **k)
        self.node_gap = gap

    monkeypatch.setattr(FakeDevice, "__init__", with_gap)
    step = next(s for s in gpu_check.STEPS if s.name == "empty")
    for kernel in (0.5, 10):
        runner = Timed({"triton": Speed(40, kernel)})
        found = gpu_check.check(tmp_path / str(kernel), 360.0, run=runner, steps=(step,), now=Clock())
        assert found.faults() == []


def test_time_that_ran_out_is_told_from_a_wrong_number(tmp_path):
    found, _ = checked(tmp_path, steps=FEW, tests=lambda *_: ("ended early", "not done after 150 s"))
    assert found.wrong() == [] and found.unfinished() == ["tests ended early: not done after 150 s"]
    assert "not finished: tests" in (tmp_path / "gpu-check.txt").read_text()


def test_packages_that_are_missing_are_named_before_anything_is_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(gpu_check, "NEEDED", ("click", "no_such_package_a", "no_such_package_b"))
    monkeypatch.setattr(gpu_check, "ROOT", tmp_path)
    assert gpu_check.main([str(tmp_path / "out")]) == 4
    assert "no_such_package_a, no_such_package_b not installed" in capsys.readouterr().err


@pytest.mark.parametrize(("wrong", "unfinished", "code"), [([], [], 0), (["x"], ["y"], 1), ([], ["y"], 3)])
def test_the_exit_code_tells_a_wrong_number_from_time_that_ran_out(monkeypatch, tmp_path, wrong, unfinished, code):
    import gpu_check_table as table

    class Found:
        wrong = staticmethod(lambda: wrong_)
        unfinished = staticmethod(lambda: unfinished_)

    wrong_, unfinished_ = wrong, unfinished
    monkeypatch.setattr(gpu_check, "check", lambda *_, **__: Found)
    monkeypatch.setattr(gpu_check, "make_importable", lambda: None)
    monkeypatch.setattr(table, "text", lambda _: "")
    assert gpu_check.main([str(tmp_path / "out")]) == code


def test_packages_that_are_missing_come_from_the_wheels_that_were_carried_along(monkeypatch, tmp_path):
    import zipfile

    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "carried_along_zz-1.0.dist-info"
    with zipfile.ZipFile(folder / "carried_along_zz-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carried_along_zz.py", "HERE = 1\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: carried-along-zz\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setattr(gpu_check, "ROOT", tmp_path)
    monkeypatch.setattr(gpu_check, "NEEDED", ("click", "carried_along_zz"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    assert gpu_check.missing_packages() == []
    assert __import__("carried_along_zz").HERE == 1
