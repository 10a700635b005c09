"""A kernel of this project as a target: an implementation with its inputs, forward or backward, and what to hold it to."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from traceanalyzer.capture.asked import Asked, Target
from traceanalyzer.capture.frameworks import open_device
from traceanalyzer.errors import CaptureUnavailable, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceanalyzer.kernels.operator import Inputs, Operator

DIRECTIONS = ("forward", "backward")


def kernel_target(asked: Asked, device: str) -> Target:
    """Return the target of an operator's name: the asked implementation, else the first that can be timed on ``device``.

    Raises OptionError for names that are not there (a direction the operator lacks is one) and CaptureUnavailable where
    nothing can be timed.
    """
    from traceanalyzer.kernels.operator import Unavailable, check_name

    found = known_operator(asked.target)
    check_direction(found, asked.direction)
    place = place_of(device)
    preset, dtype = asked.preset or next(iter(found.presets)), asked.dtype or found.dtypes[0]
    names = list(found.implementations)
    if asked.implementation:
        check_name("implementation", asked.implementation, names, f" of {found.name}")
        names = [asked.implementation]
    reasons = []
    for name in names:
        made = found.implementation(name, device=place, dtype=dtype)
        if not isinstance(made, Unavailable):
            break
        reasons.append(f"{name}: {made.reason}")
    else:
        raise CaptureUnavailable(
            "cannot_run",
            f"{found.name} cannot be timed on {place}: {'; '.join(reasons)}",
            hint="run it on a GPU, or give --implementation",
        )
    inputs = found.inputs(preset, dtype, place, asked.seed)
    label = f"{found.name}_{name}_{preset}_{dtype}"
    if asked.direction == "backward":
        return _backward(f"{label}_backward", found, made, inputs, asked)
    return Target(
        label, made, tuple(inputs.args), {}, found.reference, asked.tolerance or found.tolerance[dtype],
        found.bytes_moved(inputs), found.flops(inputs), dict(inputs.described),
    )  # fmt: skip


def known_operator(name: str) -> Operator:
    """Return an operator by name. Raises OptionError with the nearest name where there is none."""
    from traceanalyzer.kernels.registry import OPERATORS, operator

    if name not in OPERATORS:
        near = get_close_matches(name, list(OPERATORS), 1)
        hint = f"did you mean the kernel '{near[0]}'?" if near else f"a kernel: {', '.join(OPERATORS)}"
        raise OptionError(
            "unknown_target", f"'{name}' names no function", hint=f"give MODULE:FUNCTION or FILE.py:FUNCTION, or {hint}"
        )
    return operator(name)


def check_direction(operator: Operator, direction: str) -> None:
    """Raise OptionError unless the operator has the direction."""
    from traceanalyzer.kernels.operator import check_name

    check_name("direction", direction, DIRECTIONS if operator.backward else DIRECTIONS[:1], f" of {operator.name}")


def place_of(device: str) -> str:
    """Return the word torch knows a device kind by (ROCm is cuda to it). Raises CaptureUnavailable without the device."""
    kind = open_device("pytorch", device).facts().kind
    return "cuda" if kind == "rocm" else kind


def _backward(label: str, operator: Operator, call: Callable[..., Any], inputs: Inputs, asked: Asked) -> Target:
    """Return the backward alone: the forward has run once, and each call asks autograd for the gradients again."""
    from traceanalyzer.kernels.gradients import backward_call, expected_gradients

    side = operator.backward
    assert side is not None
    if inputs.device.startswith("cuda"):
        _leave_the_default_stream()

    def reference_gradients() -> Any:
        return expected_gradients(operator, inputs)

    return Target(
        label, backward_call(operator, call, inputs), (), {}, reference_gradients, asked.tolerance or side.tolerance[inputs.dtype],
        side.bytes_moved(inputs), side.flops(inputs), dict(inputs.described),
    )  # fmt: skip


def _leave_the_default_stream() -> None:
    """Make a side stream the current one.

    autograd runs the backward on the stream on which the forward ran, wherever it is called from; on the default stream,
    which no graph can capture, the unrolled graph could not be made.
    """
    import torch

    torch.cuda.synchronize()
    torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
