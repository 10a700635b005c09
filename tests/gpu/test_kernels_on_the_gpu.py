"""Every kernel, dtype and preset against its reference in fp64, on the machine's GPU."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from tests.kernels.closeness import worst_excess  # noqa: E402
from traceanalyzer.kernels import OPERATORS, Unavailable, operator  # noqa: E402
from traceanalyzer.kernels.alternatives import expected  # noqa: E402
from traceanalyzer.kernels.gradients import backward_call, expected_gradients  # noqa: E402

PLACE = "cuda"
FORWARD = [(n, p, d) for n in OPERATORS for p in operator(n).presets for d in operator(n).dtypes]
MSDA = operator("msda")
BACKWARD = [
    (implementation, preset, dtype)
    for implementation in ("triton", "triton_fp32_accumulator")
    for preset in MSDA.presets
    for dtype in MSDA.dtypes
]


def held(work):
    """Return what ``work`` does; where the GPU is too small for its reference in fp64 the test says so."""
    try:
        return work()
    except torch.cuda.OutOfMemoryError:
        pytest.skip("this GPU has too little memory for the reference in fp64")
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def runnable(found, name, dtype):
    made = found.implementation(name, device=PLACE, dtype=dtype, timing=False)
    assert not isinstance(made, Unavailable), made
    return made


@pytest.mark.parametrize(("name", "preset", "dtype"), FORWARD)
def test_the_kernel_agrees_with_the_reference_in_double_precision(name, preset, dtype):
    found = operator(name)
    call = runnable(found, "triton", dtype)

    def excess():
        inputs = found.inputs(preset, dtype, PLACE)
        return worst_excess(call(*inputs.args), expected(found, inputs), found.tolerance[dtype])

    assert held(excess) <= 0


@pytest.mark.parametrize(("implementation", "preset", "dtype"), BACKWARD)
def test_the_gradients_agree_with_the_references_in_double_precision(implementation, preset, dtype):
    call = runnable(MSDA, implementation, dtype)

    def excesses():
        inputs = MSDA.inputs(preset, dtype, PLACE)
        wanted = expected_gradients(MSDA, inputs)
        bounds = MSDA.backward.tolerance[dtype]
        found = backward_call(MSDA, call, inputs)()
        return [worst_excess(g, e, b) for g, e, b in zip(found, wanted, bounds, strict=True)]

    found = held(excesses)
    assert all(e <= 0 for e in found), dict(zip(MSDA.backward.names, found, strict=True))


def test_the_compiled_reference_agrees_too():
    dtype = "fp16"  # one: a compilation takes longer than all other tests of a kernel
    call = runnable(MSDA, "compiled", dtype)

    def excess():
        inputs = MSDA.inputs("tiny", dtype, PLACE)
        return worst_excess(call(*inputs.args), expected(MSDA, inputs), MSDA.tolerance[dtype])

    assert held(excess) <= 0


def test_a_location_that_is_no_number_shows_in_the_result_of_its_query_and_head():
    value, levels, locations, weights = MSDA.inputs("decoder", "fp16", PLACE).args
    locations = locations.clone()
    locations[1, 7, 3, 0, 0, 0] = float("nan")
    result = runnable(MSDA, "triton", "fp16")(value, levels, locations, weights).view(*locations.shape[:3], -1)
    assert result[1, 7, 3].isnan().all() and int(result.isnan().sum()) == result.shape[-1]


def test_tensors_that_are_not_contiguous_give_the_same():
    value, levels, locations, weights = MSDA.inputs("tiny", "fp32", PLACE).args
    call = runnable(MSDA, "triton", "fp32")
    strided = value.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous()
    torch.testing.assert_close(call(strided, levels, locations, weights), call(value, levels, locations, weights))


def test_the_operator_of_torch_runs_the_same_kernels_and_compiles():
    from traceanalyzer.kernels.msda.attention import attention

    args = MSDA.inputs("tiny", "fp32", PLACE).args
    want = runnable(MSDA, "triton", "fp32")(*args)
    value, levels, locations, weights = args
    got = torch.ops.traceanalyzer.msda(value, levels.shapes, levels.starts, locations, weights)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(torch.compile(attention, fullgraph=True)(*args), want)
