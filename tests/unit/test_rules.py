"""Every rule: its documentation is whole, its examples are its tests, and nothing it needs may crash it."""

from __future__ import annotations

import json
from collections import Counter
from typing import ClassVar

import pytest

import traceanalyzer as ta
from traceanalyzer.analysis import steadiness
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.doctor.docs import sections, summary
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.doctor.example import write_example
from traceanalyzer.doctor.finding import Abstained
from traceanalyzer.doctor.registry import RULES
from traceanalyzer.doctor.rule import SECTIONS, Example, Rule
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
    # notes that small, regular examples give by nature: few calls, no cache clear, coarse times, an idle device
    assert codes <= {rule.code, *example.allows, "TA406", "TA504", "TA603", "TA501"}


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
