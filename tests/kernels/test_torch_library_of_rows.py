"""The simple operators as operators of torch, on the CPU: opcheck, gradients against autograd of the references, one node in a graph."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from traceanalyzer.kernels import operator, torch_library  # noqa: E402

NAMES = ("vector_add", "softmax", "rms_norm", "matmul")


def case(name, dtype="fp32"):
    args = [a.detach().clone().requires_grad_() for a in operator(name).inputs("tiny", dtype).args]
    return getattr(torch.ops.traceanalyzer, name), operator(name).reference, args


@pytest.mark.parametrize("name", NAMES)
def test_opcheck_passes(name):
    call, _, args = case(name)
    found = torch.library.opcheck(call.default, tuple(args))
    assert set(found.values()) == {"SUCCESS"} and len(found) >= 4


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_result_and_gradients_agree_with_the_reference(name, dtype):
    call, reference, args = case(name, dtype)
    got, want = call(*args), reference(*args)
    torch.testing.assert_close(got, want)
    gradient = torch.randn(want.shape, generator=torch.Generator().manual_seed(2)).to(want.dtype)
    for mine, theirs in zip(
        torch.autograd.grad(got, args, gradient), torch.autograd.grad(want, args, gradient), strict=True
    ):
        assert mine.dtype == theirs.dtype
        torch.testing.assert_close(
            mine, theirs, rtol=3e-2 if dtype != "fp32" else 1e-4, atol=3e-2 if dtype != "fp32" else 1e-5
        )


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_exact_in_double_precision(name):
    call, _, args = case(name)
    # a product is of [7, k] and [k, 7], the others of rows of seven
    cut = (slice(7), slice(5)) if name == "matmul" else (..., slice(7))
    other = (slice(5), slice(7)) if name == "matmul" else cut
    wide = [a.detach().double()[c].clone().requires_grad_() for a, c in zip(args, (cut, other), strict=False)]
    assert torch.autograd.gradcheck(call, wide) and torch.autograd.gradgradcheck(call, wide)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_contiguous_gives_a_contiguous_result_of_the_same_values(name):
    call, reference, args = case(name)
    x = args[0].detach()
    if x.dim() < 2:
        x = x.repeat_interleave(2)[::2]
    else:
        x = x.t().contiguous().t()
    given = [x, *(a.detach() for a in args[1:])]
    assert not x.is_contiguous()
    result = call(*given)
    assert result.is_contiguous()
    torch.testing.assert_close(result, reference(*given))


def test_a_traced_model_holds_each_as_one_node():
    seen = []

    def keep(graph, _inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    def model(x, weight):
        return torch_library.softmax(torch_library.rms_norm(x, weight)) + 1

    _, _, args = case("rms_norm")
    given = [a.detach() for a in args]
    torch._dynamo.reset()
    got = torch.compile(model, backend=keep, fullgraph=True)(*given)
    torch.testing.assert_close(got, model(*given))
    assert (
        sum("traceanalyzer.rms_norm" in s for s in seen) == 1 and sum("traceanalyzer.softmax" in s for s in seen) == 1
    )
