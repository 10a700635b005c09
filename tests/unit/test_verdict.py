"""The verdict names what limits a run, in the order of decisions, with the number that shows it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import traceanalyzer as ta
from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.api import report_of
from traceanalyzer.doctor.advice import Advice, short_of
from traceanalyzer.doctor.causes import Family, causes
from traceanalyzer.doctor.example import call, cpu_op, host_range, kernel, launch, loop, memcpy, write_example
from traceanalyzer.doctor.message import sentence
from traceanalyzer.doctor.registry import RULES
from traceanalyzer.options import AnalysisOptions, Selection, parse_claim


def read(tmp_path, events):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return ta.read(path)


def reported(tmp_path, events, **options):
    return report_of(read(tmp_path, events), AnalysisOptions(**options)).to_dict()


def steps(n, gap, *between, kernels=12, length=100):
    """``n`` steps of queued kernels of different names, ``gap`` us of idle time between two; ``between`` are rows in the gap, from its start."""
    events = []
    busy = kernels * length
    for i in range(n):
        at = (busy + gap) * i
        for k in range(kernels):
            corr = 100 * i + k + 1
            events += [launch(at + 3 * k, corr), kernel(at + 5 + length * k, length, corr, f"layer_{k}")]
        if i + 1 < n:
            events += [e | {"ts": e["ts"] + at + busy + 5} for e in between]
    return events


CAUSES = {
    # what the host does in the 800 us between two steps: the rule that names it, a word of the headline
    "data": (host_range("enumerate(DataLoader)#0", 1, 790), "TA306", "input pipeline"),
    "allocation": (call(1, 790, "cudaMalloc", 9001), "TA305", "cudaMalloc"),
    "compile": (cpu_op("CachingAutotuner.run", 1, 790), "TA401", "compiled"),
    "code": (call(1, 790, "cuModuleLoadData", 9001, "cuda_driver"), "TA402", "loaded"),
    "graph": (call(1, 790, "cudaGraphInstantiate", 9001), "TA408", "cudaGraphInstantiate"),
    "operator": (cpu_op("aten::slow", 1, 790), ("TA201", "TA211"), "aten::slow"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_headline_is_what_the_host_did_while_the_device_waited(tmp_path, cause):
    row, rule, word = CAUSES[cause]
    found = reported(tmp_path, steps(8, 800, row))
    assert found["verdict"]["status"] == "suspect" and word in found["verdict"]["headline"]
    first = max((f for f in found["findings"] if f["cost_share"]), key=lambda f: f["cost_share"])
    assert first["rule"] in ([rule] if isinstance(rule, str) else rule)
    # 7 gaps of 800 us less the launch of the next step, in 8 steps of 1,200 us and 7 of 800
    assert first["cost_us"] == pytest.approx(7 * 790, rel=0.02)
    assert first["cost_share"] == pytest.approx(7 * 790 / (8 * 1200 + 7 * 800), rel=0.02)
    assert first["window"] == "span" and first["subject_of"]["kind"] == "device"


@pytest.mark.parametrize("cause", CAUSES)
def test_what_the_queue_hides_is_no_cause(tmp_path, cause):
    row, rule, _ = CAUSES[cause]
    # the same rows, 30 us long, while ten kernels of 100 us are queued
    hidden = [row | {"ts": row["ts"] + 1260 * i + 40, "dur": 30} for i in range(8)]
    found = reported(tmp_path, [*steps(8, 0), *hidden])
    assert found["verdict"]["status"] == "ok"
    assert not {f["rule"] for f in found["findings"]} & set([rule] if isinstance(rule, str) else rule)


def test_the_larger_cost_leads_and_a_small_one_is_a_note(tmp_path):
    def of(load, alloc):
        rows = [host_range("enumerate(DataLoader)", 1, load), call(load + 2, alloc, "cudaMalloc", 9001)]
        return reported(tmp_path, steps(8, load + alloc + 10, *rows))

    more_data, more_memory, little = of(600, 200), of(200, 600), of(600, 18)
    assert "input pipeline" in more_data["verdict"]["headline"]
    assert "cudaMalloc" in more_memory["verdict"]["headline"]
    severities = {f["rule"]: f["severity"] for f in little["findings"]}
    assert severities["TA306"] == "warning" and severities.get("TA305", "note") == "note"
    assert {f["rule"]: f["severity"] for f in more_data["findings"]}["TA305"] == "warning"


def waiting(n, host, wait_for_step_before=False):
    """Steps of ten kernels of 100 us with a synchronise; behind it the host works ``host`` us before it launches again."""
    events, at, free = [], 0.0, 0.0
    for i in range(n):
        done = free
        for k in range(10):
            start = max(at + 4, free)
            events += [launch(at, 100 * i + k + 1), kernel(start, 100, 100 * i + k + 1, f"layer_{k}")]
            free, at = start + 100, at + 3
        until = done + 6 if wait_for_step_before else free + 6
        events.append(call(at, max(2.0, until - at), "cudaStreamSynchronize", 100 * i + 90))
        at = max(at + 2, until) + host
    return events


def test_a_synchronise_costs_what_the_device_is_idle_behind_it(tmp_path):
    found = reported(tmp_path, waiting(12, 400))
    (finding,) = [f for f in found["findings"] if f["rule"] == "TA301"]
    # 11 waits; each ends 6 us behind the last kernel, then 400 us of host code, the launch and its latency
    assert finding["cost_us"] == pytest.approx(11 * 410, rel=0.01) and finding["numbers"]["synchronises"] == 11
    assert "synchronise" in found["verdict"]["headline"] and finding["code"] == "drained"
    # waiting for the step before, with a step queued, costs nothing
    ahead = reported(tmp_path, waiting(12, 40, wait_for_step_before=True))
    assert not [f for f in ahead["findings"] if f["rule"] == "TA301"] and ahead["verdict"]["status"] == "ok"


def copying(direction, pinned):
    """Steps of ten kernels with a copy behind them; a pageable one makes the host wait until it is done."""
    events, at, free = [], 0.0, 0.0
    for i in range(12):
        for k in range(10):
            start = max(at + 4, free)
            events += [launch(at, 100 * i + k + 1), kernel(start, 100, 100 * i + k + 1, f"layer_{k}")]
            free, at = start + 100, at + 3
        ends = free + 21
        events += [cpu_op("aten::copy_", at, 5 if pinned else ends + 3 - at)]
        events += memcpy(at + 1, free + 1, 20, 100 * i + 50, 3 if pinned else ends + 2 - at - 1, direction)
        free = ends
        at = at + 6 if pinned else ends + 4 + 300
    return events


def test_a_copy_that_ends_after_its_call_returned_made_nobody_wait(tmp_path):
    for direction, code in (("DtoH (Device -> Pageable)", "read-back"), ("HtoD (Pageable -> Device)", "input-copy")):
        blocked = reported(tmp_path, copying(direction, pinned=False))
        (finding,) = [f for f in blocked["findings"] if f["rule"] == "TA302"]
        assert (
            finding["code"] == code
            and finding["numbers"]["operator"] == "aten::copy_"
            and finding["severity"] == "warning"
        )
        assert finding["cost_us"] == pytest.approx(11 * 309, rel=0.02)
    free = reported(tmp_path, copying("DtoH (Device -> Pinned)", pinned=True))
    assert not [f for f in free["findings"] if f["rule"] == "TA302"] and free["verdict"]["status"] == "ok"


def test_one_pause_leaves_the_operation_sound_and_is_said(tmp_path):
    events = []
    for i in range(80):
        at = 50_000 if i >= 40 else 0
        events += [launch(100 * i + at, i + 1), kernel(100 * i + at + 4, 98, i + 1)]
    found = reported(tmp_path, events)
    assert found["verdict"]["status"] == "ok"
    assert "sound" in found["verdict"]["headline"] and "pause" in found["verdict"]["headline"]
    assert [f["severity"] for f in found["findings"] if f["rule"] == "TA308"] == ["note"]
    # three in a hundred steps are rare, twenty are a habit of the run
    often = []
    for i in range(80):
        shift = 50_000 * (i // 4)
        often += [launch(100 * i + shift, i + 1), kernel(100 * i + shift + 4, 98, i + 1)]
    again = reported(tmp_path, often)
    assert again["verdict"]["status"] == "suspect" and not [f for f in again["findings"] if f["rule"] == "TA308"]


def test_the_devices_own_gaps_are_no_fault_of_the_host(tmp_path):
    def of(gap):
        events = []
        for i in range(60):
            events += [launch(0.4 * i, i + 1, 0.3), kernel(40 + (10 + gap) * i, 10, i + 1)]
        return reported(tmp_path, events)

    usual, long = of(1.5), of(8)
    assert usual["verdict"]["status"] == "ok" and "in its own gaps between kernels 13 %" in usual["verdict"]["headline"]
    assert long["verdict"]["status"] == "suspect" and "gaps" in long["verdict"]["headline"]
    assert next(f for f in long["findings"] if f["rule"] == "TA209")["cost_share"] == pytest.approx(
        8 * 59 / (18 * 59 + 10), abs=1e-6
    )


def shifted(calls, period, pause=0):
    """Calls of a kernel of 10 us, queued ahead; in the middle the host pauses."""
    events = []
    for i in range(calls):
        late = pause * (i >= calls // 2)
        events += [launch(0.4 * i + late, i + 1, 0.3), kernel(40 + period * i + late, 10, i + 1, "gemm")]
    return events


def test_a_device_that_is_idle_in_its_own_gaps_is_ok_only_with_a_sound_operation(tmp_path):
    def of(name):
        events = []
        for i in range(60):
            events += [launch(0.4 * i, i + 1, 0.3), kernel(40 + 11.5 * i, 10, i + 1, name(i))]
        return reported(tmp_path, events)

    one, model = of(lambda i: "gemm"), of(lambda i: f"layer_{i * i}")
    assert one["verdict"]["status"] == "ok" and "`gemm` is sound" in one["verdict"]["headline"]
    few = reported(tmp_path, shifted(8, 11.5))
    assert few["verdict"]["status"] == "ok"
    # a pause among few calls is no median's to hide
    for calls, gap in ((8, 11.5), (8, 10.0), (9, 10.0)):
        assert reported(tmp_path, shifted(calls, gap, pause=2_000))["verdict"]["status"] == "suspect"
    # the same gaps with no operation that repeats: they are what limits the run
    assert model["verdict"]["status"] == "suspect" and "pauses between kernels" in model["verdict"]["headline"]


def test_a_short_window_is_called_one(tmp_path):
    row = host_range("enumerate(DataLoader)", 1, 790)
    assert "in this window" in reported(tmp_path, steps(2, 800, row))["verdict"]["headline"]
    assert "in this window" not in reported(tmp_path, steps(8, 800, row))["verdict"]["headline"]


def test_ranges_that_label_phases_are_no_timers_unless_somebody_says_so(tmp_path):
    events = [host_range("forward", 0, 60)]
    events += [e for i in range(6) for e in (launch(10 * i, i + 1), kernel(6 + 86 * i, 85, i + 1, f"layer_{i}"))]
    assert "TA304" not in {f["rule"] for f in reported(tmp_path, events)["findings"]}
    asked = reported(tmp_path, events, selection=Selection(range_name="forward"))
    assert "TA304" in {f["rule"] for f in asked["findings"]} and "forward" in asked["verdict"]["headline"]
    named = [e | {"name": "timed"} if e["name"] == "forward" else e for e in events]
    assert "TA304" in {f["rule"] for f in reported(tmp_path, named)["findings"]}


def test_event_readings_are_a_note_in_a_programs_step(tmp_path):
    step = steps(8, 800, cpu_op("aten::slow", 1, 790), kernels=12, length=5)
    assert {f["severity"] for f in reported(tmp_path, step)["findings"] if f["rule"] == "TA202"} <= {"note"}
    alone = reported(tmp_path, loop(12, 12, 4))
    assert {f["severity"] for f in alone["findings"] if f["rule"] == "TA202"} == {"warning"}


EVERY_EXAMPLE = [(r, e) for r in RULES for e in (*r.positive, *r.negative)]


def test_every_nanosecond_of_a_span_has_one_family_or_is_compute(tmp_path):
    path = tmp_path / "example.json"
    judged = 0
    for _, example in EVERY_EXAMPLE:
        write_example(example, path)
        for device in causes(analyse(ta.read(path))):
            owned = np.sum([mask.astype(int) for mask in device.families.values()], axis=0)
            compute = device.ledger.cls == LedgerClass.COMPUTE
            assert (owned[compute] == 0).all() and (owned[~compute] == 1).all()
            total = sum(device.family_ns(f) for f in Family) + device.ns(compute)
            assert total == device.ledger.span_ns
            at = np.array([device.ledger.start_ns, device.ledger.end_ns])
            assert device.time_before(at, device.is_idle).tolist() == [0, device.ns(device.is_idle)]
            judged += 1
    assert judged > 100


def test_headlines_and_messages_are_their_templates_over_their_parameters(tmp_path):
    path, fired = tmp_path / "example.json", set()
    for rule in RULES:
        for example in rule.positive:
            write_example(example, path)
            found = rule().check(
                analyse(ta.read(path), AnalysisOptions(claims=tuple(map(parse_claim, example.claims))))
            )
            for finding in found if isinstance(found, list) else []:
                message = rule.messages[finding.code]
                assert finding.message == sentence(message.text, finding.params)
                assert finding.headline == sentence(message.headline, finding.params)
                assert all(v is None or isinstance(v, int | float | str) for v in finding.params.values())
                fired.add(rule.code)
    assert fired == {rule.code for rule in RULES}


def test_no_number_and_no_verdict_hangs_on_a_sentence(tmp_path, monkeypatch):
    def judged():
        found = []
        for _, example in EVERY_EXAMPLE:
            write_example(example, tmp_path / "example.json")
            options = AnalysisOptions(claims=tuple(map(parse_claim, example.claims)))
            report = report_of(ta.read(tmp_path / "example.json"), options)
            rows = [
                (f.rule, f.code, f.severity, f.params, f.numbers, f.cost_us, f.subject_of) for f in report.data.findings
            ]
            found.append((report.verdict.status, rows))
        return found

    before = judged()
    monkeypatch.setattr("traceanalyzer.doctor.rule.sentence", lambda template, params: "Zzz.")
    assert judged() == before


def test_nothing_is_called_no_single_cause(tmp_path):
    path = tmp_path / "example.json"
    for _, example in EVERY_EXAMPLE:
        write_example(example, path)
        verdict = report_of(ta.read(path)).verdict
        assert "no single cause" not in verdict.headline and "nan" not in verdict.headline.lower().split()
        assert len(verdict.headline) < 700


def test_a_pause_that_is_only_noted_does_not_hide_the_costliest_cause(tmp_path):
    # code is loaded in the gaps of two steps of three, a copy from pageable memory fills those of the third; three pauses hold more than both
    events, at = [], 0
    for i in range(60):
        corr = 100 * i
        for k in range(6):
            events += [launch(at + 3 * k, corr + k + 1), kernel(at + 5 + 100 * k, 100, corr + k + 1, f"layer_{k}")]
        at += 605
        if i % 3:
            events.append(call(at + 1, 290, "cuModuleLoadData", corr + 50, "cuda_driver"))
        else:
            events += memcpy(at + 2, at + 150, 2, corr + 60, 155, "HtoD (Pageable -> Device)")
        at += 300
        if i in (16, 31, 46):
            at += 20_000
    found = reported(tmp_path, events)
    cost = {f["rule"]: f["cost_us"] for f in found["findings"]}
    severity = {f["rule"]: f["severity"] for f in found["findings"]}
    assert cost["TA308"] > cost["TA402"] > cost["TA302"] > 0
    assert severity["TA308"] == "note" and severity["TA402"] == severity["TA302"] == "warning"
    assert "loaded" in found["verdict"]["headline"] and found["verdict"]["status"] == "suspect"


def test_a_copy_call_is_worth_what_the_end_of_copy_calls_is(tmp_path):
    # each step ends with a synchronise, which costs far more than the copy call in its midst
    events = []
    for i in range(12):
        at, corr = 1_706 * i, 100 * i
        events += [
            launch(at, corr + 1),
            kernel(at + 6, 300, corr + 1, "a"),
            call(at + 10, 300, "cudaDeviceSynchronize", corr + 9),
        ]
        events += [
            cpu_op("aten::slow", at + 320, 900),
            launch(at + 1_300, corr + 2),
            kernel(at + 1_306, 100, corr + 2, "b"),
        ]
        events += memcpy(at + 1_500, at + 1_700, 2, corr + 3, 203, "HtoD (Pageable -> Device)")
    found = reported(tmp_path, events)
    copies = next(f for f in found["findings"] if f["rule"] == "TA302")
    spans = [row for row in found["ledger"] if row["window"] == "span"]
    worth = {w["change"]: w for w in spans[0]["worth"]}
    assert copies["code"] == "copy-call"
    assert worth["no_copy_calls"]["period_us"] > 1.05 * worth["no_host_waits"]["period_us"]
    assert copies["params"]["then_ns"] is None or copies["params"]["then_ns"] / 1e3 == pytest.approx(
        worth["no_copy_calls"]["period_us"]
    )


def test_the_direction_of_the_copies_waited_for_is_that_of_most_time_not_of_most_copies(tmp_path):
    events, at = [], 0.0
    for i in range(8):
        events += memcpy(at, at + 5, 20, 10 * i + 1, 30, "DtoH (Device -> Pageable)")
        at += 60
    events += memcpy(at, at + 5, 20, 901, 30, "HtoD (Pageable -> Device)")
    at += 6000
    for i in range(8):
        events += [launch(at, 1000 + i), kernel(at + 5, 3000, 1000 + i)]
        at += 3010
    (found,) = (f for f in report_of(read(tmp_path, events), AnalysisOptions()).data.findings if f.rule == "TA302")
    assert found.code == "input-copy"


def test_a_second_cause_of_a_quarter_of_the_span_is_named_with_the_first(tmp_path):
    # 2,000 us idle behind steps of 1,200 us: 31 % of the span goes to data loading, 27 % to an allocation
    both = steps(8, 2000, host_range("enumerate(DataLoader)#0", 1, 1050), call(1055, 900, "cudaMalloc", 9001))
    found = reported(tmp_path, both)
    headline = found["verdict"]["headline"]
    assert "input pipeline" in headline and "Also: allocation holds the device up" in headline
    little = reported(
        tmp_path, steps(8, 2000, host_range("enumerate(DataLoader)#0", 1, 1600), call(1605, 350, "cudaMalloc", 9001))
    )
    assert "input pipeline" in little["verdict"]["headline"] and "allocation" not in little["verdict"]["headline"]


def test_work_of_the_host_behind_a_read_back_leads_though_no_end_of_the_wait_ends_it(tmp_path):
    rule = next(r for r in RULES if r.code == "TA302")
    example = next(e for e in rule.positive if "works" in e.title)
    found = reported(tmp_path, example.events)
    headline = found["verdict"]["headline"]
    assert headline.startswith("Suspect: the device waits while the host works after a read-back")
    assert "host code outside of API calls" in headline and "`host code" not in headline
    assert "no .item()" not in headline
    short = next(e for e in rule.positive if "a value is read" in e.title)
    assert "no .item()" in reported(tmp_path, short.events)["verdict"]["headline"]


def test_latency_of_launches_is_not_called_work_of_the_host(tmp_path):
    rule = next(r for r in RULES if r.code == "TA211")
    example = next(e for e in rule.positive if "just become idle" in e.title)
    told = next(f for f in reported(tmp_path, example.events)["findings"] if f["rule"] == "TA211")
    # 12 launch calls, each of which returns 1 us after the device has become idle; its work starts 8 us later
    assert told["numbers"]["latency_us"] == 96 and told["numbers"]["per_launch_us"] == 8
    assert "start of the work" in told["message"]


def test_an_ok_tells_of_the_time_before_the_first_device_row(tmp_path):
    run = loop(60, 20, 40)
    late = [e | {"ts": e["ts"] + 5000} for e in run]
    compiled = cpu_op("CachingAutotuner.run", 100, 4800)
    headline = reported(tmp_path, [compiled, *late])["verdict"]["headline"]
    assert headline.startswith("OK") and "before the first device row" in headline and "compile" in headline
    assert "Not counted" not in reported(tmp_path, run)["verdict"]["headline"]


def test_the_verdict_takes_the_short_part_of_a_remedy_and_the_brief_of_a_second_finding(tmp_path):
    example = next(e for r in RULES if r.code == "TA211" for e in r.positive if "in bursts" in e.title)
    found = reported(tmp_path, [e for e in example.events if e.get("cat") != "cpu_op"] + [cpu_op("aten::slow", 0, 60)])
    remedies = next(f for f in found["findings"] if f["severity"] == "warning")["remedy"]
    assert any(r.startswith("capture the step in a CUDA graph (") for r in remedies)
    assert "(torch.cuda.graph" not in short_of(Advice("capture the step in a CUDA graph", " (torch.cuda.graph)"))
    assert short_of("plain (text); as it is") == "plain (text); as it is"
    for rule in RULES:
        for message in rule.messages.values():
            assert not message.brief or message.headline.startswith(message.brief)
            assert ". " not in (message.brief or message.headline) or rule.code == "TA202"


def test_a_second_cause_is_named_where_a_measurement_is_at_risk_too(tmp_path):
    copies = [
        e
        for i in range(12)
        for e in (
            *memcpy(200 * i, 200 * i + 6, 120, 10 * i + 1, 128),
            launch(200 * i + 150, 10 * i + 2),
            kernel(200 * i + 160, 20, 10 * i + 2, "timed_kernel"),
        )
    ]
    headline = reported(tmp_path, copies)["verdict"]["headline"]
    assert "Also: copies are exposed" in headline or "Suspect: copies are exposed" in headline, headline
