"""Writes small databases as Nsight Systems exports them: only the tables and columns that a test asks for."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

PROCESS = (1 << 24) | 700


class NsysBuilder:
    """Collects rows; tables have the columns of the rows, as exports of different years have different ones."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def text(self, value: str) -> int:
        return self.strings.setdefault(value, len(self.strings) + 1)

    def add(self, table: str, **columns: Any) -> NsysBuilder:
        self.rows.setdefault(table, []).append(columns)
        return self

    def call(
        self, name: str, start: int, end: int, corr: int, process: int = PROCESS, thread: int = 700, **more: Any
    ) -> NsysBuilder:
        columns = {"start": start, "end": end, "eventClass": 0, "globalTid": process << 24 | thread}
        columns |= {"correlationId": corr, "nameId": self.text(name)}
        return self.add("CUPTI_ACTIVITY_KIND_RUNTIME", **(columns | more))

    def kernel(self, name: str, start: int, end: int, corr: int, process: int = PROCESS, **more: Any) -> NsysBuilder:
        columns = {
            "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": corr,
            "globalPid": process << 24, "demangledName": self.text(name), "shortName": self.text(name.split("(", maxsplit=1)[0]),
            "registersPerThread": 32, "gridX": 128, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1,
            "staticSharedMemory": 16, "dynamicSharedMemory": 32,
        }  # fmt: skip
        return self.add("CUPTI_ACTIVITY_KIND_KERNEL", **(columns | more))

    def memory(
        self, table: str, start: int, end: int, corr: int | None, process: int = PROCESS, **more: Any
    ) -> NsysBuilder:
        columns = {
            "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": corr,
            "globalPid": process << 24, "bytes": 4096,
        }  # fmt: skip
        return self.add(f"CUPTI_ACTIVITY_KIND_{table}", **(columns | more))

    def nvtx(self, text: str, start: int, end: int | None, kind: int = 59, by_id: bool = False) -> NsysBuilder:
        columns = {"start": start, "end": end, "eventType": kind, "globalTid": PROCESS << 24 | 700}
        named = {"text": None, "textId": self.text(text)} if by_id else {"text": text, "textId": None}
        return self.add("NVTX_EVENTS", **(columns | named))

    def write(self, path: Path) -> Path:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
            for table, rows in self.rows.items():
                columns = list(dict.fromkeys(c for row in rows for c in row))
                typed = ", ".join(f'"{c}" {"TEXT" if c in ("text", "name", "value") else "INTEGER"}' for c in columns)
                db.execute(f"CREATE TABLE {table} ({typed})")
                marks = ", ".join("?" * len(columns))
                db.executemany(f"INSERT INTO {table} VALUES ({marks})", [[r.get(c) for c in columns] for r in rows])
            db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, s) for s, i in self.strings.items()])
        db.close()
        return path
