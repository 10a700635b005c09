"""Every kernel compiles for sm_80, sm_90, sm_100 and gfx942 as a launch there would, and the code has what it should."""

from __future__ import annotations

import os
import re
from functools import cache

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
from traceanalyzer.kernels.msda.sampling import offset_type  # noqa: E402
from traceanalyzer.kernels.msda.tuning import TILES, configuration, configurations  # noqa: E402
from traceanalyzer.kernels.rms_norm import rms_norm_kernel, rms_norm_long_kernel  # noqa: E402
from traceanalyzer.kernels.rows import MOST_IN_REGISTERS, row_config  # noqa: E402
from traceanalyzer.kernels.softmax import softmax_kernel, softmax_long_kernel  # noqa: E402
from traceanalyzer.kernels.vector_add import BLOCK, vector_add_kernel  # noqa: E402

from .ahead_of_time import TARGETS, compiled, machine_code, spills  # noqa: E402

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
CUDA = [t for t in TARGETS if t.startswith("sm_")]
DECODER = {"queries": 300, "pixels": 22_223, "size_class": 16_384}
VOCABULARY = operator("softmax").presets["vocabulary"]["columns"]
RED = r"(red|atom)\.global\.gpu\.relaxed\.add\.noftz(\.v\d)?"
"""A reduction whose old value nobody reads: Triton 3.9 writes red, 3.6 atom (ptxas makes the same of both)."""


def some(dtype):
    return torch.empty(64, dtype=DTYPES.get(dtype, torch.int64))


def msda_constants(tile=None, values_of_an_image=22_223 * 256):
    shape = {"HEADS": 8, "CHANNELS": 32, "LEVELS": 4, "POINTS": 4, "COMPUTE": tl.float32}
    return shape | {"OFFSET": offset_type(values_of_an_image)} | (tile or configuration(32))


@cache
def forward_made(target, dtype, tile=None, values_of_an_image=22_223 * 256):
    p, i = some(dtype), some("i64")
    constants = msda_constants(dict(tile) if tile else None, values_of_an_image)
    return compiled(msda_forward_kernel, target, p, p, i, i, p, p, *DECODER.values(), **constants)


@cache
def backward_made(target, dtype, accumulator=None, values_of_an_image=22_223 * 256):
    p, i = some(dtype), some("i64")
    constants = msda_constants(None, values_of_an_image)
    out = some(accumulator or dtype)
    return compiled(msda_backward_kernel, target, out, p, p, p, p, i, i, p, p, *DECODER.values(), **constants)


@cache
def simple_made(name, target, dtype):
    p = some(dtype)
    kernel, arguments, constants = {
        "empty": (empty_kernel, (p,), {"num_warps": 1}),
        "vector_add": (vector_add_kernel, (p, p, p, 98_432), {"BLOCK": BLOCK}),
        "softmax": (softmax_kernel, (p, p, 2_048), row_config(2_048)),
        "rms_norm": (rms_norm_kernel, (p, p, p, 4_096, 1e-6), row_config(4_096)),
        "matmul": (matmul_kernel, (p, p, p, 4_096, 4_096, 4_096), block_config(4_096, DTYPES[dtype])),
    }[name]
    return compiled(kernel, target, *arguments, **constants)


def binary_of(made, target):
    return made.asm["hsaco" if target == "gfx942" else "cubin"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in OPERATORS if n != "msda" for d in operator(n).dtypes])
def test_simple_kernels_compile(name, dtype, target):
    assert len(binary_of(simple_made(name, target, dtype), target)) > 500


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_msda_kernels_compile(dtype, target):
    assert len(binary_of(forward_made(target, dtype), target)) > 500
    assert len(binary_of(backward_made(target, dtype), target)) > 500


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_vocabulary_spill_no_register(target):
    p = some("fp32")
    row = row_config(VOCABULARY)
    assert spills(compiled(softmax_long_kernel, target, p, p, VOCABULARY, **row)) == 0
    assert spills(compiled(rms_norm_long_kernel, target, p, p, p, VOCABULARY, 1e-6, **row)) == 0


@pytest.mark.parametrize("target", TARGETS)
def test_the_longest_row_in_registers_spills_none(target):
    p = some("fp32")
    assert spills(compiled(softmax_kernel, target, p, p, MOST_IN_REGISTERS, **row_config(MOST_IN_REGISTERS))) == 0


def test_spills_are_seen_where_there_are_some():
    """A row of 65,536 columns in the registers of 16 warps cannot fit: 128 elements a thread."""
    p = some("fp32")
    too_long = {"BLOCK": 65_536, "num_warps": 16}
    assert spills(compiled(softmax_kernel, "sm_90", p, p, 65_536, **too_long)) > 100
    assert spills(compiled(softmax_kernel, "gfx942", p, p, 65_536 + 1, **too_long)) > 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gather_spills_no_register(dtype, target):
    assert spills(forward_made(target, dtype)) == 0


def test_the_six_configurations_of_the_gather_are_six_and_none_spills():
    found = configurations(32)
    assert len(found) == len(TILES) == 6
    for configured in found:
        assert spills(forward_made("sm_90", "fp16", tuple(configured.items()))) == 0, configured


@pytest.mark.parametrize("made", [forward_made, backward_made], ids=["forward", "backward"])
def test_no_kernel_of_msda_divides_at_run_time(made):
    code = machine_code(made("sm_90", "fp16"))
    assert not re.findall(r"\b(?:div|rem)\.[su](?:64|32)\b", code)


def test_a_division_is_seen_where_there_is_one():
    code = machine_code(simple_made("matmul", "sm_90", "fp16"))  # its programs divide by the number of blocks
    assert re.findall(r"\b(?:div|rem)\.[su]32\b", code)


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_bf16_atomic_add_is_one_instruction_from_sm_90_on(target):
    code = machine_code(backward_made(target, "bf16"))
    assert re.search(RED + r"\.bf16", code)
    assert "atom.relaxed.gpu.global.cas" not in code


def test_bf16_atomic_add_is_a_compare_and_swap_loop_on_sm_80():
    code = machine_code(backward_made("sm_80", "bf16"))
    assert "atom.relaxed.gpu.global.cas.b32" in code
    assert not re.search(r"(red|atom)\.[\w.]*add[\w.]*bf16", code)


def test_the_fp32_accumulator_has_no_loop_on_sm_80():
    code = machine_code(backward_made("sm_80", "bf16", accumulator="fp32"))
    assert re.search(r"(red|atom)\.global\.gpu\.relaxed\.add\.f32", code)
    assert ".cas." not in code


def test_fp16_and_fp32_add_without_a_loop_everywhere_on_cuda():
    for target in CUDA:
        for dtype, suffix in (("fp16", "f16"), ("fp32", "f32")):
            code = machine_code(backward_made(target, dtype))
            assert re.search(rf"(red|atom)\.global\.gpu\.relaxed\.add[\w.]*\.{suffix}", code), (target, dtype)
            assert ".cas." not in code, (target, dtype)


def test_bf16_and_fp16_add_in_packed_pairs_on_gfx942():
    for dtype, suffix in (("bf16", "bf16"), ("fp16", "f16")):  # buffer: where the tensor is under 2 GB
        assert re.search(rf"(global|buffer)_atomic_pk_add_{suffix}", machine_code(backward_made("gfx942", dtype)))
    for dtype in DTYPES:
        assert "cmpswap" not in machine_code(backward_made("gfx942", dtype))


@pytest.mark.parametrize("target", CUDA)
@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_are_read_sixteen_bytes_at_a_time(dtype, target):
    code = machine_code(forward_made(target, dtype))
    # 4 points x 4 corners in the unrolled body; fp32 needs two loads for the 8 channels of a thread
    assert code.count("ld.global.v4.b32") == (32 if dtype == "fp32" else 16)


@pytest.mark.parametrize("made", [forward_made, backward_made], ids=["forward", "backward"])
def test_offsets_inside_of_an_image_are_64_bit_where_32_would_wrap(made):
    products = r"arith\.muli .*: tensor<[\dx]*x{}>"
    wide = made("sm_90", "fp16", values_of_an_image=2**31).asm["ttir"]
    narrow = made("sm_90", "fp16").asm["ttir"]
    assert re.search(products.format("i64"), wide)
    assert not re.search(products.format("i64"), narrow)  # every product of a lane: 32 bits suffice there


@pytest.mark.parametrize("made", [forward_made, backward_made], ids=["forward", "backward"])
def test_where_a_block_begins_is_always_64_bit(made):
    """Batch x queries x heads x levels x points passes 2**31 long before a GPU's memory is full."""
    code = made("sm_90", "fp16").asm["ttir"]
    begins = re.findall(r"= tt\.addptr (%\w+), (%\w+) : !tt\.ptr<f16>, (i\d+)", code)
    assert begins and {width for *_, width in begins} >= {"i64"}
    assert re.search(r"arith\.muli .*: i64", code)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_matmul_uses_tensor_cores(dtype):
    assert "mma.sync" in machine_code(simple_made("matmul", "sm_80", dtype))
    assert "wgmma.mma_async" in machine_code(simple_made("matmul", "sm_90", dtype))
    assert "tcgen05.mma" in machine_code(simple_made("matmul", "sm_100", dtype))


def test_matmul_in_fp32_is_not_silently_tf32():
    for target in CUDA:
        assert "tf32" not in machine_code(simple_made("matmul", target, "fp32"))


def test_nothing_in_the_empty_kernel_touches_memory():
    code = machine_code(simple_made("empty", "sm_90", "fp32"))
    assert not re.search(r"\b(ld|st)\.global", code)


@pytest.mark.parametrize("target", CUDA)
def test_sums_are_kept_in_fp32(target):
    for dtype in ("fp16", "bf16"):
        code = machine_code(forward_made(target, dtype))
        assert re.search(r"fma\.rn\.f32", code) and not re.search(r"fma\.rn\.(b?f16)", code)


def test_positions_are_clamped_before_they_become_integers():
    """A float beyond the integer's range has no defined conversion, and the interpreter cannot show what a GPU does."""
    code = forward_made("sm_90", "fp32").asm["ttir"].splitlines()
    conversions = [i for i, line in enumerate(code) if "arith.fptosi" in line]
    assert len(conversions) == 2 * 4  # x and y of four points
    limits = [i for i, line in enumerate(code) if re.search(r"arith\.min(num|imum)f|tt\.clampf", line)]
    assert sum(i < conversions[-1] for i in limits) >= len(conversions)


def test_a_launch_is_compiled_with_what_it_knows_of_its_arguments():
    """Aligned pointers and a divisible length give 16-byte loads; a length of 50,257 gives none."""
    p = some("fp32")
    even = machine_code(compiled(softmax_long_kernel, "sm_90", p, p, 65_536, **row_config(65_536)))
    odd = machine_code(compiled(softmax_long_kernel, "sm_90", p, p, VOCABULARY, **row_config(VOCABULARY)))
    assert re.search(r"ld\.global[\w.:]*\.v[24]\.b32", even) and not re.search(r"ld\.global[\w.:]*\.v[24]\.b32", odd)


def test_the_tuner_times_six_configurations_of_a_large_launch_and_none_of_a_small_one():
    from traceanalyzer.kernels.msda.backward import tuned_backward_kernel
    from traceanalyzer.kernels.msda.forward import tuned_forward_kernel
    from traceanalyzer.kernels.msda.tuning import KEY

    for kernel in (tuned_forward_kernel, tuned_backward_kernel):
        assert list(kernel.keys) == KEY
        for size_class, count in ((16_384, 6), (64, 1)):
            chosen = kernel.early_config_prune(kernel.configs, {"size_class": size_class}, CHANNELS=32)
            assert len(chosen) == count
    assert tuned_backward_kernel.reset_to_zero == ["grad_value"]  # its timings add to the gradient


def test_the_tuner_chooses_the_fastest_zeroes_the_gradient_and_remembers():
    """Triton's tuner with a stand-in for its timer and its launch: what it times, chooses and leaves behind."""
    from traceanalyzer.kernels.msda.backward import msda_backward_kernel
    from traceanalyzer.kernels.msda.tuning import tuned

    kernel = tuned(msda_backward_kernel, zeroed=["grad_value"])
    launched, timed = [], []

    class Launch:
        arg_names = msda_backward_kernel.arg_names

        @staticmethod
        def run(grad_value, *_, **given):
            launched.append(given["BLOCK_QUERIES"])
            grad_value += 1  # as the atomic adds of one launch

    def timer(call, quantiles):
        call()
        timed.append(launched[-1])
        milliseconds = 1.0 if len(timed) == 3 else 2.0
        return [milliseconds] * 3

    kernel.fn, kernel._do_bench = Launch, timer
    gradient = torch.zeros(4)
    constants = {name: value for name, value in msda_constants().items() if name not in configuration(32)}
    arguments = (gradient, *([some("fp32")] * 4), *([some("i64")] * 2), *([some("fp32")] * 2), 300, 22_223, 16_384)
    for _ in range(2):
        gradient.zero_()
        kernel.run(*arguments, grid=lambda _: (1, 1), warmup=False, **constants)
        assert gradient.tolist() == [1.0] * 4
    assert len(timed) == 6 and kernel.best_config.kwargs["BLOCK_QUERIES"] == timed[2]
