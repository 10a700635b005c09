"""How a row operator lays out its rows: one row in the registers of a program, or a row in blocks where it is too long."""

from __future__ import annotations

import torch

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.device_code import next_power_of_2

MOST_IN_REGISTERS = 16_384
"""Columns of a row that one program holds: 32 elements a thread of 16 warps. Beyond this registers spill."""
LOOPED = {"BLOCK": 4_096, "num_warps": 16}
"""Block of a longer row: 8 elements a thread."""
MOST_ROWS = 2**31 - 1
"""Rows lie along the first axis of the grid, which CUDA limits to this."""


def row_config(columns: int) -> dict[str, int]:
    """Return block and warps: for a row in registers 16 to 32 elements a thread, else those of :data:`LOOPED`."""
    if columns > MOST_IN_REGISTERS:
        return dict(LOOPED)
    block = next_power_of_2(columns)
    return {"BLOCK": block, "num_warps": min(16, max(1, block // 1024))}


def rows_of(x: torch.Tensor) -> tuple[int, int]:
    """Return rows and columns of a tensor whose last axis is the row. Raises :class:`~traceanalyzer.errors.OptionError`."""
    if x.dim() == 0:
        raise OptionError("bad_shape", "a scalar has no rows; expected [..., columns]")
    columns = x.shape[-1]
    rows = x.numel() // columns if columns else 0
    if rows > MOST_ROWS:
        raise OptionError(
            "too_many_rows", f"{rows} rows; at most {MOST_ROWS} fit in one launch", hint="split the tensor"
        )
    return rows, columns
