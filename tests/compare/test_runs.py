"""Folders of runs: the runs are the unit of chance, so that a level that differs from run to run is in the interval."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.compare.test_units import run
from traceanalyzer.cli import cli
from traceanalyzer.errors import OptionError, TraceFormatError

LEVELS = {"base": [1.0, 0.9, 1.1, 0.95, 1.05, 1.0, 0.92], "head": [0.93, 1.09, 1.0, 0.9, 1.06, 0.97, 1.02]}


@cache
def recorded(dispatch: int, seed: int) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        run(path, 8, dispatch=dispatch, mark="step", seed=seed)
        return path.read_text(encoding="utf-8")


def folders(tmp_path: Path, better: float = 1.0, count: int = 7) -> tuple[Path, Path]:
    for n, (side, levels) in enumerate(LEVELS.items()):
        (tmp_path / side).mkdir()
        for i, level in enumerate(levels[:count]):
            dispatch = round(12_000 * level * (better if side == "head" else 1))
            (tmp_path / side / f"run{i}.json").write_text(recorded(dispatch, 10 * n + i), encoding="utf-8")
    return tmp_path / "base", tmp_path / "head"


def test_what_one_run_calls_faster_is_undecided_over_runs_whose_level_varies(tmp_path):
    base, head = folders(tmp_path)
    assert ta.compare(base / "run0.json", head / "run0.json").data.verdict.status == "faster"
    data = ta.compare(base, head).data
    period = data.units[0].ratio_of("period")
    assert data.verdict.status == "undecided" and data.regression_pct == 0
    assert (period.base_n, period.head_n) == (7, 7) and period.ratio_ci95[0] < 1 < period.ratio_ci95[1]
    medians = [np.median([r.period_us for r in side.runs]) for side in (data.base, data.head)]
    assert (period.base, period.head) == pytest.approx(medians, abs=1e-3)
    assert data.units[0].value == "run" and "Over 7 and 7 runs" in data.verdict.headline


def test_each_run_gives_the_median_that_the_run_alone_has(tmp_path):
    base, head = folders(tmp_path, count=3)
    data = ta.compare(base, head).data
    for row in data.base.runs:
        alone = ta.compare(base / row.file, head / "run0.json").data.units[0]
        assert row.period_us == pytest.approx(alone.ratio_of("period").base, abs=1e-6)
        assert row.busy_us == pytest.approx(alone.ratio_of("busy").base, abs=1e-6)


@pytest.mark.parametrize("count", [4, 7])
def test_a_gain_beyond_the_scatter_of_runs_is_faster_and_a_loss_fails_the_gate(tmp_path, count):
    base, head = folders(tmp_path, better=0.6, count=count)
    assert ta.compare(base, head).data.verdict.status == "faster"
    gate = CliRunner().invoke(cli, ["compare", str(head), str(base), "--fail-on-regression", "5"])
    assert gate.exit_code == 1 and "gate: period of base" in gate.output
    assert "Over " in gate.output and "one recording a side" not in gate.output


def test_runs_that_cannot_be_used_are_named_and_left_out(tmp_path):
    base, head = folders(tmp_path, better=0.6, count=4)
    (base / "broken.json").write_text('{"traceEvents": [', encoding="utf-8")
    text = (base / "run0.json").read_text(encoding="utf-8").replace("layer_", "quite_other_work_")
    for i in range(12):
        text = text.replace(f"quite_other_work_{i}_kernel", f"{'abcdefghijkl'[i] * 5}_attention")
    (base / "stranger.json").write_text(text, encoding="utf-8")
    found = CliRunner().invoke(cli, ["compare", str(base), str(head), "--format", "json"])
    data = json.loads(found.output)
    left_out = {r["file"]: r["reason"] for r in data["base"]["runs"] if not r["used"]}
    assert set(left_out) == {"broken.json", "stranger.json"} and all(left_out.values())
    assert data["units"][0]["ratios"][0]["base_n"] == 4 and data["verdict"]["status"] == "faster"
    for form in ("text", "markdown"):
        shown = CliRunner().invoke(cli, ["compare", str(base), str(head), "--format", form]).output
        assert "Over 4 and 4 runs" in " ".join(shown.split())
        assert form == "markdown" or "stranger.json" in shown


def test_a_folder_is_compared_with_folders_of_two_runs_or_more(tmp_path):
    base, head = folders(tmp_path, count=2)
    with pytest.raises(OptionError, match="a single file"):
        ta.compare(base, head / "run0.json")
    (head / "run1.json").unlink()
    with pytest.raises(TraceFormatError, match="1 of 1 files"):
        ta.compare(base, head)


def test_several_heads_print_one_table_over_the_base(tmp_path):
    files = [
        run(tmp_path / f"{n}.json", 8, dispatch=d, mark="step", seed=n) for n, d in enumerate((12_000, 6000, 20_000))
    ]
    text = CliRunner().invoke(cli, ["compare", *map(str, files)]).output
    table = text.split("\n\n")[0]
    assert "2 heads over 0.json" in table and table.index("1.json") < table.index("2.json")
    assert "FASTER" in table and "SLOWER" in table
    # of each head the answer and where its time went; a screen for three heads
    assert (
        text.count("per unit: ") == 2
        and "1.json: Faster" in text
        and "2.json: Slower" in text
        and text.count("\n") < 40
    )
    shown = CliRunner().invoke(cli, ["compare", *map(str, files), "--format", "markdown"]).output
    assert shown.count("\n") <= 60 and "Faster: the step" in shown and "Slower: the step" in shown
    pages = CliRunner().invoke(cli, ["compare", *map(str, files), "--format", "html"]).output
    assert "1.json against 0.json" in pages and "2.json against 0.json" in pages


@pytest.mark.parametrize("count", [3, 4, 6, 7])
def test_the_ledger_difference_of_folders_adds_up_and_names_the_runs_it_is_of(tmp_path, count):
    base, head = folders(tmp_path, better=0.6, count=count)
    data = ta.compare(base, head).data
    [unit] = data.units
    period = unit.ratio_of("period")
    assert sum(t.saved_us for t in unit.ledger_difference) == pytest.approx(period.base - period.head, abs=1e-3)
    for side, folder in ((data.base, base), (data.head, head)):
        order = sorted(side.runs, key=lambda r: r.period_us)
        middle = [r.file for r in order[(count - 1) // 2 : count // 2 + 1]]
        assert side.median_runs == middle and len(middle) == 2 - count % 2
        # device, verdict and findings are those of the median run, not of the first
        alone = ta.compare(folder / middle[0], folder / middle[0]).data.base
        assert side.devices == alone.devices and side.findings == alone.findings and side.trace == alone.trace
    shown = CliRunner().invoke(cli, ["compare", str(base), str(head)]).output
    assert f"here {data.base.median_runs[0]}" in " ".join(shown.split())


def test_a_folder_against_itself_is_the_same_and_folders_of_equal_programs_are_not_said_to_be(tmp_path):
    base, head = folders(tmp_path, count=4)
    data = ta.compare(base, base).data
    assert data.verdict.status == "same" and data.verdict.headline.startswith(
        "Same: the two folders hold the same runs."
    )
    assert "same runs" not in ta.compare(base, head).data.verdict.headline


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_folders_have_a_page_and_a_comment(tmp_path, form):
    base, head = folders(tmp_path, better=0.6, count=4)
    shown = CliRunner().invoke(cli, ["compare", str(base), str(head), "--format", form])
    assert shown.exit_code == 0 and "Over 4 and 4 runs" in shown.output and "Comparable?" in shown.output
    assert form == "html" or (shown.output.count("\n") <= 60 and len(shown.output) < 65_536)
