"""HTA beside us: every difference is verified by its own code, whatever it does it costs no report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.builders import trace
from tests.conftest import shared_files
from tests.kineto_writer import to_json
from traceanalyzer.analysis import hta_definitions
from traceanalyzer.api import analyze, examine
from traceanalyzer.cli import cli
from traceanalyzer.errors import TraceAnalyzerError
from traceanalyzer.options import AnalysisOptions, Selection
from traceanalyzer.peers import hta
from traceanalyzer.peers.hta import HtaFigures, HtaResult, run_hta
from traceanalyzer.report.opinion import SecondOpinion
from traceanalyzer.report.second_opinion import second_opinion

needs_hta = pytest.mark.skipif(not hta.installed_version(), reason="HolisticTraceAnalysis is not installed")


def opinion_on(path) -> SecondOpinion:
    found = analyze(path, second_opinion=True).data.second_opinion
    assert found is not None and not found.error, found
    return found


def row(opinion: SecondOpinion, quantity: str):
    return next(r for r in opinion.rows if r.quantity == quantity)


def causes(opinion: SecondOpinion, quantity: str) -> dict[str, float]:
    return {c.cause: c.amount for c in row(opinion, quantity).causes}


def assert_adds_up(opinion: SecondOpinion) -> None:
    for r in opinion.rows:
        if r.ours is not None and r.theirs is not None:
            parts = sum(c.amount for c in r.causes) + (r.unexplained or 0)
            assert r.ours - r.theirs == pytest.approx(parts, abs=0.005), r


# -- against HTA itself ----------------------------------------------------------------------------------


# without the five largest, which take HTA most of the time of these tests and hold no row of another kind
REAL = sorted(shared_files("traces/*.json.gz"), key=lambda path: path.stat().st_size)[:-5]


@needs_hta
@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_every_difference_on_real_traces_is_explained_and_adds_up(path):
    found = analyze(path, second_opinion=True).data.second_opinion
    if found.error:
        assert found.error.startswith("it ended in ")  # its own crash, in a line
        return
    assert_adds_up(found)
    assert [r for r in found.rows if r.unexplained is not None] == []


@needs_hta
def test_whole_microseconds_are_the_cause_where_they_are(tmp_path):
    builder = trace().loop(5, period="40.250", latency="5.300", dur="10.900")
    found = opinion_on(builder.write(tmp_path / "t.json"))
    busy = row(found, "busy")
    assert busy.ours == 54.5 and busy.theirs < 54.5
    assert causes(found, "busy") == {"times cut to whole microseconds": pytest.approx(54.5 - busy.theirs)}


@needs_hta
def test_host_rows_with_a_stream_argument_are_the_cause(tmp_path):
    builder = trace().loop(3, period=100, latency=5, dur=10)
    builder.host("cpu_op", "triton_wrapper", 1050, 30)
    builder.events[-1]["args"] = {"stream": 7, "correlation": 7777}
    found = opinion_on(builder.write(tmp_path / "t.json"))
    assert causes(found, "busy") == {"1 host row with a stream argument taken for device work": -30}


@needs_hta
def test_the_last_step_it_drops_is_the_cause(tmp_path):
    builder = trace().loop(6, period=100, latency=5, dur=10)
    for step in range(3):
        builder.range(f"ProfilerStep#{step}", 990 + 200 * step, 195)
    found = opinion_on(builder.write(tmp_path / "t.json"))
    assert row(found, "busy").theirs == 40
    assert causes(found, "busy") == {"2 of 6 rows dropped: its last ProfilerStep, and rows without a host call": 20}


@needs_hta
def test_launch_calls_it_does_not_know_are_named_with_their_rows(tmp_path):
    builder = trace().loop(4, period=100, latency=5, dur=10)
    for i in range(3):
        builder.launch(1500 + 100 * i, api="cuLaunchKernel").kernel(1506 + 100 * i, 10)
    found = opinion_on(builder.write(tmp_path / "t.json"))
    joined = row(found, "device rows joined to a launch")
    assert (joined.ours, joined.theirs, joined.unit) == (7, 4, "rows")
    assert causes(found, joined.quantity) == {"launch calls it does not know: cuLaunchKernel 3": 3}


@needs_hta
def test_its_sums_of_sums_are_the_cause_beyond_ten_names(tmp_path):
    builder = trace()
    for i in range(36):
        builder.call(1000 + 100 * i, 1005 + 100 * i, 10 + i % 12, name=f"kernel_{i % 12}")
    found = opinion_on(builder.write(tmp_path / "t.json"))
    mean = row(found, "kernel_11: mean")
    assert (mean.ours, mean.theirs) == (21, 63)
    assert list(causes(found, mean.quantity).values()) == [-42]


@needs_hta
def test_stamps_of_1e15_microseconds_are_explained_by_floats(tmp_path):
    builder = trace().loop(9, period="40.123", latency="5.017", dur="10.101", start="1712195495406752.003")
    found = opinion_on(builder.write(tmp_path / "t.json"))
    assert_adds_up(found)
    assert not [r for r in found.rows if r.unexplained is not None]
    assert "times kept as 64-bit floats" in causes(found, "span")


@needs_hta
def test_several_devices_are_not_compared_and_the_reason_is_said(tmp_path):
    builder = trace()
    for i in range(6):
        builder.launch(1000 + 100 * i).kernel(1010 + 100 * i, 10, device=i % 2)
    found = opinion_on(builder.write(tmp_path / "t.json"))
    assert all(r.ours is None and "2 devices for one" in r.note for r in found.rows)


# -- never a guess ---------------------------------------------------------------------------------------


def figures(busy: float, **other) -> HtaFigures:
    return HtaFigures(idle_us=0.0, span_us=busy, compute_us=busy, **other)


def compared(tmp_path, found: HtaResult) -> SecondOpinion:
    path = trace().loop(5, period=40, latency=5, dur=10).write(tmp_path / "t.json")
    return second_opinion(examine(ta.read(path))[0], found)


def test_a_difference_that_no_cause_accounts_for_is_called_unexplained(tmp_path):
    wrong = figures(999.0)
    found = compared(tmp_path, HtaResult("HTA 9", "", dict.fromkeys(hta.VARIANTS, wrong), {}))
    busy = row(found, "busy")
    assert busy.causes == [] and busy.unexplained == 50 - 999


def test_a_version_whose_habits_cannot_be_taken_away_explains_nothing(tmp_path):
    found = compared(tmp_path, HtaResult("HTA 9", "", {"shipped": figures(40.0)}, {}))
    assert row(found, "busy").causes == [] and row(found, "busy").unexplained == 10


def test_a_step_without_an_answer_joins_its_cause_to_the_next(tmp_path):
    steps = {
        "shipped": figures(40.0),
        "all_rows": HtaFigures(),
        "device_rows": figures(45.0),
        "unrounded": figures(50.0),
    }
    found = compared(tmp_path, HtaResult("HTA 9", "", steps, {"dropped_rows": 1, "rows_on_streams": 5}))
    first, second = row(found, "busy").causes
    assert first.amount == 5 and "dropped" in first.cause and " and " in first.cause and second.amount == 5


def test_no_answer_is_no_number(tmp_path):
    silent = HtaFigures(failed={"temporal": "AssertionError: "})
    found = compared(tmp_path, HtaResult("HTA 9", "", {"shipped": silent, "unrounded": figures(50.0)}, {}))
    busy = row(found, "busy")
    assert busy.theirs is None and busy.note == "it gives no number (AssertionError)" and busy.theirs_unrounded == 50


@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("triton_add", True), ("Memcpy DtoH", False), ("Memset (Device)", False), ("ncclDevKernel_AllReduce", False),
        ("dma_copy", False), ("void cudaSyncThing()", False), ("my Memcpy kernel", False), ("Memset_like", False),
    ],
)  # fmt: skip
def test_its_classes_by_name(name, compute):
    assert hta_definitions.is_compute(name) is compute


# -- it costs no report ----------------------------------------------------------------------------------


def report(path, *options):
    return CliRunner().invoke(cli, ["report", str(path), "--second-opinion", *options])


@pytest.fixture
def loop(tmp_path) -> Path:
    return trace().loop(20, period=40, latency=5, dur=10).write(tmp_path / "t.json")


def without_opinion(text: str) -> dict:
    found = json.loads(text)
    del found["second_opinion"]
    return found


def child(monkeypatch, tmp_path, code: str) -> None:
    """Put another program in place of the one that runs HTA."""
    script = tmp_path / "child" / "hta_process.py"
    script.parent.mkdir()
    script.write_text(code)
    monkeypatch.setattr(hta, "__file__", str(script.with_name("hta.py")))
    monkeypatch.setattr(hta, "installed_version", lambda: "HTA 9")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import time; time.sleep(60)", "it was stopped after 1 s"),
        ("import os; os.kill(os.getpid(), 9)", "its process was ended by signal 9"),
        ("raise SystemExit(7)", "its process ended with code 7"),
        ("pass", "it ended without an answer"),
        ("import sys; open(sys.argv[2], 'w').write('{')", "it ended without an answer"),
        ("import sys; open(sys.argv[2], 'w').write('{\"error\": \"KeyError: \\\\u001b[31m\\\\n/home/x/y\"}')", "it ended in KeyError"),
        ("print('noise' * 100_000); import sys; sys.stderr.write('x' * 1_000_000)", "it ended without an answer"),
    ],
)  # fmt: skip
def test_whatever_becomes_of_it_is_one_line_beside_the_same_report(monkeypatch, tmp_path, loop, code, said):
    child(monkeypatch, tmp_path, code)
    monkeypatch.setattr(
        "traceanalyzer.peers.hta.run_hta", lambda path: run_hta(path, seconds=1 if "sleep" in code else 20)
    )
    plain = json.loads(CliRunner().invoke(cli, ["report", str(loop), "--format", "json"]).output)
    del plain["second_opinion"]
    found = report(loop, "--format", "json")
    assert without_opinion(found.output) == plain
    error = json.loads(found.output)["second_opinion"]["error"]
    assert said in error and "\n" not in error and "/home" not in error
    for output_format in ("text", "markdown"):
        shown = report(loop, "--format", output_format)
        assert said.split(" (")[0] in " ".join(shown.output.split()) and "\x1b" not in shown.output
        assert "noise" not in shown.output


def test_a_child_of_the_child_is_ended_with_it(monkeypatch, tmp_path, loop):
    mark = tmp_path / "alive"
    grandchild = f"import time, pathlib; time.sleep(1.2); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {grandchild!r}])\ntime.sleep(60)"
    child(monkeypatch, tmp_path, code)
    assert run_hta(loop, seconds=0.6).error == "it was stopped after 0.6 s"
    import time

    time.sleep(1.5)
    assert not mark.exists()


def test_without_hta_the_way_to_get_it_is_said(monkeypatch, loop):
    monkeypatch.setattr(hta, "installed_version", lambda: "")
    found = report(loop)
    assert found.exit_code == 0 and "pip install '.[hta]'" in " ".join(found.output.split())


@needs_hta
def test_memory_is_bounded(loop):
    assert run_hta(loop, memory_bytes=60 << 20).error
    assert not run_hta(loop).error


@needs_hta
def test_a_trace_it_cannot_read_is_one_line(tmp_path, write):
    found = report(
        write(json.loads(to_json(trace().loop(5, period=40, latency=5, dur=10).document()))["traceEvents"]),
        "--format",
        "json",
    )
    assert found.exit_code == 0
    bare = write(
        json.dumps(json.loads(to_json(trace().loop(5, period=40, latency=5, dur=10).document()))["traceEvents"])
    )
    assert json.loads(report(bare, "--format", "json").output)["second_opinion"]["error"].startswith(
        "it ended in AttributeError"
    )


def test_standard_input_and_selections_are_refused_in_a_line(loop):
    text = loop.read_text()
    found = CliRunner().invoke(cli, ["report", "-", "--second-opinion", "--format", "json"], input=text)
    assert found.exit_code == 0 and json.loads(found.output)["second_opinion"]["error"]
    for option in (["--device", "0"], ["--kernel", "k"], ["--stream", "7"]):
        refused = report(loop, *option)
        assert refused.exit_code == 2 and "whole trace" in refused.output
    with pytest.raises(TraceAnalyzerError):
        analyze(loop, options=AnalysisOptions(Selection(device=0)), second_opinion=True)


def test_nothing_is_run_unless_asked(monkeypatch, loop):
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a process was started"))
    assert ta.analyze(loop).data.second_opinion is None


@needs_hta
def test_settings_files_of_the_current_folder_do_not_reach_it(monkeypatch, tmp_path, loop):
    (tmp_path / "trace_analyzer.json").write_text("not json")
    (tmp_path / "hta.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    assert run_hta(loop).error == ""


@needs_hta
def test_markdown_stays_within_its_bounds(loop):
    text = report(loop, "--format", "markdown").output
    assert len(text.splitlines()) <= 60 and "Second opinion: HolisticTraceAnalysis" in text
