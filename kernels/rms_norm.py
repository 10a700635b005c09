"""rms_norm: ``x / sqrt(mean(x^2) + eps) * weight`` over the last axis, as in transformer blocks."""

from __future__ import annotations

import torch

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.alternatives import compiled, eager, triton_launch
from traceanalyzer.kernels.arguments import normal, seeded, size_bytes, tensor_inputs
from traceanalyzer.kernels.device_code import gpu_of, jit, require_runnable, tl
from traceanalyzer.kernels.operator import Inputs, Operator
from traceanalyzer.kernels.rows import MOST_IN_REGISTERS, row_config, rows_of

PRESETS = {
    "tiny": {"rows": 5, "columns": 37},
    "token": {"rows": 1, "columns": 4_096},  # one decoding step: all dispatch
    "prefill": {"rows": 8_192, "columns": 4_096},
}
EPSILON = 1e-6


@jit
def rms_norm_kernel(
    result: tl.tensor,
    x: tl.tensor,
    weight: tl.tensor,
    columns: tl.tensor,
    epsilon: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Normalise one row in fp32; the row offset is 64-bit because ``rows * columns`` passes 2**31."""
    first = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + first + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    mean_square = tl.sum(values * values, axis=0) / columns
    tl.store(result + first + column, values / tl.sqrt(mean_square + epsilon) * scale, mask=inside)


@jit
def rms_norm_long_kernel(
    result: tl.tensor,
    x: tl.tensor,
    weight: tl.tensor,
    columns: tl.tensor,
    epsilon: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Normalise one row that does not fit into registers, in blocks: the sum of squares first, then the result."""
    first = tl.program_id(0).to(tl.int64) * columns
    result += first
    x += first
    column = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + column
        values = tl.load(x + at, mask=at < columns, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for start in range(0, columns, BLOCK):
        at = start + column
        values = tl.load(x + at, mask=at < columns, other=0.0, eviction_policy="evict_first").to(tl.float32)
        factor = tl.load(weight + at, mask=at < columns, other=0.0, eviction_policy="evict_last").to(tl.float32)
        tl.store(result + at, values * scale * factor, mask=at < columns)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the normalised rows of ``[..., columns]``. Tensors that are not contiguous are copied.

    Raises :class:`~traceanalyzer.errors.OptionError` for a scalar, a weight of another length, or more rows than a
    launch takes.
    """
    require_runnable(x)
    x, weight = x.contiguous(), weight.contiguous()
    rows, columns = rows_of(x)
    if weight.shape != (columns,):
        raise OptionError("bad_shape", f"the weight is {list(weight.shape)}; expected [{columns}], one for each column")
    result = torch.empty_like(x)
    if rows == 0:
        return result
    kernel = rms_norm_kernel if columns <= MOST_IN_REGISTERS else rms_norm_long_kernel
    with gpu_of(x):
        kernel[(rows,)](result, x, weight, columns, EPSILON, **row_config(columns))
    return result


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the definition, computed in fp32 (fp64 for fp64 inputs) and rounded once to the input's dtype."""
    wide = x if x.dtype == torch.float64 else x.float()
    normalised = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + EPSILON)
    return (normalised * weight).to(x.dtype)


def make_inputs(preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return a matrix and one weight per column, standard normal."""
    sizes, generator = PRESETS[preset], seeded(seed)
    x = normal((sizes["rows"], sizes["columns"]), dtype, device, generator)
    weight = normal((sizes["columns"],), dtype, device, generator)
    return tensor_inputs({"x": x, "weight": weight}, preset, dtype, device, seed)


OPERATOR = Operator(
    name="rms_norm",
    summary="root-mean-square normalisation of rows",
    presets=PRESETS,
    dtypes=("fp32", "fp16", "bf16"),
    make_inputs=make_inputs,
    implementations={
        "triton": triton_launch(rms_norm),
        "reference": eager(reference),
        "compiled": compiled(reference),
    },
    reference=reference,
    # read x and the weights (once: they stay in cache), write the result
    bytes_moved=lambda inputs: 2 * size_bytes(inputs.args[0]) + size_bytes(inputs.args[1]),
    flops=lambda inputs: 4 * int(inputs.args[0].numel()),  # square, add, two products
    # Computed in fp32 (a sum of thousands: a few epsilons), then one rounding to the dtype.
    tolerance={"fp32": (1e-5, 1e-7), "fp16": (2.0**-10, 2.0**-24), "bf16": (2.0**-7, 1e-7)},
)
