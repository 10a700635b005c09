"""empty: a kernel without work. Its time is the floor below which nothing on the device can be timed."""

from __future__ import annotations

import torch

from traceanalyzer.kernels.alternatives import triton_launch
from traceanalyzer.kernels.arguments import normal, seeded, tensor_inputs
from traceanalyzer.kernels.device_code import gpu_of, jit, require_runnable, tl
from traceanalyzer.kernels.operator import Implementation, Inputs, Operator, Unavailable

PRESETS = {
    "tiny": {"programs": 1},
    "one": {"programs": 1},
    "wave": {"programs": 1024},  # more programs than any GPU has cores: adds the cost of handing out programs
}


@jit
def empty_kernel(untouched: tl.tensor) -> None:
    """Take a pointer, as any kernel does, and leave it alone."""


def empty(x: torch.Tensor) -> torch.Tensor:
    """Launch the empty kernel with one program per element of ``x`` and return ``x`` unchanged."""
    require_runnable(x)
    with gpu_of(x):
        empty_kernel[(x.numel(),)](x, num_warps=1)
    return x


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return ``x``: the result of no work."""
    return x


def make_inputs(preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return one element per program; the kernel reads none of them."""
    x = normal((PRESETS[preset]["programs"],), dtype, device, seeded(seed))
    return tensor_inputs({"x": x}, preset, dtype, device, seed)


def _nothing_to_time(device: str, dtype: str, timing: bool) -> Unavailable | None:  # noqa: ARG001
    return Unavailable("launches_nothing", "the reference of no work launches nothing") if timing else None


OPERATOR = Operator(
    name="empty",
    summary="a kernel without work: the launch floor",
    presets=PRESETS,
    dtypes=("fp32",),
    make_inputs=make_inputs,
    implementations={
        "triton": triton_launch(empty),
        "reference": Implementation(lambda: reference, _nothing_to_time),
    },
    reference=reference,
    bytes_moved=lambda _: 0,
    flops=lambda _: 0,
    tolerance={"fp32": (0.0, 0.0)},  # the input comes back untouched
)
