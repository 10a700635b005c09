"""Compiles a kernel for a GPU that is not here through Triton's own launch path, and reads what the compiled code says.

A launch specialises: pointers that are 16-byte aligned, integers that are multiples of 16 or equal to 1. Compiling with
types alone leaves that out, and shows spills and slow loads which no launch has. So the arguments are real ones.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}


class _Absent:
    """A driver for a GPU that is not there: it names the target, and nothing is ever launched through it."""

    def __init__(self, target):
        self.target = target

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return f"{self.target.backend}-{self.target.arch}"

    def get_current_stream(self, _device):
        return 0


@contextmanager
def compiling_for(target: str):
    """Make Triton compile for ``target`` in the block."""
    before = driver._active
    driver.set_active(_Absent(TARGETS[target]))
    try:
        yield
    finally:
        driver._active = before


def compiled(kernel, target: str, *arguments, **constants):
    """Return the kernel that a launch with these arguments would run; ``constants`` may hold num_warps too.

    Tensors are meant: torch's allocations are aligned, a view may not be. A dtype stands for an aligned tensor of it.
    """
    with compiling_for(target):
        return kernel.warmup(*arguments, grid=(1,), **constants)


def machine_code(made) -> str:
    """Return the PTX or the AMD assembly."""
    return made.asm["ptx"] if "ptx" in made.asm else made.asm["amdgcn"]


def spills(made) -> int:
    """Return the bytes (CUDA) or registers (ROCm) that the compiled kernel spills, from its own resource record."""
    if "amdgcn" in made.asm:
        return sum(int(n) for n in re.findall(r"\.[sv]gpr_spill_count:\s*(\d+)", made.asm["amdgcn"]))
    return _resources(made.asm["cubin"])["STACK"]


@cache
def _resources(cubin: bytes) -> dict[str, int]:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True, timeout=60)
    return {name: int(value) for name, value in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", done.stdout)}
