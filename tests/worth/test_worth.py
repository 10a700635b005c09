"""Worth against the simulator with the change really made: a factor within 5 % of the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kineto_writer import document, to_json
from tests.worth import scenarios as sc
from tests.worth.random_steps import random_step
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.trace.reader import read

NO_SYNC, NO_COPIES = {"sync": False}, {"copies_wait": False}
CASES = [
    (sc.cpu_bound, "launches_free", {"graph": True}),
    (sc.cpu_bound, "largest_kernel_halved", {"halved": True}),
    (sc.gpu_bound, "launches_free", {"graph": True}),
    (sc.gpu_bound, "largest_kernel_halved", {"halved": True}),
    (sc.sync_each, "no_synchronise", NO_SYNC),
    (sc.sync_each, "no_host_waits", NO_SYNC),
    (sc.sync_each, "launches_free", {"graph": True}),
    (sc.sync_each, "largest_kernel_halved", {"halved": True}),
    (sc.item_each, "no_synchronise", NO_SYNC),
    (sc.item_each, "no_copy_calls", NO_COPIES),
    (sc.item_each, "no_host_waits", NO_SYNC | NO_COPIES),
    (sc.copies, "no_copy_calls", NO_COPIES),
    (sc.copies, "no_host_waits", NO_COPIES),
    (sc.exposed_data, "no_data_loading", {"data": False}),
    (sc.exposed_data, "launches_free", {"graph": True}),
    (sc.workers, "no_data_loading", {"data": False}),
    (sc.hidden_data, "no_data_loading", {"data": False}),
    (sc.allocations, "no_allocation", {"allocation": False}),
    (sc.two_causes, "no_synchronise", NO_SYNC),
    (sc.two_causes, "no_copy_calls", NO_COPIES),
    (sc.two_causes, "no_host_waits", NO_SYNC | NO_COPIES),
    (sc.two_causes, "launches_free", {"graph": True}),
    (sc.two_threads, "no_synchronise", NO_SYNC),
    (sc.two_streams, "no_synchronise", NO_SYNC),
]


def worth_of(step, tmp_path, units=sc.UNITS, **machine):
    path = tmp_path / "t.json"
    path.write_text(to_json(document(sc.run(step, sc.NOTHING, units, **machine))), encoding="utf-8")
    return analyse(read(path)).ledgers[0].worth


@pytest.mark.parametrize("depth", [1024, 100])
@pytest.mark.parametrize(("step", "change", "made"), CASES, ids=[f"{s.__name__}-{c}" for s, c, _ in CASES])
def test_a_factor_is_that_of_the_run_with_the_change_made(step, change, made, depth, tmp_path):
    found = worth_of(step, tmp_path, depth=depth)
    assert found.reason == ""
    now, then = (sc.period_ns(step, m, depth=depth) for m in (sc.NOTHING, replace(sc.NOTHING, **made)))
    assert found.now_ns == pytest.approx(now, rel=0.05)
    assert found.of(change).factor == pytest.approx(now / then, rel=0.05)


# -- what hides what ------------------------------------------------------------------------------------


def test_of_a_copy_and_a_synchronise_that_hide_each_other_each_names_the_other(tmp_path):
    found = worth_of(sc.item_each, tmp_path)
    assert found.of("no_synchronise").share < 0.05
    assert found.of("no_synchronise").behind == "no_copy_calls"
    assert found.of("no_copy_calls").behind == "no_synchronise"
    assert found.of("no_host_waits").share > 0.1


def test_on_a_busy_device_launches_are_worth_nothing_because_of_the_device(tmp_path):
    found = worth_of(sc.gpu_bound, tmp_path)
    assert found.of("launches_free").behind == "device"
    assert found.of("largest_kernel_halved").factor > 1.3


def test_what_free_launches_are_worth_behind_workers_is_not_in_the_trace(tmp_path):
    # the workers would keep their pace, the host's own work at a batch would not be waited for again
    assert sc.period_ns(sc.workers, replace(sc.NOTHING, graph=True)) == sc.period_ns(sc.workers, sc.NOTHING)
    found = worth_of(sc.workers, tmp_path)
    assert found.of("launches_free").factor is None
    assert "workers" in found.of("launches_free").reason
    assert found.of("no_data_loading").factor > 1.5


def test_the_floor_is_never_above_another_change(tmp_path):
    for step in (sc.cpu_bound, sc.item_each, sc.exposed_data, sc.two_threads, sc.allocations):
        found = worth_of(step, tmp_path)
        floor = found.of("everything_free").period_ns
        others = [
            c for c in found.changes if c.period_ns and c.change not in ("everything_free", "largest_kernel_halved")
        ]
        assert all(c.period_ns >= floor * 0.999 for c in others), step.__name__


def test_what_a_trace_does_not_have_is_not_changed(tmp_path):
    found = worth_of(sc.cpu_bound, tmp_path)
    assert found.of("no_data_loading").factor is None
    assert found.of("no_data_loading").reason == "no data-loading range is recorded"
    assert found.of("no_allocation").reason


def test_an_operator_is_a_site(tmp_path):
    found = worth_of(sc.cpu_bound, tmp_path)
    sites = [c for c in found.changes if c.change.startswith("no_site:")]
    assert sites
    assert all(c.factor > 1.02 for c in sites)


# -- where it cannot speak ------------------------------------------------------------------------------


def test_three_units_are_too_few(tmp_path):
    found = worth_of(sc.cpu_bound, tmp_path, units=3)
    assert found.reason
    assert found.changes == []


def test_rows_without_a_launch_are_no_ground(tmp_path):
    machine = sc.run(sc.cpu_bound, sc.NOTHING)
    for row in machine.device[::8]:
        row.corr = 0
    path = tmp_path / "t.json"
    path.write_text(to_json(document(machine)), encoding="utf-8")
    assert "no launch" in analyse(read(path)).ledgers[0].worth.reason


def test_waits_that_nothing_explains_are_no_ground(tmp_path):
    machine = sc.run(sc.gpu_bound, sc.NOTHING)
    shift = 0
    for number, row in enumerate(machine.device):
        shift += 60_000 if number % 10 == 5 else 0  # an event that the trace does not show
        row.start, row.end = row.start + shift, row.end + shift
    path = tmp_path / "t.json"
    path.write_text(to_json(document(machine)), encoding="utf-8")
    assert "does not show" in analyse(read(path)).ledgers[0].worth.reason


# -- any steps ------------------------------------------------------------------------------------------

MADE = {
    "no_synchronise": NO_SYNC,
    "no_copy_calls": NO_COPIES,
    "no_host_waits": NO_SYNC | NO_COPIES,
    "no_allocation": {"allocation": False},
    "no_data_loading": {"data": False},
    "largest_kernel_halved": {"halved": True},
}


def test_of_steps_drawn_at_random_nearly_all_factors_are_within_5_percent(tmp_path):
    off = []
    for seed in range(1000, 1008):
        step = random_step(seed)
        scatter = {"jitter": 0.1, "rng": np.random.default_rng(seed)}
        found = worth_of(step, tmp_path, units=16, **scatter)
        assert found.reason == ""
        for change, made in MADE.items():
            factor = found.of(change).factor
            if factor is None:
                continue
            now, then = (
                sc.period_ns(step, m, jitter=0.1, rng=np.random.default_rng(1))
                for m in (sc.NOTHING, replace(sc.NOTHING, **made))
            )
            off.append(abs(factor / (now / then) - 1))
    assert len(off) > 20
    assert np.mean(np.array(off) < 0.05) >= 0.95
    assert max(off) < 0.1
