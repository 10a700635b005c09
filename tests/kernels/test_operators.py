"""The operators' interface: names, inputs, work, and reasons in place of exceptions."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from traceanalyzer.errors import CaptureUnavailable, OptionError  # noqa: E402
from traceanalyzer.kernels import OPERATORS, Unavailable, operator  # noqa: E402
from traceanalyzer.kernels.alternatives import expected  # noqa: E402
from traceanalyzer.kernels.device_code import next_power_of_2  # noqa: E402
from traceanalyzer.kernels.gradients import backward_call, expected_gradients, forward_backward_call  # noqa: E402

from .closeness import worst_excess  # noqa: E402

ALL = list(OPERATORS)
WITH_DTYPE = [(name, dtype) for name in ALL for dtype in operator(name).dtypes]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_imports_neither_torch_nor_triton_and_still_lists_names():
    code = (
        "import sys, traceanalyzer.kernels as k; print(*k.OPERATORS, 'softmax' in k.OPERATORS, "
        "'torch' in sys.modules, 'triton' in sys.modules)"
    )
    assert python(code) == "empty vector_add softmax rms_norm matmul msda True False False"


def test_without_torch_asking_for_an_operator_is_capture_unavailable():
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "import traceanalyzer.capture.needs as c; c.find_spec = lambda n: None if n == 'torch' else real(n)\n"
        "from traceanalyzer.kernels import operator\n"
        "try: operator('msda')\nexcept Exception as e: print(type(e).__name__, int(e.exit_code), e.one_line())"
    )
    assert python(code).startswith("CaptureUnavailable 4 no_torch: ")


def test_without_triton_references_work_and_kernels_have_a_reason():
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n == 'triton' else real(n, *a)\n"
        "from traceanalyzer.kernels import OPERATORS\n"
        "for op in OPERATORS.values():\n"
        "    i = op.inputs('tiny', 'fp32'); op.reference(*i.args)\n"
        "    print(op.implementation('triton', device='cpu', dtype='fp32').kind)"
    )
    assert python(code).split() == ["no_triton"] * len(ALL)


def test_an_unknown_operator_is_answered_with_the_nearest_name():
    with pytest.raises(OptionError) as caught:
        operator("sofmax")
    assert caught.value.one_line() == (
        "unknown_operator: no operator is named 'sofmax'; did you mean softmax? "
        "known: empty, vector_add, softmax, rms_norm, matmul, msda"
    )


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda op: op.inputs("decodr", "fp16"), "unknown_preset"),
        (lambda op: op.inputs("decoder", "fp8"), "unknown_dtype"),
        (lambda op: op.implementation("tritn", device="cpu", dtype="fp32"), "unknown_implementation"),
        (lambda op: op.implementation("triton", device="cpu", dtype="fp64"), "unknown_dtype"),
    ],
)
def test_unknown_words_are_option_errors(ask, kind):
    with pytest.raises(OptionError) as caught:
        ask(operator("msda"))
    assert caught.value.kind == kind and caught.value.hint


@pytest.mark.parametrize("name", ALL)
def test_an_operator_is_complete(name):
    op = operator(name)
    assert op.name == name and op.summary
    assert "tiny" in op.presets
    assert next(iter(op.implementations)) == "triton" and "reference" in op.implementations
    assert set(op.tolerance) == set(op.dtypes)
    if op.backward:
        assert set(op.backward.tolerance) == set(op.dtypes)
        for bounds in op.backward.tolerance.values():
            assert len(bounds) == len(op.backward.arguments) == len(op.backward.names)


@pytest.mark.parametrize(("name", "dtype"), WITH_DTYPE)
def test_inputs_follow_the_seed_and_say_what_they_are(name, dtype):
    op = operator(name)
    first, again, other = (op.inputs("tiny", dtype, seed=s) for s in (0, 0, 1))
    tensors = [[a for a in i.args if torch.is_tensor(a)] for i in (first, again, other)]
    assert all(torch.equal(a, b) for a, b in zip(tensors[0], tensors[1], strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(tensors[0], tensors[2], strict=True))
    assert all(text.startswith(f"{dtype}[") for key, text in first.described.items() if key != "levels")
    assert (first.preset, first.dtype, first.device, first.seed) == ("tiny", dtype, "cpu", 0)


@pytest.mark.parametrize(("name", "dtype"), WITH_DTYPE)
def test_the_reference_in_its_own_dtype_is_within_the_tolerance(name, dtype):
    op = operator(name)
    inputs = op.inputs("tiny", dtype)
    want = expected(op, inputs)
    assert want.dtype == torch.float64
    assert worst_excess(op.reference(*inputs.args), want, op.tolerance[dtype]) <= 0


@pytest.mark.parametrize(("name", "dtype"), [w for w in WITH_DTYPE if w[0] != "empty"])
def test_a_result_off_by_one_percent_is_outside_the_tolerance(name, dtype):
    op = operator(name)
    inputs = op.inputs("tiny", dtype)
    want = expected(op, inputs)
    assert worst_excess(want * 1.01, want, op.tolerance[dtype]) > 0


@pytest.mark.parametrize("dtype", operator("msda").dtypes)
def test_gradients_of_the_reference_are_within_the_tolerance_alone_and_with_forward(dtype):
    op = operator("msda")
    inputs = op.inputs("tiny", dtype)
    want = expected_gradients(op, inputs)
    for run in (backward_call(op, op.reference, inputs), forward_backward_call(op, op.reference, inputs)):
        for _ in range(2):  # as often as a benchmark wants
            for i, got in enumerate(run()):
                assert worst_excess(got, want[i], op.backward.tolerance[dtype][i]) <= 0
    assert not any(a.requires_grad for a in inputs.args if torch.is_tensor(a))


def test_bytes_and_flops_are_the_documented_formulas():
    def work(name, preset, dtype):
        op = operator(name)
        inputs = op.inputs(preset, dtype)
        return op.bytes_moved(inputs), op.flops(inputs)

    assert work("empty", "one", "fp32") == (0, 0)
    assert work("vector_add", "small", "fp16") == (3 * 98_432 * 2, 98_432)
    assert work("softmax", "tiny", "fp32") == (2 * 5 * 37 * 4, 5 * 5 * 37)
    assert work("rms_norm", "token", "bf16") == ((2 * 4_096 + 4_096) * 2, 4 * 4_096)
    assert work("matmul", "skinny", "fp16") == ((16 * 4_096 * 2 + 4_096**2) * 2, 2 * 16 * 4_096**2)


def test_msda_decoder_is_the_operating_point_of_the_issue():
    op = operator("msda")
    inputs = op.inputs("decoder", "fp16")
    _value, levels, locations, weights = inputs.args
    assert levels.sizes == ((100, 167), (50, 84), (25, 42), (13, 21))
    assert inputs.described == {
        "value": "fp16[4, 22223, 8, 32]",
        "sampling_locations": "fp16[4, 300, 8, 4, 4, 2]",
        "attention_weights": "fp16[4, 300, 8, 4, 4]",
        "levels": "100x167 50x84 25x42 13x21",
    }
    samples = 4 * 300 * 8 * 16
    corners, value_bytes = samples * 4 * 32 * 2, 4 * 22_223 * 8 * 32 * 2
    assert corners < value_bytes  # 300 queries cannot touch the whole pyramid
    rest = samples * 3 * 2 + 4 * 300 * 256 * 2
    assert op.bytes_moved(inputs) == corners + rest
    assert op.flops(inputs) == samples * 32 * 8
    assert op.backward.flops(inputs) == samples * 32 * 16
    assert op.backward.bytes_moved(inputs) == corners + rest + 2 * value_bytes + samples * 3 * 2
    assert 0 < float(((locations < 0) | (locations > 1)).double().mean()) < 0.2  # a few samples lie outside
    torch.testing.assert_close(weights.float().sum((3, 4)), torch.ones(4, 300, 8), rtol=0, atol=5e-3)


def test_msda_positions_are_exact_in_single_precision():
    """So no sample changes its pixel cell between the fp32 kernel and the fp64 reference."""
    _, levels, locations, _ = operator("msda").inputs("decoder", "fp32").args
    for level, (height, width) in enumerate(levels.sizes):
        size = torch.tensor([width, height])
        at = locations[:, :, :, level]
        assert torch.equal((at * size - 0.5).double(), at.double() * size - 0.5)


def test_msda_encoder_asks_once_per_pixel():
    op = operator("msda")
    inputs = op.inputs("encoder", "bf16")
    assert inputs.args[2].shape == (2, 22_223, 8, 4, 4, 2)
    assert op.bytes_moved(inputs) > 2 * 22_223 * 256 * 2 * 2  # all of value read, all of the result written


def test_on_a_cpu_the_kernel_is_not_run_and_says_why():
    for op in OPERATORS.values():
        found = op.implementation("triton", device="cpu", dtype="fp32")
        assert isinstance(found, Unavailable) and found.kind in ("no_gpu", "interpreted")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_device_that_is_not_there_is_a_reason_for_every_implementation():
    for op in OPERATORS.values():
        for name in op.implementations:
            found = op.implementation(name, device="cuda", dtype="fp32")
            assert isinstance(found, Unavailable) and found.reason


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_calling_a_kernel_with_a_cpu_tensor_is_one_clear_error():
    from traceanalyzer.kernels.softmax import softmax

    with pytest.raises(CaptureUnavailable, match="Triton needs a GPU and the device is cpu"):
        softmax(torch.ones(2, 2))


def test_the_reference_of_no_work_is_not_timed():
    op = operator("empty")
    assert op.implementation("reference", device="cpu", dtype="fp32").kind == "launches_nothing"
    assert callable(op.implementation("reference", device="cpu", dtype="fp32", timing=False))


def test_a_missing_compiler_is_a_reason(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert operator("softmax").implementation("compiled", device="cpu", dtype="fp32").kind == "no_compiler"


@pytest.mark.slow  # torch.compile calls a C++ compiler three times
def test_the_compiled_reference_agrees_forward_and_backward():
    op = operator("msda")
    inputs = op.inputs("tiny", "fp32")
    call = op.implementation("compiled", device="cpu", dtype="fp32")
    if isinstance(call, Unavailable):
        pytest.skip(call.reason)
    assert worst_excess(call(*inputs.args), expected(op, inputs), op.tolerance["fp32"]) <= 0
    run = backward_call(op, call, inputs)
    run()
    for i, got in enumerate(run()):  # a second backward over one forward: no buffer was given away
        assert worst_excess(got, expected_gradients(op, inputs)[i], op.backward.tolerance["fp32"][i]) <= 0


@pytest.mark.parametrize(("n", "power"), [(1, 1), (2, 2), (3, 4), (37, 64), (64, 64), (65, 128)])
def test_next_power_of_2(n, power):
    assert next_power_of_2(n) == power
