"""softmax: over the last axis, one program per row.

A row that fits is held in registers, so each element moves once in and once out. A longer one (a vocabulary) is read
in blocks, twice: the largest value and the sum first, then the result. The second reading comes from L2 where the rows
in flight fit into it.
"""

from __future__ import annotations

import torch

from traceanalyzer.kernels.alternatives import compiled, eager, triton_launch
from traceanalyzer.kernels.arguments import normal, seeded, size_bytes, tensor_inputs
from traceanalyzer.kernels.device_code import gpu_of, jit, require_runnable, tl
from traceanalyzer.kernels.operator import Inputs, Operator
from traceanalyzer.kernels.rows import MOST_IN_REGISTERS, row_config, rows_of

PRESETS = {
    "tiny": {"rows": 5, "columns": 37},
    "attention": {"rows": 16_384, "columns": 2_048},
    "vocabulary": {"rows": 2_048, "columns": 50_257},
}


@jit
def softmax_kernel(result: tl.tensor, x: tl.tensor, columns: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Softmax of one row in fp32; the row offset is 64-bit because ``rows * columns`` passes 2**31."""
    first = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + first + column, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))  # the largest power is 1: no overflow
    tl.store(result + first + column, powers / tl.sum(powers, axis=0), mask=inside)


@jit
def softmax_long_kernel(result: tl.tensor, x: tl.tensor, columns: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Softmax of one row in blocks: each lane keeps the largest value it has seen and the sum of powers relative to it.

    The lanes are combined once, behind the loop. A lane that has seen only -inf keeps the sum 0 (-inf - -inf is NaN).
    """
    first = tl.program_id(0).to(tl.int64) * columns
    result += first
    x += first
    column = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + column
        values = tl.load(x + at, mask=at < columns, other=float("-inf"), eviction_policy="evict_last").to(tl.float32)
        larger = tl.maximum(largest, values)
        base = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp(largest - base) + tl.exp(values - base)
        largest = larger
    peak = tl.max(largest, axis=0)
    base = tl.where(peak == float("-inf"), 0.0, peak)
    total = tl.sum(total * tl.exp(largest - base), axis=0)  # 0 where the whole row is -inf: 0 / 0 is NaN, as torch's
    for start in range(0, columns, BLOCK):
        at = start + column
        values = tl.load(x + at, mask=at < columns, other=float("-inf"), eviction_policy="evict_first").to(tl.float32)
        tl.store(result + at, tl.exp(values - base) / total, mask=at < columns)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of ``[..., columns]`` over its last axis. A tensor that is not contiguous is copied.

    Raises :class:`~traceanalyzer.errors.OptionError` for a scalar, or more rows than a launch takes.
    """
    require_runnable(x)
    x = x.contiguous()
    rows, columns = rows_of(x)
    result = torch.empty_like(x)
    if rows == 0:
        return result
    kernel = softmax_kernel if columns <= MOST_IN_REGISTERS else softmax_long_kernel
    with gpu_of(x):
        kernel[(rows,)](result, x, columns, **row_config(columns))
    return result


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return ``torch.softmax`` over the last axis."""
    return torch.softmax(x, dim=-1)


def make_inputs(preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return a matrix of standard normal logits."""
    sizes = PRESETS[preset]
    x = normal((sizes["rows"], sizes["columns"]), dtype, device, seeded(seed))
    return tensor_inputs({"x": x}, preset, dtype, device, seed)


OPERATOR = Operator(
    name="softmax",
    summary="softmax over rows: a fused reduction",
    presets=PRESETS,
    dtypes=("fp32", "fp16", "bf16"),
    make_inputs=make_inputs,
    implementations={
        "triton": triton_launch(softmax),
        "reference": eager(reference),
        "compiled": compiled(reference),
    },
    reference=reference,
    bytes_moved=lambda inputs: 2 * size_bytes(inputs.args[0]),  # read x, write the result
    flops=lambda inputs: 5 * int(inputs.args[0].numel()),  # max, subtract, exp, sum, divide
    # Computed in fp32 (exp and a sum: a few epsilons), then one rounding; results are under 1, and the small
    # ones of a long row lie among fp16's subnormals, whose step is 2**-24.
    tolerance={"fp32": (1e-5, 1e-8), "fp16": (2.0**-10, 2.0**-24), "bf16": (2.0**-7, 1e-8)},
)
