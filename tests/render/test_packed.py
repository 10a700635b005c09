"""Integers in a page: every value comes back, whatever its sign and size."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.render.page.charts import packed


def unpacked(text: str) -> list[int]:
    """Read what ``packed`` wrote, a byte at a time."""
    found, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            found.append(-(value + 1) // 2 if value % 2 else value // 2)
            value = shift = 0
    return found


@given(st.lists(st.integers(-(2**53), 2**53)))
def test_every_integer_comes_back(values):
    assert unpacked(packed(values)) == values


def test_small_numbers_take_one_byte_each():
    assert len(base64.b64decode(packed([0, 1, -1, 63, -64]))) == 5
    assert packed([]) == ""
