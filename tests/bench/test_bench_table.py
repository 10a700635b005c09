"""The table of a bench on the simulated device: which column is compared, losses, wrong results, rows that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.fake_runner import Runner, Speed
from traceanalyzer.capture.bench import BenchAsked, bench, nothing_measured
from traceanalyzer.capture.device import Capability
from traceanalyzer.capture.survey import Absence
from traceanalyzer.errors import OptionError
from traceanalyzer.trace.sidecar import read_sidecar

SEED = {"triton": Speed(40, 10), "mmcv": Speed(20, 22), "reference": Speed(20, 200), "compiled": Speed(30, 50)}
"""Triton has the faster kernel and the slower dispatch, as in the seed."""


def table_of(speeds=None, out=None, runner=None, **asked):
    runner = runner or Runner({**SEED, **(speeds or {})})
    return bench(BenchAsked("msda", iterations=20, **asked), out, run=runner)


def row(table, implementation, dtype="fp32", direction="forward"):
    return next(r for r in table.rows if (r.implementation, r.dtype, r.direction) == (implementation, dtype, direction))


def over(table, implementation, other, **where):
    return next(s for s in row(table, implementation, **where).speed_ups if s.against == other)


def test_speed_up_compares_kernel_times_though_end_to_end_says_the_opposite():
    table = table_of()
    assert table.column == "device"
    assert (
        over(table, "triton", "mmcv").ratio == pytest.approx(2.2) and over(table, "triton", "mmcv").column == "device"
    )
    assert over(table, "mmcv", "reference").ratio == pytest.approx(200 / 22)
    triton, mmcv = row(table, "triton"), row(table, "mmcv")
    assert triton.device.p50_us < mmcv.device.p50_us and triton.end_to_end.p50_us > mmcv.end_to_end.p50_us


def test_both_columns_have_their_interval_and_protocol():
    triton = row(table_of(), "triton")
    assert (triton.device.p50_us, triton.device.ci95_us, triton.device.n) == (10.0, (10.0, 10.0), 20)
    assert triton.device.protocol == "profiler_self_time" and triton.end_to_end.protocol == "wall_sync_once"
    assert triton.end_to_end.ci95_us is not None and triton.end_to_end.n >= 6


def test_rates_are_work_over_device_time():
    triton = row(table_of(), "triton")
    assert triton.gbytes_per_s == pytest.approx(8e6 / 10e-6 / 1e9)
    assert triton.gflops_per_s == pytest.approx(16e6 / 10e-6 / 1e9)


def test_rows_are_direction_then_dtype_then_implementation_with_the_measured_one_first():
    labels = [r.label for r in table_of().rows]
    assert labels[:4] == ["forward fp32 triton", "forward fp32 reference", "forward fp32 compiled", "forward fp32 mmcv"]
    assert labels[4].startswith("forward fp16") and labels[8].startswith("backward fp32") and len(labels) == 16


def test_a_loss_is_shown_as_it_is_and_listed():
    table = table_of({("mmcv", "fp32", "backward"): Speed(20, 8.1)})
    (loss,) = table.losses
    assert (loss.direction, loss.dtype, loss.against, loss.outcome) == ("backward", "fp32", "mmcv", "slower")
    assert loss.ratio == pytest.approx(0.81) and loss.ci95[0] <= 0.81 <= loss.ci95[1] < 1


def test_without_a_loss_none_is_listed():
    assert table_of().losses == []


def test_a_wrong_result_wins_nothing_and_loses_nothing():
    table = table_of({"mmcv": Speed(20, 2, result=1.5)})
    assert table.wrong[0] == "forward fp32 mmcv" and len(table.wrong) == 4
    assert over(table, "triton", "mmcv").counts is False and over(table, "mmcv", "reference").counts is False
    assert over(table, "triton", "reference").counts is True
    assert table.losses == [], "a wrong kernel that is faster is no loss"
    assert row(table, "mmcv").result.max_abs_error == 0.5


@pytest.mark.parametrize(
    ("error", "kind"),
    [(RuntimeError("CUDA out of memory"), "out_of_memory"), (ValueError("no"), "function_raised"), (SystemExit(3), "function_exited")],
)  # fmt: skip
def test_an_implementation_that_fails_is_a_row_with_its_reason_and_the_others_go_on(error, kind):
    table = table_of({"mmcv": Speed(20, 22, fails=error)})
    failed = row(table, "mmcv")
    assert failed.missing_kind == kind and failed.missing and not failed.measured
    assert len(table.rows) == 16 and all(r.measured for r in table.rows if r.implementation != "mmcv")
    speed_up = over(table, "triton", "mmcv")
    assert speed_up.ratio is None and failed.missing in speed_up.reason


def test_what_cannot_run_here_is_not_started_and_says_why():
    runner = Runner(SEED, [Absence("mmcv", "fp16", "no_bf16", "it has no kernel of that type")])
    table = table_of(runner=runner)
    absent = row(table, "mmcv", "fp16")
    assert (absent.missing_kind, absent.missing) == ("no_bf16", "it has no kernel of that type")
    assert not [j for j in runner.jobs if (j.implementation, j.dtype) == ("mmcv", "fp16")]
    assert over(table, "triton", "mmcv", dtype="fp16").ratio is None
    assert over(table, "triton", "mmcv", dtype="fp32").ratio == pytest.approx(2.2)


def test_implementations_of_one_dtype_and_direction_are_measured_directly_after_each_other():
    runner = Runner(SEED)
    table_of(runner=runner)
    groups = [(j.direction, j.dtype) for j in runner.jobs]
    assert groups == sorted(groups, key=groups.index), "no group is interrupted by another"
    assert all(j.framework == "pytorch" and j.preset == "decoder" for j in runner.jobs)


def test_without_the_profiler_device_time_is_the_graphs_and_the_row_says_so():
    lacking = {"missing": {Capability.PROFILER: "no permission to profile"}}
    table = table_of({"triton": Speed(40, 10, device=lacking)})
    triton = row(table, "triton")
    assert triton.device.protocol == "graph_unrolled" and triton.device.p50_us == pytest.approx(10.5)
    assert any("no permission to profile" in n for n in triton.notes)
    assert over(table, "triton", "mmcv").ratio is None and "not alike" in over(table, "triton", "mmcv").reason


def test_without_any_device_time_end_to_end_is_compared_and_said():
    lacking = {"missing": dict.fromkeys((Capability.PROFILER, Capability.GRAPH, Capability.EVENTS), "a host has none")}
    table = table_of({n: Speed(s.dispatch, s.kernel, device=lacking) for n, s in SEED.items()})
    assert table.column == "end-to-end" and row(table, "triton").device.reason == "a host has none"
    # [d + L + (N - 1) max(d, k) + k + s] / N with L 4, s 6, N 20: 41.0 and 23.5
    assert over(table, "triton", "mmcv").ratio == pytest.approx(23.5 / 41.0)
    assert {loss.against for loss in table.losses} == {"mmcv"}, "dispatch 40 against 22: end to end Triton loses"


def test_every_row_keeps_its_own_trace_and_sidecar_and_its_verdict(tmp_path):
    table = table_of(out=tmp_path, dtypes=("fp32",), directions=("forward",))
    for found in table.rows:
        folder = tmp_path / found.folder
        assert (folder / "trace.json.gz").is_file()
        sidecar, _ = read_sidecar(folder / "trace.json.gz")
        assert sidecar.operations[0].name == found.operation
    assert row(table, "triton").verdict.status == "suspect" and row(table, "triton").queue == "cpu-bound"
    assert row(table, "reference").verdict.status == "ok" and row(table, "reference").queue == "gpu-bound"
    assert row(table, "triton").agrees is True


def test_without_a_folder_no_trace_is_kept_and_the_verdict_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = table_of(dtypes=("fp32",), directions=("forward",))
    assert row(table, "triton").folder is None and row(table, "triton").verdict.status == "suspect"
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_given_after_each_case_with_the_rest_to_come():
    seen = []
    asked = BenchAsked("msda", iterations=20, dtypes=("fp32", "fp16"), directions=("forward",))
    bench(asked, run=Runner(SEED), keep=seen.append)
    assert [sum(r.measured for r in t.rows) for t in seen] == [4, 8]
    assert all(len(t.rows) == 8 for t in seen) and seen[0].rows[7].missing_kind == "not_reached"


def test_an_interrupt_ends_the_measuring_and_not_the_table():
    table = table_of({"compiled": Speed(1, 1, fails=KeyboardInterrupt())}, dtypes=("fp32",), directions=("forward",))
    kinds = [r.missing_kind for r in table.rows]
    assert kinds == ["", "", "interrupted", "interrupted"]


def test_the_limit_leaves_out_what_does_not_fit_and_bounds_each_case():
    runner = Runner(SEED)
    asked = BenchAsked(
        "msda", iterations=20, dtypes=("fp32", "fp16"), directions=("forward",), limit_s=100.0, timeout_s=70.0
    )
    table = bench(asked, run=runner, now=lambda: 90.0 if len(runner.times) == 4 else 0.0)
    assert runner.times == [25.0] * 4, "four implementations share what the limit leaves to their case"
    assert [r.missing_kind for r in table.rows] == [""] * 4 + ["left_out"] * 4
    assert "100 s" in table.rows[5].missing


def test_a_session_that_ends_early_keeps_its_numbers_and_says_so(tmp_path):
    class Late(Runner):
        def __call__(self, job, seconds):
            found = super().__call__(job, seconds)
            if job.implementation == "mmcv":
                (Path(job.out) / "trace.json.gz").unlink()
                from traceanalyzer.errors import CaptureUnavailable

                return CaptureUnavailable("crashed", "ended by SIGSEGV")
            return found

    table = table_of(out=tmp_path, runner=Late(SEED), dtypes=("fp32",), directions=("forward",))
    failed = row(table, "mmcv")
    assert failed.measured and failed.missing == "ended by SIGSEGV" and failed.verdict is None
    assert failed.unjudged == "there is no trace"


def test_clocks_that_differ_between_sessions_are_said():
    from dataclasses import replace

    from traceanalyzer.report.bench.table import BenchSubject, bench_table

    table = table_of(dtypes=("fp32",), directions=("forward",))
    rows = [replace(r, sm_clock_mhz=1980 - 570 * (r.implementation == "mmcv"), speed_ups=[]) for r in table.rows]
    subject = BenchSubject(table.operator, "", table.preset, {}, "triton", table.against, table.device)
    (note,) = [n for n in bench_table(subject, rows, {}, {}).notes if "SM clock" in n]
    assert "1410 MHz (forward fp32 mmcv)" in note and "1980 MHz" in note
    alike = [replace(r, sm_clock_mhz=1980) for r in rows]
    assert not [n for n in bench_table(subject, alike, {}, {}).notes if "SM clock" in n]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"dtypes": ("fp31",)}, "no dtype of msda is named 'fp31'"),
        ({"directions": ("sideways",)}, "no direction of msda is named 'sideways'"),
        ({"implementation": "trition"}, "no implementation of msda is named 'trition'"),
        ({"against": ("mmcw",)}, "no implementation of msda is named 'mmcw'"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_that_are(asked, says):
    with pytest.raises(OptionError, match=says) as error:
        table_of(**asked)
    assert "known: " in error.value.hint


def test_against_chooses_the_alternatives_and_none_leaves_one_row():
    assert table_of(against=("reference",)).against == ["reference"]
    alone = table_of(against=(), dtypes=("fp32",), directions=("forward",))
    assert [r.implementation for r in alone.rows] == ["triton"] and alone.rows[0].speed_ups == []


def test_a_table_without_a_number_is_an_error_that_says_why():
    absent = [Absence(n, d, "no_gpu", "no GPU") for n in SEED for d in ("fp32", "fp16")]
    error = nothing_measured(table_of(runner=Runner(SEED, absent)))
    assert error is not None and "no GPU" in str(error) and error.exit_code == 4
    assert nothing_measured(table_of()) is None


def test_json_has_no_nan_and_names_its_schema():
    from traceanalyzer.render.json_v1 import dump

    found = json.loads(dump(table_of().to_dict()))
    assert found["schema"] == "traceanalyzer.bench/1" and len(found["rows"]) == 16
    assert set(found["rows"][0]) >= {"device", "end_to_end", "speed_ups", "result", "verdict", "folder", "device_kind"}


def test_the_page_names_every_field_of_the_json():
    from dataclasses import fields

    from traceanalyzer.report.bench import model
    from traceanalyzer.trace.sidecar import DeviceFacts

    page = (Path(__file__).resolve().parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")
    for kind in (model.BenchTable, model.BenchRow, model.SpeedUp, model.Reading, model.Result, model.Loss, DeviceFacts):
        for found in fields(kind):
            assert f'"{found.name}"' in page, f"{kind.__name__}.{found.name}"
    assert model.SCHEMA in page
