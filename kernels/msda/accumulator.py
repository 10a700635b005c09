"""Where the backward kernel sums the gradient of ``value``: in its own dtype, or in an fp32 scratch buffer.

Rows share pixels, so the sums are atomic adds. What a GPU has for them, from the code Triton 3.9.0 makes:

========== =========================== ============================= ==============================
target     fp32                        fp16                          bf16
========== =========================== ============================= ==============================
sm_80      ``red.add.f32``             ``red.add.noftz.f16x2``       compare-and-swap loop
sm_90, 100 ``red.add.v4.f32``          ``red.add.noftz.v8.f16``      ``red.add.noftz.v8.bf16``
gfx942     ``*_atomic_add_f32``        ``*_atomic_pk_add_f16``       ``*_atomic_pk_add_bf16``
========== =========================== ============================= ==============================

``*`` is ``buffer`` for tensors under 2 GB, else ``global``. Triton 3.6 writes ``atom`` for ``red``; ptxas makes the same of both.

A loop that retries under contention is far slower than twice the bytes and one pass to round them, so bf16 takes
the fp32 buffer where the instruction is missing. The buffer is also the more accurate: a half-precision sum
rounds at every add. Both hold on every target; only the default differs.
"""

from __future__ import annotations

from functools import cache

import torch

from traceanalyzer.errors import OptionError

CHOICES = ("auto", "native", "fp32")
"""``auto`` follows the device; ``native`` adds in value's dtype; ``fp32`` always takes the scratch buffer."""


def accumulator_dtype(dtype: torch.dtype, device: torch.device, choice: str = "auto") -> torch.dtype:
    """Return the dtype the gradient of a ``dtype`` value is summed in on ``device``.

    fp32 and fp64 values are always summed in their own dtype. Raises
    :class:`~traceanalyzer.errors.OptionError` for a choice that is not in :data:`CHOICES`.
    """
    if choice not in CHOICES:
        raise OptionError(
            "unknown_accumulator", f"no accumulator is named {choice!r}", hint=f"known: {', '.join(CHOICES)}"
        )
    if dtype in (torch.float32, torch.float64):
        return dtype
    if choice == "native" or (choice == "auto" and (dtype != torch.bfloat16 or _adds_bf16(device))):
        return dtype
    return torch.float32


def adds_bf16(capability: tuple[int, int], hip_arch: str | None) -> bool:
    """Return whether a GPU adds bf16 atomically in one instruction: sm_90 and later, gfx942 and gfx950.

    ``hip_arch`` is the architecture name on ROCm (``gfx942:sramecc+:xnack-``), None on CUDA.
    """
    if hip_arch is not None:
        return hip_arch.split(":")[0] in ("gfx942", "gfx950")
    return capability >= (9, 0)


@cache
def _adds_bf16(device: torch.device) -> bool:
    if device.type != "cuda":
        return False  # the interpreter has no bf16 atomics; of other devices nothing is known
    hip_arch = torch.cuda.get_device_properties(device).gcnArchName if torch.version.hip else None
    return adds_bf16(torch.cuda.get_device_capability(device), hip_arch)
