"""vector_add: ``x + y``. Pure memory traffic, so its best time is bytes over bandwidth."""

from __future__ import annotations

import torch

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.alternatives import compiled, eager, triton_launch
from traceanalyzer.kernels.arguments import normal, seeded, size_bytes, tensor_inputs
from traceanalyzer.kernels.device_code import gpu_of, jit, require_runnable, tl
from traceanalyzer.kernels.operator import Inputs, Operator

PRESETS = {
    "tiny": {"elements": 1_003},
    "small": {"elements": 98_432},  # far shorter than a dispatch: the CPU-bound case
    "large": {"elements": 1 << 26},  # 805 MB in fp32: more than any L2 cache holds
}
BLOCK = 1024


@jit
def vector_add_kernel(total: tl.tensor, x: tl.tensor, y: tl.tensor, elements: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Add one block; offsets are 64-bit because ``program_id * BLOCK`` passes 2**31 at two billion elements.

    Sums are fp32 and rounded by the store, which for one addition is the same as adding in half precision.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < elements
    sums = tl.load(x + at, mask=inside).to(tl.float32) + tl.load(y + at, mask=inside).to(tl.float32)
    tl.store(total + at, sums, mask=inside)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ``x + y`` of two tensors of one shape and dtype; those that are not contiguous are copied.

    Raises :class:`~traceanalyzer.errors.OptionError` for two shapes.
    """
    require_runnable(x)
    if x.shape != y.shape:
        raise OptionError("bad_shape", f"x is {list(x.shape)} and y is {list(y.shape)}; expected one shape")
    x, y = x.contiguous(), y.contiguous()
    total = torch.empty_like(x)
    if total.numel() == 0:
        return total
    with gpu_of(x):
        vector_add_kernel[(-(-x.numel() // BLOCK),)](total, x, y, x.numel(), BLOCK=BLOCK)
    return total


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ``x + y``."""
    return x + y


def make_inputs(preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return two vectors of standard normal values."""
    generator = seeded(seed)
    shape = (PRESETS[preset]["elements"],)
    tensors = {name: normal(shape, dtype, device, generator) for name in ("x", "y")}
    return tensor_inputs(tensors, preset, dtype, device, seed)


OPERATOR = Operator(
    name="vector_add",
    summary="x + y: memory bandwidth",
    presets=PRESETS,
    dtypes=("fp32", "fp16", "bf16"),
    make_inputs=make_inputs,
    implementations={
        "triton": triton_launch(vector_add),
        "reference": eager(reference),
        "compiled": compiled(reference),
    },
    reference=reference,
    bytes_moved=lambda inputs: size_bytes(*inputs.args) + size_bytes(inputs.args[0]),  # read x and y, write the sum
    flops=lambda inputs: int(inputs.args[0].numel()),
    # One rounding to the dtype: half its epsilon (2**-24, 2**-11, 2**-8), doubled for room.
    tolerance={"fp32": (2.0**-23, 0.0), "fp16": (2.0**-10, 2.0**-24), "bf16": (2.0**-7, 0.0)},
)
