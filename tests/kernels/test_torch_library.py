"""msda as an operator of torch, on the CPU: what opcheck, torch.compile, autocast and FakeTensor make of it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from traceanalyzer.errors import OptionError  # noqa: E402
from traceanalyzer.kernels import operator  # noqa: E402
from traceanalyzer.kernels.alternatives import why_not_compiler  # noqa: E402
from traceanalyzer.kernels.msda.attention import attention  # noqa: E402
from traceanalyzer.kernels.msda.reference import reference  # noqa: E402


def case(dtype="fp32", grad=True):
    value, levels, locations, weights = operator("msda").inputs("tiny", dtype).args
    if grad:
        for tensor in (value, locations, weights):
            tensor.requires_grad_()
    return value, levels, locations, weights


def called(value, levels, locations, weights):
    return torch.ops.traceanalyzer.msda(value, levels.shapes, levels.starts, locations, weights)


def test_opcheck_passes():
    value, levels, locations, weights = case()
    arguments = (value, levels.shapes, levels.starts, locations, weights, "auto")
    found = torch.library.opcheck(torch.ops.traceanalyzer.msda.default, arguments)
    assert set(found.values()) == {"SUCCESS"} and len(found) >= 4
    gradient = torch.randn_like(reference(value, levels, locations, weights))
    detached = (gradient.detach(), value.detach(), levels.shapes, levels.starts, locations.detach(), weights.detach())
    # no autograd formula of its own: it is once differentiable
    wanted = ("test_schema", "test_faketensor")
    found = torch.library.opcheck(torch.ops.traceanalyzer.msda_backward.default, (*detached, "auto"), test_utils=wanted)
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_it_agrees_with_autograd_of_the_reference(dtype):
    args = case(dtype)
    got, want = called(*args), reference(*args)
    torch.testing.assert_close(got, want)
    gradient = torch.randn_like(want)
    leaves = (args[0], *args[2:])
    for mine, theirs in zip(
        torch.autograd.grad(got, leaves, gradient), torch.autograd.grad(want, leaves, gradient), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


def test_a_second_derivative_is_refused():
    args = case()
    first = torch.autograd.grad(called(*args).square().sum(), args[0], create_graph=True)[0]
    with pytest.raises(RuntimeError):
        first.sum().backward()


@pytest.mark.slow  # calls a C++ compiler
def test_a_compiled_model_has_it_as_one_node_without_a_graph_break():
    if (reason := why_not_compiler()) is not None:
        pytest.skip(reason)
    args = case()
    model = torch.compile(lambda *given: attention(*given).sin(), fullgraph=True)
    got, want = model(*args), reference(*args).sin()
    torch.testing.assert_close(got, want)
    leaves = (args[0], *args[2:])
    for mine, theirs in zip(
        torch.autograd.grad(got.sum(), leaves), torch.autograd.grad(want.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


def test_tracing_finds_one_node_without_a_compiler():
    args = case(grad=False)
    seen = []

    def keep(graph, _inputs):
        seen.extend(str(n.target) for n in graph.graph.nodes if n.op == "call_function")
        return graph.forward

    torch._dynamo.reset()
    model = torch.compile(lambda *given: attention(*given) + 1, fullgraph=True, backend=keep)
    torch.testing.assert_close(model(*args), reference(*args) + 1)
    assert sum("traceanalyzer.msda" in target for target in seen) == 1


def test_autocast_casts_nothing():
    value, levels, locations, weights = case(grad=False)
    plain = called(value, levels, locations, weights)
    with torch.autocast("cpu", torch.bfloat16):
        assert called(value, levels, locations, weights).dtype == torch.float32
        half = called(value.bfloat16(), levels, locations, weights)  # what a linear layer under autocast hands on
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), plain, rtol=2**-7, atol=2e-2)


def test_shapes_are_known_without_data():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        value, _levels, locations, weights = case(grad=False)
        given = [mode.from_tensor(t) if not hasattr(t, "fake_mode") else t for t in (value, locations, weights)]
        shapes = torch.empty((2, 2), dtype=torch.int64)
        starts = torch.empty((2,), dtype=torch.int64)
        result = torch.ops.traceanalyzer.msda(given[0], shapes, starts, *given[1:])
    assert result.shape == (2, 5, 12) and result.dtype == torch.float32


def test_arguments_that_do_not_fit_are_refused():
    value, levels, locations, weights = case(grad=False)
    with pytest.raises(OptionError, match="expected"):
        called(value, levels, locations[:, :1], weights)
    with pytest.raises(OptionError, match="fp8"):
        torch.ops.traceanalyzer.msda(value, levels.shapes, levels.starts, locations, weights, "fp8")
