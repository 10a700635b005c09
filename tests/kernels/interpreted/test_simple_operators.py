"""The simple operators and msda's presets against their references, through the interpreter."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.closeness import worst_excess
from traceanalyzer.errors import OptionError
from traceanalyzer.kernels import OPERATORS, operator
from traceanalyzer.kernels.alternatives import expected
from traceanalyzer.kernels.matmul import matmul
from traceanalyzer.kernels.rms_norm import rms_norm
from traceanalyzer.kernels.softmax import softmax
from traceanalyzer.kernels.vector_add import BLOCK, vector_add, vector_add_kernel

# The interpreter of Triton 3.9.0 multiplies the bit patterns of bf16 operands in tl.dot. bf16 matmul is compiled
# ahead of time only, until a GPU runs it.
NOT_INTERPRETED = {("matmul", "bf16")}
CASES = [(name, dtype) for name in OPERATORS for dtype in operator(name).dtypes if (name, dtype) not in NOT_INTERPRETED]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_kernel_agrees_with_the_reference_in_double_precision(name, dtype):
    op = operator(name)
    inputs = op.inputs("tiny", dtype)
    call = op.implementation("triton", device="cpu", dtype=dtype, timing=False)
    got = call(*inputs.args)
    assert got.dtype == inputs.args[0].dtype
    assert worst_excess(got, expected(op, inputs), op.tolerance[dtype]) <= 0


def test_interpreter_time_is_refused_as_a_measurement():
    found = operator("softmax").implementation("triton", device="cpu", dtype="fp32")
    assert found.kind == "interpreted" and "not a measurement" in found.reason


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025])
def test_vector_add_covers_the_last_partial_block_and_nothing_after_it(n):
    x, y = torch.arange(n, dtype=torch.float32), torch.ones(n)
    assert torch.equal(vector_add(x, y), x + y)
    longer = torch.full((n + 8,), 7.0)
    vector_add_kernel[(-(-n // BLOCK),)](longer, x, y, n, BLOCK=BLOCK)
    assert torch.equal(longer[:n], x + y)
    assert torch.equal(longer[n:], torch.full((8,), 7.0))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 33), (2, 1000)])
def test_row_operators_take_any_number_of_columns(rows, columns):
    x = torch.randn(rows, columns)
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1))
    weight = torch.randn(columns)
    torch.testing.assert_close(rms_norm(x, weight), torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6))


def test_softmax_of_large_logits_does_not_overflow():
    x = torch.tensor([[1e4, 1e4 - 1, -1e4]])
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1))


def test_softmax_treats_minus_infinity_as_masked():
    x = torch.tensor([[0.0, float("-inf"), 1.0]])
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1))


@pytest.mark.parametrize("columns", [16_385, 20_001])
def test_rows_too_long_for_registers_are_read_in_blocks(columns):
    x = 3 * torch.randn(2, columns)
    x[1, 4_096:8_192] = float("-inf")  # a whole block masked
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1), rtol=1e-5, atol=1e-9)
    weight = torch.randn(columns)
    x = torch.randn(2, columns).half()
    want = torch.nn.functional.rms_norm(x.float(), (columns,), weight, 1e-6).half()
    torch.testing.assert_close(rms_norm(x, weight.half()), want, rtol=2e-3, atol=2e-3)


def test_a_long_row_that_has_no_softmax_is_nan_as_torchs():
    x = torch.full((3, 16_400), float("-inf"))
    x[1, 5] = float("nan")
    x[2, 9_000] = float("inf")
    x[2, :3] = 1.0
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1), equal_nan=True)


def test_a_long_row_begins_with_masked_logits():
    x = torch.full((1, 16_400), float("-inf"))
    x[0, -2:] = torch.tensor([1.0, 2.0])
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1))


def test_row_operators_take_any_leading_axes_and_copy_what_is_not_contiguous():
    x = torch.randn(7, 3, 5).permute(1, 2, 0)
    assert not x.is_contiguous()
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1))
    weight = torch.randn(14)[::2]
    torch.testing.assert_close(rms_norm(x, weight), torch.nn.functional.rms_norm(x, (7,), weight, 1e-6))
    torch.testing.assert_close(vector_add(x, 2 * x), 3 * x)
    torch.testing.assert_close(matmul(x[0].t(), x[1]), x[0].t() @ x[1])


def test_no_elements_give_an_empty_result():
    assert softmax(torch.empty(0, 5)).shape == (0, 5)
    assert softmax(torch.empty(3, 0)).shape == (3, 0)
    assert rms_norm(torch.empty(0, 5), torch.ones(5)).shape == (0, 5)
    assert vector_add(torch.empty(0), torch.empty(0)).shape == (0,)
    assert matmul(torch.empty(0, 4), torch.empty(4, 3)).shape == (0, 3)
    assert torch.equal(matmul(torch.empty(2, 0), torch.empty(0, 3)), torch.zeros(2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: vector_add(torch.ones(3), torch.ones(4)),
        lambda: matmul(torch.ones(2, 3), torch.ones(2, 3)),
        lambda: rms_norm(torch.ones(2, 3), torch.ones(2)),
        lambda: softmax(torch.tensor(1.0)),
    ],
)
def test_shapes_that_do_not_fit_are_refused_before_a_launch(call):
    with pytest.raises(OptionError, match="expected"):
        call()


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (16, 128, 32), (17, 129, 33), (200, 70, 5)])
def test_matmul_takes_any_shape(m, n, k):
    a, b = torch.randn(m, k), torch.randn(k, n)
    torch.testing.assert_close(matmul(a, b), a @ b)


@pytest.mark.parametrize("name", ["vector_add", "softmax", "rms_norm"])
def test_the_operator_of_torch_runs_the_kernel_and_differentiates(name):
    from traceanalyzer.kernels import torch_library

    args = [a.detach().clone().requires_grad_() for a in operator(name).inputs("tiny", "fp32").args]
    got, want = getattr(torch_library, name)(*args), operator(name).reference(*args)
    torch.testing.assert_close(got, want)
    for mine, theirs in zip(torch.autograd.grad(got.sum(), args), torch.autograd.grad(want.sum(), args), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
