"""Thresholds: each is declared once, explained, settable by name, and decides something."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.doctor.engine import INTERNAL, diagnose
from traceanalyzer.doctor.example import call, kernel, launch, write_example
from traceanalyzer.doctor.finding import Abstained
from traceanalyzer.doctor.registry import ALL_RULES, RULES
from traceanalyzer.doctor.thresholds import all_thresholds
from traceanalyzer.errors import OptionError
from traceanalyzer.options import ANALYSIS_THRESHOLDS, AnalysisOptions, Threshold, parse_claim

ROOT = Path(__file__).resolve().parents[2]
EXTREMES = (-1e9, 0.0, 1e9)
OF_RULES = [(r, t) for r in RULES for t in r.thresholds]


def declarations() -> dict[str, list[str]]:
    """Where each name is given to a Threshold, by name."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "traceanalyzer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Threshold":
                found.setdefault(ast.literal_eval(node.args[0]), []).append(path.name)
    return found


def test_every_threshold_is_declared_in_exactly_one_place():
    found = declarations()
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
    assert found.keys() == all_thresholds().keys()


def test_a_rule_declares_its_own_thresholds_in_its_own_file_and_lists_them():
    listed: dict[str, set[str]] = {}
    for rule in ALL_RULES:
        for threshold in rule.thresholds:
            listed.setdefault(threshold.name, set()).add(f"{rule.__module__.rsplit('.', 1)[1]}.py")
    for name, (place,) in declarations().items():
        if place == "options.py":
            assert name in ANALYSIS_THRESHOLDS
        else:
            assert place in listed[name], name


def test_rules_that_share_a_threshold_share_the_object():
    for _, threshold in OF_RULES:
        assert isinstance(threshold, Threshold) and all_thresholds()[threshold.name] is threshold


@pytest.mark.parametrize("threshold", all_thresholds().values(), ids=all_thresholds().keys())
def test_a_threshold_says_its_unit_and_reason_and_can_be_set_by_name(threshold):
    assert threshold.unit and len(threshold.reason) > 10
    assert "|" not in threshold.unit + threshold.reason
    options = AnalysisOptions(thresholds={threshold.name: 12.5})
    assert options.threshold(threshold) == 12.5 and AnalysisOptions().threshold(threshold) == threshold.default
    if threshold.name in ANALYSIS_THRESHOLDS:
        assert options.threshold(threshold.name) == 12.5


@cache
def _read(folder: Path, code: str, number: int):
    rule = next(r for r in RULES if r.code == code)
    example = (*rule.positive, *rule.negative)[number]
    path = folder / f"{code}-{number}.json"
    write_example(example, path)
    return ta.read(path), tuple(map(parse_claim, example.claims))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What a rule says to each of its examples under given thresholds: severity, grade and subject of its findings."""
    folder = tmp_path_factory.mktemp("examples")

    def of(rule, thresholds):
        said = []
        for number in range(len(rule.positive) + len(rule.negative)):
            read, claims = _read(folder, rule.code, number)
            analysis = analyse(read, AnalysisOptions(thresholds=thresholds, claims=claims))
            if thresholds:
                assert INTERNAL not in {f.rule for f in diagnose(analysis)[0]}
            result = rule().check(analysis)
            said.append(
                "abstained" if isinstance(result, Abstained) else [(f.severity, f.grade, f.subject) for f in result]
            )
        return said

    return of


IN_ANOTHER_TEST = {
    ("TA201", "derived_ratio"),
    ("TA204", "blocked_ratio"),
    ("TA305", "storm_calls"),
    ("TA305", "single_call_us"),
}
"""All but the second decide a sentence of the finding; that one needs a queue too long for an example."""


@pytest.mark.parametrize(("rule", "threshold"), OF_RULES, ids=[f"{r.code}-{t.name}" for r, t in OF_RULES])
def test_an_extreme_threshold_changes_what_a_rule_says_to_an_example_and_crashes_none(outcomes, rule, threshold):
    usual = outcomes(rule, {})
    extreme = [outcomes(rule, {threshold.name: value}) for value in EXTREMES]
    if (rule.code, threshold.name) not in IN_ANOTHER_TEST:
        assert any(said != usual for said in extreme)


@pytest.mark.parametrize(
    ("title", "threshold", "limits", "code"),
    [("twelve", "storm_calls", (12, 13), "storm"), ("400 ms", "single_call_us", (399_000, 401_000), "single-calls")],
)
def test_many_allocations_in_a_row_and_single_long_ones_are_told_from_a_habit(tmp_path, title, threshold, limits, code):
    rule = next(r for r in RULES if r.code == "TA305")
    path = tmp_path / "t.json"
    write_example(next(e for e in rule.positive if title in e.title), path)
    for limit, wanted in zip(limits, (code, "allocation"), strict=True):
        (found,) = rule().check(analyse(ta.read(path), AnalysisOptions(thresholds={threshold: limit})))
        assert found.code == wanted
        assert found.numbers["most_calls_in_one_interval"] == (12 if code == "storm" else 1)
        assert ("before recording" in found.remedy[0]) is (wanted == "single-calls")


def test_long_allocations_in_every_step_are_a_habit(tmp_path):
    rule = next(r for r in RULES if r.code == "TA305")
    path = tmp_path / "t.json"
    for steps, code in ((4, "single-calls"), (5, "allocation")):
        rows = [
            row
            for i in range(steps + 1)
            for row in (
                call(200_000 * i, 150_000, "cudaFree", 900 + i),
                launch(200_000 * i + 150_010, i + 1),
                kernel(200_000 * i + 150_020, 90, i + 1),
            )
        ][1:]
        path.write_text(json.dumps({"traceEvents": rows}), encoding="utf-8")
        (found,) = rule().check(analyse(ta.read(path)))
        assert found.code == code and found.numbers["longest_call_us"] == 150_000


def analysed(built, tmp_path, **thresholds):
    return diagnose(analyse(ta.read(built.write(tmp_path / "t.json")), AnalysisOptions(thresholds=thresholds)))[0]


def test_the_derived_ratio_decides_what_is_said_of_the_unprofiled_run(tmp_path):
    built = trace().loop(12, 40, 5, 10)
    for limit, says in ((0.3, "very likely is CPU-bound too"), (0.2, "it may not be")):
        (found,) = [f for f in analysed(built, tmp_path, derived_ratio=limit) if f.rule == "TA201"]
        assert says in found.message


def test_a_launch_that_blocks_behind_a_full_queue_is_told_by_its_length(tmp_path):
    built = trace()
    for i in range(1010):
        built.call(2 * i, 100 + 301 * i, 300)
    built.launch(2020, 60).kernel(100 + 301 * 1010, 300)
    for thresholds, fires in (({}, True), ({"blocked_ratio": 1e9}, False), ({"full_depth": 1e9}, False)):
        assert ("TA204" in {f.rule for f in analysed(built, tmp_path, **thresholds)}) is fires


def test_an_unknown_threshold_is_refused_with_a_suggestion():
    for near, name in (
        ("starved_fractoin", "starved_fraction"),
        ("robust_vc", "robust_cv"),
        ("lopcalls", "loop_calls"),
    ):
        with pytest.raises(OptionError) as error:
            ta.analyze("is read later", options=AnalysisOptions(thresholds={near: 1}))
        assert name in error.value.hint


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_threshold_that_is_no_finite_number_is_refused(value):
    with pytest.raises(OptionError) as error:
        AnalysisOptions(thresholds={"robust_cv": value})
    assert "robust_cv" in str(error.value)


def test_options_load_no_rules():
    code = (
        "import sys\nfrom traceanalyzer.options import AnalysisOptions\n"
        "AnalysisOptions(thresholds={'robust_cv': 1}).threshold('starved_fraction')\n"
        "print('numpy' in sys.modules, 'traceanalyzer.doctor' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"]


def test_a_report_says_every_threshold_it_was_judged_by(outcomes):
    path = ROOT / "samples" / "cpu_bound_loop.json"
    report = ta.analyze(path, options=AnalysisOptions(thresholds={"robust_cv": 0.25}))
    assert report.data.thresholds == {n: t.default for n, t in all_thresholds().items()} | {"robust_cv": 0.25}
