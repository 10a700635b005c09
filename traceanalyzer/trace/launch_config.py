"""Launch configurations from columns of numbers, for decoders that have no row objects."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.store import Interner
from traceanalyzer.trace.tables import NO_ID, Config

CONFIG_COLUMNS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared")
"""Grid in blocks, block in threads, registers per thread, bytes of shared memory; absent is NO_ID."""

_MIXERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5,
                    0x85EBCA77C2B2AE63, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 0x2545F4914F6CDD1D], dtype=np.uint64)  # fmt: skip


def config_codes(columns: Mapping[str, npt.NDArray[np.int64]], configs: Interner) -> npt.NDArray[np.int32]:
    """Return the code of each row's configuration; without columns one code, that of "not recorded"."""
    if not columns:
        return np.array([configs[Config(None, None, None, None)]], dtype=np.int32)
    table = np.stack([columns[c] for c in CONFIG_COLUMNS], axis=1)
    mixed = (table.view(np.uint64) * _MIXERS).sum(axis=1, dtype=np.uint64)
    _, first, place = np.unique(mixed, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    if not np.array_equal(table[first][place], table):  # two configurations share a sum
        _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
        place = place.reshape(-1)
    codes = [configs[_config([None if v == NO_ID else v for v in row])] for row in table[first].tolist()]
    return np.array(codes, dtype=np.int32)[place]


def _config(values: list[int | None]) -> Config:
    return Config(_dims(values[:3]), _dims(values[3:6]), values[6], values[7])


def _dims(values: list[int | None]) -> tuple[int, ...] | None:
    known = [v for v in values if v is not None]
    return tuple(known) if len(known) == 3 else None
