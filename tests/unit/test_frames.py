"""Python frames kept narrow and in batches answer as a sorted table of all of them would."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyzer.trace.frames import FrameBatch, Narrow, PythonFrames, joined

FAR = 1 << 40


def made(rng: np.random.Generator, sizes: list[int], lanes: int, spread: int) -> tuple[PythonFrames, np.ndarray]:
    """Return frames, and the same as rows of (start, -end, thread, name)."""
    batches, threads, rows = [], [], []
    for size in sizes:
        start, dur = rng.integers(0, spread, size), rng.integers(0, spread // 10 + 1, size)
        pid, tid, name = (
            rng.integers(0, 2, size),
            rng.integers(0, lanes, size),
            rng.integers(0, 5, size).astype(np.int32),
        )
        batch = FrameBatch.of(start, dur, pid, tid, name)
        of_lane = (batch.lanes[:, 0] * lanes + batch.lanes[:, 1]).astype(np.int32)
        batches.append(batch)
        threads.append(of_lane)
        rows.append(np.stack([start, -(start + dur), pid * lanes + tid, name], axis=1))
    return PythonFrames(batches, threads, list("abcde")), np.concatenate(rows)


def asked(rng: np.random.Generator, n: int, spread: int) -> tuple[np.ndarray, np.ndarray]:
    edges = np.unique(rng.integers(0, spread, 2 * n))
    edges = edges[: len(edges) // 2 * 2]
    return edges[0::2], edges[1::2]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("lanes", "spread"), [(1, 1000), (3, 1000), (300, 1000), (3, 50 * FAR)])
def test_frames_that_touch_are_those_of_a_full_look(seed, lanes, spread):
    rng = np.random.default_rng(seed)
    frames, rows = made(rng, [1, 40, 0, 7, 300][: 2 + seed % 4], lanes, spread)
    frames = PythonFrames(
        *(
            list(x)
            for x in zip(*[(b, t) for b, t in zip(frames.batches, frames.threads, strict=True) if len(b)], strict=True)
        ),
        frames.names,
    )
    start, end = asked(rng, 6, spread)
    for names in (None, np.array([True, False, True, True, False])):
        found = frames.touching(start, end, names)
        hit = ((rows[:, 0, None] < end) & (-rows[:, 1, None] > start)).any(axis=1)
        if names is not None:
            hit &= names[rows[:, 3]]
        wanted = sorted(map(tuple, rows[hit].tolist()))
        assert (
            list(
                zip(
                    found.start_ns.tolist(),
                    (-found.end_ns).tolist(),
                    found.thread.tolist(),
                    found.name.tolist(),
                    strict=True,
                )
            )
            == wanted
        )
        assert found.start_ns.dtype == found.end_ns.dtype == np.int64
    every = frames.rows()
    assert len(frames) == len(every) == len(rows)
    threads = 2 * lanes
    of = np.arange(threads) % 3 == 0
    mine = of[rows[:, 2]]
    extent = frames.extent(of)
    assert extent == ((int(rows[mine, 0].min()), int((-rows[mine, 1]).max())) if mine.any() else None)
    users = np.array([True, False, False, True, False])
    counts = np.bincount(rows[users[rows[:, 3]], 2], minlength=threads)
    found = frames.per_thread(users)
    assert found.tolist() == counts[: len(found)].tolist() and not counts[len(found) :].any()


def test_a_narrow_column_gives_back_what_was_put_in():
    for values in ([5, 5 + (1 << 32) - 1], [5, 5 + (1 << 32)], [-(1 << 63), 7], [(1 << 63) - 1], []):
        column = Narrow.of(np.array(values, dtype=np.int64))
        assert column.values().tolist() == values
    assert Narrow.of(np.array([1 << 50, 1 + (1 << 50)])).offsets.dtype == np.uint32


def test_small_batches_are_joined_and_large_ones_left():
    rng = np.random.default_rng(1)
    frames, rows = made(rng, [3] * 50 + [6000, 2], 4, 1000)
    found = list(joined(frames.batches))
    assert [len(b) for b in found] == [6150, 2]
    start = np.concatenate([b.start.values() for b in found])
    lanes = np.concatenate([b.lanes[b.lane] for b in found])
    assert start.tolist() == rows[:, 0].tolist() and (lanes[:, 0] * 4 + lanes[:, 1]).tolist() == rows[:, 2].tolist()
    part = found[0].take(found[0].lane == 0)
    assert len(part.lanes) == 1 and len(part) == int((found[0].lane == 0).sum())
