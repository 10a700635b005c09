"""What the README shows is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_output_shown_is_the_output_made():
    shown = re.search(r"```text\n(.*?)\n```", README, re.S)[1]
    assert shown == (ROOT / "samples" / "golden" / "cpu_bound_loop.txt").read_text(encoding="utf-8").rstrip()


def test_every_exit_code_is_listed():
    from traceanalyzer.errors import ExitCode

    for code in ExitCode:
        assert f"| {int(code)} |" in README


def test_the_limits_are_the_ones_in_force():
    from traceanalyzer.options import GIB, MIB, ReadLimits

    limits = ReadLimits()
    assert f"`--max-bytes` {limits.max_bytes // GIB} GiB" in README
    assert f"`--max-event-bytes` {limits.max_event_bytes // MIB} MiB" in README
    assert f"`--max-depth` {limits.max_depth}" in README and f"`--max-rows` {limits.max_rows // 1_000_000} M" in README


def test_links_point_at_files():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_first_screen_has_the_two_commands():
    head = README.splitlines()[:20]
    assert any("make report" in line for line in head) and any("make test" in line for line in head)
