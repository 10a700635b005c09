"""The unit of a duration in a finding's sentence follows its size."""

import pytest

from traceanalyzer.doctor.message import show_us


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (9_800, "9.8 us"),
        (999_400, "999 us"),
        (999_600, "1 ms"),
        (1_000_000, "1 ms"),
        (5_078_000, "5.08 ms"),
        (-5_078_000, "-5.08 ms"),
        (999_700_000, "1 s"),
        (12_340_000_000, "12.3 s"),
        (None, "n/a"),
    ],
)
def test_a_duration_has_the_unit_of_its_size(ns, text):
    assert show_us(ns) == text
