"""The command on this machine's CPU, with real processes: labels, reasons, exit codes, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench.fake_runner import Runner, Speed
from tests.bench.test_bench_table import SEED
from traceanalyzer.cli import cli

pytest.importorskip("torch")


def cpu(*words, cwd):
    command = [sys.executable, "-m", "traceanalyzer", "bench", *words, "--device", "cpu"]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


@pytest.fixture(scope="module")
def msda(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    words = (
        "msda",
        "--preset",
        "tiny",
        "--dtypes",
        "fp32",
        "--against",
        "reference,mmcv",
        "--iters",
        "10",
        "--budget",
        "1",
    )
    done = cpu(*words, "-o", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, folder / "out"


def rows_of(folder):
    return {(r["direction"], r["implementation"]): r for r in json.loads((folder / "bench.json").read_text())["rows"]}


def test_without_a_gpu_the_reference_is_measured_end_to_end_and_labelled_cpu(msda):
    done, folder = msda
    line = next(x for x in done.stdout.splitlines() if x.startswith("forward fp32 reference"))
    assert line.split()[3:5] == ["cpu", "n/a"]
    found = rows_of(folder)["backward", "reference"]
    assert found["end_to_end"]["p50_us"] > 0 and found["device"]["p50_us"] is None
    assert found["device"]["reason"] == "a CPU has no device clock"
    assert found["gbytes_per_s"] is None and found["verdict"] is None


def test_triton_rows_are_na_because_interpreter_time_is_no_measurement(msda):
    done, folder = msda
    assert "interpreter time is not a measurement" in " ".join(done.stdout.split())
    triton = rows_of(folder)["forward", "triton"]
    assert triton["missing_kind"] == "no_gpu" and triton["end_to_end"]["p50_us"] is None
    assert not (folder / "forward-fp32-triton").exists()


def test_results_are_held_to_the_reference_in_float64_forward_and_backward(msda):
    _, folder = msda
    for direction in ("forward", "backward"):
        result = rows_of(folder)[direction, "reference"]["result"]
        assert result["passed"] is True and 0 < result["max_abs_error"] < 1e-4


def test_every_measured_row_can_be_judged_again_from_its_folder(msda):
    _, folder = msda
    for direction in ("forward", "backward"):
        trace = folder / f"{direction}-fp32-reference" / "trace.json.gz"
        found = CliRunner().invoke(cli, ["report", str(trace), "--format", "json"])
        assert json.loads(found.stdout)["capture"]["operations"][0]["name"].startswith("msda_reference_tiny_fp32")


def test_the_json_is_the_whole_standard_output(msda, tmp_path):
    words = ("empty", "--preset", "tiny", "--format", "json", "--against", "reference", "--iters", "5", "--budget", "1")
    done = cpu(*words, cwd=tmp_path)
    table = json.loads(done.stdout)
    assert done.returncode == 4 and "nothing_measured" in done.stderr
    assert [r["missing_kind"] for r in table["rows"]] == ["no_gpu", "launches_nothing"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("msdb",), "no kernel is named 'msdb'"),
        (("msda", "--preset", "decode"), "no preset of msda is named 'decode'"),
        (("vector_add", "--directions", "backward"), "no direction of vector_add is named 'backward'"),
        (("msda", "--protocols", "event_pear"), "no protocol is called 'event_pear'"),
    ],
)
def test_bad_words_are_one_line_and_exit_two(tmp_path, words, says):
    done = cpu(*words, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.stdout == "" and list(tmp_path.iterdir()) == []


def invoke(monkeypatch, speeds, *words):
    import traceanalyzer.capture.bench as module

    real = module.bench
    monkeypatch.setattr(module, "bench", lambda *a, **k: real(*a, **k, run=Runner({**SEED, **speeds})))
    return CliRunner().invoke(
        cli, ["bench", "msda", "--iters", "20", "--dtypes", "fp32", "--directions", "forward", *words]
    )


def test_a_wrong_result_exits_one_and_names_the_row(monkeypatch):
    done = invoke(monkeypatch, {"mmcv": Speed(20, 22, result=1.5)})
    assert done.exit_code == 1 and "wrong_result: forward fp32 mmcv" in done.stderr
    assert "~~22.00~~" in done.stdout


def test_an_interrupt_prints_what_there_is_and_exits_four(monkeypatch):
    done = invoke(monkeypatch, {"compiled": Speed(1, 1, fails=KeyboardInterrupt())})
    assert done.exit_code == 4 and "interrupted" in done.stderr
    assert "forward fp32 triton" in done.stdout and "200.0" in done.stdout


def test_the_folder_holds_the_table_of_the_last_row(monkeypatch, tmp_path):
    done = invoke(monkeypatch, {}, "-o", str(tmp_path / "out"), "--format", "markdown")
    assert done.exit_code == 0 and done.stdout.startswith("### msda decoder")
    table = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert all(r["device"]["p50_us"] for r in table["rows"])
    assert {Path(r["folder"]).name for r in table["rows"]} <= {p.name for p in (tmp_path / "out").iterdir()}


def test_a_file_in_place_of_the_folder_is_refused(monkeypatch, tmp_path):
    (tmp_path / "out").write_text("")
    done = invoke(monkeypatch, {}, "-o", str(tmp_path / "out"))
    assert done.exit_code == 2 and "'out' is a file" in done.stderr
