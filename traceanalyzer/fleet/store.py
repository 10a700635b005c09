"""The results of a fleet as Parquet: parts that are whole or not there, a manifest of those that count, and merging.

``RESULTS/TABLE/part-N.parquet`` holds rows of many traces. A batch writes its parts under hidden names, moves them to their places,
and then replaces ``RESULTS/fleet.json``, which lists the parts that count: a stop at any moment leaves the batch out or has all of
it. Parts that no manifest lists are removed when the folder is next opened for writing. Small parts are merged as they add up.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from traceanalyzer.errors import OptionError, TraceAnalyzerError, TraceFormatError
from traceanalyzer.fleet.scan import MANIFEST
from traceanalyzer.fleet.tables import SCHEMA, TABLES, Row

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError:
    raise OptionError(
        "missing_extra",
        "fleet needs pyarrow and duckdb, which are not installed",
        hint="install the extra: pip install '.[fleet]'",
    ) from None

MOST_PARTS = 32
"""Parts of a table that may lie side by side before they are merged."""
PART_ROWS = 4_000_000
"""A merged part takes no further rows beyond this."""
GROUP_ROWS = 128_000
_KINDS = {"string": pa.string(), "int64": pa.int64(), "int32": pa.int32(), "float64": pa.float64(), "bool": pa.bool_()}
_LOCK = ".lock"
_PART = re.compile(r"part-[0-9]{1,18}\.parquet")


def schema_of(table: str) -> pa.Schema:
    """Return the Arrow schema of a table, with what each column means as metadata."""
    fields = [pa.field(c.name, _KINDS[c.kind], nullable=not c.required, metadata={"doc": c.doc}) for c in TABLES[table]]
    return pa.schema(fields, metadata={"schema": SCHEMA, "table": table})


def to_stream(table: str, rows: Sequence[Row]) -> bytes:
    """Return rows as an Arrow stream."""
    schema = schema_of(table)
    arrays = [pa.array([row.get(f.name) for row in rows], type=f.type) for f in schema]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())


def of_stream(data: bytes) -> pa.Table:
    """Return the table of a stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


class Results:
    """A folder of results, opened for reading. Raises TraceFormatError where it is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            found = json.loads((folder / MANIFEST).read_bytes())
            parts = {table: list(found["parts"].get(table, [])) for table in TABLES}
            sound = found["schema"] == SCHEMA and all(_is_part(p) for names in parts.values() for p in names)
            sound = sound and isinstance(found.get("settings", {}), dict)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise TraceFormatError(
                "no_results",
                f"'{folder}' holds no results of this version ({SCHEMA})",
                hint="make them: traceanalyze fleet DIR -o RESULTS",
            )
        self.parts: dict[str, list[str]] = parts
        self.settings: dict[str, Any] = found.get("settings", {})

    def files(self, table: str) -> list[Path]:
        """Return the Parquet files of a table."""
        return [self.folder / table / part for part in self.parts[table]]

    def read(self, table: str, columns: list[str]) -> pa.Table:
        """Return some columns of a table."""
        found = [_read(path, columns) for path in self.files(table)]
        schema = pa.schema([schema_of(table).field(c).remove_metadata() for c in columns])
        return pa.concat_tables([t.cast(schema) for t in found]) if found else schema.empty_table()

    def done(self) -> dict[str, tuple[str, str]]:
        """Return of each run its file and the code of its fault, empty for none."""
        runs, faults = (
            self.read("runs", ["run", "file"]).to_pydict(),
            self.read("faults", ["run", "file", "code"]).to_pydict(),
        )
        found = {run: (file, "") for run, file in zip(runs["run"], runs["file"], strict=True)}
        return found | {r: (f, c) for r, f, c in zip(faults["run"], faults["file"], faults["code"], strict=True)}


def _is_part(name: object) -> bool:
    return isinstance(name, str) and _PART.fullmatch(name) is not None


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        check_part(path, path.parent.name)
        return pq.ParquetFile(path, page_checksum_verification=True).read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from None


def check_part(path: Path, table: str) -> None:
    """Raise TraceFormatError where a part is not there, cannot be read, or holds another table than this."""
    if not path.is_file():
        raise TraceFormatError(
            "bad_results",
            f"'{table}/{path.name}' of the results is not there",
            hint="ask again if fleet is at work, else make them again with --fresh",
        )
    try:
        found = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from None
    if not found.equals(schema_of(table)) or (found.metadata or {}).get(b"table") != table.encode():
        raise damaged(path, ValueError("its columns are those of another table or version"))


def damaged(path: Path, error: Exception) -> TraceFormatError:
    """Return the error of a part that cannot be read."""
    text = " ".join(str(error).split())[:120].replace(str(path), path.name)
    return TraceFormatError(
        "bad_results",
        f"'{path.parent.name}/{path.name}' of the results cannot be read ({text})",
        hint="make the results again with --fresh",
    )


class ResultsWriter(Results):
    """A folder of results, opened for writing by one process at a time. Use as a context."""

    def __init__(self, folder: Path, settings: dict[str, Any], *, fresh: bool = False) -> None:
        self._lock = _locked(folder)
        try:
            if fresh or not (folder / MANIFEST).exists():
                _refuse_foreign(folder, {_LOCK, MANIFEST, *TABLES} if fresh else {_LOCK})
                self.folder, self.parts, self.settings = folder, {t: [] for t in TABLES}, settings
                self._save()
            super().__init__(folder)
            self._sweep()
        except OSError as error:
            self._lock.close()
            raise OptionError(
                "cannot_write", f"'{folder}': {error.strerror}", hint="give another folder to -o"
            ) from None
        except TraceAnalyzerError:
            self._lock.close()
            raise
        self._next = 1 + max((int(p[5:-8]) for parts in self.parts.values() for p in parts), default=0)

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def add(self, batch: dict[str, list[pa.Table]]) -> None:
        """Add a batch of rows: all of it or, where the process ends within, nothing."""
        number, written = self._next, []
        self._next += 1
        for table, found in batch.items():
            if found:
                merged = pa.concat_tables(found)
                written.append((table, self._write(table, number, iter(merged.to_batches(max_chunksize=GROUP_ROWS)))))
        self._commit({table: [*self.parts[table], name] for table, name in written})
        for table in TABLES:
            if len(self.parts[table]) > MOST_PARTS:
                self._merge(table)

    def drop(self, runs: Collection[str]) -> None:
        """Take the rows of some runs out of every table."""
        if runs:
            for table in TABLES:
                self._merge(table, set(runs), whole=True)

    def compact(self) -> None:
        """Merge the parts of every table, so that each but the last holds many rows."""
        for table in TABLES:
            if len(self.parts[table]) > 1:
                self._merge(table, whole=True)

    def _merge(self, table: str, without: Collection[str] = (), *, whole: bool = False) -> None:
        """Merge parts of a table into one; those that are full stay, unless rows have to go from them."""
        names, rows = self.parts[table], {}
        for name in names:
            rows[name] = pq.read_metadata(self.folder / table / name).num_rows
        mine = names if without else [n for n in names if rows[n] < PART_ROWS]
        if not whole:  # of many parts the small ones: each row is written a few times, not once a merge
            mine = sorted(mine, key=rows.__getitem__)[: MOST_PARTS // 2 + 1]
        if len(mine) < 2 and not without:
            return
        number = self._next
        self._next += 1
        name = self._write(table, number, self._batches(table, mine, without))
        kept = [n for n in names if n not in mine]
        self._commit({table: [*kept, name]})
        for old in mine:
            (self.folder / table / old).unlink(missing_ok=True)

    def _batches(self, table: str, names: Sequence[str], without: Collection[str]) -> Iterator[pa.RecordBatch]:
        gone = pa.array(sorted(without), type=pa.string())
        for name in names:
            path = self.folder / table / name
            try:
                for batch in pq.ParquetFile(path, page_checksum_verification=True).iter_batches(batch_size=GROUP_ROWS):
                    kept = batch.filter(pc.invert(pc.is_in(batch.column("run"), value_set=gone))) if without else batch
                    yield pa.RecordBatch.from_arrays(kept.columns, schema=schema_of(table))
            except (OSError, pa.ArrowException) as error:
                raise damaged(path, error) from None

    def _write(self, table: str, number: int, batches: Iterator[pa.RecordBatch]) -> str:
        name = f"part-{number:06}.parquet"
        place = self.folder / table / name
        place.parent.mkdir(exist_ok=True)
        partial = place.with_name(f".{name}.part")
        schema = schema_of(table)
        with pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True) as writer:
            held: list[pa.RecordBatch] = []
            for batch in batches:
                held.append(batch)
                if sum(b.num_rows for b in held) >= GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(held, schema))
                    held = []
            if held:
                writer.write_table(pa.Table.from_batches(held, schema))
        partial.replace(place)
        return name

    def _commit(self, changed: dict[str, list[str]]) -> None:
        self.parts |= changed
        self._save()

    def _save(self) -> None:
        partial = self.folder / f".{MANIFEST}.part"
        with partial.open("w", encoding="utf-8") as file:
            json.dump({"schema": SCHEMA, "settings": self.settings, "parts": self.parts}, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.folder / MANIFEST)

    def _sweep(self) -> None:
        """Remove what a stopped process left half-way."""
        for table in TABLES:
            for path in (self.folder / table).glob("*part*"):
                if path.name not in self.parts[table]:
                    path.unlink(missing_ok=True)


def _refuse_foreign(folder: Path, ours: set[str]) -> None:
    """Raise OptionError where a folder holds anything but files of these names; hidden files that a stop left are ours."""
    if any(p.name not in ours and not p.name.endswith(".part") for p in folder.iterdir()):
        raise OptionError(
            "would_overwrite",
            f"'{folder}' is not empty and holds no results of a fleet",
            hint="give a new folder to -o",
        )


def _locked(folder: Path) -> IO[str]:
    """Return the lock of a folder, which is made where it is not there. Raises OptionError where another process holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise OptionError("cannot_write", f"'{folder}': {error.strerror}", hint="give a folder to -o") from None
    with contextlib.suppress(ImportError):  # Windows has no such lock
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise OptionError(
                "in_use", f"another process writes to '{folder}'", hint="wait for it, or give another folder to -o"
            ) from None
    return file
