"""The forward and backward kernels of msda through the interpreter."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from tests.kernels.by_hand import border_case, by_hand
from tests.kernels.closeness import worst_excess
from traceanalyzer.errors import OptionError
from traceanalyzer.kernels import operator
from traceanalyzer.kernels.gradients import backward_call, expected_gradients, forward_backward_call
from traceanalyzer.kernels.msda.attention import attention
from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.msda.reference import reference
from traceanalyzer.kernels.msda.tuning import configurations

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
MSDA = operator("msda")


def random_case(sizes, channels, dtype=torch.float32, batch=2, queries=3, heads=2, points=2):
    generator = torch.Generator().manual_seed(channels)
    levels = Levels.of(sizes)
    value = torch.randn((batch, levels.pixels, heads, channels), generator=generator).to(dtype)
    shape = (batch, queries, heads, len(sizes), points)
    # multiples of 1/256 from -0.25 to 1.25: exact in each dtype's sums, some outside
    locations = (torch.rand((*shape, 2), generator=generator) * 384).round() / 256 - 0.25
    weights = torch.rand(shape, generator=generator)
    return value, levels, locations.to(dtype), weights.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_points_on_and_outside_the_border_read_zeros_there(dtype):
    args = border_case(DTYPES[dtype])
    assert worst_excess(attention(*args), by_hand(*args), MSDA.tolerance[dtype]) <= 0


def test_a_point_far_outside_gives_exactly_zero():
    value, levels, locations, weights = border_case()
    assert not attention(value, levels, torch.full_like(locations, -9.0), weights).any()
    assert not attention(value, levels, torch.full_like(locations, 1e30), weights).any()


@pytest.mark.parametrize("channels", [1, 3, 24, 33])
def test_any_head_width_works(channels):
    args = random_case([(3, 5), (1, 2)], channels)
    assert worst_excess(attention(*args), by_hand(*args), (1e-5, 1e-6)) <= 0


@pytest.mark.parametrize("sizes", [[(1, 1)], [(1, 7)], [(5, 1), (1, 1), (3, 3)], [(13, 21)]])
def test_any_levels_work(sizes):
    args = random_case(sizes, 4)
    assert worst_excess(attention(*args), by_hand(*args), (1e-5, 1e-6)) <= 0


def test_rows_beyond_a_full_block_are_not_written():
    value, levels, locations, weights = random_case([(4, 4)], 32, queries=9, heads=1, batch=1)  # blocks of 16 queries
    result = attention(value, levels, locations, weights)
    assert result.shape == (1, 9, 32)
    torch.testing.assert_close(result, reference(value, levels, locations, weights))


def test_no_queries_give_an_empty_result_and_zero_gradients():
    value, levels, locations, weights = random_case([(2, 2)], 4)
    value.requires_grad_()
    result = attention(value, levels, locations[:, :0].contiguous(), weights[:, :0].contiguous())
    assert result.shape == (2, 0, 8)
    assert not torch.autograd.grad(result.sum(), value)[0].any()


@pytest.mark.parametrize("name", ["triton", "triton_fp32_accumulator"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_agree_with_autograd_of_the_reference(name, dtype):
    inputs = MSDA.inputs("tiny", dtype)
    call = MSDA.implementation(name, device="cpu", dtype=dtype, timing=False)
    want = expected_gradients(MSDA, inputs)
    # the two calls that are timed: each implementation has one of them here
    timed = backward_call if name == "triton" else forward_backward_call
    for i, got in enumerate(timed(MSDA, call, inputs)()):
        assert got.dtype == DTYPES[dtype]
        assert worst_excess(got, want[i], MSDA.backward.tolerance[dtype][i]) <= 0, MSDA.backward.names[i]


def test_gradients_of_border_points_agree_with_the_reference():
    value, levels, locations, weights = (a.double() if torch.is_tensor(a) else a for a in border_case())
    # a step off the points where the position is a whole pixel: the gradient of a location jumps there
    locations = locations + 1e-3
    grads = []
    for call in (attention, reference):
        leaves = [t.clone().requires_grad_() for t in (value, locations, weights)]
        result = call(leaves[0], levels, leaves[1], leaves[2])
        grads.append(torch.autograd.grad((result * torch.arange(result.numel()).view_as(result)).sum(), leaves))
    for got, want in zip(*grads, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


def test_many_queries_on_one_pixel_add_up():
    levels = Levels.of([(1, 1)])
    value = torch.ones((1, 1, 1, 3), requires_grad=True)
    queries = 50
    locations = torch.full((1, queries, 1, 1, 1, 2), 0.5)
    attention(value, levels, locations, torch.ones((1, queries, 1, 1, 1))).sum().backward()
    assert value.grad.flatten().tolist() == [50.0] * 3


def test_gradcheck_in_double_precision():
    value, levels, locations, weights = random_case(
        [(2, 2), (1, 1)], 2, torch.float64, batch=1, queries=1, heads=1, points=1
    )
    locations = locations + 1e-3  # finite differences must not cross a pixel edge
    leaves = [t.requires_grad_() for t in (value, locations, weights)]
    assert gradcheck(lambda v, p, w: attention(v, levels, p, w), leaves, eps=1e-6, atol=1e-6)


def test_a_second_derivative_is_refused_not_wrong():
    value, levels, locations, weights = random_case([(2, 2)], 2)
    value.requires_grad_()
    result = attention(value, levels, locations, weights)
    gradient = torch.autograd.grad(result.square().sum(), value, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()


def test_locations_and_weights_may_be_wider_than_value():
    value, levels, locations, weights = random_case([(3, 5)], 4)
    result = attention(value.half(), levels, locations, weights)
    assert result.dtype == torch.float16
    assert worst_excess(result, by_hand(value.half(), levels, locations, weights), MSDA.tolerance["fp16"]) <= 0


def test_native_bf16_sums_are_not_interpreted():
    """Triton's interpreter has no bf16 atomic add; 'auto' therefore never asks for one there."""
    value, levels, locations, weights = random_case([(2, 2)], 2, torch.bfloat16)
    value.requires_grad_()
    with pytest.raises(Exception, match="Unsupported data type"):
        attention(value, levels, locations, weights, accumulator="native").sum().backward()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda v, s, p, w: (v[:, :-1].contiguous(), s, p, w), "bad_shape"),
        (lambda v, s, p, w: (v, s, p[..., :1].contiguous(), w), "bad_shape"),
        (lambda v, s, p, w: (v, s, p, w[:, :, :1].contiguous()), "bad_shape"),
        (lambda v, s, p, w: (v, s, p.transpose(0, 1), w.transpose(0, 1)), "bad_shape"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_a_launch(change, kind):
    with pytest.raises(OptionError) as caught:
        attention(*change(*random_case([(2, 3)], 4)))
    assert caught.value.kind == kind


def test_an_unknown_accumulator_is_refused():
    with pytest.raises(OptionError, match="fp8"):
        attention(*random_case([(2, 3)], 4), accumulator="fp8")


def test_tensors_that_are_not_contiguous_are_copied():
    value, levels, locations, weights = random_case([(2, 3), (1, 2)], 4)
    want = attention(value, levels, locations, weights)
    strided = (
        value.transpose(2, 3).contiguous().transpose(2, 3),
        levels,
        locations.transpose(0, 1).contiguous().transpose(0, 1),
        torch.stack([weights, weights], dim=-1)[..., 1],
    )
    assert not any(t.is_contiguous() for t in (strided[0], *strided[2:]))
    assert torch.equal(attention(*strided), want)
    leaves = [t.detach().requires_grad_() for t in (strided[0], *strided[2:])]
    attention(leaves[0], levels, *leaves[1:]).sum().backward()
    dense = [t.detach().requires_grad_() for t in (value, locations, weights)]
    attention(dense[0], levels, *dense[1:]).sum().backward()
    for got, wanted in zip(leaves, dense, strict=True):
        torch.testing.assert_close(got.grad, wanted.grad)


@pytest.mark.parametrize(
    ("axis", "lost"), [(0, float("nan")), (1, float("inf")), (0, -float("inf")), (1, float("nan"))]
)
def test_a_location_that_is_no_number_shows_in_result_and_gradients_as_in_the_reference(lost, axis):
    value, levels, locations, weights = random_case([(3, 5), (1, 2)], 4)
    locations = (locations + 1e-3).clone()
    locations[1, 2, 0, 1, 0, axis] = lost
    found = []
    for call in (attention, reference):
        leaves = [t.clone().requires_grad_() for t in (value, locations, weights)]
        result = call(leaves[0], levels, *leaves[1:])
        found.append((result, *torch.autograd.grad(result.sum(), leaves)))
    result = found[0][0].view(2, 3, 2, 4)
    assert result[1, 2, 0].isnan().all() and result.isnan().sum() == 4  # one head of one query, no other
    for got, want in zip(*found, strict=True):
        torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-5, atol=1e-5)


def test_every_block_of_queries_and_every_image_is_computed():
    args = random_case([(4, 4), (2, 3)], 32, batch=3, queries=37, heads=3)  # three blocks of 16
    assert worst_excess(attention(*args), by_hand(*args), MSDA.tolerance["fp32"]) <= 0


def test_offsets_of_64_bits_give_what_32_bits_give(monkeypatch):
    import triton.language as tl

    from traceanalyzer.kernels.msda import backward, forward

    args = random_case([(4, 4), (2, 3)], 8, queries=5)
    narrow = gradients_of(args)
    for module in (forward, backward):
        monkeypatch.setattr(module, "offset_type", lambda _: tl.int64)
    for got, want in zip(gradients_of(args), narrow, strict=True):
        torch.testing.assert_close(got, want)


def gradients_of(args):
    value, levels, locations, weights = args
    leaves = [t.clone().requires_grad_() for t in (value, locations, weights)]
    result = attention(leaves[0], levels, *leaves[1:])
    return (result, *torch.autograd.grad(result.square().sum(), leaves))


@pytest.mark.parametrize("channels", [3, 32])
def test_every_configuration_computes_the_same(channels, monkeypatch):
    from traceanalyzer.kernels.msda import forward

    args = random_case([(4, 4), (2, 3)], channels, queries=21, batch=1, heads=2)
    want = attention(*args)
    for chosen in configurations(channels):  # of the forward kernel: the backward one takes none of them
        monkeypatch.setattr(forward, "configuration", lambda _, chosen=chosen: chosen)
        torch.testing.assert_close(attention(*args), want, msg=str(chosen))


def test_the_operator_of_torch_runs_the_kernels_and_differentiates():
    value, levels, locations, weights = random_case([(3, 5), (1, 2)], 4)
    leaves = [t.clone().requires_grad_() for t in (value, locations, weights)]
    result = torch.ops.traceanalyzer.msda(leaves[0], levels.shapes, levels.starts, *leaves[1:])
    want = gradients_of((value, levels, locations, weights))
    assert torch.equal(result, want[0])
    for got, wanted in zip(torch.autograd.grad(result.square().sum(), leaves), want[1:], strict=True):
        torch.testing.assert_close(got, wanted)
