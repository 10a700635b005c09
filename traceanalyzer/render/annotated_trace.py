"""Annotations as Chrome trace events. Times are integers until they are written as decimal text, so none is rounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from traceanalyzer.render.json_v1 import dump
from traceanalyzer.render.ledger import word
from traceanalyzer.report.annotations import AnnotationMark, Annotations, CauseTrack
from traceanalyzer.report.model import FindingRow

CATEGORY = "traceanalyzer"
PID = 1_990_000_000
"""Process number of our tracks: above any real one, within the 32 bits that viewers keep."""
_VERDICT, _FIRST_FINDING, _FIRST_LEDGER = 1, 10, 1_000_000
_LANES = 3
_STEPS_AT_A_TIME = 5000
_TEXT = 300


class _Place(Protocol):
    @property
    def pid(self) -> bytes: ...
    @property
    def tid(self) -> bytes: ...
    @property
    def ts(self) -> bytes: ...


def render_events(found: Annotations, places: Mapping[int, _Place], record: bytes) -> Iterator[bytes]:
    """Yield the events as JSON text, without a comma in front or behind, the pieces to be joined as they are.

    ``places`` tells where the rows of the marks are drawn, by the mark's number; ``record`` is the JSON object that the
    reader of the copy needs, it becomes the arguments of the first event. Every event has the category
    ``traceanalyzer`` and is in a process of its own, except the ends of flows, which are in the row they point at.
    """
    yield b'{"ph":"M","cat":"traceanalyzer","name":"traceanalyzer_annotations","pid":%d,"tid":0,"args":%b}' % (
        PID,
        record,
    )
    yield from (b",\n" + event for event in _heads(found))
    for number, mark in enumerate(found.marks):
        yield from (b",\n" + event for event in _mark(mark, number, places.get(number), _thread(found, mark)))
    for number, causes in enumerate(found.causes):
        yield from _causes(causes, _FIRST_LEDGER + number)
    for track in found.counters:
        label = track.label + (" (thinned)" if len(track.at_ns) < track.of else "")
        head = f'{{"ph":"C","cat":"{CATEGORY}","pid":{PID},"tid":0,"name":{_json(label)},"ts":'
        for low in range(0, len(track.at_ns), _STEPS_AT_A_TIME):
            part = slice(low, low + _STEPS_AT_A_TIME)
            steps = zip(track.at_ns[part].tolist(), track.values[part].tolist(), strict=True)
            names = [_json(name) for name in track.series]
            lines = (
                f',\n{head}{_us(at)},"args":{{{",".join(f"{n}:{v}" for n, v in zip(names, values, strict=True))}}}}}'
                for at, values in steps
            )
            yield "".join(lines).encode("ascii")


def _us(ns: int) -> str:
    """Return nanoseconds as decimal microseconds, every digit of them."""
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _json(value: object) -> str:
    return dump(value, indent=None).rstrip("\n")


def _event(ph: str, tid: int, name: str, **fields: Any) -> bytes:
    """Return one event; ``ts_ns`` and ``dur_ns`` among the fields become decimal text."""
    times = [f'"{key[:-3]}":{_us(fields.pop(key))}' for key in ("ts_ns", "dur_ns") if key in fields]
    text = _json({"ph": ph, "cat": CATEGORY, "name": name, "pid": PID, "tid": tid, **fields})
    return (text[:-1] + "".join("," + t for t in times) + "}").encode("ascii")


def _thread(found: Annotations, mark: AnnotationMark) -> int:
    order = [id(f) for f in found.report.findings]
    return _FIRST_FINDING + _LANES * order.index(id(mark.finding)) + min(mark.lane, _LANES - 1)


def _heads(found: Annotations) -> Iterator[bytes]:
    """Yield names and places of the tracks, the verdict over the whole of the device's time, and findings without a row."""
    yield _event("M", 0, "process_name", args={"name": "traceanalyzer"})
    yield _event("M", 0, "process_sort_index", args={"sort_index": -1})
    threads = {_VERDICT: "verdict"} | {
        _thread(found, m): f"{m.finding.rule} {m.finding.title}: {_short(m.finding.subject)}" for m in found.marks
    }
    for tid, name in threads.items():
        yield _event("M", tid, "thread_name", args={"name": name})
        yield _event("M", tid, "thread_sort_index", args={"sort_index": tid})
    verdict = found.report.verdict
    facts = {"status": verdict.status, "findings": len(found.report.findings)}
    span = {"ts_ns": found.begin_ns, "dur_ns": found.end_ns - found.begin_ns}
    yield _event("X", _VERDICT, _short(verdict.headline), args=facts | {"headline": verdict.headline}, **span)
    for finding in found.findings_without_rows:
        yield _event(
            "i", _VERDICT, f"{finding.rule} {finding.title}", s="t", ts_ns=found.begin_ns, args=_args(finding, "(no row to point at)", "")
        )  # fmt: skip


def _causes(track: CauseTrack, tid: int) -> Iterator[bytes]:
    """Yield the pieces of a device's idle time, each named by what held the device up."""
    yield b",\n" + _event("M", tid, "thread_name", args={"name": f"why {track.device} idles"})
    # between the verdict and the findings
    yield b",\n" + _event("M", tid, "thread_sort_index", args={"sort_index": _VERDICT})
    heads, args = [], []
    for cls, name, within in track.keys:
        title = f"{word(cls)}: {name}" if name else word(cls)
        heads.append(f'{{"ph":"X","cat":"{CATEGORY}","pid":{PID},"tid":{tid},"name":{_json(_short(title))}')
        place = f',"within":{_json(_short(within))}' if within else ""
        args.append(f'"class":{_json(cls)},"name":{_json(_short(name))}{place}')
    reasons = [f'"drained_by":{_json(reason)}' for reason in track.drained_by]
    rows = [f'"row_after":{_json(_short(row))}' for row in track.rows]
    for low in range(0, len(track.start_ns), _STEPS_AT_A_TIME):
        part = slice(low, low + _STEPS_AT_A_TIME)
        columns = (track.start_ns, track.dur_ns, track.key, track.drained, track.before)
        lines = (
            f',\n{heads[key]},"ts":{_us(at)},"dur":{_us(dur)},"args":{{{args[key]},{reasons[why]},{rows[row]}}}}}'
            for at, dur, key, why, row in zip(*(c[part].tolist() for c in columns), strict=True)
        )
        yield "".join(lines).encode("ascii")


def _args(finding: FindingRow, row: str, note: str) -> dict[str, str]:
    return {
        "severity": finding.severity, "grade": finding.grade, "subject": finding.subject, "row": row, "note": note,
        "message": finding.message, "remedy": "; ".join(finding.remedy),
    }  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _mark(mark: AnnotationMark, number: int, place: _Place | None, tid: int) -> Iterator[bytes]:
    """Yield a slice of the row's own time on the finding's track, an instant over all tracks, and a flow to the row."""
    name = f"{mark.finding.rule} {mark.finding.title}"
    args = _args(mark.finding, mark.what, mark.note) | {"at_us": mark.at_us, "number": number + 1}
    yield _event("X", tid, f"{name}: {_short(mark.what)}", ts_ns=mark.start_ns, dur_ns=mark.dur_ns or 0, args=args)
    yield _event("i", tid, name, s="g", ts_ns=mark.start_ns, args={"at_us": mark.at_us, "number": number + 1})
    if place is None:
        return
    flow = f'"cat":"{CATEGORY}","name":"evidence","id":{PID + number}'
    yield f'{{"ph":"s",{flow},"pid":{PID},"tid":{tid},"ts":{_us(mark.start_ns)}}}'.encode("ascii")
    yield b'{"ph":"f","bp":"e",%b,"pid":%b,"tid":%b,"ts":%b}' % (flow.encode("ascii"), place.pid, place.tid, place.ts)
