"""Shapes of event rows for the decoder: what is looked at, and what is never built.

A row whose category is known decodes straight into :class:`KinetoRow`; rows of no use here decode into an empty
struct, so none of their fields becomes an object. Rows without a known category go through
:class:`LooseRow`. Fields stay undecoded text (``msgspec.Raw``) until a column is made of them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from traceanalyzer.trace.categories import KIND_OF_CATEGORY, RowKind

_EMPTY = Raw(b"")


class KinetoRow(Struct, gc=False):
    """A kept row; ``ts`` and ``dur`` are decimal microsecond text, ``pid``/``tid``/``args`` JSON text."""

    name: str = ""
    ph: str = ""
    pid: Raw = _EMPTY
    tid: Raw = _EMPTY
    ts: Raw = _EMPTY
    dur: Raw = _EMPTY
    args: Raw = _EMPTY


class LooseRow(Struct, gc=False):
    """Any JSON object, every field still text: nothing in it can fail to decode."""

    name: Raw = _EMPTY
    ph: Raw = _EMPTY
    cat: Raw = _EMPTY
    pid: Raw = _EMPTY
    tid: Raw = _EMPTY
    ts: Raw = _EMPTY
    dur: Raw = _EMPTY
    args: Raw = _EMPTY
    id: Raw = _EMPTY
    traceEvents: Raw = _EMPTY  # noqa: N815 - the field's name in the file


def _tag_types() -> dict[type[Struct], RowKind]:
    # Only the spellings PyTorch has really written get a tag; others take the loose path.
    spellings = dict(KIND_OF_CATEGORY)
    for old in ("Kernel", "Memcpy", "Memset", "Runtime", "Operator", "Trace"):
        spellings[old] = KIND_OF_CATEGORY[old.lower()]
    types: dict[type[Struct], RowKind] = {}
    for number, (category, kind) in enumerate(spellings.items()):
        fields: list[Any] = []
        if kind is not RowKind.SKIP:
            fields = [("name", str, ""), ("ph", str, "")]
            # half of a file may be Python frames: their ids are decoded, which is quicker than to take the text apart
            fields += [(f, int | str, "") if kind is RowKind.PYTHON else (f, Raw, _EMPTY) for f in ("pid", "tid")]
            fields += [(f, Raw, _EMPTY) for f in ("ts", "dur")]
            if kind not in (RowKind.HOST_OP, RowKind.OVERHEAD, RowKind.SPAN, RowKind.PYTHON):
                fields.append(("args", Raw, _EMPTY))
        types[msgspec.defstruct(f"Tagged{number}", fields, tag=category, tag_field="cat", gc=False)] = kind
    return types


TAGGED: dict[type[Struct], RowKind] = _tag_types()
"""One struct type per category spelling, and the kind of its rows."""


class DeviceArgs(Struct, gc=False):
    """The arguments of a device row that carry identity or configuration."""

    device: int | None = None
    context: int | None = None
    stream: int | None = None
    correlation: int | None = None
    grid: Raw = _EMPTY
    block: Raw = _EMPTY
    registers: int | None = msgspec.field(name="registers per thread", default=None)
    shared_bytes: int | None = msgspec.field(name="shared memory", default=None)
    moved_bytes: int | None = msgspec.field(name="bytes", default=None)
    graph_node: int | None = msgspec.field(name="graph node id", default=None)
    external: int | None = msgspec.field(name="External id", default=None)


class CallArgs(Struct, gc=False):
    """The arguments of a host call that carry identity."""

    correlation: int | None = None
    external: int | None = msgspec.field(name="External id", default=None)


class SyncArgs(Struct, gc=False):
    """The arguments of a device-side synchronisation record (``cuda_sync``)."""

    kind: str | None = msgspec.field(name="cuda_sync_kind", default=None)
    device: int | None = None
    stream: int | None = None
    correlation: int | None = None


class LaneArgs(Struct, gc=False):
    """The arguments of rows without a category (JAX, rpd, Ascend) that carry identity or say what the row is."""

    correlation: int | str | None = msgspec.field(name="correlation_id", default=None)
    description: str | None = msgspec.field(name="desc", default=None)
    task_type: str | None = msgspec.field(name="Task Type", default=None)
    kernel_details: str | None = None
    copy_details: str | None = msgspec.field(name="memcpy_details", default=None)
    step: int | str | None = msgspec.field(name="step_num", default=None)
