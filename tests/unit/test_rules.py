"""Every rule: its documentation is whole, its examples are its tests, and nothing it needs may crash it."""

from __future__ import annotations

import json
from collections import Counter
from typing import ClassVar

import pytest

import traceanalyzer as ta
from traceanalyzer.analysis import steadiness
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.docs import sections, summary
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.doctor.example import kernel, launch, write_example
from traceanalyzer.doctor.finding import Abstained, Cost, Severity
from traceanalyzer.doctor.message import Message, sentence
from traceanalyzer.doctor.registry import RULES
from traceanalyzer.doctor.rule import SECTIONS, Example, Rule
from traceanalyzer.doctor.rules.ta310_exposed_communication import ExposedCommunication
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import AnalysisOptions, parse_claim

POSITIVE = [(r, e) for r in RULES for e in r.positive]
NEGATIVE = [(r, e) for r in RULES for e in r.negative]


def ids(pairs):
    return [f"{r.code}-{e.title}".replace(" ", "_") for r, e in pairs]


def analysed(tmp_path, events, **options):
    path = tmp_path / "example.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return analyse(ta.read(path), AnalysisOptions(**options))


def analysed_example(tmp_path, example):
    path = tmp_path / "example.json"
    write_example(example, path)
    return analyse(ta.read(path), AnalysisOptions(claims=tuple(map(parse_claim, example.claims))))


@pytest.mark.parametrize(("rule", "example"), POSITIVE, ids=ids(POSITIVE))
def test_a_positive_example_fires_its_rule_and_no_undeclared_one(tmp_path, rule, example):
    findings, _ = diagnose(analysed_example(tmp_path, example))
    codes = {f.rule for f in findings}
    assert rule.code in codes
    # notes that small, regular examples give by nature: few calls, no cache clear, coarse times, an idle device, short kernels
    assert codes <= {rule.code, *example.allows, "TA406", "TA504", "TA603", "TA501", "TA209"}


@pytest.mark.parametrize(("rule", "example"), NEGATIVE, ids=ids(NEGATIVE))
def test_a_negative_example_stays_silent(tmp_path, rule, example):
    findings, _ = diagnose(analysed_example(tmp_path, example))
    assert rule.code not in {f.rule for f in findings}


@pytest.mark.parametrize("rule", RULES, ids=[r.code for r in RULES])
def test_the_documentation_is_whole(rule):
    found = sections(rule)
    assert list(found) == list(SECTIONS) and all(found.values())
    assert summary(rule).endswith(".")
    assert rule.positive and rule.negative
    module = rule.__module__.rsplit(".", 1)[1]
    assert module == f"{rule.code}_{rule.name}".lower().replace("-", "_")


@pytest.mark.parametrize("rule", RULES, ids=[r.code for r in RULES])
@pytest.mark.parametrize("drop", ["kernel", "cuda_runtime", "everything"])
def test_a_rule_without_its_inputs_abstains_or_says_what_is_missing(tmp_path, rule, drop):
    events = [e for r in RULES for x in r.positive for e in x.events if e["cat"] != drop and drop != "everything"]
    result = rule().check(analysed(tmp_path, events))
    assert isinstance(result, Abstained | list)
    if isinstance(result, Abstained):
        assert result.reason


@pytest.mark.parametrize(("rule", "example"), POSITIVE, ids=ids(POSITIVE))
def test_a_finding_names_its_numbers_and_a_remedy(tmp_path, rule, example):
    findings, _ = diagnose(analysed_example(tmp_path, example))
    for finding in findings:
        assert finding.numbers and finding.remedy and finding.message.endswith(".")
        assert finding.headline


def test_the_starvation_threshold_decides(tmp_path):
    rule = next(r for r in RULES if r.code == "TA201")
    events = list(rule.positive[0].events)
    for limit, fires in ((1.0, True), (1.01, False)):
        analysis = analysed(tmp_path, events, thresholds={"starved_fraction": limit})
        assert ("TA201" in {f.rule for f in diagnose(analysis)[0]}) is fires


def test_a_crashing_rule_is_a_finding_about_us(tmp_path):
    class Broken(Rule):
        code, name, family = "TA999", "broken", "test"
        positive: ClassVar[tuple[Example, ...]] = ()
        negative: ClassVar[tuple[Example, ...]] = ()

        def check(self, analysis):
            raise ZeroDivisionError

    findings, abstentions = diagnose(analysed(tmp_path, []), [Broken, *RULES])
    assert "TA000" in {f.rule for f in findings} and "TA101" in {f.rule for f in findings}
    assert "TA999" in {a.rule for a in abstentions}


def test_rules_share_what_is_worked_out_of_a_series(tmp_path, monkeypatch):
    counted = Counter()
    for name in ("slow_head", "changepoint", "drift", "two_modes", "robust_cv", "lag_one"):
        real = getattr(steadiness, name)

        def counting(values, *limits, name=name, real=real):
            counted[name] += 1
            return real(values, *limits)

        monkeypatch.setattr(steadiness, name, counting)
    rule = next(r for r in RULES if r.code == "TA605")
    analysis = analysed(tmp_path, rule.positive[0].events)
    diagnose(analysis)
    assert len(analysis.operations) == 1
    assert counted == dict.fromkeys(counted, 1) and len(counted) == 6


def two_devices(host_gap):
    """Device 0: launches ``host_gap`` us apart of kernels of 10 us; device 1: bursts that the host feeds far ahead, with long pauses."""
    events = []
    for i in range(60):
        at = 1000 + host_gap * i
        events += [launch(at, i + 1), kernel(at + 4, 10, i + 1)]
    for burst in range(4):
        for i in range(8):
            at, corr = 1000 + 6000 * burst + 3 * i, 5000 + 10 * burst + i
            row = kernel(1000 + 6000 * burst + 4 + 300 * i, 30, corr)
            row["args"] = row["args"] | {"device": 1}
            events += [launch(at, corr, tid=2), row | {"pid": 1}]
    return events


def test_a_finding_on_one_device_hides_none_on_another(tmp_path):
    def idle_devices(events):
        return {f.subject.device for f in diagnose(analysed(tmp_path, events))[0] if f.rule == "TA501"}

    both = diagnose(analysed(tmp_path, two_devices(400)))[0]
    assert {f.subject.device for f in both if f.rule == "TA201"} == {0}
    # TA201 makes TA501 redundant where it fired, and nowhere else
    assert 1 in idle_devices(two_devices(400)) and 0 not in idle_devices(two_devices(400))
    assert 1 in idle_devices([e for e in two_devices(400) if e["tid"] == 2 or e["pid"] == 1])


def test_a_subject_covers_what_lies_within_it_whatever_it_is_called():
    device = Subject(SubjectKind.DEVICE, 0, "pid 1", text="device zero")
    assert device.covers(Subject(SubjectKind.OPERATION, 0, "pid 1", name="device 1"))
    assert not device.covers(Subject(SubjectKind.OPERATION, 0, "pid 2", name="device zero"))
    assert Subject().covers(device) and not device.covers(Subject())
    kernel_of_that_name = Subject(SubjectKind.KERNEL, name="gemm")
    assert not kernel_of_that_name.covers(Subject(SubjectKind.OPERATION, name="gemm"))


def test_what_costs_little_is_a_note(tmp_path):
    class Costly(Rule):
        code, name, family = "TA999", "costly", "test"
        messages: ClassVar[dict[str, Message]] = {"m": Message("h", "m.")}
        positive: ClassVar[tuple[Example, ...]] = ()
        negative: ClassVar[tuple[Example, ...]] = ()
        cost: ClassVar[Cost | None] = None

        def check(self, analysis):
            return [self.say("m", Severity.WARNING, Grade.PROVEN, Subject(), {}, numbers={}, remedy=[], cost=self.cost)]

    analysis = analysed(tmp_path, [])
    for cost, severity in (
        (None, "warning"), (Cost(19, 1000), "note"), (Cost(20, 1000), "warning"), (Cost(0, 1000, worth=0.3), "warning"), (Cost(5, 0), "note"),
    ):  # fmt: skip
        Costly.cost = cost
        assert diagnose(analysis, [Costly])[0][0].severity == severity
    assert Cost(2000, 1000).share == 1.0


def test_sentences_are_made_of_templates_and_parameters():
    text = sentence(
        "{name:name} took {cost_ns:time} ({part:share})[[, {n:count} times]][[ on {stream}]] in {places:plural place}.",
        {"name": "gemm", "cost_ns": 12_345_000, "part": 0.034, "n": 1200, "stream": None, "places": 1},
    )
    assert text == "`gemm` took 12.3 ms (3.4 %), 1,200 times in 1 place."
    with pytest.raises(KeyError):
        sentence("{missing}", {})


def test_a_stretch_of_communication_or_copies_is_not_shown_as_an_idle_device(tmp_path):
    example = ExposedCommunication.positive[0]
    found = [f for f in diagnose(analysed_example(tmp_path, example))[0] if f.rule == "TA310"]
    assert found and {e.note for e in found[0].evidence} == {"only communication runs"}
