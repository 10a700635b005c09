"""Seeds of the fuzz run and how an input is made of one: Kineto JSON by its events, other JSON by its tree, SQLite by its cells, the rest by bytes."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_EVENTS = 600
"""Longer traces are cut to so many events, spread over the whole, so that a run does thousands of inputs."""
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 0.5, -0.001, 1e-9, 1e15, 1e18, -1e18, 2**53, 2**63, 2**64, 10**25, 1e308, "12", "-3", "1e5", "0x10", "nan", "\u0663", "", None, True, [], {}, "NaN",
)  # fmt: skip
TEXTS = (
    "", " ", "k", "=1+1", "\x1b[31mred", "\u202e", "<script>", "|", "`", "a" * 5000, "void f<int>(T1*)", "ncclKernel", "Memset (Device)", "cudaLaunchKernel", "\ud800", "100%", "\\",
)  # fmt: skip
MOST_ROWS = 500
"""Rows of a database's table that are kept of a longer one."""
SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Seed:
    """One trace to mutate: ``content`` is JSON as Python values, or the bytes of a database or another binary file."""

    suffix: str
    content: Any
    sidecar: Any = None
    """What lies beside it, as a Python value."""

    @classmethod
    def of(cls, path: Path) -> Seed:
        """Read a seed; long ones are cut, so that a run does thousands of inputs."""
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if data.startswith(SQLITE):
            return cls(path.suffix, _shortened(data))
        if data[:1] in (b"{", b"["):
            found = json.loads(data)
            kineto = isinstance(found, list) or "traceEvents" in found
            beside = path.with_name(path.name.removesuffix(".gz").removesuffix(".json") + ".sidecar.json")
            sidecar = json.loads(beside.read_bytes()) if beside.exists() else None
            return cls(".json", _cut(found) if kineto else _pruned(found), sidecar)
        return cls("".join(path.suffixes[-2:]), data)

    def mutated(self, rng: random.Random) -> bytes:
        """Return a file with a few faults; the same state of ``rng`` makes the same bytes."""
        if isinstance(self.content, bytes):
            if self.content.startswith(SQLITE) and rng.random() < 0.8:
                return _change_database(rng, self.content)
            return _change_bytes(rng, bytearray(self.content))
        if isinstance(self.content, dict) and "traceEvents" not in self.content:
            return _changed_tree(rng, self.content)
        return mutated(rng, self.content)

    def mutated_sidecar(self, rng: random.Random) -> bytes | None:
        """Return what lies beside the input, with a few faults of its own half of the time."""
        if self.sidecar is None:
            return None
        return _changed_tree(rng, self.sidecar) if rng.random() < 0.5 else json.dumps(self.sidecar).encode("ascii")


def _pruned(node: Any) -> Any:
    """Return a JSON tree whose lists keep their first MOST_ROWS members."""
    if isinstance(node, dict):
        return {key: _pruned(value) for key, value in node.items()}
    return [_pruned(value) for value in node[:MOST_ROWS]] if isinstance(node, list) else node


def _shortened(data: bytes) -> bytes:
    """Return a database whose long tables keep the first MOST_ROWS rows, names whole."""
    with sqlite3.connect(":memory:") as base:
        base.deserialize(data)
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if "string" not in table.lower():
                base.execute(
                    f'DELETE FROM "{table}" WHERE rowid NOT IN (SELECT rowid FROM "{table}" ORDER BY rowid LIMIT ?)',
                    (MOST_ROWS,),
                )
        base.commit()
        base.execute("VACUUM")
        return base.serialize()


def _change_database(rng: random.Random, data: bytes) -> bytes:
    """Change cells, rows, columns and tables of a database."""
    with sqlite3.connect(":memory:") as base:
        base.deserialize(data)
        names = [t for (t,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
        full = [t for t in names if base.execute(f'SELECT 1 FROM "{t}" LIMIT 1').fetchone()] or names
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            table = rng.choice(full)
            columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
            if not columns:
                continue
            column, other = rng.choice(columns), rng.choice(columns)
            some = f'rowid IN (SELECT rowid FROM "{table}" ORDER BY rowid LIMIT {rng.choice((1, 1, 5, 200))} OFFSET {rng.randrange(300)})'
            kind = rng.randrange(8)
            try:
                if kind <= 2:
                    value = rng.choice(
                        (None, 0, -1, 1, 2**31, 2**62, -(2**62), 1e300, "x", "9" * 40, b"\xff\xfe", *TEXTS[:8])
                    )
                    value = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
                    base.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {some}', (value,))
                elif kind == 3:
                    base.execute(f'UPDATE "{table}" SET "{column}" = "{other}" WHERE {some}')
                elif kind == 4:
                    step = rng.choice((-(10**9), -1, 1, 10**6, 10**12))
                    base.execute(f'UPDATE "{table}" SET "{column}" = "{column}" + {step} WHERE {some}')
                elif kind == 5:
                    base.execute(f'DELETE FROM "{table}" WHERE {some}')
                elif kind == 6:
                    base.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" WHERE {some}')
                elif rng.random() < 0.5:
                    base.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "gone_{rng.randrange(99)}"')
                else:
                    base.execute(f'DROP TABLE "{table}"')
                    full = [t for t in full if t != table] or ["sqlite_master"]
            except sqlite3.Error:
                continue
        base.commit()
        return base.serialize()


def _changed_tree(rng: random.Random, tree: Any) -> bytes:
    """Change values anywhere in a JSON tree, then now and then its bytes."""
    copy = json.loads(json.dumps(tree))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        node: Any = copy
        while True:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            if not keys:
                break
            key = rng.choice(keys)
            inner = node[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.93:
                node = inner
                continue
            kind = rng.randrange(4)
            if kind == 0:
                del node[key]
            elif kind == 1 and isinstance(node, list):
                node[key:key] = [json.loads(json.dumps(inner)) for _ in range(rng.choice((1, 3)))]
            else:
                node[key] = rng.choice((*NUMBERS, *TEXTS))
            break
    data = json.dumps(copy).encode("utf-8", "surrogatepass")
    return _change_bytes(rng, bytearray(data)) if rng.random() < 0.3 else data


def _cut(found: Any) -> Any:
    """Return a trace with at most MOST_EVENTS events."""
    events = found if isinstance(found, list) else found["traceEvents"]
    if len(events) > MOST_EVENTS:
        # whole stretches, so that launches keep their kernels
        heads = [e for e in events if isinstance(e, dict) and e.get("ph") == "M"][:60]
        timed = sorted(
            (e for e in events if isinstance(e, dict) and isinstance(e.get("ts"), int | float)), key=lambda e: e["ts"]
        )
        first = len(timed) // 3
        events = heads + timed[first : first + MOST_EVENTS]
        if isinstance(found, list):
            return events
        found["traceEvents"] = events
    return found


def mutated(rng: random.Random, seed: Any) -> bytes:
    """Return a trace with a few faults: of its events, then of its bytes."""
    copy = json.loads(json.dumps(seed))
    events = copy if isinstance(copy, list) else copy["traceEvents"]
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        if rng.random() < 0.8 and events:
            _change_events(rng, events)
        elif isinstance(copy, dict):
            key = rng.choice([*copy, "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds"])
            if key != "traceEvents":
                copy[key] = rng.choice((*NUMBERS, *TEXTS, [{}], {"rank": -1}, [{"id": 0, "name": 5}]))
    data = json.dumps(copy).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        data = _change_bytes(rng, bytearray(data))
    return data


def _change_events(rng: random.Random, events: list[Any]) -> None:
    at = rng.randrange(len(events))
    event = events[at] if isinstance(events[at], dict) else {}
    args = event.get("args") if isinstance(event.get("args"), dict) else {}
    kind = rng.randrange(14)
    if kind == 0:
        event[rng.choice(("ts", "dur", "pid", "tid", "id"))] = rng.choice(NUMBERS)
    elif kind == 1 and args:
        args[rng.choice(list(args))] = rng.choice((*NUMBERS, *TEXTS))
    elif kind == 2:
        event[rng.choice(("name", "cat", "ph", "bp"))] = rng.choice(
            (*TEXTS, *NUMBERS[:6], "B", "E", "f", "s", "kernel")
        )
    elif kind == 3:
        events[at:at] = [json.loads(json.dumps(event)) for _ in range(rng.choice((1, 3)))]
    elif kind == 4:
        del events[at : at + rng.choice((1, 5, 50))]
    elif kind == 5:
        rng.shuffle(events)
    elif kind == 6:
        scale = rng.choice((0, 1e-3, -1, 1e6))
        for e in events:
            if isinstance(e, dict) and isinstance(e.get("dur"), int | float) and rng.random() < 0.5:
                e["dur"] *= scale
    elif kind == 7:
        shift = rng.choice((-1e6, -50, 50, 1e12))
        cat = rng.choice(("kernel", "cuda_runtime", "gpu_memcpy", "user_annotation"))
        for e in events:
            if isinstance(e, dict) and e.get("cat") == cat and isinstance(e.get("ts"), int | float):
                e["ts"] += shift
    elif kind == 8:
        field = rng.choice(("stream", "device", "correlation", "context"))
        value = rng.choice((0, 1, 7, -1, 2**32 - 1, "x"))
        for e in events:
            if isinstance(e, dict) and isinstance(e.get("args"), dict) and field in e["args"] and rng.random() < 0.5:
                e["args"][field] = value
    elif kind == 9:
        for e in list(events):
            if (
                isinstance(e, dict)
                and e.get("ph") == "X"
                and isinstance(e.get("ts"), int | float)
                and rng.random() < 0.3
            ):
                e["ph"] = "B"
                events.append(
                    {k: e[k] for k in ("name", "pid", "tid") if k in e}
                    | {"ph": "E", "ts": e["ts"] + (e.get("dur") or 0 if isinstance(e.get("dur"), int | float) else 0)}
                )
    elif kind == 10:
        other = rng.choice(events)
        if isinstance(other, dict):
            for field in ("ts", "dur"):
                if field in other:
                    event[field] = other[field]
    elif kind == 11:
        events.insert(
            at,
            rng.choice(
                (None, 5, "x", [], {}, {"ph": "X"}, {"ph": "X", "ts": 1, "dur": 1, "name": "k", "cat": "kernel"})
            ),
        )
    elif kind == 12:
        keep = rng.choice(("kernel", "cuda_runtime", "gpu_memcpy", "user_annotation", "cpu_op"))
        events[:] = [e for e in events if not isinstance(e, dict) or e.get("cat") == keep or e.get("ph") == "M"] or [{}]
    else:
        name = rng.choice(TEXTS)
        for e in events:
            if isinstance(e, dict) and rng.random() < 0.2:
                e["name"] = name


def _change_bytes(rng: random.Random, data: bytearray) -> bytes:
    for _ in range(rng.choice((1, 3, 20))):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 7, 300))]
        elif kind == 2:
            data[at:at] = rng.choice(
                (b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\0", b"\xff", b"9" * 400, b"[" * 600)
            )
        elif kind == 3:
            data[at:at] = data[at : at + 400]
        else:
            del data[at + rng.randrange(1 + len(data) - at) :]
    return gzip.compress(bytes(data))[: rng.randrange(20, 10**6)] if rng.random() < 0.2 else bytes(data)
