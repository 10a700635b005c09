"""softmax: over the last axis, one program per row held in registers, so each element moves once in and once out."""

from __future__ import annotations

import torch

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.alternatives import compiled, eager, triton_launch
from traceanalyzer.kernels.arguments import normal, seeded, size_bytes, tensor_inputs
from traceanalyzer.kernels.device_code import gpu_of, jit, next_power_of_2, require_runnable, tl
from traceanalyzer.kernels.operator import Inputs, Operator

PRESETS = {
    "tiny": {"rows": 5, "columns": 37},
    "attention": {"rows": 16_384, "columns": 2_048},
    "vocabulary": {"rows": 2_048, "columns": 50_257},
}
MOST_COLUMNS = 65_536
"""A row stays in the registers of one program; beyond this they spill."""


@jit
def softmax_kernel(result: tl.tensor, x: tl.tensor, columns: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Softmax of one row in fp32; the row offset is 64-bit because ``rows * columns`` passes 2**31."""
    first = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + first + column, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))  # the largest power is 1: no overflow
    tl.store(result + first + column, powers / tl.sum(powers, axis=0), mask=inside)


def row_config(columns: int) -> dict[str, int]:
    """Return the block and warps for a row: about 16 to 32 elements a thread until the warps run out."""
    block = next_power_of_2(columns)
    return {"BLOCK": block, "num_warps": min(16, max(1, block // 1024))}


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of a contiguous ``[rows, columns]`` tensor over its columns.

    Raises :class:`~traceanalyzer.errors.OptionError` for rows over :data:`MOST_COLUMNS`.
    """
    require_runnable(x)
    rows, columns = x.shape
    if columns > MOST_COLUMNS:
        raise OptionError("row_too_long", f"softmax holds a row of at most {MOST_COLUMNS} columns, not {columns}")
    result = torch.empty_like(x)
    with gpu_of(x):
        softmax_kernel[(rows,)](result, x, columns, **row_config(columns))
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
