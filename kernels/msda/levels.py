"""The levels of a feature pyramid: their sizes on the host for shapes, and on the device for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Levels:
    """Sizes of the levels, in both places, so that neither a kernel nor a reference copies them at each call.

    Reading a size back from the device would synchronise in every call and forbid capture in a graph.
    """

    sizes: tuple[tuple[int, int], ...]
    """(height, width) of each level, in pixels."""
    shapes: torch.Tensor
    """The same as int64 ``[L, 2]`` on the device."""
    starts: torch.Tensor
    """int64 ``[L]`` on the device: index of the first pixel of each level."""

    @classmethod
    def of(cls, sizes: Sequence[tuple[int, int]], device: str | torch.device = "cpu") -> Levels:
        """Return the levels of the given (height, width) sizes."""
        starts = [sum(h * w for h, w in sizes[:i]) for i in range(len(sizes))]
        return cls(
            tuple(sizes),
            torch.tensor(list(sizes), dtype=torch.int64, device=device),
            torch.tensor(starts, dtype=torch.int64, device=device),
        )

    @property
    def pixels(self) -> int:
        """Pixels of all levels together: S."""
        return sum(h * w for h, w in self.sizes)


def pyramid(height: int, width: int, strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (height, width) of an image's feature maps at ``strides``, rounded up as convolutions do."""
    return [(-(-height // s), -(-width // s)) for s in strides]
