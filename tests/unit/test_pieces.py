"""Where the file is cut into pieces decides nothing: tables, salvage and ending are the same for any size of piece."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, fields
from typing import Any

import pytest

from tests.conftest import SHARED
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.assemble import assemble
from traceanalyzer.trace.kineto.columns import Columns, new_store
from traceanalyzer.trace.kineto.fields import keep_fields
from traceanalyzer.trace.kineto.finish import finish
from traceanalyzer.trace.kineto.stream import EventStream
from traceanalyzer.trace.salvage import Salvage

LIMITS = ReadLimits(max_event_bytes=3000, max_depth=40)


def sound() -> bytes:
    events: list[dict[str, Any]] = []
    for i in range(14):
        where = {"pid": 100, "tid": 1}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", **where, "ts": 1000 + 40 * i, "dur": 9.125},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **where, "ts": 1001 + 40 * i, "dur": 2,
             "args": {"correlation": i + 1, "note": ["}, {", {"a": "x"}]}},
            {"ph": "X", "cat": "kernel", "name": f"k{i % 3}<int>", "pid": 0, "tid": 7, "ts": 1005 + 40 * i, "dur": 10,
             "args": {"device": 0, "stream": 7, "correlation": i + 1, "grid": [1, 1, 1]}},
            {"ph": "s", "id": i, "cat": "ac2g", "name": "ac2g", **where, "ts": 1001},
        ]  # fmt: skip
    events.append({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}})
    events.append({"ph": "i", "name": "odd", "pid": 0, "tid": 0, "ts": 5, "s": "t"})
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "G"}],
        "traceEvents": events,
        "traceName": "x",
        "distributedInfo": {"rank": 1, "world_size": 2},
    }
    return json.dumps(document).encode()


def bare() -> bytes:
    document = json.loads(sound())
    return json.dumps(document["traceEvents"], separators=(",", ":")).encode() + b"\n"


def everything(data: bytes, piece: int, limits: ReadLimits = LIMITS) -> Any:
    salvage = Salvage()
    columns = Columns(new_store("t", limits, salvage))
    stream = EventStream((data[i : i + piece] for i in range(0, len(data), piece)), "t", limits, salvage)
    reached = 0
    try:
        for batch in stream.batches():
            begin, end = stream.span
            assert reached <= begin < end, "spans of batches follow each other"
            reached = end
            columns.add(batch)
    except TraceFormatError as error:
        return error.kind, error.offset
    finish(columns)
    keep_fields(stream.top, columns.store)
    trace = assemble(columns.store)
    tables = {}
    for name in ("activities", "calls", "host_ops", "ranges", "overheads", "device_syncs"):
        table = getattr(trace, name)
        tables[name] = {f.name: getattr(table, f.name).tolist() for f in fields(table)}
    meta = trace.meta
    return (
        asdict(salvage), asdict(stream.ending), {k: bytes(v) for k, v in stream.top.items()}, tables, trace.names, trace.apis,
        trace.devices, trace.lanes, trace.threads, meta.events, meta.skipped, meta.unknown_categories, meta.rank,
    )  # fmt: skip


_PARTS = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"[]", b'{"ph":', b"}, {", b'\\"', b"\n", b"nul", b"]}",
    b'"args": {', b"\x01", b"\\ud800", b"1e", b"-", b'"x' * 40, b"[" * 60, b'{"a":' * 60, b"z" * 4000, b'{"name": "' + b"y" * 3500 + b'"}, ',
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data))
        how = rng.randrange(5)
        if how == 0:
            data = data[:at] + data[at + rng.choice((1, 1, 2, 5, 40, 400)) :]
        elif how == 1:
            data = data[:at] + rng.choice(_PARTS) + data[at:]
        elif how == 2:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif how == 3:
            begin = rng.randrange(len(data))
            data = data[:at] + data[begin : begin + rng.choice((3, 20, 300))] + data[at:]
        elif len(data) > 2 and rng.random() < 0.3:
            data = data[: max(2, at)]
    return data or b"["


@pytest.mark.parametrize("seed", range(10))
def test_any_damage_reads_the_same_in_any_pieces(seed):
    rng = random.Random(seed)
    texts = sound(), bare()
    for _ in range(40):
        data = mutated(rng.choice(texts), rng)
        whole = everything(data, len(data))
        for piece in (rng.randrange(1, 60), rng.randrange(60, 700), rng.randrange(700, 5000)):
            assert everything(data, piece) == whole, (seed, piece, data)


@pytest.mark.parametrize("text", [sound(), bare()])
def test_a_cut_anywhere_reads_the_same_in_any_pieces(text):
    for cut in range(2, len(text), 61):
        assert everything(text[:cut], 97) == everything(text[:cut], len(text)), cut


def test_the_repaired_file_with_a_newline_is_whole():
    path = SHARED / "faults" / "bare_array_repaired_newline.json"
    if not path.is_file():
        pytest.skip("the shared folder is not here")
    data = path.read_bytes()
    found = everything(data, len(data), ReadLimits())
    assert not found[0]["incomplete"] and sum(found[0]["repaired"].values()) == 1
    assert everything(data[:-1], len(data), ReadLimits())[1:] == found[1:]
