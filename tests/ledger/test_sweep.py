"""The sweeps against the definition, instant by instant."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from traceanalyzer.analysis.ledger.sweep import cut, innermost, outermost

rows = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=14)


def columns(found):
    start = np.array([s for s, _ in found], dtype=np.int64)
    return start, start + np.array([d for _, d in found], dtype=np.int64), np.arange(len(found))


def painted(layer) -> dict[int, int]:
    assert (layer.start[1:] >= layer.end[:-1]).all()
    return {t: r for s, e, r in zip(layer.start, layer.end, layer.row, strict=True) for t in range(s, e)}


@given(rows)
def test_innermost_is_the_row_that_started_last_of_those_open(found):
    # of rows with one start the shorter lies in the longer; of equal ones the last in order
    want = {}
    for t in range(45):
        at = [(s, -(s + d), i) for i, (s, d) in enumerate(found) if s <= t < s + d]
        if at:
            want[t] = max(at)[2]
    assert painted(innermost(*columns(found))) == want


@given(rows)
def test_outermost_rows_start_where_no_earlier_row_is_open(found):
    layer = painted(outermost(*columns(found)))
    for t, i in layer.items():
        start, dur = found[i]
        assert start <= t < start + dur
        assert not [1 for s, d in found if s < start < s + d]


@given(rows, rows)
def test_cut_gives_every_instant_once(asked, held):
    start, end, _ = columns(asked)
    keep = end > start
    start, end = start[keep], end[keep]
    layer = innermost(*columns(held))
    inside, rest = cut(start, end, layer)
    cover = painted(layer)
    for number in range(len(start)):
        got = {}
        for pieces in (inside, rest):
            mine = pieces.of == number
            for s, e, r in zip(pieces.start[mine], pieces.end[mine], pieces.row[mine], strict=True):
                for t in range(s, e):
                    assert t not in got
                    got[t] = int(r)
        assert got == {t: cover.get(t, -1) for t in range(start[number], end[number])}
