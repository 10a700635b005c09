"""One tolerance for each output, and the error as a share of what is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyzer.capture.correctness import compare


def arrays(*values):
    return tuple(np.array([v], dtype=np.float64) for v in values)


def test_each_output_is_held_to_its_own_tolerance():
    found, wanted = arrays(1.0, 100.5), arrays(1.0, 100.0)
    assert compare(found, wanted, "ref", ((0.0, 1e-6), (0.0, 1.0))).passed is True
    wrong = compare(found, wanted, "ref", ((0.0, 1.0), (0.0, 0.1)))
    assert wrong.passed is False and wrong.reason.startswith("output 1: 1 of 1 elements are outside rtol 0, atol 0.1")


def test_one_tolerance_is_that_of_every_output():
    assert compare(arrays(1.0, 2.1), arrays(1.0, 2.0), "ref", (0.0, 0.2)).passed is True
    assert compare(arrays(1.3, 2.1), arrays(1.0, 2.0), "ref", (0.0, 0.2)).passed is False


def test_the_record_names_the_widest_that_was_used():
    found = compare(arrays(1.0, 2.0), arrays(1.0, 2.0), "ref", ((1e-3, 1e-6), (1e-5, 1.0)))
    assert (found.rtol, found.atol) == (1e-3, 1.0)


def test_tolerances_of_another_number_judge_nothing():
    found = compare(arrays(1.0, 2.0), arrays(1.0, 2.0), "ref", ((0.0, 1.0),) * 3)
    assert found.passed is None and "3 tolerances were given for 2 arrays" in found.reason


@pytest.mark.parametrize(
    ("found", "wanted", "tolerance", "share"),
    [
        ((1.0,), (1.0,), (0.0, 0.1), 0.0),
        ((1.05,), (1.0,), (0.0, 0.1), 0.5),
        ((110.0,), (100.0,), (0.1, 10.0), 0.5),
        ((1.0, 103.5), (1.0, 100.0), ((0.0, 1e-9), (0.0, 7.0)), 0.5),
        ((1.3,), (1.0,), (0.0, 0.1), 3.0),
    ],
)
def test_the_share_of_what_is_allowed_means_the_same_for_every_output(found, wanted, tolerance, share):
    result = compare(arrays(*found), arrays(*wanted), "ref", tolerance)
    assert result.share_of_allowed == pytest.approx(share) and result.passed is (share <= 1)


def test_without_anything_allowed_an_error_has_no_share():
    assert compare(arrays(1.1), arrays(1.0), "ref", (0.0, 0.0)).share_of_allowed is None
    assert compare(arrays(1.0), arrays(1.0), "ref", (0.0, 0.0)).share_of_allowed == 0.0
    assert compare(arrays(np.nan), arrays(1.0), "ref", (0.0, 1.0)).share_of_allowed is None
