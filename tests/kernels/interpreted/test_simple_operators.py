"""The simple operators and msda's presets against their references, through the interpreter."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.closeness import worst_excess
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


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (16, 128, 32), (17, 129, 33), (200, 70, 5)])
def test_matmul_takes_any_shape(m, n, k):
    a, b = torch.randn(m, k), torch.randn(k, n)
    torch.testing.assert_close(matmul(a, b), a @ b)
