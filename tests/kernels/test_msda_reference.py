"""The reference of msda against its definition; and the pieces around it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from traceanalyzer.errors import OptionError  # noqa: E402
from traceanalyzer.kernels import operator  # noqa: E402
from traceanalyzer.kernels.msda.accumulator import accumulator_dtype, adds_bf16  # noqa: E402
from traceanalyzer.kernels.msda.levels import Levels, pyramid  # noqa: E402
from traceanalyzer.kernels.msda.mmcv_op import make_mmcv, why_not_mmcv  # noqa: E402
from traceanalyzer.kernels.msda.reference import reference  # noqa: E402

from .by_hand import border_case, by_hand  # noqa: E402
from .closeness import worst_excess  # noqa: E402

CPU = torch.device("cpu")


def test_the_reference_is_the_definition_on_and_outside_the_border():
    args = border_case(torch.float64)
    assert worst_excess(reference(*args), by_hand(*args), (1e-12, 1e-12)) <= 0


def test_the_reference_is_the_definition_on_the_tiny_preset():
    args = [a.double() if torch.is_tensor(a) else a for a in operator("msda").inputs("tiny", "fp32").args]
    assert worst_excess(reference(*args), by_hand(*args), (1e-12, 1e-12)) <= 0


def test_pixel_centres_read_the_pixels_themselves():
    levels = Levels.of([(2, 3)])
    value = torch.arange(6.0).reshape(1, 6, 1, 1)
    x = (torch.arange(3) + 0.5) / 3
    y = (torch.arange(2) + 0.5) / 2
    centres = torch.stack([torch.stack([a, b]) for b in y for a in x]).reshape(1, 6, 1, 1, 1, 2)
    got = reference(value, levels, centres, torch.ones(1, 6, 1, 1, 1))
    torch.testing.assert_close(got.flatten(), torch.arange(6.0))


def test_the_outer_corner_of_a_level_is_a_quarter_of_its_pixel():
    levels = Levels.of([(2, 2)])
    corner = torch.zeros(1, 1, 1, 1, 1, 2)
    got = reference(torch.full((1, 4, 1, 1), 8.0), levels, corner, torch.ones(1, 1, 1, 1, 1))
    assert got.item() == 2.0


def test_half_precision_positions_are_computed_wide():
    """At width 167 an fp16 grid would be off by hundredths of a pixel; the result must not show it."""
    op = operator("msda")
    inputs = op.inputs("decoder", "fp16")
    value, levels, locations, weights = inputs.args
    few = (value[:1], levels, locations[:1, :20].contiguous(), weights[:1, :20].contiguous())
    want = reference(*(a.double() if torch.is_tensor(a) else a for a in few))
    assert worst_excess(reference(*few), want, op.tolerance["fp16"]) <= 0


def test_gradcheck_of_the_reference():
    _, levels, locations, weights = border_case(torch.float64, channels=2, sizes=((3, 2),))
    value = torch.randn(1, 6, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near = locations[:, [0, 3, 5, 9]] + 1e-3  # off the pixel edges, where the gradient of a location jumps
    leaves = [t.requires_grad_() for t in (value, near.contiguous(), weights[:, [0, 3, 5, 9]].contiguous())]
    assert torch.autograd.gradcheck(lambda v, p, w: reference(v, levels, p, w), leaves)


def test_the_pyramid_rounds_up():
    assert pyramid(800, 1_333, (8, 16, 32, 64)) == [(100, 167), (50, 84), (25, 42), (13, 21)]
    assert pyramid(23, 37, (8, 16)) == [(3, 5), (2, 3)]


def test_levels_know_where_each_starts():
    levels = Levels.of([(2, 3), (1, 4), (5, 1)])
    assert levels.starts.tolist() == [0, 6, 10] and levels.pixels == 15
    assert levels.shapes.dtype == levels.starts.dtype == torch.int64


@pytest.mark.parametrize(
    ("capability", "hip_arch", "native"),
    [
        ((7, 5), None, False),
        ((8, 0), None, False),
        ((8, 9), None, False),
        ((9, 0), None, True),
        ((10, 0), None, True),
        ((12, 0), None, True),
        ((9, 0), "gfx90a:sramecc+:xnack-", False),  # ROCm reports 9.0 for gfx90a: the number alone would lie
        ((9, 4), "gfx942:sramecc+:xnack-", True),
        ((9, 5), "gfx950", True),
        ((11, 0), "gfx1100", False),
    ],
)
def test_bf16_is_added_natively_where_the_instruction_exists(capability, hip_arch, native):
    assert adds_bf16(capability, hip_arch) is native


@pytest.mark.parametrize("native", [False, True])
def test_the_accumulator_follows_the_device_and_the_override(monkeypatch, native):
    monkeypatch.setattr("traceanalyzer.kernels.msda.accumulator._adds_bf16", lambda _: native)
    half, brain, single, double = torch.float16, torch.bfloat16, torch.float32, torch.float64
    assert accumulator_dtype(brain, CPU) == (brain if native else single)
    assert accumulator_dtype(brain, CPU, "native") == brain
    assert accumulator_dtype(brain, CPU, "fp32") == accumulator_dtype(half, CPU, "fp32") == single
    assert accumulator_dtype(half, CPU) == half
    for choice in ("auto", "native", "fp32"):
        assert accumulator_dtype(single, CPU, choice) == single
        assert accumulator_dtype(double, CPU, choice) == double


def test_without_a_gpu_bf16_is_summed_in_fp32():
    assert accumulator_dtype(torch.bfloat16, CPU) == torch.float32


def test_an_unknown_accumulator_names_the_known_ones():
    with pytest.raises(OptionError) as caught:
        accumulator_dtype(torch.float16, CPU, "fp16")
    assert "auto, native, fp32" in caught.value.one_line()


@pytest.mark.parametrize(
    ("specs", "gpu", "dtype", "kind"),
    [
        ({}, True, "fp16", "no_mmcv"),
        ({"mmcv": object()}, True, "fp16", "mmcv_lite"),
        ({"mmcv": object(), "mmcv._ext": object()}, False, "fp16", "no_gpu"),
        ({"mmcv": object(), "mmcv._ext": object()}, True, "bf16", "no_bf16"),
        ({"mmcv": object(), "mmcv._ext": object()}, True, "fp16", None),
    ],
)
def test_mmcv_is_a_reason_where_it_cannot_run(monkeypatch, specs, gpu, dtype, kind):
    monkeypatch.setattr("traceanalyzer.kernels.msda.mmcv_op.find_spec", specs.get)
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    found = why_not_mmcv("cuda", dtype, True)
    assert (found.kind if found else None) == kind


def test_an_mmcv_that_does_not_import_is_a_reason(monkeypatch):
    def find(name):
        if name == "mmcv":
            return object()
        raise ImportError("libcudart.so.11: cannot open shared object file")

    monkeypatch.setattr("traceanalyzer.kernels.msda.mmcv_op.find_spec", find)
    assert why_not_mmcv("cuda", "fp16", True).kind == "broken_mmcv"


def test_mmcv_is_called_with_its_own_order_of_arguments(monkeypatch):
    seen = []
    module = ModuleType("mmcv.ops.multi_scale_deform_attn")
    module.MultiScaleDeformableAttnFunction = type("F", (), {"apply": staticmethod(lambda *a: seen.extend(a))})
    for name in ("mmcv", "mmcv.ops"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    make_mmcv.cache_clear()
    value, levels, locations, weights = operator("msda").inputs("tiny", "fp32").args
    make_mmcv()(value, levels, locations, weights)
    make_mmcv.cache_clear()
    assert [id(a) for a in seen[:5]] == [id(a) for a in (value, levels.shapes, levels.starts, locations, weights)]
    assert seen[5] == 2  # the whole batch in one launch
