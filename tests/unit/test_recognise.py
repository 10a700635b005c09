"""Files that are no traces: named by their first bytes, with what to do, and never quoted."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.trace.recognise import recognise

SECRET = b"hunter2-the-secret"


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("trace.json"), io.BytesIO())
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("trace.json", "{}")
    return out.getvalue()


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def packet(body: bytes) -> bytes:
    return b"\x0a" + varint(len(body)) + body


PERFETTO = packet(b"\x18\x00\x40" + varint(123456789) + b"\x50\x01") + packet(b"\x50\x01" + b"\x40" + varint(5)) * 3
XPLANE = packet(b"\x08\x01\x12\x0b/device:GPU")

KINDS = {
    "nsys": (b"NVIDIA Tegra Profiler Report 1.0\n" + SECRET, "Nsight Systems", "nsys export --type sqlite"),
    "ncu": (b"NVR\0\x10\0\0\0" + SECRET, "Nsight Compute", "Chrome JSON"),
    "perfetto": (PERFETTO, "Perfetto", "traceconv json"),
    "proton": (b'[\n  {"children": [], "frame": {"name": "ROOT", "type": "function"}, "metrics": {}}]', "Proton", "data=\"trace\""),
    "execution trace": (b'{"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": []}', "execution trace", "Chrome JSON"),
    "old execution trace": (b'{"pid": 7, "time": "x", "start_ts": 1, "schema": "1.0.1", "nodes": []}'.replace(b'"time": "x", ', b""), "execution trace", "Chrome JSON"),
    "pickle": (pickle.dumps({"segments": [], "x": SECRET}), "pickle", "not loaded"),
    "png": (b"\x89PNG\r\n\x1a\n" + SECRET, "PNG", "trace that the picture shows"),
    "tar": (tar(), "tar archive", "tar -xf"),
    "zip": (zipped(), "zip archive", "unpack"),
    "saved report": (json.dumps({"schema": "traceanalyzer.report/1"}).encode(), "saved", "traceanalyze compare"),
    "nsys stats": (b'"Time (%)","Total Time (ns)","Instances"\n', "nsys stats", "--type sqlite"),
    "key": (b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + SECRET, "key", "trace"),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", KINDS)
def test_a_known_kind_is_named_with_what_to_do(tmp_path, name, packed):
    content, what, hint = KINDS[name]
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(TraceFormatError) as error:
        ta.read(path)
    line = error.value.one_line()
    assert error.value.kind == "unsupported_trace_flavour" and what in line and hint in line
    assert SECRET.decode() not in line and str(path) in line


@pytest.mark.parametrize(
    "content",
    [
        SECRET,
        b'{"' + SECRET + b'": 1}',
        b'{"traceEvents": "' + SECRET + b'"}',
        b'["' + SECRET + b'"]',
        b"[[[[" + SECRET,
    ],
)
def test_no_byte_of_a_file_that_is_no_trace_is_shown(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    try:
        shown = ta.analyze(path).to_json()
    except TraceFormatError as error:
        shown = error.one_line()
    assert SECRET.decode() not in shown


def test_a_pickle_is_not_loaded(tmp_path):
    class Bad:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(Bad()))
    with pytest.raises(TraceFormatError):
        ta.read(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["{}", "[]", "\n{", "\n[", " \n\n[{", "\ufeff{", ""])
def test_what_may_be_a_trace_is_left_to_the_reader(text):
    assert recognise(text.encode()) is None


def test_real_traces_are_none_of_these(tmp_path):
    path = trace().loop(3, 40, 5, 10).write(tmp_path / "t.json")
    assert recognise(path.read_bytes()[:4096]) is None
    assert recognise(b'{"schemaVersion": 1, "traceEvents": [') is None and recognise(XPLANE) is None
