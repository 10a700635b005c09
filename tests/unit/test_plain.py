"""Data become plain values as the standard library makes them, and JSON is what it writes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.render.json_v1 import dump
from traceanalyzer.report.plain import plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@dataclass(frozen=True, slots=True)
class Inner:
    text: str
    numbers: tuple[float, float] | None = None


@dataclass(frozen=True)
class Outer:
    rows: list[Inner]
    by_name: dict[str, Inner]
    class_: str = "x"
    anything: Any = field(default_factory=dict)


@given(VALUES)
def test_plain_values_are_those_of_the_standard_library(value):
    data = Outer([Inner("a", (1.0, 2.0)), Inner("b")], {"k": Inner("c")}, anything=value)
    expected = asdict(data)
    expected["class"] = expected.pop("class_")
    assert plain(data) == expected and list(plain(data)) == ["rows", "by_name", "class", "anything"]


@given(VALUES, st.sampled_from([None, 1, 2]))
def test_json_is_the_standard_library_s(value, indent):
    strict = json.dumps(value, indent=indent)
    assert dump(value, indent=indent) == strict + "\n" or "\\ud" in strict


@pytest.mark.parametrize("value", [{"rows": [{"name": "\ud800"}]}, ["\udfff"], "\ud800"])
def test_half_of_a_surrogate_pair_is_replaced_at_every_depth(value):
    assert "\\ufffd" in dump(value) and "\\ud" not in dump(value)


def test_what_is_no_number_is_refused_at_every_depth():
    for value in ({"a": [{"b": float("nan")}]}, [float("inf")], float("nan")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dump(value)
