"""The few fields outside of the events that say something about the run. Others may name machines or users: they are not kept."""

from __future__ import annotations

from typing import Any

import msgspec

from traceanalyzer.trace.kineto.ids import to_int
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.whole_numbers import whole_number

_VERSION_KEYS = {
    "cuda_runtime_version": "cuda_runtime", "cuda_driver_version": "cuda_driver", "cupti_version": "cupti",
    "hip_runtime_version": "hip_runtime", "hip_driver_version": "hip_driver", "roctracer_version": "roctracer",
    "pytorch_version": "pytorch", "triton_version": "triton",
}  # fmt: skip
_FLAG_KEYS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")


def keep_fields(top: dict[str, msgspec.Raw], store: Store) -> None:
    """Put the known fields outside of the events into the store; ``top`` maps their names to their JSON text."""

    def value(key: str) -> Any:
        try:
            return msgspec.json.decode(top[key]) if key in top else None
        except (msgspec.DecodeError, RecursionError, ValueError):
            return None

    properties = value("deviceProperties")
    for entry in properties if isinstance(properties, list) else []:
        if isinstance(entry, dict) and (number := to_int(entry.get("id"))) is not None:
            store.device_names["", number] = str(entry.get("name") or "")[:100]
    store.base_ns = whole_number(value("baseTimeNanoseconds")) or 0
    store.flags = {k: v for k in _FLAG_KEYS if (v := _flag(value(k))) is not None}
    store.versions = {
        short: str(v)[:40] for k, short in _VERSION_KEYS.items() if isinstance(v := value(k), int | float | str)
    }
    found = value("distributedInfo")
    distributed = found if isinstance(found, dict) else {}
    store.simulated = value("simulated") is True
    store.rank, store.world_size = _count(distributed.get("rank")), _count(distributed.get("world_size"))


def _flag(value: object) -> int | None:
    """Return a setting of the profiler: 0 or 1 of true and false, or the small number that is there."""
    found = int(value) if isinstance(value, bool) else whole_number(value)
    return found if found is not None and abs(found) < 1 << 31 else None


def _count(value: object) -> int | None:
    """Return a rank or a number of ranks; None for what cannot be one."""
    found = whole_number(value)
    return found if found is not None and 0 <= found < 1 << 24 else None
