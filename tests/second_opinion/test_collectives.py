"""Who waits in communication for whom: against arrivals laid out by hand, with clocks that differ, and where it must abstain."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import trace
from traceanalyzer.analysis.collectives import (
    CommunicationWaits,
    NoWaits,
    RankCollectives,
    Unjudged,
    collectives_of,
    communication_waits,
)
from traceanalyzer.api import ranks
from traceanalyzer.cli import cli
from traceanalyzer.render.ranks import REASONS
from traceanalyzer.trace.reader import read

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def joined(arrivals: list[list[int]], transfer: int = 40_000, clocks: list[int] | None = None) -> list[RankCollectives]:
    """Ranks whose kernels start at ``arrivals[rank][n]`` and end together, ``transfer`` after the last has joined."""
    start = np.array(arrivals, dtype=np.int64)
    end = np.broadcast_to(start.max(axis=0) + transfer, start.shape)
    shift = np.array(clocks or [0] * len(start), dtype=np.int64)[:, None]
    return [
        RankCollectives(r, (REDUCE,), np.zeros(start.shape[1], np.int32), s, e)
        for r, (s, e) in enumerate(zip(start + shift, end + shift, strict=True))
    ]


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(0, 300_000), min_size=n, max_size=n), min_size=5, max_size=12),
            st.lists(st.integers(-(10**15), 10**15), min_size=n, max_size=n),
        )
    )
)
def test_waiting_is_what_passes_until_the_last_rank_joins_whatever_the_clocks_say(made):
    late, clocks = made
    arrivals = [[n * 1_000_000 + step[r] for n, step in enumerate(late)] for r in range(len(clocks))]
    found = communication_waits(joined(arrivals, clocks=clocks))
    assert isinstance(found, CommunicationWaits)
    expected = [sum(max(step) - step[r] for step in late) for r in range(len(clocks))]
    assert found.wait_ns.tolist() == expected
    assert found.transfer_ns.tolist() == [40_000 * len(late)] * len(clocks)
    assert found.caused_ns.sum() == sum(expected) and found.waits_ns.sum() == sum(expected)
    assert (np.diag(found.waits_ns) == 0).all() and found.last.sum() == len(late)


def test_the_rank_that_joins_last_is_the_one_the_others_wait_for():
    arrivals = [[n * 1_000_000 + (90_000 if r == 2 else 1000 * r) for n in range(10)] for r in range(4)]
    found = communication_waits(joined(arrivals))
    assert found.last.tolist() == [0, 0, 10, 0] and found.caused_ns[2] == found.wait_ns.sum()
    assert found.waits_ns[0, 2] == 10 * 90_000 and found.waits_ns[3, 2] == 10 * 87_000


def test_ends_that_agree_to_a_few_microseconds_are_aligned_and_those_that_do_not_are_no_clocks():
    arrivals = [[n * 1_000_000 + 5000 * r for n in range(20)] for r in range(3)]
    rng = np.random.default_rng(3)
    close = joined(arrivals)
    close = [RankCollectives(c.rank, c.names, c.name, c.start_ns, c.end_ns + rng.integers(0, 4000, 20)) for c in close]
    assert isinstance(communication_waits(close), CommunicationWaits)
    drifting = [
        RankCollectives(c.rank, c.names, c.name, c.start_ns + k * d, c.end_ns + k * d)
        for c, d in zip(joined(arrivals), (0, 20_000, 0), strict=True)
        for k in [np.arange(20)]
    ]
    answer = communication_waits(drifting)
    assert isinstance(answer, Unjudged) and answer.reason is NoWaits.CLOCKS and answer.ns > 50_000


def test_other_collectives_or_another_number_of_them_are_not_matched():
    made = joined([[n * 1_000_000 for n in range(6)]] * 3)
    fewer = made[2]
    cut = RankCollectives(2, fewer.names, fewer.name[:5], fewer.start_ns[:5], fewer.end_ns[:5])
    assert communication_waits([*made[:2], cut]) == Unjudged(NoWaits.DIFFERENT_SEQUENCES, [2])
    other = RankCollectives(2, (GATHER,), fewer.name, fewer.start_ns, fewer.end_ns)
    assert communication_waits([*made[:2], other]) == Unjudged(NoWaits.DIFFERENT_SEQUENCES, [2])
    few = joined([[0, 1_000_000]] * 2)
    assert communication_waits(few).reason is NoWaits.FEW_COLLECTIVES
    assert communication_waits(made[:1]).reason is NoWaits.ONE_RANK


def test_sends_to_one_rank_are_no_collectives(tmp_path):
    built = trace()
    for n, name in enumerate((REDUCE, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "gemm", GATHER)):
        built.call(100 * n, 100 * n + 20, 30, name=name, stream=20)
    (found,) = collectives_of(read(built.write(tmp_path / "t.json")), 3)
    assert found.rank == 3 and [found.names[n] for n in found.name.tolist()] == [REDUCE, GATHER]


def job(folder, rank: int, late_us: float, world: int = 4, shift: int = 0, devices: int = 1):
    """Ten steps: compute, and an all-reduce that takes 40 us from when the last rank (80 us later) joins."""
    built = trace()
    built.fields["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    built.fields["baseTimeNanoseconds"] = 1_700_000_000_000_000_000 + shift
    for n in range(10):
        at = 1000 + 400 * n
        for device in range(devices):
            built.call(at - 50, at, 100 + late_us, name="gemm", device=device)
            built.call(at - 20, at + 100 + late_us, 120 - late_us, name=REDUCE, stream=20, device=device)
    return built.write(folder / f"rank{rank}.json")


def test_a_folder_of_ranks_says_who_waits_for_whom(tmp_path):
    for rank in range(4):
        job(tmp_path, rank, 80 if rank == 2 else 10 * rank, shift=rank * 12_345_678)
    found = ranks(tmp_path, hta=False)
    by_rank = {r.rank: r for r in found.communication.ranks}
    assert found.communication.collectives == 10 and not found.communication.reason
    assert [by_rank[r].wait_us for r in range(4)] == [800.0, 700.0, 0.0, 500.0]
    assert [by_rank[r].transfer_us for r in range(4)] == [400.0] * 4
    assert by_rank[2].caused_us == 2000.0 and by_rank[0].waits_for_us == {2: 800.0} and by_rank[2].last == 10
    assert "Of the time in collectives 56 % is waiting, 100 % of it for rank 2." in found.headline
    text = CliRunner().invoke(cli, ["ranks", str(tmp_path), "--no-hta"]).output
    row = next(line.split() for line in text.splitlines() if line.startswith("0 ") and "rank 2" in line)
    assert row[:3] == ["0", "800.0", "400.0"] and "(100" in row
    saved = json.loads(CliRunner().invoke(cli, ["ranks", str(tmp_path), "--no-hta", "--format", "json"]).output)
    assert saved["communication"]["ranks"][1]["waits_for_us"] == {"2": 700.0}


def test_each_ranks_ledger_adds_up_and_is_a_row(tmp_path):
    for rank in range(3):
        job(tmp_path, rank, 10 * rank, world=3)
    found = ranks(tmp_path, hta=False)
    for row in found.ranks:
        assert sum(row.ledger.values()) == pytest.approx(row.span_us)
        assert row.ledger["compute"] == row.compute_us and row.ledger["communication"] == row.exposed_communication_us
    for form in ("text", "markdown"):
        shown = CliRunner().invoke(cli, ["ranks", str(tmp_path), "--no-hta", "--format", form]).output
        assert "Where each rank's time went" in shown and "other" in shown


def test_what_cannot_be_told_has_its_reason(tmp_path):
    def reason(name: str, *made) -> str:
        folder = tmp_path / name
        folder.mkdir()
        for rank, options in made:
            job(folder, rank, 10 * rank, **options)
        found = ranks(folder, hta=False)
        text = " ".join(CliRunner().invoke(cli, ["ranks", str(folder), "--no-hta"]).output.split())
        assert REASONS[found.communication.reason] in text or found.communication.reason == "one_rank"
        return found.communication.reason

    assert reason("alone", (0, {"world": 1})) == "one_rank"
    assert reason("devices", (0, {"devices": 2}), (1, {"devices": 2})) == "several_devices"
    folder = tmp_path / "silent"
    folder.mkdir()
    job(folder, 0, 0)
    built = trace().loop(10, 40, 5, 10)
    built.fields["distributedInfo"] = {"rank": 1, "world_size": 2}
    built.write(folder / "rank1.json")
    found = ranks(folder, hta=False).communication
    assert (found.reason, found.reason_ranks, found.ranks) == ("no_collectives", [1], [])
    assert set(REASONS) == {str(r) for r in NoWaits}


def test_a_rank_without_a_trace_is_a_rank_nobody_can_be_seen_waiting_for(tmp_path):
    job(tmp_path, 0, 0)
    job(tmp_path, 1, 30)
    text = " ".join(CliRunner().invoke(cli, ["ranks", str(tmp_path), "--no-hta"]).output.split())
    assert "waiting for a rank without a trace counts as transfer" in text
