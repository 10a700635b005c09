"""Compiles a kernel for a GPU that is not here, as its launch would."""

from __future__ import annotations

from functools import cache

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}


@cache
def assembly(kernel, target: str, types: tuple[str, ...], constants: tuple[tuple[str, object], ...]) -> dict[str, str]:
    """Return the stages of a compiled kernel (``ttir``, ``ptx``, ``amdgcn``, ...).

    ``types`` are those of the arguments that are not compile-time, in order; pointers are taken as 16-byte
    aligned, as torch's allocations are. ``constants`` may hold num_warps and num_stages too.
    """
    values = dict(constants)
    options = {name: values.pop(name) for name in ("num_warps", "num_stages") if name in values}
    runtime = [name for name in kernel.arg_names if name not in values]
    assert len(runtime) == len(types), (runtime, types)
    signature = dict(zip(runtime, types, strict=True)) | dict.fromkeys(values, "constexpr")
    signature = {name: signature[name] for name in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names) if signature[name][0] == "*"}
    source = ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=aligned)
    return triton.compile(source, target=TARGETS[target], options=options).asm


def machine_code(stages: dict[str, str]) -> str:
    """Return the PTX or the AMD assembly."""
    return stages["ptx"] if "ptx" in stages else stages["amdgcn"]
