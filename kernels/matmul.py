"""matmul: ``a @ b`` in blocks with fp32 accumulation. Compute-bound when square, memory-bound when skinny."""

from __future__ import annotations

import torch

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.alternatives import compiled, eager, triton_launch
from traceanalyzer.kernels.arguments import normal, seeded, size_bytes, tensor_inputs
from traceanalyzer.kernels.device_code import gpu_of, jit, next_power_of_2, require_runnable, tl
from traceanalyzer.kernels.operator import Inputs, Operator

PRESETS = {
    "tiny": {"m": 33, "n": 45, "k": 70},
    "skinny": {"m": 16, "n": 4_096, "k": 4_096},  # a batch of decoding tokens against a weight
    "square": {"m": 4_096, "n": 4_096, "k": 4_096},
}
GROUP = 8
"""Rows of blocks walked together, so that the blocks of ``b`` they share are still in L2."""


@jit
def matmul_kernel(
    c: tl.tensor,
    a: tl.tensor,
    b: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    k: tl.tensor,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
) -> None:
    """Compute one block of ``c``; row offsets are 64-bit because ``rows * columns`` passes 2**31 at 46,341 squared.

    fp32 products are exact fp32 (``ieee``), as torch's are by default: TF32 would win by being another operator.
    """
    program = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first_m = program // (GROUP * blocks_n) * GROUP
    group = tl.minimum(blocks_m - first_m, GROUP)
    block_m = first_m + program % (GROUP * blocks_n) % group
    block_n = program % (GROUP * blocks_n) // group

    row = block_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = block_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        left = tl.load(a + row[:, None] * k + inner[None, :], mask=(row[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(
            b + inner[:, None] * n + column[None, :], mask=(inner[:, None] < k) & (column[None, :] < n), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row[:, None] * n + column[None, :], total, mask=(row[:, None] < m) & (column[None, :] < n))


def block_config(m: int, dtype: torch.dtype) -> dict[str, int]:
    """Return blocks that fit the shared memory of every target (48 KiB), with rows to suit a skinny ``a``."""
    rows = min(128, max(16, next_power_of_2(m)))
    if dtype == torch.float32:  # no tensor cores for exact fp32: smaller blocks, so that registers suffice
        return {"BLOCK_M": min(64, rows), "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": GROUP, "num_warps": 4, "num_stages": 2}
    return {"BLOCK_M": rows, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP": GROUP, "num_warps": 4, "num_stages": 3}


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a @ b`` of ``[m, k]`` and ``[k, n]`` tensors of one dtype; those that are not contiguous are copied.

    Raises :class:`~traceanalyzer.errors.OptionError` for shapes that do not fit together.
    """
    require_runnable(a)
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise OptionError("bad_shape", f"a is {list(a.shape)} and b is {list(b.shape)}; expected [m, k] and [k, n]")
    a, b = a.contiguous(), b.contiguous()
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    if c.numel() == 0:
        return c
    config = block_config(m, a.dtype)
    grid = (-(-m // config["BLOCK_M"]) * -(-n // config["BLOCK_N"]),)
    with gpu_of(a):
        matmul_kernel[grid](c, a, b, m, n, k, **config)
    return c


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a @ b`` by torch, which is the vendor's library on a GPU."""
    return a @ b


def make_inputs(preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return two matrices of standard normal values."""
    sizes, generator = PRESETS[preset], seeded(seed)
    a = normal((sizes["m"], sizes["k"]), dtype, device, generator)
    b = normal((sizes["k"], sizes["n"]), dtype, device, generator)
    return tensor_inputs({"a": a, "b": b}, preset, dtype, device, seed)


def bytes_moved(inputs: Inputs) -> int:
    """Return the bytes of a and b, read once, and of c, written once."""
    a, b = inputs.args
    return size_bytes(a, b) + int(a.shape[0] * b.shape[1]) * int(a.element_size())


def flops(inputs: Inputs) -> int:
    """Return ``2 m n k``."""
    a, b = inputs.args
    return 2 * int(a.shape[0] * a.shape[1] * b.shape[1])


OPERATOR = Operator(
    name="matmul",
    summary="a @ b: compute-bound when square",
    presets=PRESETS,
    dtypes=("fp32", "fp16", "bf16"),
    make_inputs=make_inputs,
    implementations={
        "triton": triton_launch(matmul),
        "reference": eager(reference),
        "compiled": compiled(reference),
    },
    reference=reference,
    bytes_moved=bytes_moved,
    flops=flops,
    # rtol is the one rounding to the dtype. atol is the fp32 accumulation over k = 4096 terms of size 1, which
    # cancel: k * 2**-24 at the worst order is 2.4e-4; tensor cores may truncate where fp32 rounds, hence 1e-3.
    tolerance={"fp32": (1e-5, 2.5e-4), "fp16": (2.0**-10, 1e-3), "bf16": (2.0**-7, 1e-3)},
)
