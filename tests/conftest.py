"""Shared fixtures: where the real traces and cases lie, and hypothesis settings that suit two cores."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import traceanalyzer as ta
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.report.public import Report

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a run in the background of a script inherits an ignored Ctrl-C, and so would every process that a test interrupts
    signal.signal(signal.SIGINT, signal.default_int_handler)


_module: list[str] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Take what earlier modules made out of the garbage collector's sight.

    A process with torch, 7,000 tests and a browser in it takes a second for each full collection, and captures ask for three.
    """
    name = item.nodeid.partition("::")[0]
    if _module != [name]:
        _module[:] = [name]
        gc.collect()
        gc.freeze()


SHARED = Path(os.environ.get("TRACEANALYZER_SHARED", Path(__file__).resolve().parents[2] / "shared"))
"""Folder of traces recorded by others and of cases; not part of the repository."""


def shared_files(pattern: str) -> list[Path]:
    """Return the files of the shared folder, none where it is absent."""
    return sorted(SHARED.glob(pattern)) if SHARED.is_dir() else []


@cache
def report_on(path: Path) -> Report:
    """Return the report of a file that no test changes, made once in a process, with the figures that pages need."""
    return ta.analyze(path, options=AnalysisOptions(figures=True))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a trace file: bytes and text as they are, lists and dicts as JSON."""

    def writer(content: Any, name: str = "trace.json") -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            path.write_text(
                json.dumps({"traceEvents": content} if isinstance(content, list) else content), encoding="utf-8"
            )
        return path

    return writer


def pytest_sessionfinish() -> None:
    """Give it back: libraries that count what is left at the end would complain."""
    gc.unfreeze()
