"""Every rule on two traces: documented whole, its examples are its tests."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from traceanalyzer.doctor.docs import rule_dict, sections, summary
from traceanalyzer.doctor.example import write_pair
from traceanalyzer.doctor.registry import ALL_RULES, COMPARISON_RULES, RULES, rule_of
from traceanalyzer.doctor.rule import SECTIONS

POSITIVE = [(r, e) for r in COMPARISON_RULES for e in r.pair_positive]
NEGATIVE = [(r, e) for r in COMPARISON_RULES for e in r.pair_negative]


def ids(pairs):
    return [f"{r.code}-{e.title}".replace(" ", "_") for r, e in pairs]


def compared(tmp_path, example, **options):
    return ta.compare(*write_pair(example, tmp_path), options=ta.AnalysisOptions(**options)).data


@pytest.mark.parametrize(("rule", "example"), POSITIVE, ids=ids(POSITIVE))
def test_a_positive_pair_fires_its_rule_with_numbers_and_a_remedy(tmp_path, rule, example):
    found = [f for f in compared(tmp_path, example).findings if f.rule == rule.code]
    assert found
    for finding in found:
        assert finding.numbers and finding.remedy and finding.message.endswith(".")


@pytest.mark.parametrize(("rule", "example"), NEGATIVE, ids=ids(NEGATIVE))
def test_a_negative_pair_stays_silent(tmp_path, rule, example):
    assert rule.code not in {f.rule for f in compared(tmp_path, example).findings}


@pytest.mark.parametrize("rule", COMPARISON_RULES, ids=[r.code for r in COMPARISON_RULES])
def test_the_documentation_is_whole(rule):
    found = sections(rule)
    assert list(found) == list(SECTIONS) and all(found.values()) and summary(rule).endswith(".")
    assert rule.pair_positive and rule.pair_negative
    assert rule_of(rule.code) is rule_of(rule.name) is rule
    assert rule_dict(rule)["fires_on"] and rule in ALL_RULES
    module = rule.__module__.rsplit(".", 1)[1]
    assert module == f"{rule.code}_{rule.name}".lower().replace("-", "_")


def test_codes_are_told_apart():
    codes = [r.code for r in ALL_RULES]
    assert codes == sorted(set(codes)) and set(RULES) <= set(ALL_RULES)


def test_the_threshold_of_the_same_decides(tmp_path):
    example = next(e for r, e in POSITIVE if r.code == "TA705" and "half a percent" in e.title)
    assert compared(tmp_path, example).verdict.status == "same"
    assert compared(tmp_path, example, thresholds={"same_within": 0.001}).verdict.status == "faster"
