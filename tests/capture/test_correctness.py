"""Results against a reference: what passes, what does not, and what cannot be told."""

from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="capture's comparison needs torch")

from traceanalyzer.capture.correctness import check, compare, snapshot  # noqa: E402


def mm(a, b):
    return a @ b


def held(output, reference, *args, tolerance=None):
    return check(output, reference, args, {}, tolerance)


def test_a_right_fp32_product_passes_without_a_tolerance_and_its_error_is_stated():
    a, b = torch.randn(256, 256), torch.randn(256, 256)
    found = held(mm(a, b), mm, a, b)
    assert found.passed is True and found.reference == "mm in float64"
    assert 0 < found.max_abs_error < 1e-3 < found.atol


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_error_of_one_element_in_a_thousand_is_found(dtype):
    a = torch.randn(1000).to(dtype)
    wrong = a.clone()
    wrong[7] += 1
    found = held(wrong, lambda x: x, a)
    assert found.passed is False and "1 of 1000 elements" in found.reason
    assert found.max_abs_error == pytest.approx(1, rel=0.02)


def test_the_reference_gets_float64_and_falls_back_to_the_inputs_precision():
    seen = []

    def picky(x):
        seen.append(x.dtype)
        if x.dtype == torch.float64:
            raise RuntimeError("no float64 kernel")
        return x

    found = held(torch.ones(3), picky, torch.ones(3))
    assert seen == [torch.float64, torch.float32]
    assert found.passed is True and "own precision" in found.reference


def test_a_reference_that_fails_leaves_the_result_unjudged():
    def broken(x):
        raise ValueError("no such shape\nat all")

    found = held(torch.ones(3), broken, torch.ones(3))
    assert found.passed is None and "ValueError: no such shape at all" in found.reason


@pytest.mark.parametrize(
    ("output", "expected", "says"),
    [
        (torch.ones(3), torch.ones(4), "shape"),
        ((torch.ones(3),), (torch.ones(3), torch.ones(3)), "1 arrays came out"),
        (torch.tensor([1.0, float("nan")]), torch.ones(2), "1 of them NaN"),
        (torch.tensor([1.0, float("inf")]), torch.ones(2), "1 of 2"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "1 of 2"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1"),
        (None, torch.ones(3), "0 arrays came out"),
    ],
)
def test_what_differs_does_not_pass(output, expected, says):
    found = compare(output, expected, "reference", None)
    assert found.passed is False and says in found.reason


def test_nan_and_infinity_where_the_reference_has_them_are_right():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    assert compare(x, x.clone(), "reference", (0.0, 0.0)).passed is True


def test_a_given_tolerance_is_elementwise():
    assert compare(torch.tensor([100.0, 1.0]), torch.tensor([101.0, 1.0]), "r", (0.02, 0.0)).passed is True
    assert compare(torch.tensor([100.0, 1.0]), torch.tensor([100.0, 1.1]), "r", (0.02, 0.0)).passed is False


def test_trees_numpy_and_numbers_are_compared():
    @dataclass
    class Out:
        a: object
        b: object

    assert compare(Out({"x": np.ones(3)}, [1.5]), Out({"x": np.ones(3)}, [1.5]), "r", (0, 0)).passed is True
    assert compare([np.ones(3), 2.0], [np.ones(3), 2.5], "r", (0, 0)).passed is False


def test_nothing_to_compare_is_said():
    assert compare("text", "text", "r", None).passed is None


def test_a_snapshot_is_not_changed_by_later_calls():
    x = torch.zeros(3)
    kept = snapshot(({"x": x}, [x]))
    x.add_(1)
    assert kept[0]["x"].sum() == 0 and kept[1][0].sum() == 0


def test_a_reference_of_nan_alone_judges_nothing():
    nothing = torch.full((3,), float("nan"))
    found = compare(nothing, nothing.clone(), "reference", None)
    assert found.passed is None and "nothing but NaN" in found.reason
