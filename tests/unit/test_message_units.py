"""Numbers in sentences and tables: the unit of a duration follows its size, and a share is 100 % only where it is."""

import pytest

from traceanalyzer import number_text
from traceanalyzer.render import format as show


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (64, "64 ns"),
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
    assert number_text.duration(ns) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.0004, "<0.1 %"),
        (-0.0004, "-<0.1 %"),
        (0.0343, "3.4 %"),
        (0.0996, "10 %"),
        (0.9949, "99 %"),
        (0.9957, "99.6 %"),
        (0.99949, "99.9 %"),
        (0.9996, "100 %"),
        (1, "100 %"),
        (2.5, "250 %"),
    ],
)
def test_a_share_is_all_or_nothing_only_where_it_is(share, text):
    assert number_text.percent(share) == text == show.percent(share)


@pytest.mark.parametrize(("part", "text"), [(0.03, "+3.0 %"), (-0.42, "-42 %"), (1.5, "+150 %"), (0.998, "+100 %")])
def test_a_change_has_its_sign(part, text):
    assert number_text.change(part) == text
