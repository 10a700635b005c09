"""Every kernel compiles for sm_80, sm_90 and gfx942 without a GPU, and the code has what it should."""

from __future__ import annotations

import os
import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("the interpreter was chosen for this process: nothing can be compiled", allow_module_level=True)

import triton.language as tl  # noqa: E402

from traceanalyzer.kernels import OPERATORS, operator  # noqa: E402
from traceanalyzer.kernels.empty import empty_kernel  # noqa: E402
from traceanalyzer.kernels.matmul import block_config, matmul_kernel  # noqa: E402
from traceanalyzer.kernels.msda.backward import msda_backward_kernel  # noqa: E402
from traceanalyzer.kernels.msda.forward import msda_forward_kernel  # noqa: E402
from traceanalyzer.kernels.msda.sampling import tile_config  # noqa: E402
from traceanalyzer.kernels.rms_norm import rms_norm_kernel, row_config  # noqa: E402
from traceanalyzer.kernels.softmax import softmax_kernel  # noqa: E402
from traceanalyzer.kernels.vector_add import BLOCK, vector_add_kernel  # noqa: E402

from .ahead_of_time import TARGETS, assembly, machine_code  # noqa: E402

DTYPES = ("fp32", "fp16", "bf16")
TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def msda_constants(channels=32):
    shape = {"HEADS": 8, "CHANNELS": channels, "LEVELS": 4, "POINTS": 4, "COMPUTE": tl.float32}
    return tuple((shape | tile_config(channels)).items())


def forward_stages(target, dtype, channels=32):
    p = f"*{dtype}"
    types = (p, p, "*i64", "*i64", p, p, "i32", "i32", "i32")
    return assembly(msda_forward_kernel, target, types, msda_constants(channels))


def backward_stages(target, dtype, accumulator=None, channels=32):
    p = f"*{dtype}"
    types = (f"*{accumulator or dtype}", p, p, p, p, "*i64", "*i64", p, p, "i32", "i32", "i32")
    return assembly(msda_backward_kernel, target, types, msda_constants(channels))


def simple_stages(name, target, dtype):
    p = f"*{dtype}"
    kernels = {
        "empty": (empty_kernel, (p,), {"num_warps": 1}),
        "vector_add": (vector_add_kernel, (p, p, p, "i32"), {"BLOCK": BLOCK}),
        "softmax": (softmax_kernel, (p, p, "i32"), row_config(2_048)),
        "rms_norm": (rms_norm_kernel, (p, p, p, "i32", "fp32"), row_config(4_096)),
        "matmul": (matmul_kernel, (p, p, p, "i32", "i32", "i32"), block_config(4_096, TORCH[dtype])),
    }
    kernel, types, constants = kernels[name]
    return assembly(kernel, target, types, tuple(constants.items()))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in OPERATORS if n != "msda" for d in operator(n).dtypes])
def test_simple_kernels_compile(name, dtype, target):
    binary = "hsaco" if target == "gfx942" else "cubin"
    assert len(simple_stages(name, target, dtype)[binary]) > 500


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_msda_kernels_compile(dtype, target):
    binary = "hsaco" if target == "gfx942" else "cubin"
    assert len(forward_stages(target, dtype)[binary]) > 500
    assert len(backward_stages(target, dtype)[binary]) > 500


def test_bf16_atomic_add_is_one_instruction_on_sm_90():
    code = machine_code(backward_stages("sm_90", "bf16"))
    assert re.search(r"red\.global\.gpu\.relaxed\.add\.noftz(\.v\d)?\.bf16", code)
    assert "atom.relaxed.gpu.global.cas" not in code


def test_bf16_atomic_add_is_a_compare_and_swap_loop_on_sm_80():
    code = machine_code(backward_stages("sm_80", "bf16"))
    assert "atom.relaxed.gpu.global.cas.b32" in code
    assert not re.search(r"red\.[\w.]*add[\w.]*bf16", code)


def test_the_fp32_accumulator_has_no_loop_on_sm_80():
    code = machine_code(backward_stages("sm_80", "bf16", accumulator="fp32"))
    assert "red.global.gpu.relaxed.add.f32" in code
    assert ".cas." not in code


def test_fp16_and_fp32_add_without_a_loop_everywhere_on_cuda():
    for target in ("sm_80", "sm_90"):
        for dtype, suffix in (("fp16", "f16"), ("fp32", "f32")):
            code = machine_code(backward_stages(target, dtype))
            assert re.search(rf"red\.global\.gpu\.relaxed\.add[\w.]*\.{suffix}", code), (target, dtype)
            assert ".cas." not in code, (target, dtype)


def test_bf16_and_fp16_add_in_packed_pairs_on_gfx942():
    assert "global_atomic_pk_add_bf16" in machine_code(backward_stages("gfx942", "bf16"))
    assert "global_atomic_pk_add_f16" in machine_code(backward_stages("gfx942", "fp16"))
    for dtype in DTYPES:
        assert "cmpswap" not in machine_code(backward_stages("gfx942", dtype))


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_are_read_sixteen_bytes_at_a_time(dtype, target):
    code = machine_code(forward_stages(target, dtype))
    # 4 points x 4 corners in the unrolled body; fp32 needs two loads for the 8 channels of a thread
    assert code.count("ld.global.v4.b32") == (32 if dtype == "fp32" else 16)


@pytest.mark.parametrize("stages", [forward_stages, backward_stages], ids=["forward", "backward"])
def test_offsets_of_rows_and_pixels_are_64_bit(stages):
    """A product of 32-bit tensors would wrap at 2**31: no offset may be one."""
    code = stages("sm_90", "fp16")["ttir"]
    assert not re.findall(r"arith\.muli .*: tensor<[\dx]*xi32>", code)
    assert re.search(r"arith\.muli .*: tensor<[\dx]*xi64>", code)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_matmul_uses_tensor_cores(dtype):
    assert "mma.sync" in machine_code(simple_stages("matmul", "sm_80", dtype))
    assert "wgmma.mma_async" in machine_code(simple_stages("matmul", "sm_90", dtype))


def test_matmul_in_fp32_is_not_silently_tf32():
    for target in ("sm_80", "sm_90"):
        assert "tf32" not in machine_code(simple_stages("matmul", target, "fp32"))


def test_nothing_in_the_empty_kernel_touches_memory():
    code = machine_code(simple_stages("empty", "sm_90", "fp32"))
    assert not re.search(r"\b(ld|st)\.global", code)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_sums_are_kept_in_fp32(target):
    for dtype in ("fp16", "bf16"):
        code = machine_code(forward_stages(target, dtype))
        assert "fma.rn.f32" in code and not re.search(r"fma\.rn\.(b?f16)", code)


def test_positions_are_clamped_before_they_become_integers():
    """A float beyond the integer's range has no defined conversion, and the interpreter cannot show what a GPU does."""
    code = forward_stages("sm_90", "fp32")["ttir"].splitlines()
    conversions = [i for i, line in enumerate(code) if "arith.fptosi" in line]
    assert len(conversions) == 2 * 4  # x and y of four points
    limits = [i for i, line in enumerate(code) if re.search(r"arith\.min(num|imum)f|tt\.clampf", line)]
    assert sum(i < conversions[-1] for i in limits) >= len(conversions)
