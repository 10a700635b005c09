"""Whether the arguments of msda fit together, checked before a launch: a wrong shape would read outside the tensors."""

from __future__ import annotations

import torch

from traceanalyzer.errors import OptionError


def check_shapes(
    value: torch.Tensor, shapes: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor, pixels: int | None = None
) -> None:
    """Raise :class:`~traceanalyzer.errors.OptionError` for tensors that do not fit together or lie on several devices.

    ``pixels`` is what the levels hold together, where it is known without asking the device.
    """
    if value.dim() != 4 or (pixels is not None and value.shape[1] != pixels):
        raise OptionError(
            "bad_shape", f"value is {list(value.shape)}; expected [B, {'S' if pixels is None else pixels}, N, D]"
        )
    batch, _, heads, _ = value.shape
    depth = shapes.shape[0]
    fits = weights.dim() == 5 and weights.shape == (batch, weights.shape[1], heads, depth, weights.shape[-1])
    if not fits or locations.shape != (*weights.shape, 2):
        raise OptionError(
            "bad_shape",
            f"locations are {list(locations.shape)} and weights {list(weights.shape)}; "
            f"expected [{batch}, Q, {heads}, {depth}, P, 2] and the same without the 2",
        )
    if not value.device == locations.device == weights.device == shapes.device:
        raise OptionError("mixed_devices", "value, levels, locations and weights must lie on one device")
