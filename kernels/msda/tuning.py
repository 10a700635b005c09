"""Configurations of the msda kernels: six, timed on the GPU at the first call of each size, and a fixed one elsewhere.

``triton.autotune`` times them once for each (heads, channels, levels, points, dtypes, size class) of a process, so the
first call of a size takes some hundred milliseconds: call once before capturing a CUDA graph. Triton keeps the winners
over processes where ``TRITON_CACHE_AUTOTUNING=1`` is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traceanalyzer.kernels.device_code import INSTALLED, next_power_of_2

TILES = ((128, 1), (256, 1), (256, 2), (512, 2), (1_024, 4), (2_048, 8))
"""(queries x channels, warps) of a program: 4 or 8 elements a thread; 8 are 16 bytes in half precision, 16 spill registers."""
UNTUNED = TILES[3]
UNTUNED_ROWS = 1_024
"""Up to so many rows (batch x queries x heads) nothing is timed: each configuration costs a compilation."""
KEY = ["HEADS", "CHANNELS", "LEVELS", "POINTS", "size_class"]


def configuration(channels: int, tile: tuple[int, int] = UNTUNED) -> dict[str, int]:
    """Return the block sizes and warps of a tile for heads of ``channels``; at most 8 elements a thread."""
    elements, warps = tile
    block = next_power_of_2(channels)
    queries = max(1, elements // block)
    return {
        "BLOCK_QUERIES": queries,
        "BLOCK_CHANNELS": block,
        "num_warps": max(warps, min(32, queries * block // 256)),
    }


def configurations(channels: int) -> list[dict[str, int]]:
    """Return the configurations worth timing for heads of ``channels``, each once."""
    found = [configuration(channels, tile) for tile in TILES]
    return [c for i, c in enumerate(found) if c not in found[:i]]


def worth_timing(channels: int, size_class: int) -> list[dict[str, int]]:
    """Return the configurations to time; a launch of few rows is all latency, and takes the fixed one."""
    return [configuration(channels)] if size_class <= UNTUNED_ROWS else configurations(channels)


def tuned(kernel: Any, zeroed: Sequence[str] = ()) -> Any:
    """Return ``kernel`` under ``triton.autotune``; arguments named in ``zeroed`` are zeroed before each timing.

    Where triton is not installed the kernel itself: nothing will launch it.
    """
    if not INSTALLED:
        return kernel
    import triton

    def fitting(_: Any, named: Mapping[str, Any], **given: Any) -> list[Any]:
        known = {**named, **given}
        return [_config(triton, c) for c in worth_timing(known["CHANNELS"], known["size_class"])]

    return triton.autotune(
        configs=[_config(triton, c) for c in configurations(32)],
        key=KEY,
        reset_to_zero=list(zeroed) or None,
        prune_configs_by={"early_config_prune": fitting},
    )(kernel)


def _config(triton: Any, found: Mapping[str, int]) -> Any:
    blocks = {name: value for name, value in found.items() if name != "num_warps"}
    return triton.Config(blocks, num_warps=found["num_warps"])
