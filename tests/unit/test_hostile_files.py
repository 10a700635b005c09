"""Files that break readers: each is recovered with a count, or refused in one line with a place and a kind."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.kineto.stream import EventStream
from traceanalyzer.trace.salvage import Salvage


def call(at, corr, **other):
    args = {"correlation": corr}
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": at,
        "dur": 2,
        "args": args,
    } | other


def kernel(at, dur, corr, **other):
    args = {"device": 0, "stream": 7, "correlation": corr}
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": args} | other


def pairs(n, start=100):
    return [e for i in range(n) for e in (call(start + 20 * i, i + 1), kernel(start + 20 * i + 5, 10, i + 1))]


def text_of(events) -> str:
    return json.dumps({"traceEvents": events})


def report(path, **limits):
    options = ta.AnalysisOptions(limits=ReadLimits(**limits)) if limits else None
    return ta.analyze(path, options=options).to_dict()


def kernels(path, **limits) -> int:
    return report(path, **limits)["trace"]["kernels"]


# -- recovered ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, 400, 7))
def test_a_file_cut_anywhere_gives_whole_events_and_says_incomplete(write, cut):
    text = text_of(pairs(8))
    kept = text[: len(text) - cut]
    trace = report(write(kept))["trace"]
    assert trace["incomplete"]
    assert trace["kernels"] == kept.count('"cat": "kernel"') - (1 if _cut_inside_kernel(kept) else 0)


def _cut_inside_kernel(text: str) -> bool:
    last = text[text.rfind('{"ph"') :]
    return '"cat": "kernel"' in last and "}}" not in last


def test_a_file_cut_before_its_events_is_refused_with_the_place(write):
    with pytest.raises(TraceFormatError) as error:
        ta.read(write('{"schemaVersion": 1, "deviceProp'))
    assert error.value.kind == "truncated" and error.value.offset is not None


def test_unclosed_array_is_recovered(write):
    text = json.dumps(pairs(3))
    trace = report(write(text[:-1]))["trace"]
    assert trace["kernels"] == 3 and trace["incomplete"]


@pytest.mark.parametrize("text", ["[%s,]", "[,%s]", '{"traceEvents":[%s,]}', '{"traceEvents":[%s],}', "[%s,,%s]"])
def test_stray_commas_lose_nothing(write, text):
    body = json.dumps(pairs(2))[1:-1]
    found = report(write(text.replace("%s", body)))["trace"]
    assert found["kernels"] == 2, "a body that stands there twice counts once"


@pytest.mark.parametrize("bad", [r"C:\kernels\utils", r"\x41", "\\u12", "a\x01\x02b", "tab\tinside", "line\nbreak"])
def test_bad_escapes_and_control_bytes_lose_no_event(write, bad):
    events = pairs(3)
    events.insert(3, {"ph": "X", "cat": "python_function", "name": "NAME", "pid": 1, "tid": 1, "ts": 1, "dur": 1})
    trace = report(write(text_of(events).replace("NAME", bad)))["trace"]
    assert trace["kernels"] == 3 and sum(trace["repaired"].values()) == 1


def test_a_windows_folder_whose_backslash_hides_the_quote(write):
    events = pairs(3)
    events.insert(2, {"ph": "X", "cat": "python_function", "name": "NAME", "pid": 1, "tid": 1, "ts": 1, "dur": 1})
    assert kernels(write(text_of(events).replace("NAME", "C:\\dir\\"))) == 3


def test_invalid_utf8_in_a_kernel_name_is_replaced_and_counted(write):
    data = text_of(pairs(2)).encode().replace(b'"name": "k"', b'"name": "k\xff\xfe"')
    found = report(write(data))
    assert found["kernels"][0]["name"] == "k\ufffd\ufffd" and found["kernels"][0]["count"] == 2
    assert found["trace"]["repaired"]["name_bytes"] == 2


@pytest.mark.parametrize("surrogate", ["\\ud800", "\\udfff x"])
def test_lone_surrogates_survive(write, surrogate):
    assert kernels(write(text_of(pairs(2)).replace('"name": "k"', f'"name": "{surrogate}"'))) == 2


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "null", '"soon"', "true", "[1]", "{}", "1e400", '""', "0x10"]
)
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_a_row_without_a_usable_time_is_left_out_and_counted(write, field, value):
    events = pairs(4)
    events[3][field] = "HERE"
    found = report(write(text_of(events).replace('"HERE"', value)))
    assert found["trace"]["kernels"] == 3 and found["trace"]["kernel_total_us"] == 30.0
    assert sum(n for r, n in found["trace"]["excluded"].items() if r.startswith("kernel:")) == 1
    assert "TA104" in {f["rule"] for f in found["findings"]}


@pytest.mark.parametrize("value", [-1, -1.66e15, 1e15])
def test_impossible_durations_never_enter_a_sum(write, value):
    events = pairs(4)
    events[5]["dur"] = value
    found = report(write(events))
    assert found["trace"]["kernel_total_us"] == 30.0 and found["kernels"][0]["min_us"] == 10.0


@pytest.mark.parametrize("value", [-5, 0, 9e15, 1.7e18, 1e300])
def test_absurd_stamps_make_no_gap_of_years(write, value):
    events = pairs(6, start=1_700_000_000_000_000)
    events[5]["ts"] = value
    found = report(write(events))
    assert found["trace"]["kernels"] == 5 and found["devices"][0]["span_us"] < 200


def test_string_numbers_are_numbers(write):
    events = [e | {"ts": str(e["ts"]), "dur": str(e["dur"]), "pid": str(e["pid"])} for e in pairs(3)]
    for e in events:
        e["args"] = {k: str(v) for k, v in e["args"].items()}
    found = report(write(events))
    assert (found["trace"]["kernels"], found["trace"]["linked"], found["streams"][0]["stream"]) == (3, 3, 7)


def test_begin_and_end_events_pair_up(write):
    events = []
    for e in pairs(3):
        end = {"ph": "E", "pid": e["pid"], "tid": e["tid"], "ts": e["ts"] + e["dur"]}
        events += [{k: v for k, v in e.items() if k != "dur"} | {"ph": "B"}, end]
    found = report(write(events))
    assert (
        found["trace"]["kernels"] == 3 and found["trace"]["kernel_total_us"] == 30.0 and found["trace"]["linked"] == 3
    )


def test_lonely_halves_are_counted(write):
    events = [*pairs(2), {"ph": "B", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 500}]
    assert report(write(events))["trace"]["excluded"] == {"lonely": 1}


@pytest.mark.parametrize("element", ["null", "1", '"x"', "[]", "[1,2]", "true", "{}"])
def test_elements_that_are_no_events_are_skipped(write, element):
    body = json.dumps(pairs(3))[1:-1]
    assert kernels(write(f'{{"traceEvents":[{element},{body},{element}]}}')) == 3


def test_missing_correlation_keeps_device_numbers(write):
    events = pairs(3)
    del events[3]["args"]["correlation"]
    found = report(write(events))
    assert (found["trace"]["kernels"], found["trace"]["linked"]) == (3, 2)
    assert found["coverage"]["reasons"] == {"device rows without a usable correlation id": 1}


def test_a_duplicate_correlation_links_nothing(write):
    events = [*pairs(3), call(90, 2)]
    found = report(write(events))
    assert found["trace"]["linked"] == 2
    assert found["coverage"]["reasons"] == {"device rows whose correlation id several calls of one process share": 1}


def test_a_driver_call_inside_its_runtime_call_is_one_launch(write):
    inner = call(100.5, 1, cat="cuda_driver", name="cuLaunchKernel", dur=1)
    found = report(write([*pairs(2), inner]))
    assert found["trace"]["linked"] == 2 and found["coverage"]["by_api"][0]["api"] == "cudaLaunchKernel"


def test_names_full_of_brackets_do_not_move_a_boundary(write):
    evil = 'x}, {"ph": "X"}], "traceEvents": [ {\\" }}]}'
    events = [e | {"name": evil} if e["cat"] == "kernel" else e for e in pairs(200)]
    for e in events:
        e["args"]["note"] = [{"a": [1, {"b": "},{"}]}, {"ph": "X"}]
    path = write(events)
    for chunk in (97, 1000, 4 << 20):
        assert kernels(path, chunk_bytes=chunk) == 200
    assert report(path)["kernels"][0]["name"] == evil


def test_fields_named_like_the_events_do_not_fool_the_header(write):
    head = {"metadata": {"traceEvents": [1, 2], "note": '"traceEvents": [{'}, 'a"traceEvents': 3}
    assert kernels(write(head | {"traceEvents": pairs(2)})) == 2


def test_events_may_stand_first_or_last(write):
    assert (
        kernels(write({"traceEvents": pairs(2), "deviceProperties": [{"id": 0, "name": "G"}, {"id": 1, "name": "H"}]}))
        == 2
    )
    found = report(write({"deviceProperties": [{"id": 0, "name": "G"}], "traceEvents": pairs(2)}))
    assert found["trace"]["devices"][0]["name"] == "G"


def test_bom_and_white_space_before_the_trace(write):
    assert kernels(write(b"\xef\xbb\xbf\n\n  " + text_of(pairs(2)).encode())) == 2


def test_text_behind_the_trace_is_noted(write):
    found = report(write(text_of(pairs(2)) + "\nkilled\n"))["trace"]
    assert found["kernels"] == 2 and "not read" in found["notes"][0]


def test_a_missing_comma_between_events_loses_nothing(write):
    assert kernels(write(text_of(pairs(3)).replace("}}, {", "}} {", 1))) == 3


def test_a_10_mb_name_is_one_event(write):
    events = pairs(2)
    events[1]["name"] = "n" * 10_000_000
    assert kernels(write(events)) == 2


def test_an_event_over_the_limit_is_left_out_with_its_place_and_the_rest_is_read(write):
    events = pairs(3)
    events[1]["name"] = "n" * 100_000
    text = text_of(events)
    trace = report(write(text), max_event_bytes=10_000, chunk_bytes=4096)["trace"]
    assert trace["kernels"] == 2 and trace["launches"] >= 2 and not trace["incomplete"]
    place = text.index('{"ph"', text.index('{"ph"') + 1)
    assert any("event_too_large" in n and f"byte {place} " in n and "--max-event-bytes" in n for n in trace["notes"])
    assert sum(n for r, n in trace["excluded"].items() if r.startswith("event_too_large")) == 1


@pytest.mark.parametrize("where", ["head", "foot"])
@pytest.mark.parametrize("value", ["s" * 50_000, ["x"] * 20_000, 10**4000])
def test_a_field_over_the_limit_is_left_out_and_the_others_are_read(write, where, value):
    fields = {"traceName": value, "deviceProperties": [{"id": 0, "name": "G"}]}
    document = fields | {"traceEvents": pairs(2)} if where == "head" else {"traceEvents": pairs(2)} | fields
    limit = 2_000 if isinstance(value, int) else 10_000
    trace = report(write(document), max_event_bytes=limit, chunk_bytes=4096)["trace"]
    assert trace["kernels"] == 2 and not trace["incomplete"] and trace["devices"][0]["name"] == "G"
    assert any("event_too_large" in n and "field" in n for n in trace["notes"])


# -- compressed -----------------------------------------------------------------------------------------


def test_gzip_of_several_members(write):
    data = text_of(pairs(4)).encode()
    assert kernels(write(gzip.compress(data[:300]) + gzip.compress(data[300:]), "t.json.gz")) == 4


def test_gzip_is_known_by_its_bytes_not_its_name(write):
    assert kernels(write(gzip.compress(text_of(pairs(2)).encode()), "trace.json")) == 2


def test_cut_gzip_gives_its_sound_part(write):
    events = [e | {"name": os.urandom(8).hex()} if e["cat"] == "kernel" else e for e in pairs(400)]
    data = gzip.compress(text_of(events).encode())
    trace = report(write(data[: len(data) // 2], "t.json.gz"))["trace"]
    assert trace["incomplete"] and 100 < trace["kernels"] < 400
    assert any("gzip" in n for n in trace["notes"])


def test_damaged_gzip_is_not_silent(write):
    data = bytearray(gzip.compress(text_of(pairs(400)).encode()))
    data[-5] ^= 0xFF
    assert report(write(bytes(data), "t.json.gz"))["trace"]["incomplete"]


def test_a_gzip_bomb_meets_the_limit_early(write):
    path = write(gzip.compress(b" " * 50_000_000), "bomb.json.gz")
    tracemalloc.start()
    with pytest.raises(TraceFormatError) as error:
        ta.read(path, ReadLimits(max_bytes=20_000_000, max_event_bytes=30_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.value.kind == "too_large" and "--max-bytes" in error.value.hint and peak < 60_000_000


def test_megabytes_of_white_space_take_no_memory_and_end_as_incomplete(write):
    path = write("[" + " " * 20_000_000)
    tracemalloc.start()
    trace = ta.read(path, ReadLimits(chunk_bytes=1 << 16))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert trace.meta.salvage.incomplete and peak < 5_000_000


# -- nested ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2_000, 5_000, 200_000])
def test_a_depth_bomb_in_one_event_is_dropped_and_counted(write, depth):
    body = json.dumps(pairs(3))[1:-1]
    bomb = '{"ph":"X","cat":"cpu_op","name":"b","ts":1,"dur":1,"args":{"x":' + "[" * depth + "]" * depth + "}}"
    trace = report(write(f'{{"traceEvents":[{bomb},{body}]}}'))["trace"]
    assert trace["kernels"] == 3 and sum(trace["excluded"].values()) == 1
    assert next(iter(trace["excluded"])).startswith("too_deep:")


def test_max_depth_can_be_raised(write):
    bomb = '{"ph":"X","cat":"cpu_op","name":"b","ts":1,"dur":1,"args":{"x":' + "[" * 3000 + "]" * 3000 + "}}"
    path = write(f"[{bomb}]")
    assert len(ta.read(path).host_ops) == 0
    assert len(ta.read(path, ReadLimits(max_depth=4000)).host_ops) == 1


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 50 + "]" * 50, '{"traceEvents":' * 50])
def test_a_file_that_is_only_depth_is_refused(write, text):
    with pytest.raises(TraceFormatError):
        ta.read(write(text))


def test_a_trace_in_a_trace_is_unwrapped_with_a_note(write):
    trace = report(write({"traceEvents": {"traceEvents": pairs(2)}}))["trace"]
    assert trace["kernels"] == 2 and "unwrapped" in trace["notes"][0]


def test_a_list_in_a_list_is_unwrapped_with_a_note(write):
    trace = report(write(json.dumps([pairs(2)])))["trace"]
    assert trace["kernels"] == 2 and trace["notes"]


# -- refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", "empty_file"),
        ("   \n ", "empty_file"),
        ("hello", "not_json"),
        ("<html>", "unsupported_trace_flavour"),
        ("null", "not_json"),
        ("{}", "not_a_trace"),
        ('{"traceEvents": 3}', "not_a_trace"),
        ('{"traceEvents": null}', "not_a_trace"),
        ('{"events": []}', "not_a_trace"),
        (b"SQLite format 3\0", "damaged_database"),
        (b"PK\x03\x04zip", "unsupported_trace_flavour"),
        ("x".encode("utf-16"), "unsupported_trace_flavour"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(write, content, kind):
    with pytest.raises(TraceFormatError) as error:
        ta.read(write(content))
    assert error.value.kind == kind
    line = error.value.one_line()
    assert "\n" not in line and line.startswith(kind) and ";" in line


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', "[{}]", '{"traceEvents":[{"ph":"M"}]}'])
def test_an_empty_trace_is_cannot_judge_and_has_no_zero(write, text):
    found = report(write(text))
    assert found["verdict"]["status"] == "cannot-judge"
    assert found["trace"]["kernel_total_us"] is None and found["trace"]["kernel_p50_us"] is None


def test_too_many_rows_are_refused(write):
    with pytest.raises(TraceFormatError) as error:
        kernels(write(pairs(50)), max_rows=60)
    assert "--max-rows" in error.value.hint


# -- properties -----------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_random_bytes_end_in_a_report_or_one_line(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("random") / "t.json"
    path.write_bytes(data)
    try:
        ta.analyze(path)
    except TraceFormatError as error:
        assert "\n" not in error.one_line()


_CLEAN = text_of(pairs(5)).encode()


@given(st.integers(0, len(_CLEAN) - 1), st.binary(max_size=4), st.integers(0, 6))
def test_a_damaged_stretch_never_ends_in_a_traceback_or_in_silence(tmp_path_factory, at, noise, cut):
    path = tmp_path_factory.mktemp("damaged") / "t.json"
    path.write_bytes(_CLEAN[:at] + noise + _CLEAN[at + cut :])
    try:
        found = ta.analyze(path).to_dict()
    except TraceFormatError as error:
        assert error.one_line()
        return
    assert found["trace"]["kernels"] <= 6
    if found["trace"]["kernels"] < 5:
        trace = found["trace"]
        told = (
            trace["excluded"]
            or trace["notes"]
            or trace["incomplete"]
            or trace["unknown_categories"]
            or trace["skipped"]
        )
        assert told


@given(st.integers(1, 4000), st.integers(0, 60))
def test_the_size_of_pieces_changes_nothing(piece, n):
    text = text_of(pairs(n)).encode()
    stream = EventStream(iter([text[i : i + piece] for i in range(0, len(text), piece)]), "t", ReadLimits(), Salvage())
    rows = [r for batch in stream.batches() for r in batch]
    assert len(rows) == 2 * n and not stream.salvage.touched


def test_python_rows_of_a_hundred_megabytes_cost_no_memory():
    """The recipe of case C42, streamed: five launches and kernels among twenty Python frames each."""
    frame = {
        "ph": "X",
        "cat": "python_function",
        "name": "f" * 200,
        "pid": 1,
        "tid": 1,
        "ts": 1,
        "dur": 1,
        "args": {"Python id": 1},
    }

    def pieces():
        yield b'{"traceEvents":['
        for block in range(40):
            events = []
            for i in range(500):
                corr = block * 500 + i
                events += [call(10 * corr + 100, corr + 1), kernel(10 * corr + 106, 5, corr + 1), *[frame] * 20]
            yield (json.dumps(events)[1:-1] + ("," if block < 39 else "")).encode()
        yield b"]}"

    from traceanalyzer.analysis.pipeline import analyse
    from traceanalyzer.trace.assemble import assemble
    from traceanalyzer.trace.kineto.columns import Columns, new_store
    from traceanalyzer.trace.kineto.finish import finish

    salvage = Salvage()
    stream = EventStream(pieces(), "t", ReadLimits(), salvage)
    columns = Columns(new_store("t", ReadLimits(), salvage))
    for batch in stream.batches():
        columns.add(batch)
    finish(columns)
    trace = assemble(columns.store)
    assert trace.meta.skipped["python_function"] == 400_000 and len(trace.activities) == 20_000
    analysis = analyse(trace)
    assert analysis.kernels[0].time.p50_ns == 5000 and analysis.kernels[0].latency_p50_ns == 6000
    assert np.median(analysis.threads[0].kernel_dispatch_ns) == 10_000
