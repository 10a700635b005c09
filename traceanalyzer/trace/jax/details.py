"""The texts in which XLA writes launch configurations and copies."""

from __future__ import annotations

import re

from traceanalyzer.trace.lanes import NO_CONFIG
from traceanalyzer.trace.tables import NO_ID, Config

_FIELD = re.compile(r"(\w+):(\S+)")
_COPY_NAME = re.compile(r"memcpy([HDP])2?([HDP])", re.I)
_MOST_THREADS, _MOST_BLOCKS, _MOST_REGISTERS, _MOST_SHARED = 1024, (1 << 31) - 1, 1024, 1 << 20
_PLACES = {"pageable": "Pageable", "pinned": "Pinned", "device": "Device", "managed": "Managed", "array": "Array"}


def launch_config(details: str) -> Config:
    """Return the configuration in ``regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:256,1,1``.

    Some versions wrote numbers that were never set: what no device can launch is left out.
    """
    fields = dict(_FIELD.findall(details))
    grid, block = _dims(fields.get("grid", ""), _MOST_BLOCKS), _dims(fields.get("block", ""), _MOST_THREADS)
    if block is not None and block[0] * block[1] * block[2] > _MOST_THREADS:
        block = None
    registers = _number(fields.get("regs", ""), _MOST_REGISTERS)
    static, dynamic = (_number(fields.get(f, ""), _MOST_SHARED) for f in ("static_shared", "dynamic_shared"))
    shared = static + dynamic if static is not None and dynamic is not None else None
    if shared is None:
        shared = _number(fields.get("group_mem", ""), _MOST_SHARED)
    found = Config(grid, block, registers or None, shared)
    return NO_CONFIG if grid is None and block is None else found


def _dims(text: str, most: int) -> tuple[int, ...] | None:
    parts = [_number(p, most) for p in text.split(",")] if text.count(",") == 2 else []
    dims = tuple(p for p in parts if p)
    return dims if len(dims) == 3 else None


def _number(text: str, most: int) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most else None


def copy_of(name: str, details: str) -> tuple[str, int]:
    """Return a copy's name as PyTorch's profiler would write it, where source and destination are known, and its bytes."""
    fields = dict(_FIELD.findall(details))
    moved = _number(fields.get("size", ""), 10**11)
    way = _COPY_NAME.search(name)
    source, destination = (_PLACES.get(fields.get(f, "").lower()) for f in ("kind_src", "kind_dst"))
    if way and source and destination:
        name = f"Memcpy {way[1].upper()}to{way[2].upper()} ({source} -> {destination})"
    return name, moved or NO_ID
