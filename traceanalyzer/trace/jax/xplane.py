"""XPlane files (``*.xplane.pb``) of ``jax.profiler``: planes of lines of events, as XLA's profiler keeps them.

Numbers of fields are those of XLA's ``xplane.proto``. An event starts at its line's ``timestamp_ns`` plus ``offset_ps``.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.jax.lanes import STEP_NOTE, UNRECORDED, JaxLanes
from traceanalyzer.trace.jax.wire import BYTES, VARINT, CutOffError, Span, fields, signed, varint
from traceanalyzer.trace.lanes import NamedLane, NamedRow
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.source import Source
from traceanalyzer.trace.store import BAD_TIME, Store
from traceanalyzer.trace.tables import NO_ID

_PLANES = 1
_PLANE_NAME, _LINES, _EVENT_NAMES, _STAT_NAMES = 2, 3, 4, 5
_LINE_ID, _LINE_NAME, _LINE_START_NS, _EVENTS, _SHOWN_NAME = 1, 2, 3, 4, 11
_EVENT_NAME_ID, _OFFSET_PS, _DURATION_PS, _STATS = 1, 2, 3, 4
_STAT_NAME_ID, _STAT_UINT, _STAT_INT, _STAT_TEXT, _STAT_REFERENCE = 1, 3, 4, 5, 7
_NOTES = ("kernel_details", "memcpy_details")
_LONGEST_NAME = 4096
_MOST_NS = 1 << 62


@dataclass
class _Plane:
    name: str = ""
    lines: list[Span] = field(default_factory=list)
    event_names: dict[int, str] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)


@dataclass
class _Line:
    number: int = 0
    name: str = ""
    start_ns: int = 0
    events: list[Span] = field(default_factory=list)


def is_xplane(head: bytes) -> bool:
    """Return whether bytes begin a file of planes: a message that begins with an id or with a name like ``/host:CPU``."""
    if head[:1] != b"\x0a":
        return False
    try:
        length, at = varint(head, 1, len(head))
        for number, kind, begin, end in fields(head, (at, min(at + length, len(head)))):
            if number == _PLANE_NAME and kind == BYTES:
                name = head[begin:end]
                return name.startswith((b"/host:", b"/device:")) or name in (b"Task Environment",)
            if number != 1 or kind != VARINT:
                return False
    except CutOffError:
        pass
    return False


def decode(source: Source, pieces: Iterator[bytes], limits: ReadLimits) -> Store:
    """Return the rows of an XPlane file; a file that breaks off gives what comes before the break.

    A plain file is mapped into memory; what comes compressed or through a pipe is held whole.
    """
    store = Store(source.name, Salvage(), limits.max_rows)
    store.flavour, store.format, store.step_ns = "jax", f"{'gzip, ' if source.compressed else ''}XPlane", 1
    store.doubtful |= UNRECORDED
    if source.path is not None and source.path.is_file() and not source.compressed:
        if (source.size or 0) > limits.max_bytes:
            raise TraceFormatError(
                "too_large",
                f"'{source.given}' holds more than {limits.max_bytes} bytes",
                hint="raise the limit with --max-bytes",
            )
        with (
            source.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as view,
        ):
            _planes(view, store)
    else:
        _planes(memoryview(b"".join(pieces)), store)
        if source.damaged_at is not None:
            store.salvage.incomplete = True
    store.events = store.rows + sum(store.skipped.values())
    return store


def _planes(data: memoryview, store: Store) -> None:
    """Put the rows of all planes into the store."""
    lanes = JaxLanes()
    places: list[Span] = []
    try:
        for number, kind, begin, end in fields(data, (0, len(data))):
            if number == _PLANES and kind == BYTES:
                places.append((begin, end))
    except CutOffError as cut:
        _note_cut(store.salvage, cut.at)
        if rest := _cut_plane(data, cut.at):
            places.append(rest)
    for place in places:
        plane = _read_plane(data, place, store.salvage)
        lines = [_read_line(data, span, store.salvage) for span in plane.lines]
        siblings = tuple(line.name for line in lines)
        for line in lines:
            _add_line(data, plane, line, siblings, lanes, store)


def _cut_plane(data: memoryview, at: int) -> Span | None:
    """Return what is there of a plane that breaks off at the end of the file."""
    try:
        key, begin = varint(data, at, len(data))
        if key != _PLANES << 3 | BYTES:
            return None
        _, begin = varint(data, begin, len(data))
    except CutOffError:
        return None
    return begin, len(data)


def _note_cut(salvage: Salvage, at: int) -> None:
    salvage.incomplete = True
    salvage.at(at)


def _within(data: memoryview, span: Span, salvage: Salvage) -> Iterator[tuple[int, int, int, int]]:
    """Yield fields up to a break, which is noted."""
    try:
        yield from fields(data, span)
    except CutOffError as cut:
        _note_cut(salvage, cut.at)


def _text(data: memoryview, begin: int, end: int) -> str:
    return bytes(data[begin : min(end, begin + _LONGEST_NAME)]).decode("utf-8", "replace")


def _read_plane(data: memoryview, span: Span, salvage: Salvage) -> _Plane:
    plane = _Plane()
    for number, kind, begin, end in _within(data, span, salvage):
        if kind != BYTES:
            continue
        if number == _PLANE_NAME:
            plane.name = _text(data, begin, end)
        elif number == _LINES:
            plane.lines.append((begin, end))
        elif number in (_EVENT_NAMES, _STAT_NAMES):
            _read_name(data, (begin, end), plane.event_names if number == _EVENT_NAMES else plane.stat_names, salvage)
    return plane


def _read_name(data: memoryview, span: Span, names: dict[int, str], salvage: Salvage) -> None:
    """Read one entry of a map from numbers to names: its key (1) and its value (2), whose name is field 2."""
    key, name = 0, ""
    for number, kind, begin, end in _within(data, span, salvage):
        if number == 1 and kind == VARINT:
            key = begin
        elif number == 2 and kind == BYTES:
            for inner, inner_kind, b, e in _within(data, (begin, end), salvage):
                if inner == 2 and inner_kind == BYTES:
                    name = _text(data, b, e)
    names[key] = name


def _read_line(data: memoryview, span: Span, salvage: Salvage) -> _Line:
    line, shown = _Line(), ""
    for number, kind, begin, end in _within(data, span, salvage):
        if number == _EVENTS and kind == BYTES:
            line.events.append((begin, end))
        elif number == _LINE_ID and kind == VARINT:
            line.number = signed(begin)
        elif number == _LINE_START_NS and kind == VARINT:
            line.start_ns = signed(begin)
        elif number == _LINE_NAME and kind == BYTES:
            line.name = _text(data, begin, end)
        elif number == _SHOWN_NAME and kind == BYTES:
            shown = _text(data, begin, end)
    line.name = line.name or shown
    return line


def _add_line(
    data: memoryview, plane: _Plane, line: _Line, siblings: tuple[str, ...], lanes: JaxLanes, store: Store
) -> None:
    """Put the events of one line into the store."""
    lane = NamedLane(plane.name, str(line.number), plane.name, "", line.name, siblings)
    device = lanes.device_of(lane)
    stream = lanes.stream_of(lane) if device is not None else None
    if not line.events:
        return
    if (device is not None and stream is None) or (device is None and not plane.name.startswith("/host:")):
        store.skipped["row of a lane that shows others' work again"] += len(line.events)
        return
    store.rows += len(line.events)
    store.check_rows()
    store.rows -= len(line.events)
    wanted = {i: n for i, n in plane.stat_names.items() if n in ("correlation_id", "step_num", *_NOTES)}
    rows = [_event(data, span, plane, wanted, store.salvage) for span in line.events]
    start = np.array([_ns(line.start_ns * 1000 + offset) for _, offset, _, _, _ in rows], dtype=np.int64)
    dur = np.array([_ns(length) for _, _, length, _, _ in rows], dtype=np.int64)
    corr = np.array([c for *_, c, _ in rows], dtype=np.int64)
    pid, tid = store.pids[plane.name], store.tids[line.name or str(line.number)]
    common: dict[str, npt.NDArray[Any]] = {
        "start_ns": start,
        "dur_ns": dur,
        "pid": np.full(len(rows), pid, np.int32),
        "tid": np.full(len(rows), tid, np.int32),
    }
    keys = [
        (plane.event_names.get(name, f"event {name}"), note, has_id)
        for (name, *_, note), has_id in zip(rows, (corr != NO_ID).tolist(), strict=True)
    ]
    if device is not None and stream is not None:
        told = {key: lanes.device_row(NamedRow(lane, key[0].removesuffix(".kd"), key[1])) for key in set(keys)}
        found = [told[key] for key in keys]
        common |= {
            "corr": corr, "device": np.full(len(rows), device), "stream": np.full(len(rows), stream),
            "name": store.names.codes([r.name for r in found]), "config": store.configs.codes([r.config for r in found]),
            "moved_bytes": np.array([r.moved_bytes for r in found], dtype=np.int64),
        }  # fmt: skip
        kinds = np.array([int(r.kind) for r in found], dtype=np.int8)
        for kind in DEVICE_KINDS:
            store.put(kind, {c: v[kinds == kind] for c, v in common.items()})
        return
    host = {key: lanes.host_row(NamedRow(lane, *key)) for key in set(keys)}
    kinds = np.array([int(host[key].kind) for key in keys], dtype=np.int8)
    for kind in (RowKind.CALL, RowKind.RANGE, RowKind.HOST_OP):
        at = kinds == kind
        if kind is RowKind.RANGE:
            at &= ~_inner_repeats(start, dur, keys)
        names = (store.apis if kind is RowKind.CALL else store.names).codes(
            [host[key].name for key, mine in zip(keys, at.tolist(), strict=True) if mine]
        )
        ids = {"corr": corr[at]} if kind is RowKind.CALL else {}
        store.put(kind, {c: v[at] for c, v in common.items()} | ids | {"name": names})
    for key, kind in zip(keys, kinds.tolist(), strict=True):
        if kind == RowKind.SKIP:
            store.skipped[host[key].name] += 1


def _inner_repeats(
    start: npt.NDArray[np.int64], dur: npt.NDArray[np.int64], keys: list[tuple[str, str, bool]]
) -> npt.NDArray[np.bool_]:
    """Return which rows lie in a row of the same name: PjitFunction is written twice for one call."""
    inside = np.zeros(len(keys), dtype=bool)
    reached: dict[str, int] = {}
    for i in np.lexsort((-dur, start)).tolist():
        name, end = keys[i][0], int(start[i]) + max(int(dur[i]), 0)
        inside[i] = end <= reached.get(name, BAD_TIME)
        reached[name] = max(end, reached.get(name, BAD_TIME))
    return inside


def _event(
    data: memoryview, span: Span, plane: _Plane, wanted: dict[int, str], salvage: Salvage
) -> tuple[int, int, int, int, str]:
    """Return name number, offset and length in ps, correlation id and note of an event."""
    name = offset = length = 0
    corr, note = NO_ID, ""
    for number, kind, begin, end in _within(data, span, salvage):
        if number == _STATS and kind == BYTES:
            if wanted:
                corr, note = _stat(data, (begin, end), plane, wanted, corr, note, salvage)
        elif kind == VARINT:
            if number == _EVENT_NAME_ID:
                name = begin
            elif number == _OFFSET_PS:
                offset = signed(begin)
            elif number == _DURATION_PS:
                length = signed(begin)
    return name, offset, length, corr, note


def _stat(
    data: memoryview, span: Span, plane: _Plane, wanted: dict[int, str], corr: int, note: str, salvage: Salvage
) -> tuple[int, str]:
    which = ""
    for number, kind, begin, end in _within(data, span, salvage):
        if number == _STAT_NAME_ID and kind == VARINT:
            which = wanted.get(begin, "")
            if not which:
                break
        elif which == "correlation_id" and number in (_STAT_UINT, _STAT_INT) and kind == VARINT:
            corr = begin if 0 < begin < _MOST_NS else NO_ID
        elif which == "step_num":
            note = STEP_NOTE
        elif which in _NOTES and number == _STAT_TEXT and kind == BYTES:
            note = _text(data, begin, min(end, begin + 400))
        elif which in _NOTES and number == _STAT_REFERENCE and kind == VARINT:
            note = plane.stat_names.get(begin, "")[:400]
    return corr, note


def _ns(picoseconds: int) -> int:
    """Return whole nanoseconds, half up; BAD_TIME for what no clock shows."""
    nanoseconds = (picoseconds + 500) // 1000
    return nanoseconds if -_MOST_NS < nanoseconds < _MOST_NS else BAD_TIME
