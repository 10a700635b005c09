"""check, predict, rules and rule as their users meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from sarif_pydantic import Sarif

from tests.builders import trace
from traceanalyzer.cli import cli
from traceanalyzer.commands.config import load_config
from traceanalyzer.doctor.registry import RULES


def run(*args: str):
    return CliRunner().invoke(cli, list(args), prog_name="traceanalyze")


@pytest.fixture
def loop(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return trace().loop(12, 40, 5, 10).write(tmp_path / "loop.json")


@pytest.fixture
def sound(tmp_path) -> Path:
    built = trace()
    for i in range(40):
        built.call(10 * i, 100 + 31 * i, 30)
    return built.write(tmp_path / "sound.json")


def test_check_fails_on_a_warning_and_passes_a_sound_trace(loop, sound):
    assert run("check", str(loop)).exit_code == 1
    assert run("check", str(sound)).exit_code == 0
    assert run("check", str(loop), "--fail-on", "error").exit_code == 0
    assert run("check", str(sound), "--fail-on", "note").exit_code == 1
    assert run("check", str(loop), str(sound)).exit_code == 1


def test_check_selects_and_ignores_rules(loop):
    found = json.loads(run("check", str(loop), "--select", "TA201", "--format", "json").stdout)
    assert {f["rule"] for f in found["traces"][0]["findings"]} == {"TA201"}
    found = json.loads(run("check", str(loop), "--ignore", "TA2,warm-l2", "--format", "json").stdout)
    assert not {f["rule"] for f in found["traces"][0]["findings"]} & {"TA201", "TA202", "TA504"}


@pytest.mark.parametrize(
    "args", [["check", "x.json", "--select", "TA9999"], ["rule", "TA9999"], ["rule", "cpu-bound-que"]]
)
def test_an_unknown_rule_is_refused_with_a_suggestion(loop, args):
    args = [str(loop) if a == "x.json" else a for a in args]
    done = run(*args)
    assert (
        done.exit_code == 2
        and "unknown_rule" in done.stderr
        and ("did you mean" in done.stderr or "lists them" in done.stderr)
    )


def test_github_annotations_are_one_line_each_and_escape_what_github_reads(loop):
    lines = run("check", str(loop), "--format", "github").stdout.splitlines()
    assert all(line.startswith(("::warning title=", "::notice title=", "::error title=")) for line in lines)
    assert any("TA201" in line for line in lines) and "100 %25" in "".join(lines)


def test_a_hostile_name_makes_no_second_annotation(tmp_path):
    path = trace().loop(12, 40, 5, 10, name="k\n::error title=x::owned\r%0A").write(tmp_path / "t.json")
    out = run("check", str(path), "--format", "github").stdout
    assert not [line for line in out.splitlines() if "owned" in line and line.startswith("::error")]


def test_sarif_has_the_parts_its_readers_need(loop):
    document = json.loads(run("check", str(loop), "--format", "sarif").stdout)
    # typed models of the 2.1.0 schema, written by others: refuses what the schema refuses in the parts they cover
    assert len(Sarif.model_validate(document).runs[0].results) == len(document["runs"][0]["results"]) > 0
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")
    driver = document["runs"][0]["tool"]["driver"]
    assert driver["name"] == "traceanalyzer" and {r["id"] for r in driver["rules"]} >= {"TA201"}
    for result in document["runs"][0]["results"]:
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        assert result["ruleId"] in {r["id"] for r in driver["rules"]}
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "loop.json"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "pyproject.toml",
            '[tool.traceanalyzer]\nignore = ["TA2", "TA504"]\nfail-on = "note"\n[tool.traceanalyzer.thresholds]\nlong_pause_us = 5\n',
        ),
        ("setup.cfg", "[tool:traceanalyzer]\nignore = TA2, TA504\nfail-on = note\nthreshold.long_pause_us = 5\n"),
    ],
)
def test_settings_come_from_the_projects_files(loop, name, text):
    Path(name).write_text(text)
    assert load_config().ignore == ("TA2", "TA504") and load_config().thresholds == {"long_pause_us": 5.0}
    found = json.loads(run("check", str(loop), "--format", "json").stdout)
    assert not {f["rule"] for f in found["traces"][0]["findings"]} & {"TA201", "TA202", "TA504"}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("selct = []", "did you mean 'select'"),
        ('fail-on = "loud"', "note, warning or error"),
        ("select = 3", "list of rule codes"),
        ('thresholds = {a = "x"}', "no number"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(loop, text, hint):
    Path("pyproject.toml").write_text(f"[tool.traceanalyzer]\n{text}\n")
    done = run("check", str(loop))
    assert done.exit_code == 2 and hint in done.stderr


def test_a_claim_is_judged_on_report_and_check(loop):
    out = " ".join(run("report", str(loop), "--claim", "40us").stdout.split())
    assert "the claim of 40us is dispatch interval of the host" in out or "TA709" in out
    assert "TA706" in run("check", str(loop), "--claim", "0.1us").stdout
    assert "confirmed" in run("check", str(loop), "--claim", "10us:k").stdout
    assert run("check", str(loop), "--claim", "ten").exit_code == 2
    assert "no operation is called" in run("check", str(loop), "--claim", "1us:nothing_like_it").stdout


def test_predict_prints_the_golden_row():
    readings = json.loads(
        run("predict", "--dispatch", "40", "--kernel", "8", "--clear", "16", "--format", "json").stdout
    )["readings"]
    wanted = {"wall_sync_each": 58, "event_pair_sync": 48, "event_pair": 44, "do_bench": 34, "profiler_self_time": 8}
    assert {k: readings[k] for k in wanted} == wanted
    assert readings["event_loop"] == pytest.approx(40, abs=0.001)


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_predict_and_rules_in_every_format(form):
    for args in (
        ["predict", "--dispatch", "20,20,20", "--kernel", "5,5,5"],
        ["rules"],
        ["rule", "TA201"],
        ["rule", "sync-in-loop"],
    ):
        done = run(*args, "--format", form)
        assert done.exit_code == 0 and done.stdout.strip()


@pytest.mark.parametrize(
    "args",
    [
        ["--dispatch", "x", "--kernel", "1"],
        ["--dispatch", "1,2", "--kernel", "1"],
        ["--dispatch", "-1", "--kernel", "1"],
        ["--dispatch", "nan", "--kernel", "1"],
    ],
)
def test_predict_refuses_what_means_nothing(args):
    done = run("predict", *args)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1


def test_rules_lists_every_rule():
    out = run("rules").stdout
    assert all(r.code in out and r.name in out for r in RULES)
    assert len({r.code for r in RULES}) == len({r.name for r in RULES}) == len(RULES)
