"""The report that fits a screen, its sections, and the lists of output formats."""

from __future__ import annotations

from itertools import pairwise

import pytest
from click.testing import CliRunner

from tests.builders import trace
from tests.conftest import report_on, shared_files
from tests.render.fakes import finding, hostile, kernel, op, report
from traceanalyzer.cli import cli
from traceanalyzer.render import formats
from traceanalyzer.render.base import Renderer, RenderSettings, names, render
from traceanalyzer.render.blocks import Line, Lines
from traceanalyzer.render.console import render_console, render_parts
from traceanalyzer.render.escape import code_spans, wrapped
from traceanalyzer.render.screen import LINES, render_screen
from traceanalyzer.render.sections import SECTIONS

REAL = shared_files("traces/*.json.gz")
PRODUCTS = {name: value for name, value in vars(formats).items() if name.isupper() and isinstance(value, tuple)}


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("text", ["x" * 9000, "\x1b[31m\u202e" * 400, "漢字" * 900, ""])
def test_whatever_a_trace_says_the_report_fits_a_screen(text, width):
    made = hostile(text, rows=40, kernels=500)
    # names of wide letters take two columns a letter; nothing else may take more than a screen
    assert len(render_screen(made, width=width).splitlines()) <= LINES + 50


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("path", REAL, ids=[p.name for p in REAL])
def test_every_real_trace_fits_a_screen(path, width):
    lines = render_screen(report_on(path).data, width=width).splitlines()
    assert len(lines) <= LINES + 4 and max(map(len, lines)) <= width


def test_the_kernels_take_the_room_that_is_left_and_the_rest_is_counted():
    many = [kernel(f"k{n}", share=0.02) for n in range(50)]
    quiet = render_screen(report(kernels=many))
    assert all(f"k{n} " in quiet for n in range(10)) and "Kernels (10 of 50, 20 % of kernel time, medians" in quiet
    loud = render_screen(
        report(kernels=many, ops=[op(f"o{n}") for n in range(9)], findings=[finding(f"TA{n}") for n in range(200, 240)])
    )
    assert "k2 " in loud and len(loud.splitlines()) <= LINES and "Operations (3 of 9" in loud


def test_kernels_below_half_a_percent_take_no_line():
    made = report(kernels=[kernel("large", share=0.99), kernel("small", share=0.0049)])
    assert "small " not in render_screen(made) and "Kernels (1 of 2, 99 % of kernel time" in render_screen(made)


def test_findings_of_one_rule_share_a_line_and_notes_share_another():
    made = report(
        findings=[
            *(finding("TA301", title="sync-in-loop") for _ in range(7)),
            finding("TA504", title="warm-l2", severity="note"),
            finding("TA107", title="heavy-instrumentation", severity="note"),
        ]
    )
    text = render_screen(made)
    assert text.count("TA301") == 2 and "TA301 sync-in-loop (7)" in text and "traceanalyze rule TA301" in text
    assert "notes: TA504 warm-l2, TA107 heavy-instrumentation" in text


def test_full_holds_every_section_and_a_section_holds_nothing_else():
    made = hostile("name", rows=3, kernels=4)
    whole = render_console(made)
    for section in SECTIONS:
        alone = render_console(made, sections=(section.name,))
        assert alone.strip() and len(alone) < len(whole)
        if "nothing to show" not in alone:
            assert alone.strip("\n") in whole


def test_sections_are_chosen_on_the_command_line(tmp_path):
    path = str(trace().loop(12, 40, 5, 10).write(tmp_path / "t.json"))
    run = CliRunner()
    found = run.invoke(cli, ["report", path, "--section", "findings", "--section", "verdict"]).stdout
    assert found.startswith("Suspect:") and "numbers:" in found and "Kernels" not in found
    assert "Dispatch (launch to launch)" in run.invoke(cli, ["report", path, "--full"]).stdout
    for wrong in (["--section", "nothing"], ["--full", "--format", "json"], ["--section", "idle", "--format", "csv"]):
        done = run.invoke(cli, ["report", path, *wrong])
        assert done.exit_code == 2 and not done.stdout


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_each_product_lists_formats_that_exist_with_one_name_each(product):
    listed = PRODUCTS[product]
    assert len(set(names(listed))) == len(listed) and listed[0].name == "text"
    for renderer in listed:
        assert callable(renderer._function(*renderer.place.split(":")))
        assert renderer.extension.startswith(".") and "/" in renderer.media_type


def test_every_format_of_a_report_makes_text_of_it():
    made = report(kernels=[kernel("my_kernel")])
    for name in names(formats.REPORT):
        assert "my_kernel" in render(formats.REPORT, name, made, RenderSettings(top=3))


def test_a_format_that_is_added_to_a_list_is_a_format_of_the_product(monkeypatch):
    import traceanalyzer.render.marker as place

    monkeypatch.setattr(place, "shout", lambda data, settings: f"{data}!" * (settings.top or 1), raising=False)
    added = (*formats.REPORT, Renderer("shout", "text/plain", ".txt", "marker:shout"))
    assert names(added)[-1] == "shout" and render(added, "shout", "x", RenderSettings(top=2)) == "x!x!"


def test_no_line_ends_between_a_number_and_its_unit():
    text = "the device waits 70 ms, 83 % of its span, in 12 calls of 4.5 us, reads 3 GB; `k 3 s` " * 6
    for width in range(20, 90):
        for lines in (wrapped(text, width), render_parts([Lines("", [Line(text)])], width=width).splitlines()):
            assert all(len(line) <= width for line in lines)
            assert " ".join(lines).split() == text.split()
            assert not [
                a for a, b in pairwise(lines) if a[-1].isdigit() and b.split()[0].strip(",;") in ("ms", "%", "us", "GB")
            ]
    assert "83&nbsp;% of" in code_spans(text) and "<code>k 3 s</code>" in code_spans(text)
    assert code_spans("a ` b 3 %") == "a ` b 3&nbsp;%"
