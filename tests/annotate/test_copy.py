"""The annotated copy: every byte of the original is in it, viewers can open it, and it reads as the original does."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.builders import trace
from tests.conftest import shared_files
from tests.kineto_writer import to_json
from traceanalyzer.cli import cli
from traceanalyzer.errors import TraceAnalyzerError

BASE_US = 1_712_195_495_406_752


def loop(n=20, start=1000):
    return trace().loop(n, period=40, latency=5, dur=10, start=start)


def annotate(source, out, *options):
    result = CliRunner().invoke(cli, ["annotate", str(source), "-o", str(out), *options])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def content(path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def report(path):
    return as_compared(ta.analyze(path))


def as_compared(report):
    """Return a report as JSON without what a copy may change: its name, its format, how many events are ours; and without figures."""
    found = json.loads(report.to_json())
    found.pop("figures", None)
    for name in ("name", "format", "annotations"):
        found["trace"].pop(name)
    return found


def same_report(source, tmp_path, name="out.json"):
    out = tmp_path / name
    result = annotate(source, out)
    assert result.exit_code == 0, result.output
    assert report(out) == report(source)
    return out, result


FORMS = {
    "object": '{"schemaVersion": 1, "traceEvents": [%s], "displayTimeUnit": "ns", "baseTimeNanoseconds": 1700000000000000000}',
    "array": "[%s]\n",
    "list in list": "[[%s]]",
    "trace in trace": '{"traceEvents": {"traceEvents": [%s], "a": 1}, "b": 2}',
    "trailing comma": "[%s,]",
    "two trailing commas": '{"traceEvents": [%s , ,]}',
    "blanks": ' \n {"traceEvents" :\n [ %s \n\n ] \n } \n',
    "byte order mark": '\ufeff{"traceEvents": [%s]}',
    "text behind": '{"traceEvents": [%s]} something else',
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_the_original_stands_around_ours_byte_for_byte(write, tmp_path, form, packed):
    body = ",\n".join(to_json(loop().document()).split("[\n")[1].split("\n]")[0].split(",\n"))
    text = FORMS[form].replace("%s", body).encode()
    source = write(gzip.compress(text) if packed else text, "in.json.gz" if packed else "in.json")
    out, _ = same_report(source, tmp_path, "out.json.gz" if packed else "out.json")
    copy = content(out)
    cut = copy.index(b'{"ph":"M","cat":"traceanalyzer"')
    tail = text[text.rindex(body.encode()) + len(body) :].lstrip(b", \n")
    assert copy[:cut].startswith(text[: text.rindex(body.encode()) + len(body)])
    assert copy.endswith(tail), "what stood behind the events stands behind ours"


def test_an_empty_trace_gets_no_comma_too_many(write, tmp_path):
    out, _ = same_report(write('{"traceEvents": [], "deviceProperties": []}'), tmp_path)
    assert json.loads(content(out))["traceEvents"][0]["cat"] == "traceanalyzer"


@pytest.mark.parametrize("cut", range(1, 420, 5))
def test_a_trace_cut_anywhere_is_closed_and_reads_as_the_cut_one(write, tmp_path, cut):
    document = loop(8).document() | {"traceName": "x", "displayTimeUnit": "ms"}
    text = to_json(document).rstrip()
    # to_json writes the events last; here some fields follow them
    head, events = text[: text.index('"traceEvents"')], text[text.index('"traceEvents"') :]
    text = '{"a": 1, ' + events[:-1] + ", " + head[1:].rstrip().rstrip(",") + "}"
    out, result = same_report(write(text[: len(text) - cut]), tmp_path)
    json.loads(content(out))
    assert "the trace breaks off; the copy is closed" in result.output


@pytest.mark.parametrize("keep", [0.5, 0.9, 0.999])
def test_a_damaged_gzip_stream_is_copied_as_far_as_it_goes(write, tmp_path, keep):
    packed = gzip.compress(to_json(loop(200).document()).encode())
    out, _ = same_report(write(packed[: int(len(packed) * keep)], "cut.json.gz"), tmp_path)
    json.loads(content(out))


def test_a_gzip_stream_that_lacks_its_trailer_alone_has_lost_nothing_and_neither_has_the_copy(write, tmp_path):
    packed = gzip.compress(to_json(loop(20).document()).encode())
    source = write(packed[:-4], "cut.json.gz")
    assert not report(source)["trace"]["incomplete"] and "trailer is missing" in report(source)["trace"]["notes"][0]
    out, _ = same_report(source, tmp_path)
    assert not report(out)["trace"]["incomplete"]


def test_damaged_events_stay_as_they_are_and_are_spoken_of(write, tmp_path):
    text = to_json(loop().document()).replace('"name": "k"', '"name": "k\x01\\q"', 1)
    source = write(text)
    out, result = same_report(source, tmp_path)
    assert b"k\x01\\q" in content(out)
    assert "1 damaged event of the original kept in the copy, unchanged" in result.output


def test_annotating_a_copy_replaces_what_was_added(write, tmp_path):
    source = loop().write(tmp_path / "in.json")
    once, twice, thrice = tmp_path / "once.json", tmp_path / "twice.json.gz", tmp_path / "thrice.json"
    annotate(source, once)
    result = annotate(once, twice)
    annotate(twice, thrice)
    assert content(once) == content(twice) == content(thrice)
    added = content(once).count(b'"cat":"traceanalyzer"') + content(once).count(b'"cat": "traceanalyzer"')
    assert f"replaced {added} events of an earlier annotate" in result.output
    assert ta.analyze(once).data.trace.annotations == added


@pytest.mark.parametrize("cut", [5, 60, 100])
def test_annotating_the_copy_of_a_cut_trace_still_says_that_it_was_cut(write, tmp_path, cut):
    source = write(to_json(loop(8).document())[:-cut])
    out, _ = same_report(source, tmp_path)
    again, _ = same_report(out, tmp_path, "again.json")
    assert content(again) == content(out) and report(again) == report(source)
    assert report(again)["trace"]["incomplete"]


def test_a_copy_written_anew_by_another_program_is_still_replaced(write, tmp_path):
    source = write(json.loads(to_json(loop().document())))
    out, other, again = tmp_path / "out.json", tmp_path / "other.json", tmp_path / "again.json"
    annotate(source, out)
    other.write_text(json.dumps(json.loads(content(out)), indent=2))
    assert annotate(other, again).exit_code == 0
    assert report(again) == report(source)
    assert sum(e["name"] == "traceanalyzer_annotations" for e in json.loads(content(again))["traceEvents"]) == 1


def test_annotations_among_other_events_are_refused(write, tmp_path):
    source = write(json.loads(to_json(loop().document())))
    out, mixed = tmp_path / "out.json", tmp_path / "mixed.json"
    annotate(source, out)
    document = json.loads(content(out))
    document["traceEvents"] = document["traceEvents"][::-1]
    mixed.write_text(json.dumps(document))
    result = annotate(mixed, tmp_path / "never.json")
    assert result.exit_code == 2 and "annotated_elsewhere" in result.output and "annotate the original" in result.output
    assert not (tmp_path / "never.json").exists()
    assert report(mixed) == report(source), "reading does not mind where they stand"


def test_a_forged_record_only_ever_adds_doubt(write):
    events = json.loads(to_json(loop().document()))["traceEvents"]
    record = {"ph": "M", "cat": "traceanalyzer", "name": "traceanalyzer_annotations", "pid": 1, "tid": 0}
    for args in (
        {"damaged_byte": 10**30},
        {"incomplete": "no"},
        [],
        {"version": 9, "incomplete": True},
        {"notes": ["all is well"]},
    ):
        found = json.loads(ta.analyze(write([*events, record | {"args": args}])).to_json())
        assert (
            not found["trace"]["notes"]
            and found["trace"]["first_damage_byte"] is None
            and not found["trace"]["salvaged"]
        )
    sound = write([*events, record | {"args": {"incomplete": True, "damaged_byte": 7}}])
    assert ta.analyze(sound).data.trace.incomplete


def test_stamps_of_1e15_microseconds_keep_every_digit(tmp_path):
    source = loop(start=f"{BASE_US}.001").write(tmp_path / "in.json")
    out, _ = same_report(source, tmp_path)
    ours = [
        line for line in content(out).decode().splitlines() if '"cat":"traceanalyzer"' in line and '"ph":"C"' in line
    ]
    assert any(f'"ts":{BASE_US}.001' in line for line in ours), "the first launch raises the queue depth"
    assert "e+" not in content(out).decode()


def test_the_input_is_never_written_over(tmp_path):
    source = loop().write(tmp_path / "in.json")
    before = source.read_bytes()
    link, hard = tmp_path / "link.json", tmp_path / "hard.json"
    link.symlink_to(source)
    os.link(source, hard)
    for name in (source, link, hard, tmp_path / "." / "in.json"):
        result = annotate(source, name)
        assert result.exit_code == 2 and "is the input itself" in result.output
    assert source.read_bytes() == before


def test_standard_input_is_refused_in_a_line():
    result = annotate("-", "out.json")
    assert result.exit_code == 2 and "needs_a_file" in result.output and result.output.count("\n") == 1


@pytest.mark.parametrize("where", ["missing/out.json", "."])
def test_an_output_that_cannot_be_is_one_line(tmp_path, where):
    source = loop().write(tmp_path / "in.json")
    result = annotate(source, tmp_path / where)
    assert result.exit_code == 2 and "cannot_write" in result.output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(tmp_path):
    result = annotate(loop().write(tmp_path / "in.json"), "/dev/full")
    assert result.exit_code == 2 and "No space left" in result.output


def test_a_failure_leaves_the_old_copy_and_no_remains(write, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("old")
    result = annotate(write("no trace"), out)
    assert result.exit_code == 2 and out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "trace.json"]


def test_memory_is_bounded_by_pieces_not_by_the_file(tmp_path, monkeypatch):
    from traceanalyzer.options import ReadLimits
    from traceanalyzer.trace.kineto.splice import Splice

    source = loop(20_000).write(tmp_path / "in.json")
    splice = Splice(source, ReadLimits(chunk_bytes=1 << 16), [])
    held = 0
    for _ in splice.original():
        held = max(held, sum(map(len, splice._held)))
    assert source.stat().st_size > 8 << 20 and held < 1 << 20


@pytest.mark.parametrize("path", shared_files("cases/*/input.json*"), ids=lambda p: p.parent.name)
def test_public_cases_annotate_and_read_the_same(path, tmp_path):
    try:
        ta.read(path)
    except TraceAnalyzerError as error:
        refused = annotate(path, tmp_path / "out.json")
        assert refused.exit_code == 2 and error.kind in refused.output
        return
    same_report(path, tmp_path, "out.json.gz")


def test_the_sidecar_goes_with_the_copy_and_over_no_other_file(tmp_path):
    from traceanalyzer.trace.sidecar import SCHEMA, DeviceFacts, Sidecar, encode_sidecar

    sidecar = Sidecar(SCHEMA, "t", None, "torch", DeviceFacts("cuda"), {}, {}, [], "none", [])
    source = loop().write(tmp_path / "in.json")
    (tmp_path / "in.sidecar.json").write_bytes(encode_sidecar(sidecar))
    out, result = same_report(source, tmp_path)
    assert "out.sidecar.json" in result.output and ta.analyze(out).data.capture is not None
    (tmp_path / "out.sidecar.json").write_text("{}")
    assert "is another sidecar" in annotate(source, out).output
    assert (tmp_path / "out.sidecar.json").read_text() == "{}"


@pytest.mark.parametrize("what", ["a pipe", "a folder", "a link to itself", "a broken link"])
def test_what_is_no_file_in_the_place_of_the_copys_sidecar_is_told_and_left_alone(tmp_path, what):
    from traceanalyzer.trace.sidecar import SCHEMA, DeviceFacts, Sidecar, encode_sidecar

    source, place = loop().write(tmp_path / "in.json"), tmp_path / "out.sidecar.json"
    (tmp_path / "in.sidecar.json").write_bytes(
        encode_sidecar(Sidecar(SCHEMA, "t", None, "torch", DeviceFacts("cuda"), {}, {}, [], "none", []))
    )
    if what == "a pipe":
        os.mkfifo(place)
    elif what == "a folder":
        place.mkdir()
    else:
        place.symlink_to(place if what == "a link to itself" else tmp_path / "nowhere")
    result = annotate(source, tmp_path / "out.json")
    assert result.exit_code == 0
    assert "out.sidecar.json exists already and is no file" in result.output
    assert (tmp_path / "out.json").is_file()


def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = annotate(tmp_path / "pipe", tmp_path / "out.json")
    assert result.exit_code == 2
    assert "needs_a_file: annotate reads its input twice; save the pipe to a file first" in result.output
