"""Many values of JSON that are still text, to bytes and codes at once: far quicker than one by one."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from traceanalyzer.trace.store import Interner


def raw_id(value: Raw | int | str) -> Raw:
    """Return an id as text: those of Python frames are decoded already."""
    return value if type(value) is Raw else Raw(msgspec.json.encode(value))


def id_codes(table: Interner, values: list[Any]) -> npt.NDArray[np.int32]:
    """Return the codes of ids that are decoded (Python frames) or still text; most often all are the same."""
    n = len(values)
    if n and type(values[0]) is Raw:
        first, joined = bytes(values[0]), b"\n".join(values)
        if b"\n" not in first and joined == ((first + b"\n") * n)[:-1]:
            return np.full(n, table[first], dtype=np.int32)
        return table.codes(texts_of(values), n)
    if n and type(values[0]) is int and values.count(values[0]) == n:
        return np.full(n, table[b"%d" % values[0]], dtype=np.int32)
    known = {v: table[str(v).encode("utf-8", "surrogatepass")] for v in set(values)}
    return np.fromiter(map(known.__getitem__, values), dtype=np.int32, count=len(values))


def texts_of(raws: list[Raw]) -> list[bytes]:
    """Return the bytes of many undecoded values; joined and split, which is far quicker than one by one."""
    # a bare value of JSON holds no line break, only a list or object spread over lines does
    texts = b"\n".join(raws).split(b"\n")
    return texts if len(texts) == len(raws) else [bytes(r) for r in raws]
