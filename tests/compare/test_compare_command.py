"""``traceanalyze compare`` as its user meets it: simulated pairs with known truth, saved reports, exit codes."""

from __future__ import annotations

import gzip
import json
import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.cli import cli
from traceanalyzer.doctor.example import captured
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.report.frames import compare_schema
from traceanalyzer.trace.sidecar import ProtocolResult, encode_sidecar, sidecar_path

DISPATCH_AND_KERNEL = {"mmcv": (20_000, 14_000), "triton": (40_000, 10_000)}


def simulate(
    path: Path,
    dispatch: int,
    kernel: int,
    *,
    n: int = 60,
    seed: int = 1,
    name: str = "op_kernel",
    jitter: float = 0.03,
    mark: str = "",
    **fields,
) -> Path:
    machine = Machine(gap=1000, jitter=jitter, rng=np.random.default_rng(seed))
    for _ in range(n):
        start = machine.now
        machine.launch(name, kernel, host_cost=dispatch, call=5000)
        if mark:
            machine.annotate(mark, start)
    machine.sync()
    path.write_text(to_json(document(machine, **({"simulated": True} | fields))), encoding="utf-8")
    return path


@pytest.fixture
def mmcv(tmp_path):
    return simulate(tmp_path / "mmcv.json", 20_000, 14_000, seed=1, name="ms_deform_attn_kernel", mark="msda")


@pytest.fixture
def triton(tmp_path):
    return simulate(tmp_path / "triton.json", 40_000, 10_000, seed=2, name="triton_msda_fwd", mark="msda")


def run(*args: object, code: int | None = 0) -> str:
    done = CliRunner().invoke(cli, ["compare", *map(str, args)])
    assert code is None or done.exit_code == code, done.output
    return done.output


def test_the_seeds_inversion_is_told_in_one_plain_sentence(mmcv, triton):
    data = ta.compare(mmcv, triton).data
    assert data.verdict.status == "faster" and data.rank_inversion
    assert (
        "by self-time head is 1.4x faster; with a synchronise in each call base would look 1.36x faster"
        in data.verdict.headline
    )
    assert "because the dispatch of head is 20.1 us longer" in data.verdict.headline
    assert data.winners["profiler_self_time"] == data.winners["do_bench"] == data.winners["graph_unrolled"] == "head"
    for protocol in ("wall_nosync", "wall_sync_each", "wall_sync_once", "event_pair", "event_pair_sync", "event_loop"):
        assert data.winners[protocol] == "base"
    [finding] = [f for f in data.findings if f.rule == "TA208"]
    assert finding.severity == "warning" and finding.numbers["head_wall_sync_each_us"] == pytest.approx(60, rel=0.01)


def test_without_inversion_nothing_is_said_of_one(tmp_path, mmcv):
    other = simulate(tmp_path / "b.json", 20_000, 10_000, seed=3, name="triton_msda_fwd", mark="msda")
    data = ta.compare(mmcv, other).data
    assert data.verdict.status == "faster" and not data.rank_inversion
    assert "TA208" not in {f.rule for f in data.findings}
    assert "ranking" not in data.verdict.headline


def test_known_ratios_are_covered_and_equal_pairs_not_called_different(tmp_path):
    covered = false = 0
    for i in range(40):
        ratio = (1.0, 0.9)[i % 2]
        base = simulate(tmp_path / "a.json", 40_000, 12_000, n=20 + 5 * i, seed=100 + i, jitter=0.04)
        head = simulate(tmp_path / "b.json", 40_000, round(12_000 * ratio), n=215 - 5 * i, seed=200 + i, jitter=0.04)
        data = ta.compare(base, head).data
        [op] = data.ops
        assert op.ratio == pytest.approx(op.head_p50_us / op.base_p50_us)
        covered += op.ratio_ci95[0] <= ratio <= op.ratio_ci95[1]
        false += ratio == 1.0 and data.verdict.status in ("faster", "slower")
    assert covered >= 35 and false <= 2


def test_a_trace_against_itself_is_the_same_recording(mmcv):
    data = ta.compare(mmcv, mmcv).data
    assert data.verdict.status == "same" and data.verdict.headline == "Same: the two files have the same rows."
    assert data.ops[0].ratio == 1.0 and not data.rank_inversion


def test_a_saved_report_gives_the_very_numbers_of_its_trace(tmp_path, mmcv, triton):
    saved = tmp_path / "mmcv.report.json"
    done = CliRunner().invoke(cli, ["report", str(mmcv), "--format", "json", "-o", str(saved)])
    assert done.exit_code == 0
    packed = tmp_path / "renamed.txt"
    packed.write_bytes(gzip.compress(saved.read_bytes()))
    from_trace = ta.compare(mmcv, triton).data
    for file in (saved, packed):
        data = ta.compare(file, triton).data
        assert data.base.source == "report" and data.head.source == "trace"
        assert data.ops == from_trace.ops and data.kernels == from_trace.kernels and data.verdict == from_trace.verdict


def test_a_report_without_samples_stands_with_a_wider_interval_and_says_so(tmp_path, mmcv, triton):
    bare = tmp_path / "bare.json"
    bare.write_text(ta.analyze(mmcv).to_json(), encoding="utf-8")
    data, full = ta.compare(bare, triton).data, ta.compare(mmcv, triton).data
    low, high = data.ops[0].ratio_ci95
    assert data.verdict.status == "faster" and high - low > full.ops[0].ratio_ci95[1] - full.ops[0].ratio_ci95[0]
    assert any("kept no samples" in a.reason for a in data.abstentions)


def test_two_devices_are_refused_unless_it_is_asked_for(tmp_path):
    base = simulate(tmp_path / "v100.json", 20_000, 14_000, seed=1, device_name="Tesla V100")
    head = simulate(tmp_path / "b200.json", 20_000, 7_000, seed=2, device_name="NVIDIA B200")
    out = json.loads(run(base, head, "--format", "json", code=3))
    assert out["verdict"]["status"] == "cannot-judge" and "Tesla V100" in out["verdict"]["headline"]
    assert out["ops"][0]["ratio"] is None and out["ops"][0]["verdict"] is None and out["geomean_ratio"] is None
    assert out["ops"][0]["base_p50_us"] is not None
    assert [f["severity"] for f in out["findings"] if f["rule"] == "TA704"] == ["error"]
    out = json.loads(run(base, head, "--format", "json", "--allow-different"))
    assert out["verdict"]["status"] == "faster" and out["allowed_different"] is True
    assert [f["severity"] for f in out["findings"] if f["rule"] == "TA704"] == ["warning"]


def test_simulated_against_recorded_is_refused(tmp_path, mmcv):
    real = simulate(tmp_path / "real.json", 20_000, 14_000, name="ms_deform_attn_kernel", mark="msda", simulated=False)
    data = ta.compare(mmcv, real).data
    assert data.verdict.status == "cannot-judge" and "simulated" in data.verdict.headline


def test_a_side_without_device_rows_cannot_be_judged(write, mmcv):
    empty = write(
        [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}], "empty.json"
    )
    output = run(empty, mmcv, code=3)
    assert output.startswith("Cannot judge: base:")


def test_disagreeing_clocks_take_only_the_host_numbers_away(tmp_path, mmcv):
    early = json.loads(mmcv.read_text())
    for event in early["traceEvents"]:
        if event.get("cat") == "kernel":
            event["ts"] = float(event["ts"]) - 300
    skewed = tmp_path / "skewed.json"
    skewed.write_text(json.dumps(early))
    data = ta.compare(skewed, mmcv).data
    assert data.base.verdict.status == "cannot-judge"
    assert data.kernels[0].ratio is not None and data.kernels[0].verdict in ("SAME", "UNDECIDED")
    assert data.verdict.status != "cannot-judge" and data.winners == {}
    assert any("clocks" in a.reason for a in data.abstentions)


def test_a_regression_over_the_limit_fails_and_noise_does_not(tmp_path, mmcv, triton):
    run(triton, mmcv, "--fail-on-regression", 5, code=1)
    run(triton, mmcv, "--fail-on-regression", 50)
    run(mmcv, triton, "--fail-on-regression", 0)
    noisy = [simulate(tmp_path / f"{n}.json", 40_000, 10_000, n=30, seed=n, jitter=0.1) for n in (11, 12)]
    run(*noisy, "--fail-on-regression", 0)


def test_several_heads_share_one_base(tmp_path, mmcv, triton):
    third = simulate(tmp_path / "third.json", 20_000, 21_000, seed=5, name="slow_kernel", mark="msda")
    out = json.loads(run(mmcv, triton, third, "--format", "json"))
    jsonschema.validate(out, compare_schema())
    assert [c["verdict"]["status"] for c in out["comparisons"]] == ["faster", "slower"]
    assert {c["base"]["name"] for c in out["comparisons"]} == {"mmcv.json"}
    text = run(mmcv, triton, third, "--format", "markdown")
    assert text.startswith("<!-- traceanalyzer:compare -->\n") and "`third.json`" in text and text.count("\n") <= 60
    assert run(mmcv, triton, third).count("Operations (") == 2


def test_a_claim_is_judged_on_either_side(mmcv, triton):
    out = json.loads(run(mmcv, triton, "--format", "json", "--claim", "40us"))
    subjects = {f["subject"]: f["message"] for f in out["findings"] if f["rule"] == "TA709"}
    assert any(s.startswith("head: ") and "no synchronise" in m for s, m in subjects.items())
    assert any(s.startswith("base: ") for s in subjects)


def test_json_follows_its_schema_and_the_binding_fields(mmcv, triton):
    out = json.loads(run(mmcv, triton, "--format", "json"))
    jsonschema.validate(out, compare_schema())
    assert out["schema"] == "traceanalyzer.compare/1"
    assert {"name", "base_p50_us", "head_p50_us", "ratio", "ratio_ci95", "verdict", "base_n", "head_n", "base_dispatch_p50_us", "head_dispatch_p50_us"} <= out["ops"][0].keys()  # fmt: skip
    assert {"status", "grid"} <= out["kernels"][0].keys()
    assert {k["status"] for k in out["kernels"]} == {"new", "gone"}
    assert len(out["ops"][0]["base_samples_us"]) == 60


def test_frames_have_a_row_per_operation_and_kernel(mmcv, triton):
    found = ta.compare(mmcv, triton)
    assert list(found.ops["verdict"]) == ["FASTER"] and len(found.kernels) == 2
    assert json.loads(found.to_json()) == json.loads(json.dumps(found.to_dict()))
    assert "Faster" in repr(found)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('{"schema": "traceanalyzer.report/1"}', "bad_report"),
        ('{"schema": "traceanalyzer.report/1", "kernels": ' + "[" * 100_000, "bad_report"),
        ('{"schema": "traceanalyzer.report/9"}', "bad_report"),
        ('{"schema": "traceanalyzer.compare/1", "ops": []}', "bad_report"),
    ],
)
def test_a_damaged_report_is_one_line(tmp_path, mmcv, content, kind):
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    done = CliRunner().invoke(cli, ["compare", str(bad), str(mmcv)])
    assert done.exit_code == 2 and kind in done.output and done.output.count("\n") == 1


def test_a_missing_file_and_two_standard_inputs_are_refused(mmcv):
    assert "no such file" in run("nowhere.json", mmcv, code=2)
    assert "once" in run("-", "-", code=2)


def test_a_report_with_impossible_numbers_breaks_nothing(tmp_path, mmcv, triton):
    saved = json.loads(ta.compare and ta.analyze(mmcv, options=ta.AnalysisOptions(samples=True)).to_json())
    hostile = [1e308, -5.0, 0.0, 1e-300]
    saved["ops"][0] |= {
        "samples_us": hostile * 40,
        "dispatch_samples_us": hostile,
        "self_time_p50_us": -1.0,
        "lag_one": 1e300,
        "samples_of": -7,
    }
    saved["ops"][0]["symbols"] = dict.fromkeys(saved["ops"][0]["symbols"], -1e308)
    saved["kernels"][0] |= {
        "count": -3,
        "p50_us": 1e308,
        "p50_ci95_us": [5, -5],
        "samples_us": [],
        "total_us": -1e308,
        "first_us": 1e308,
    }
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(saved))
    for order in ((path, triton), (triton, path), (path, path)):
        for form in ("text", "markdown", "json"):
            output = run(*order, "--format", form, code=None)
            assert "Traceback" not in output and "NaN" not in output and "Infinity" not in output


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=alert(1)>",
        "a|b`c``d",
        "@team #1 https://x.y",
        "\x1b[31mred\x1b[0m",
        "\u202eevil",
        "n" * 100_000,
    ],
)
def test_hostile_names_stay_text_and_inside_the_bounds(tmp_path, name):
    base = simulate(tmp_path / "a.json", 20_000, 14_000, name=name, mark=name)
    head = simulate(tmp_path / "b.json", 40_000, 10_000, seed=2, name=name + "2", mark=name)
    text = run(base, head, "--format", "markdown")
    assert text.count("\n") <= 60 and len(text) <= 65_000
    assert "\x1b" not in text
    outside = re.sub(r"(`+).*?\1", "", text)  # GitHub makes nothing of what stands in code spans
    assert "<img" not in outside and "@team" not in outside
    shown = run(base, head)
    assert "\x1b" not in shown and "\u202e" not in shown and max(map(len, shown.splitlines())) <= 100


def test_many_kernels_and_operations_fit_a_comment(tmp_path):
    files = []
    for side in range(2):
        machine = Machine(gap=1000, jitter=0.02, rng=np.random.default_rng(side))
        for _ in range(4):
            for k in range(150):
                machine.launch(
                    f"@kernel<{k}|`{side if k % 3 == 0 else ''}>" * 20, 5000 + 100 * k, host_cost=20_000, call=3000
                )
        machine.sync()
        files.append(tmp_path / f"{side}.json")
        files[-1].write_text(to_json(document(machine, simulated=True)))
    one, twelve = (run(files[0], *heads, "--format", "markdown") for heads in (files[1:], files[1:] * 12))
    for text in (one, twelve):
        assert text.count("\n") <= 60 and len(text) <= 65_000
    assert one == run(files[0], files[1], "--format", "markdown")


def test_the_example_of_the_docs_is_what_the_command_prints(mmcv, triton):
    page = (Path(__file__).resolve().parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0]
    # a terminal wraps where it ends
    assert " ".join(run(mmcv, triton).split()).startswith(" ".join(shown.split()))


def test_the_coverage_of_the_docs_names_every_kind_that_is_studied():
    from benchmarks.compare_coverage import KINDS, SIZES

    page = (Path(__file__).resolve().parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    table = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count("|") == len(SIZES) + 5]
    rows = [row for row in table if not row[0].startswith("---")]
    assert [row[0] for row in rows] == ["kind", *(k.title for k in KINDS)]
    assert all(float(row[-2]) < 5 for row in rows[1:])
    assert all(float(row[-3]) >= 94.5 for row in rows[1:])


def test_kernels_that_tie_behind_another_dispatch_say_what_a_call_costs(tmp_path):
    nodes = [(f"layer_{i}_kernel", 3000 + 500 * i) for i in range(8)]
    eager, graph = (Machine(gap=1000, jitter=0.03, rng=np.random.default_rng(seed)) for seed in (1, 2))
    for _ in range(40):
        for name, kernel in nodes:
            eager.launch(name, kernel, host_cost=12_000, call=4000)
        graph.graph(nodes, host_cost=15_000, call=9000, node_gap=800)
    files = []
    for name, machine in (("eager", eager), ("graph", graph)):
        machine.sync()
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(to_json(document(machine, simulated=True)))
    data = ta.compare(*files).data
    assert data.verdict.status == "faster" and data.matched_share == (1.0, 1.0) and data.metric == "period"
    assert data.verdict.headline.startswith("Faster: the step of 8 kernels takes 96.")
    assert "(2.16x); the device's busy time is the same" in data.verdict.headline
    assert "The queue changed: base cpu-bound" in data.verdict.headline
    assert ta.compare(*files, metric="busy").data.verdict.status in ("same", "undecided")
    [op] = data.ops
    assert op.base_dispatch_p50_us == pytest.approx(96, rel=0.02) and op.head_dispatch_p50_us == pytest.approx(
        15, rel=0.02
    )
    assert op.winners["profiler_self_time"] == "tie" and op.winners["wall_sync_each"] == "head"


def test_a_measured_protocol_is_judged_by_its_own_scatter(tmp_path):
    """Captures on a CPU: no device row, so a winner rests on each protocol's own samples."""

    files = []
    for name, level in (("base", 150.0), ("head", 15.0)):
        noisy, sharp = [level, *[level * 60] * 4, *[level] * 5], [level + i / 100 for i in range(20)]
        results = [
            ProtocolResult(p, "end-to-end", {}, len(s), sorted(s)[len(s) // 2], None, None, s)
            for p, s in (("wall_nosync", noisy), ("wall_sync_each", sharp), ("wall_sync_once", sharp))
        ]
        sidecar = captured()
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text('{"traceEvents": []}', encoding="utf-8")
        record = replace(sidecar.operations[0], protocols=results)
        sidecar_path(files[-1]).write_bytes(encode_sidecar(replace(sidecar, operations=[record])))
    winners = ta.compare(*files).data.ops[0].winners
    assert winners["wall_sync_each"] == winners["wall_sync_once"] == "head"
    assert winners["wall_nosync"] == "tie", "the median is ten times lower, but its interval reaches to 9,000 us"


@pytest.mark.parametrize("option", ["--fail-on-regression", "--clear-us"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_limit_that_is_no_number_is_refused_and_opens_no_gate(mmcv, triton, option, value):
    assert f"'{value}' is no " in run(triton, mmcv, option, value, code=2)


@pytest.mark.parametrize(("value", "says"), [("1", "Same"), ("2", "Same"), ("1e9", "Same"), ("0", "Faster")])
def test_any_share_of_the_same_can_be_computed_with_and_is_the_one_that_is_told(mmcv, triton, value, says):
    said = run(mmcv, triton, "--threshold", f"same_within={value}")
    assert said.startswith(says) and "within 1 %" not in said
    if value == "2":
        assert "within 200 %" in said


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_a_side_from_a_pipe_is_read_once_and_whole(mmcv, triton, tmp_path, saved, packed):
    content = mmcv.read_bytes()
    if saved:
        done = CliRunner().invoke(cli, ["report", str(mmcv), "--format", "json"])
        content = done.stdout.encode()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=pipe.write_bytes, args=(gzip.compress(content) if packed else content,), daemon=True
    )
    writer.start()
    assert run(pipe, triton).startswith("Faster: head is 1.4x faster")
    writer.join(10)


def test_device_rows_on_a_coarse_clock_in_a_file_of_nanoseconds_are_not_called_the_same(tmp_path):
    sides = []
    for seed, kernel in ((1, 3000), (2, 3300)):
        machine = Machine(jitter=0.05, rng=np.random.default_rng(seed))
        for _ in range(200):
            machine.launch("op_kernel", kernel, host_cost=10_000, call=5000)
        machine.sync()
        machine.jitter = 0
        for row in machine.device:
            row.start, row.end = row.start // 1000 * 1000, row.end // 1000 * 1000
        sides.append(tmp_path / f"{kernel}.json")
        sides[-1].write_text(to_json(document(machine)), encoding="utf-8")
    found = ta.compare(*sides).data.ops[0]
    assert found.base_p50_us == found.head_p50_us == 3.0
    assert found.verdict == "UNDECIDED" and found.ratio_ci95[0] <= 1.0 and found.ratio_ci95[1] >= 1.1


def test_an_operation_shorter_than_its_clock_is_matched_and_said_to_have_no_ratio(tmp_path):
    sides = []
    for kernel in (400, 3000):
        machine = Machine(jitter=0.05, rng=np.random.default_rng(kernel))
        for _ in range(60):
            machine.launch("op_kernel", kernel, host_cost=10_000, call=5000)
        machine.sync()
        for row in machine.device:
            row.start, row.end = row.start // 1000 * 1000, row.end // 1000 * 1000
        sides.append(tmp_path / f"{kernel}.json")
        sides[-1].write_text(to_json(document(machine)), encoding="utf-8")
    data = ta.compare(*sides).data
    headline = data.verdict.headline
    assert headline.startswith("Undecided: no ratio for `op_kernel`: the median of the base is 0")
    assert all("no operation is matched" not in a.reason for a in data.abstentions)
    assert "no operation is matched" not in headline


def test_three_values_promise_no_number_that_would_decide(tmp_path):
    few, many = simulate(tmp_path / "few.json", 40_000, 10_000, n=3), simulate(tmp_path / "many.json", 40_000, 10_000)
    found = ta.compare(few, many).data
    assert found.ops[0].n_needed is None and "would decide" not in found.verdict.headline
    assert "no interval under 6 independent times: base n 3" in found.verdict.headline


def test_two_gpus_against_one_are_marked(tmp_path):
    def rows(seed: int) -> list[dict]:
        machine = Machine(jitter=0.03, rng=np.random.default_rng(seed))
        for _ in range(40):
            machine.launch("op_kernel", 10_000 * seed, host_cost=40_000, call=5000)
        machine.sync()
        return document(machine)["traceEvents"]

    first, second = rows(1), rows(2)
    for event in second:
        args = event.get("args", {})
        if event.get("cat") == "kernel":
            event["pid"] = args["device"] = 1
        if "correlation" in args:
            args["correlation"] += 100_000
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    for path, events in ((one, first), (two, first + [e for e in second if e["ph"] == "X"])):
        path.write_text(to_json({"traceEvents": events}), encoding="utf-8")
    found = [f for f in ta.compare(two, one).data.findings if f.rule == "TA704"]
    assert found and "devices at work (base 2, head 1)" in found[0].message


SENTENCES = ("message", "headline", "sentence", "reason", "note", "how", "queue_reason", "no_ladder")


def reworded(value):
    """Return a saved report in which every sentence says something else."""
    if isinstance(value, dict):
        return {
            k: "Zzz zzz." if k in SENTENCES and isinstance(v, str) and v
            else dict.fromkeys(v, "Zzz zzz.") if k == "symbol_sources"
            else reworded(v)
            for k, v in value.items()
        }  # fmt: skip
    return [reworded(v) for v in value] if isinstance(value, list) else value


def without_sentences(value):
    if isinstance(value, dict):
        return {k: without_sentences(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_sentences(v) for v in value]
    return "sentence" if isinstance(value, str) and " " in value else value


def test_no_sentence_of_a_saved_report_moves_a_number_of_its_comparison(tmp_path):
    saved = [
        ta.analyze(simulate(tmp_path / f"{name}.json", *times), options=AnalysisOptions(samples=True)).to_dict()
        for name, times in DISPATCH_AND_KERNEL.items()
    ]
    found = []
    for turn, change in enumerate((lambda same: same, reworded)):
        paths = [tmp_path / f"{turn}-{i}-report.json" for i in range(2)]
        for path, report in zip(paths, saved, strict=True):
            path.write_text(json.dumps(change(report)), encoding="utf-8")
        assert ("Zzz zzz." in paths[0].read_text()) == bool(turn)
        found.append(json.loads(ta.compare(*paths).to_json().replace(f"{turn}-", "")))
    assert found[0]["ops"] and without_sentences(found[0]) == without_sentences(found[1])
    assert any(op["symbols_seen"] for op in saved[0]["ops"])  # what told them apart was a sentence once


def test_of_identical_files_no_row_is_undecided(tmp_path):
    one = simulate(tmp_path / "one.json", 40_000, 10_000, jitter=0.2)
    (tmp_path / "two.json").write_bytes(one.read_bytes())
    found = ta.compare(one, tmp_path / "two.json").to_dict()
    assert found["verdict"]["status"] == "same"
    told = {row["verdict"] for row in (*found["ops"], *found["kernels"])}
    told |= {r["verdict"] for unit in found["units"] for r in unit["ratios"] if r["verdict"]}
    assert told == {"SAME"}
