"""What a file is that is no trace, by its first bytes: its kind and what to do, never its content.

A file that somebody gave by mistake may hold secrets, and our messages end in public comments: so no byte of it is shown.
Formats that can be read are not in this list; a decoder takes them before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from traceanalyzer.errors import TraceFormatError

HEAD_BYTES = 4096
"""As many bytes at the beginning decide; a tar archive is known by byte 257."""

_CHROME = "give the Chrome JSON that torch.profiler's export_chrome_trace writes"
_NSYS = "export it: nsys export --type sqlite FILE, and give the .sqlite file"
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"NVIDIA Tegra Profiler Report", "a report of Nsight Systems (.nsys-rep)", _NSYS),
    (b"NVR\0", "a report of Nsight Compute (.ncu-rep): counters of single kernels, without a time axis", _CHROME),
    (b"SQLite format 3\0", "an SQLite database in gzip", "unpack it first: gunzip"),
    (bytes(100), "zeros where a header should be: a database whose export was stopped?", "export it again: nsys export --type sqlite FILE"),
    (b"PK\x03\x04", "a zip archive (torch.save writes one too)", "unpack it and give the trace inside"),
    (b"PK\x05\x06", "an empty zip archive", "give the trace itself"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it first: zstd -d"),
    (b"\xfd7zXZ", "xz data", "unpack it first: xz -d"),
    (b"BZh", "bzip2 data", "unpack it first: bunzip2"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and give the trace inside"),
    (b"\x1f\x8b", "gzip data in gzip data", "unpack it once: gunzip"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", "give the trace that the picture shows"),
    (b"\xff\xd8\xff", "a JPEG picture", "give the trace that the picture shows"),
    (b"GIF8", "a GIF picture", "give the trace that the picture shows"),
    (b"%PDF-", "a PDF document", _CHROME),
    (b"\x7fELF", "a program or library (ELF)", _CHROME),
    (b"MZ", "a Windows program", _CHROME),
    (b"PAR1", "a Parquet file", _NSYS),
    (b"ARROW1", "an Arrow file", _NSYS),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _NSYS),
    (b"PERFILE2", "a recording of Linux perf", _CHROME),
)  # fmt: skip
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x95c}\]\(KXU\x8c]", re.S)
_TEXTS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (
        re.compile(rb'\{\s*"schema"\s*:\s*"traceanalyzer\.(?:report|compare|check|ranks|predict|bench)/'),
        "an output that this tool saved, not a trace",
        "give the trace it was made of; traceanalyze compare reads saved reports",
    ),
    (
        re.compile(rb'\{\s*"schema"\s*:\s*"traceanalyzer\.'),
        "a file that this tool wrote beside a trace (a sidecar)",
        "give the trace itself; its sidecar is found beside it",
    ),
    (
        re.compile(rb'\{(?:\s*"(?:pid|time|start_ts|finish_ts)"\s*:\s*[-\d.]+\s*,|\s*"schema"\s*:\s*"[\w.-]{0,40}"\s*,)*\s*"(?:schema"\s*:\s*"\d+\.\d+|nodes"\s*:)'),
        "an execution trace of PyTorch (ExecutionTraceObserver): operators without device times",
        _CHROME,
    ),
    (
        re.compile(rb'\[\s*\{\s*"(?:children|frame|metrics)"\s*:'),
        "a profile of Proton (.hatchet): sums by call path, without a time axis",
        "record with proton.start(..., data=\"trace\") or with torch.profiler, and give the Chrome trace",
    ),
    (
        re.compile(rb'\{\s*"(?:segments|device_traces)"\s*:'),
        "a memory snapshot of PyTorch: allocations, not device work",
        _CHROME,
    ),
    (re.compile(rb"(?i)<!doctype html|<html"), "an HTML page", "give the trace that the page was made of"),
    (re.compile(rb"<\?xml|<svg"), "XML", _CHROME),
    (
        re.compile(rb'"?Time ?\(%\)"?,|"?Start \(ns\)"?,'),
        "a table of nsys stats (CSV): sums, without a time axis",
        "export the report instead: nsys export --type sqlite FILE.nsys-rep",
    ),
    (
        re.compile(rb'\{\s*"(?:Type|type)"\s*:\s*(?:\d+|"String")\s*,'),
        "an export of Nsight Systems as JSON lines",
        "export the report as a database instead: nsys export --type sqlite FILE.nsys-rep",
    ),
    (re.compile(rb'"ID","Process ID"|==PROF=='), "the output of Nsight Compute", _CHROME),
    (re.compile(rb"==\d+== "), "the output of nvprof", _CHROME),
    (re.compile(rb"%?-----BEGIN |ssh-(?:rsa|ed25519) "), "a key or certificate", "give a trace"),
)  # fmt: skip


def recognise(head: bytes) -> tuple[str, str] | None:
    """Return what a file that begins like this is and what to do with it; None for what may be a trace in JSON."""
    for magic, what, hint in _MAGIC:
        if head.startswith(magic):
            return what, hint
    if head[257:262] == b"ustar":
        return "a tar archive", "unpack it and give the trace inside: tar -xf"
    if _PICKLE.match(head):
        return (
            "a Python pickle (memory snapshots of PyTorch are such files); it was not loaded, for loading one runs its code",
            _CHROME,
        )
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for pattern, what, hint in _TEXTS:
        if pattern.match(text):
            return what, hint
    if text[:1] not in (b"{", b"[") and _is_perfetto(head):
        return (
            "a trace of Perfetto in its binary form",
            "convert it: traceconv json FILE OUT.json; or record with torch.profiler",
        )
    return None


def _is_perfetto(head: bytes) -> bool:
    """Return whether the bytes are packets (field 1, length-delimited) whose first fields have numbers and kinds of a TracePacket."""
    at = seen = 0
    while at < len(head) and seen < 8:
        if head[at] != 0x0A:
            return False
        length, begin = _varint(head, at + 1)
        if not length:
            return False
        field, inside = _varint(head, begin)
        # trusted_uid 3, timestamp 8, sequence id 10, defaults, clocks 6, config 33 and the like; kinds 0 to 5
        if inside > len(head):
            return seen > 0
        if not 1 <= field >> 3 <= 1000 or field & 7 not in (0, 1, 2, 5):
            return False
        # XPlane, whose packets look alike, begins with an id (field 1) and a name (field 2)
        if seen == 0 and field >> 3 in (1, 2) and field & 7 in (0, 2):
            return False
        at, seen = begin + length, seen + 1
    return seen > 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(data):
            return value, len(data) + 1
        value |= (data[at + place] & 0x7F) << (7 * place)
        if data[at + place] < 0x80:
            return value, at + place + 1
    return 0, at


def refusing_others(pieces: Iterator[bytes], given: str) -> Iterator[bytes]:
    """Yield the pieces. Raises TraceFormatError where the first of them is of a file that is known and no trace."""
    first = next(pieces, b"")
    while first and len(first) < HEAD_BYTES and (more := next(pieces, b"")):
        first += more
    if (found := recognise(first[:HEAD_BYTES])) is not None:
        what, hint = found
        raise TraceFormatError("unsupported_trace_flavour", f"'{given}' is {what}", hint=hint)
    yield from chain((first,), pieces)
