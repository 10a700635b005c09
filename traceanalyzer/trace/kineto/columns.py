"""Collects rows of the event stream into columns, batch by batch, so that no row object outlives its batch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import DecodeError, Raw, Struct, ValidationError

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind, kind_of
from traceanalyzer.trace.file_faults import FileFault
from traceanalyzer.trace.flows import Ends
from traceanalyzer.trace.frames import FrameBatch
from traceanalyzer.trace.intel.lanes import GPU_OP
from traceanalyzer.trace.jax.lanes import STEP_NOTE
from traceanalyzer.trace.kineto.decimal_times import column_to_ns, finest_step_ns
from traceanalyzer.trace.kineto.halves import paired
from traceanalyzer.trace.kineto.ids import id_text, lane_id, to_int
from traceanalyzer.trace.kineto.lane_readers import FLOW_CATEGORIES
from traceanalyzer.trace.kineto.own_events import RECORD_NAME
from traceanalyzer.trace.kineto.raw_texts import id_codes, raw_id, texts_of
from traceanalyzer.trace.kineto.repair import decode_text
from traceanalyzer.trace.kineto.rows import TAGGED, CallArgs, DeviceArgs, KinetoRow, LaneArgs, LooseRow, SyncArgs
from traceanalyzer.trace.row_faults import Damage, RowFault
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.store import Interner, Store
from traceanalyzer.trace.tables import NO_ID, Config
from traceanalyzer.trace.whole_numbers import whole_number

_FLOW_NUMBER = re.compile(r"(?<=Flow_...)_\d+_\d+\Z")
_STREAM_NAME = re.compile(r"stream\s*#?\s*[0-9]", re.I)
_TYPES: list[type[Struct]] = [*TAGGED, LooseRow]
_LOOSE = RowKind.UNKNOWN
_KINDS: list[RowKind] = [*TAGGED.values(), _LOOSE]
_TYPE_CODE = {t: number for number, t in enumerate(_TYPES)}
_DEVICE_ARGS = msgspec.json.Decoder(list[DeviceArgs])
_CALL_ARGS = msgspec.json.Decoder(list[CallArgs])
_LANE_ARGS = msgspec.json.Decoder(list[LaneArgs])
_SYNC_ARGS = msgspec.json.Decoder(list[SyncArgs])
_STRINGS = msgspec.json.Decoder(list[str])
_LANE_FIELDS = ("device", "stream")
_LONGEST_NUMBER = 64
_LONGEST_DIMS = 256
_INTS = msgspec.json.Decoder(list[int])


MOST_FRAMES = 16_000_000
"""Python frames kept of one trace (about 13 bytes each); the rest is counted only."""


def new_store(name: str, limits: ReadLimits, salvage: Salvage) -> Store:
    """Return an empty store for events of Chrome JSON: processes and threads are given as JSON text."""
    return Store(name, salvage, limits.max_rows, id_text=id_text, config=parse_config)


class Columns:
    """Fills a store with the rows of the event stream. :func:`new_store` makes one that takes Kineto's ids."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.salvage = store.salvage
        self.notes = Interner()
        self.notes[""]
        self.flow_keys = Interner()
        self.begin()

    def begin(self) -> None:
        """Forget what is known outside of the store and the numbers of texts."""
        self.process_names: dict[str, str] = {}
        self.process_labels: dict[str, str] = {}
        self.thread_names: dict[tuple[str, str], str] = {}
        self.gpu_op_pids: set[str] = set()
        self.flows: list[tuple[npt.NDArray[Any], ...]] = []
        self.halves: list[tuple[RowKind, str, KinetoRow]] = []
        self.own_record = b""
        self._frames = 0

    # -- batches --------------------------------------------------------------------------------------

    def add(self, rows: list[Struct]) -> None:
        """Take one batch of the event stream."""
        first = self.store.events + self.store.own_events
        self.store.events += len(rows)
        codes = np.fromiter(map(_TYPE_CODE.__getitem__, map(type, rows)), dtype=np.uint8, count=len(rows))
        kinds: dict[RowKind, list[int]] = {}
        for code, count in enumerate(np.bincount(codes, minlength=len(_TYPES)).tolist()):
            if not count:
                continue
            kind = _KINDS[code]
            if kind is RowKind.SKIP or kind is RowKind.PYTHON:
                self.store.skipped[str(_TYPES[code].__struct_config__.tag)] += count
            if kind is not RowKind.SKIP:
                kinds.setdefault(kind, []).append(code)
        for kind, of_kind in kinds.items():
            at = np.flatnonzero(codes == of_kind[0] if len(of_kind) == 1 else np.isin(codes, of_kind))
            chosen: list[Any] = [rows[i] for i in at.tolist()]
            if kind is _LOOSE:
                self._add_loose(chosen, at + first)
                continue
            if kind is RowKind.OURS:
                self._add_own([(r.name, r.args) for r in chosen])
                continue
            complete = [r.ph == "X" for r in chosen]
            if not all(complete):
                for row, whole in zip(chosen, complete, strict=True):
                    if not whole:
                        self._add_half(kind, row)
                chosen = [r for r, whole in zip(chosen, complete, strict=True) if whole]
                at = at[np.array(complete)]
            self._add_complete(kind, chosen, at + first)

    def _add_own(self, rows: list[tuple[str, Raw]]) -> None:
        """Count events that an earlier annotate of ours added; keep the record it left of itself."""
        self.store.events -= len(rows)
        self.store.own_events += len(rows)
        for name, args in rows:
            if name == RECORD_NAME and not self.own_record:
                self.own_record = bytes(args)

    def _add_python(self, rows: list[Any]) -> None:
        """Keep Python frames as bare columns, up to a limit: half of a file may be such rows."""
        store = self.store
        store.python_rows += len(rows)
        self.put_frames(
            FrameBatch.of(
                column_to_ns([r.ts for r in rows]), column_to_ns([r.dur for r in rows]),
                id_codes(store.pids, [r.pid for r in rows]), id_codes(store.tids, [r.tid for r in rows]),
                store.frame_names.codes([r.name for r in rows]),
            )
        )  # fmt: skip

    def put_frames(self, batch: FrameBatch) -> None:
        """Put Python frames into the store, no more than it may hold."""
        room = MOST_FRAMES - self._frames
        if len(batch) > room:
            batch = batch.take(slice(0, room))
        if len(batch):
            self._frames += len(batch)
            self.store.frames.append(batch)

    def _add_half(self, kind: RowKind, row: KinetoRow) -> None:
        if row.ph in ("B", "E"):
            args = getattr(row, "args", Raw(b""))
            made = KinetoRow(row.name, row.ph, raw_id(row.pid), raw_id(row.tid), row.ts, row.dur, args)
            self.halves.append((kind, row.ph, made))
        else:
            self.store.skipped[f"ph {row.ph[:8]}" if row.ph else "no ph"] += 1

    def _add_loose(self, rows: list[LooseRow], order: npt.NDArray[np.int64]) -> None:
        """Sort rows whose fields are all still text into the same columns.

        Rows are looked at one by one only where they are kept: most of a file may come this way.
        """
        pairs = list(zip(texts_of([r.cat for r in rows]), texts_of([r.ph for r in rows]), strict=True))
        chosen: dict[tuple[bytes, bytes], tuple[RowKind, str]] = {}
        for (raw_category, raw_ph), count in Counter(pairs).items():
            category, ph = self._text(raw_category), self._text(raw_ph)
            kind = kind_of(category) if category else RowKind.UNKNOWN
            if kind is RowKind.OURS:
                mine = [row for row, pair in zip(rows, pairs, strict=True) if pair == (raw_category, raw_ph)]
                self._add_own([(self._text(r.name), r.args) for r in mine])
            elif kind is RowKind.SKIP:
                self.store.skipped[category] += count
            elif ph in ("s", "t", "f") and category.startswith(FLOW_CATEGORIES):
                self._add_flows(
                    category, [r for r, pair in zip(rows, pairs, strict=True) if pair == (raw_category, raw_ph)]
                )
            elif category == GPU_OP and ph == "X":
                mine = [row for row, pair in zip(rows, pairs, strict=True) if pair == (raw_category, raw_ph)]
                self.gpu_op_pids.update(id_text(p) for p in set(texts_of([r.pid for r in mine])))
                chosen[raw_category, raw_ph] = RowKind.UNKNOWN, ph
            elif ph in ("X", "B", "E") or (kind is RowKind.UNKNOWN and (ph == "M" or not (ph or category))):
                if kind is RowKind.PYTHON:
                    self.store.skipped[category] += count
                if kind is RowKind.UNKNOWN and category and ph != "M":
                    self.store.unknown[category[:60]] += count
                else:
                    chosen[raw_category, raw_ph] = kind, ph
            elif kind is RowKind.UNKNOWN:
                self.store.skipped[_FLOW_NUMBER.sub("", category)[:60] or f"ph {ph[:8]}"] += count
            elif kind is RowKind.PYTHON:
                self.store.skipped[category] += count
                self.store.python_rows += count
            else:  # as for rows that the decoder knew by their category
                self.store.skipped[f"ph {ph[:8]}" if ph else "no ph"] += count
        by_kind: dict[RowKind, list[int]] = {}
        for i in [i for i, pair in enumerate(pairs) if pair in chosen]:
            kind, ph = chosen[pairs[i]]
            row = rows[i]
            if ph == "M":
                self._add_metadata(row)
            elif not ph:
                if bytes(row.traceEvents):
                    self._add_nested(bytes(row.traceEvents))
                else:
                    self.store.skipped["event without a phase" if bytes(row.ts) else "empty event"] += 1
            elif ph == "X":
                by_kind.setdefault(kind, []).append(i)
            else:
                self.halves.append((kind, ph, _as_row(self._text(row.name), ph, row)))
        for kind, places in by_kind.items():
            names = self._all_texts([rows[i].name for i in places])
            found = [_as_row(name, "X", rows[i]) for name, i in zip(names, places, strict=True)]
            self._add_complete(kind, found, order[places])

    def _add_flows(self, category: str, rows: list[LooseRow]) -> None:
        """Keep the ends of arrows from calls to device rows; an arrow is told by its category and id."""
        family = category.removeprefix("CL_")
        keys = self.flow_keys.codes((family, i) for i in texts_of([r.id for r in rows]))
        pids, tids = (
            t.codes(texts_of([getattr(r, c) for r in rows]))
            for t, c in ((self.store.pids, "pid"), (self.store.tids, "tid"))
        )
        self.flows.append((keys, pids, tids, column_to_ns([r.ts for r in rows])))
        self.store.skipped[_FLOW_NUMBER.sub("", category)] += len(rows)

    def flow_ends(self, width: int) -> Ends:
        """Return the ends of arrows; a lane is ``process * width + thread``."""
        if not self.flows:
            none = np.empty(0, dtype=np.int64)
            return Ends(none, none, none)
        keys, pids, tids, times = (np.concatenate(c).astype(np.int64) for c in zip(*self.flows, strict=True))
        return Ends(keys, pids * width + tids, times)

    def lanes_of(self) -> dict[str, tuple[str, ...]]:
        """Return of each process the first lane that is named after a stream: one is enough to know that it names them."""
        found: dict[str, tuple[str, ...]] = {}
        for (pid, _), name in self.thread_names.items():
            if pid not in found and _STREAM_NAME.search(name):
                found[pid] = (name,)
        return found

    def _all_texts(self, raws: list[Raw]) -> list[str]:
        try:
            names: list[str] = _STRINGS.decode(b"[" + b",".join(raws) + b"]")
            if len(names) == len(raws):
                return names
        except (DecodeError, RecursionError):
            pass
        return [self._text(r) for r in raws]

    def _text(self, raw: Raw | bytes) -> str:
        text = bytes(raw)
        if not text:
            return ""
        try:
            value = msgspec.json.decode(text)
        except (DecodeError, RecursionError):
            value, damaged = decode_text(text)
            if damaged:
                self.salvage.repaired[Damage(RowFault.NAME_BYTES)] += 1
        return value if isinstance(value, str) else ""

    def _add_nested(self, text: bytes) -> None:
        # a list of whole traces: take the events of each
        try:
            rows = msgspec.json.decode(text, type=list[LooseRow])
        except (DecodeError, RecursionError):
            self.salvage.excluded[Damage(RowFault.INNER_TRACE)] += 1
            return
        self.salvage.note(FileFault.TRACES_IN_EVENTS)
        self.add([r for r in rows if not bytes(r.traceEvents)])

    def _add_metadata(self, row: LooseRow) -> None:
        what = self._text(row.name)
        if what not in ("process_name", "thread_name", "process_labels"):
            return
        try:
            args = msgspec.json.decode(row.args, type=dict[str, Any])
        except (DecodeError, RecursionError):
            return
        pid, tid = id_text(bytes(row.pid)), id_text(bytes(row.tid))
        value = str(args.get("labels" if what == "process_labels" else "name", ""))[:200]
        # of several names the first by its text counts: the order of events says nothing
        if what == "process_name":
            self.process_names[pid] = min(value, self.process_names.get(pid, value))
        elif what == "process_labels":
            self.process_labels[pid] = min(value, self.process_labels.get(pid, value))
        else:
            self.thread_names[pid, tid] = min(value, self.thread_names.get((pid, tid), value))

    # -- complete rows --------------------------------------------------------------------------------

    def _add_complete(self, kind: RowKind, rows: list[Any], order: npt.NDArray[np.int64]) -> None:
        n = len(rows)
        if not n:
            return
        if kind is RowKind.PYTHON:
            self._add_python(rows)
            return
        store = self.store
        stamps = [r.ts for r in rows]
        durations = [r.dur for r in rows]
        found: dict[str, npt.NDArray[Any]] = {
            "start_ns": column_to_ns(stamps),
            "dur_ns": column_to_ns(durations),
            "pid": id_codes(store.pids, [r.pid for r in rows]),
            "tid": id_codes(store.tids, [r.tid for r in rows]),
            "name": (store.apis if kind is RowKind.CALL else store.names).codes([r.name for r in rows], n),
        }
        if kind is RowKind.CALL:
            args = self._decode_args(rows, _CALL_ARGS, CallArgs)
            found |= {
                "corr": _ids([a.correlation for a in args]),
                "external": _ids([a.external for a in args]),
                "order": order,
            }
        elif kind in DEVICE_KINDS:
            if store.step_ns > 1:
                store.step_ns = min(store.step_ns, finest_step_ns(stamps), finest_step_ns(durations))
            device_args = self._decode_args(rows, _DEVICE_ARGS, DeviceArgs)
            for column in ("device", "context", "stream", "external", "moved_bytes", "graph_node"):
                reader = lane_id if column in _LANE_FIELDS else to_int
                found[column] = _ids([getattr(a, column) for a in device_args], reader)
            found["corr"] = _ids([a.correlation for a in device_args])
            keys = ((bytes(a.grid), bytes(a.block), a.registers, a.shared_bytes) for a in device_args)
            found["config"] = store.configs.codes(keys, n)
            found["order"] = order
        elif kind is RowKind.UNKNOWN:
            lane_args = self._decode_args(rows, _LANE_ARGS, LaneArgs)
            found["corr"] = _ids(
                [a.correlation if type(a.correlation) is int else to_int(a.correlation) for a in lane_args]
            )
            found["note"] = self.notes.codes(map(_note, lane_args), n)
            found["order"] = order
        elif kind is RowKind.DEVICE_SYNC:
            sync_args = self._decode_args(rows, _SYNC_ARGS, SyncArgs)
            found["device"] = _ids([a.device for a in sync_args])
            found["stream"] = _ids([a.stream for a in sync_args])
        store.put(kind, found)

    def _decode_args(self, rows: list[Any], decoder: Any, shape: type[Any]) -> list[Any]:
        texts = [r.args for r in rows]
        try:
            joined = b",".join(texts)
            if b",," in joined or joined[:1] != b"{" or joined[-1:] == b",":  # some row has no arguments
                joined = b",".join([bytes(t) or b"{}" for t in texts])
            return list(decoder.decode(b"[" + joined + b"]"))
        except (DecodeError, RecursionError):
            return [self._decode_one_args(bytes(t), shape) for t in texts]

    def _decode_one_args(self, text: bytes, shape: type[Any]) -> Any:
        """Decode arguments whose types are not the usual ones: strings for numbers, other spellings."""
        if not text:
            return shape()
        try:
            raw = msgspec.json.decode(text, type=dict[str, Raw])
        except (DecodeError, ValidationError, RecursionError):
            return shape()
        values: dict[str, Any] = {}
        for info in msgspec.structs.fields(shape):
            found = raw.get(info.encode_name)
            if found is None:
                continue
            if info.name in ("grid", "block"):
                values[info.name] = found
            elif info.name == "kind" or (shape is LaneArgs and info.name not in ("correlation", "step")):
                values[info.name] = self._text(found)
            else:
                reader = lane_id if info.name in _LANE_FIELDS and shape is DeviceArgs else to_int
                values[info.name] = reader(_number(bytes(found)))
        return shape(**values)

    # -- begin/end pairs ------------------------------------------------------------------------------

    def pair_halves(self) -> None:
        """Make complete rows of begin and end events, whatever their order in the file."""
        if not self.halves:
            return
        times = column_to_ns([row.ts for _, _, row in self.halves])
        pairs, lonely = paired([(kind, ph, row) for kind, ph, row in self.halves], times)
        made: dict[RowKind, list[KinetoRow]] = {}
        for begin, end in pairs:
            kind, _, start = self.halves[begin]
            span_ns = int(times[end]) - int(times[begin])
            # as finely as the stamps: the step of the file's times is known by its text
            step = min(finest_step_ns([start.ts]), finest_step_ns([self.halves[end][2].ts]))
            text = f"{span_ns // 1000}.{span_ns % 1000:03d}"[: {1000: -4, 100: -2, 10: -1}.get(step, 8 << 10)].encode()
            args = start.args if bytes(start.args) else self.halves[end][2].args
            made.setdefault(kind, []).append(
                KinetoRow(start.name, "X", start.pid, start.tid, start.ts, Raw(text), args)
            )
        if lonely:
            self.salvage.excluded[Damage(RowFault.LONELY)] += lonely
        for kind, rows in made.items():
            self._add_complete(kind, rows, np.full(len(rows), self.store.events, dtype=np.int64))
        self.halves = []


def _note(args: LaneArgs) -> str:
    """Return the one text that says what a row is."""
    if args.step is not None:
        return STEP_NOTE
    return (args.description or args.task_type or args.kernel_details or args.copy_details or "")[:400]


def _as_row(name: str, ph: str, row: LooseRow) -> KinetoRow:
    return KinetoRow(name, ph, row.pid, row.tid, row.ts, row.dur, row.args)


def _ids(found: list[int | None], reader: Callable[[object], int | None] = to_int) -> npt.NDArray[np.int64]:
    try:
        if None in found:
            return np.array([NO_ID if v is None else v for v in found], dtype=np.int64)
        return np.array(found, dtype=np.int64)
    except OverflowError:
        return np.array([NO_ID if (w := reader(v)) is None else w for v in found], dtype=np.int64)


def _number(text: bytes) -> object:
    """Return the JSON value of an argument for the readers of numbers; a number too long to be one stays text."""
    if len(text) > _LONGEST_NUMBER and not text.startswith(b'"'):
        return text[:_LONGEST_NUMBER].decode("utf-8", "replace")
    try:
        return msgspec.json.decode(text)
    except (DecodeError, RecursionError, ValueError):
        return None


ConfigKey = tuple[bytes, bytes, int | None, int | None]
"""Grid and block as JSON text, registers, bytes of shared memory."""
NO_CONFIG: ConfigKey = (b"", b"", None, None)


def parse_config(key: ConfigKey) -> Config:
    """Return a launch configuration from its texts; what the trace does not say is None."""
    grid, block, registers, shared = key
    return Config(_dims(grid), _dims(block), whole_number(registers), whole_number(shared))


def _dims(raw: bytes) -> tuple[int, ...] | None:
    try:
        found = _INTS.decode(raw) if 0 < len(raw) <= _LONGEST_DIMS else None
    except DecodeError:
        return None
    return tuple(found) if found is not None and all(abs(v) < 1 << 63 for v in found) else None
