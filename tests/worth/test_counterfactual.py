"""annotate --change: a timeline that never ran, as a trace that shows what worth promised."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.kineto_writer import document, to_json
from tests.worth import scenarios as sc
from traceanalyzer.cli import cli


@pytest.fixture
def recorded(tmp_path):
    def write(step):
        path = tmp_path / f"{step.__name__}.json"
        path.write_text(to_json(document(sc.run(step, sc.NOTHING))), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("step", "change"),
    [
        (sc.sync_each, "no_synchronise"),
        (sc.item_each, "no_host_waits"),
        (sc.cpu_bound, "launches_free"),
        (sc.exposed_data, "no_data_loading"),
    ],
)
def test_the_timeline_has_the_period_that_was_promised(step, change, recorded, tmp_path):
    source, out = recorded(step), tmp_path / "then.json"
    result = CliRunner().invoke(cli, ["annotate", str(source), "--change", change, "-o", str(out)])
    assert result.exit_code == 0, result.output
    promised = next(w for w in ta.analyze(source).data.ledger[0].worth if w.change == change)
    then = ta.analyze(out).data
    assert then.trace.simulated
    assert then.coverage.unlinked == 0
    units = json.loads(out.read_text(encoding="utf-8"))
    large = [e["ts"] for e in units["traceEvents"] if e["name"] == "gemm"]
    half = len(large) // 2
    assert (large[-1] - large[half]) / (len(large) - 1 - half) == pytest.approx(promised.period_us, rel=0.05)


def test_an_unknown_change_and_one_that_cannot_be_replayed_are_refused(recorded, tmp_path):
    source, out = recorded(sc.cpu_bound), tmp_path / "then.json"
    for change, words in (("no_such", "there is no change"), ("no_compile", "no compiler is at work")):
        result = CliRunner().invoke(cli, ["annotate", str(source), "--change", change, "-o", str(out)])
        assert result.exit_code != 0
        assert words in result.output
        assert not out.exists()
