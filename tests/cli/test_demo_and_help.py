"""A first look: help by question, and a report without a trace of one's own."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

from click.testing import CliRunner

import traceanalyzer as ta
from traceanalyzer.cli import cli

ROOT = Path(__file__).resolve().parents[2]


def run(*args: str):
    return CliRunner().invoke(cli, list(args), prog_name="traceanalyze")


def test_help_lists_every_command_once_under_the_question_it_answers():
    text = run("--help").stdout
    places = [text.index(q) for q in ("Can I trust it?", "What limits it?", "Is B faster?", "Record\n", "Learn\n")]
    assert places == sorted(places)
    for name in cli.list_commands(None):
        assert sum(line.startswith(f"  {name} ") for line in text.splitlines()) == 1, name
    assert text.index("  report ") < text.index("What limits it?") < text.index("  ranks ") < text.index("Is B faster?")


def test_demo_reports_on_the_shipped_trace_and_names_commands_that_work():
    done = run("demo")
    assert done.exit_code == 0 and done.stdout.startswith("Suspect:") and "SIMULATED" in done.stdout
    for line in done.stdout.split("Try next:")[1].strip().splitlines():
        words = line.split("   ")[0].split()
        assert words[0] == "traceanalyze"
        if words[1] != "report" and "--save" not in words:
            assert run(*words[1:]).exit_code == 0, line
    assert "numbers:" in run("demo", "--section", "findings").stdout


def test_the_demo_trace_can_be_kept_and_reported_on(tmp_path):
    target = tmp_path / "trace.json"
    done = run("demo", "--save", str(target))
    assert done.exit_code == 0 and not done.stdout and "traceanalyze report" in done.stderr
    assert ta.analyze(target).data.trace.kernels == 60 and json.loads(target.read_text(encoding="utf-8"))["traceEvents"]


def test_the_demo_trace_is_part_of_the_package():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert "demo/*.json" in config["options.package_data"]["traceanalyzer"]
    shipped = ROOT / "traceanalyzer" / "demo" / "cpu_bound_loop.json"
    assert shipped.read_bytes() == (ROOT / "samples" / "cpu_bound_loop.json").read_bytes()
