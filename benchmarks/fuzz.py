"""Mutates traces and looks at every output: no crash, no hang, no negative time, no share over 100 %, no NaN in JSON.

Usage: python benchmarks/fuzz.py [--inputs N] [--seed S] [--limit SECONDS] [--keep DIR] [--seconds T] [TRACE ...]

Without TRACE the samples of this repository are mutated. The same seed makes the same inputs. Exit code 1 if anything is found;
``--keep`` writes each input that shows a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from mutations import Seed  # noqa: E402

TIMES_THAT_MAY_BE_NEGATIVE = re.compile(
    r"(?:\A|_)(?:at|start|skew|offset|difference|delta|change|early|excess|error|saved|drift|slack|lead)(?:_|\Z)"
)
SHARE = re.compile(r"(?:share|_fraction|busy)\Z")


class Hang(BaseException):
    """An input took longer than the limit. No Exception, so that no rule's own handler takes it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise Hang when the body takes longer; seconds of wall clock."""

    def ring(number: int, frame: object) -> None:  # noqa: ARG001 - a handler's signature
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def faults(path: Path, base: Any = None, limit: float = 5.0) -> list[str]:
    """Return what is wrong with the outputs for a file, each fault as a short line; ``base`` is a report to compare with."""
    try:
        with within(limit):
            return _faults(path, base)
    except Hang:
        return [f"hang: over {limit:g} s"]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [f"crash: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}"]


def _faults(path: Path, base: Any) -> list[str]:
    from traceanalyzer.api import compare, examine, read
    from traceanalyzer.errors import TraceAnalyzerError
    from traceanalyzer.options import AnalysisOptions
    from traceanalyzer.render.base import RenderSettings, render
    from traceanalyzer.render.formats import CHECK, COMPARISON, REPORT

    options = AnalysisOptions(figures=True, samples=True)
    try:
        _, _, report = examine(read(path, options.limits), options)
    except TraceAnalyzerError as error:
        line = error.one_line()
        return ["error of more than one line"] if "\n" in line else []
    found = [f"rule failed: {f.message}" for f in report.data.findings if f.rule == "TA000"]
    for renderer in REPORT:
        text = render(REPORT, renderer.name, report.data, RenderSettings(full=True))
        found += _in_text(renderer.name, text)
        if renderer.name == "json":
            found += _in_json(text)
    for renderer in CHECK:
        _in_text(renderer.name, render(CHECK, renderer.name, [report.data]))
    if base is not None:
        compared = compare(base, report)
        for renderer in COMPARISON:
            text = render(COMPARISON, renderer.name, [compared])
            if renderer.name == "json":
                json.loads(text, parse_constant=_constant)
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} in JSON")


def _in_json(text: str) -> list[str]:
    try:
        data = json.loads(text, parse_constant=_constant)
    except ValueError as error:
        return [f"json: {str(error)[:40]}"]
    found: list[str] = []
    for key, value in _numbers(data, ""):
        name = key.rsplit(".", 1)[-1]
        if "threshold" in key:
            continue
        if (
            name.endswith(("_us", "_ns"))
            and value < 0
            and not TIMES_THAT_MAY_BE_NEGATIVE.search(name.removesuffix("_us").removesuffix("_ns"))
        ):
            found.append(f"negative time: {key}")
        if SHARE.search(name) and not -1e-9 <= value <= 1 + 1e-9:
            found.append(f"share out of 0 to 1: {key}")
    return found


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if re.fullmatch(r"[a-z_0-9]+", str(key)) else f"{path}.*")
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, f"{path}[]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


_PERCENT = re.compile(r"(?<![\w.+\-~,])(\d+(?:\.\d+)?) ?%(?! ?CI)")
_NEGATIVE = re.compile(r"(?<![\w.)\-])-\d[\d,.]* (?:ns|us|ms|s)\b")


def _in_text(form: str, text: str) -> list[str]:
    if form not in ("text", "markdown", "summary"):
        return []
    found = []
    for line in text.splitlines():
        shown = re.sub(r"`[^`]*`", "", line.replace("&#8204;", ""))
        if "100%" in shown and "traceanalyze" in shown:
            continue
        # a change and the width of an interval are no parts of a whole
        whole = not re.search("slower|faster|away|interval|inflation|later|longer|scatter|reaches", shown)
        if whole and any(float(m) > 100 for m in _PERCENT.findall(shown)):
            found.append(f"{form}: over 100 %: {re.sub(r'[0-9.,]+', 'N', shown.strip())[:90]}")
        if _NEGATIVE.search(shown):
            found.append(f"{form}: negative time: {re.sub(r'[0-9.,]+', 'N', shown.strip())[:90]}")
    return found


def run(
    paths: list[Path], inputs: int, seed: int, limit: float, keep: Path | None, seconds: float | None = None
) -> Counter[str]:
    """Return each kind of fault with the number of inputs that show it."""
    from traceanalyzer.api import examine, read
    from traceanalyzer.options import AnalysisOptions
    from traceanalyzer.trace.sidecar import sidecar_path

    seeds = [Seed.of(p) for p in paths]
    base = examine(read(ROOT / "samples" / "cpu_bound_loop.json"), AnalysisOptions(samples=True))[2]
    counted: Counter[str] = Counter()
    until = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for number in range(inputs):
            if until is not None and time.monotonic() > until:
                print(f"stopped by the clock after {number} inputs")
                break
            rng = random.Random(f"{seed}/{number}")
            drawn = rng.choice(seeds)
            file = Path(folder) / f"input{drawn.suffix}"
            file.write_bytes(drawn.mutated(rng))
            beside = drawn.mutated_sidecar(rng)
            if beside is None:
                sidecar_path(file).unlink(missing_ok=True)
            else:
                sidecar_path(file).write_bytes(beside)
            for fault in set(faults(file, base, limit)):
                counted[fault] += 1
                if keep is not None and counted[fault] <= 2:
                    keep.mkdir(parents=True, exist_ok=True)
                    kept = keep / f"{seed}-{number}{drawn.suffix}"
                    kept.write_bytes(file.read_bytes())
                    (keep / f"{seed}-{number}.txt").write_text(fault + "\n", encoding="utf-8")
                    if beside is not None:
                        sidecar_path(kept).write_bytes(beside)
    return counted


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=5.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--seconds", type=float, help="stop then")
    asked = parser.parse_args()
    counted = run(
        asked.traces or sorted((ROOT / "samples").glob("*.json")),
        asked.inputs,
        asked.seed,
        asked.limit,
        asked.keep,
        asked.seconds,
    )
    for fault, count in counted.most_common():
        print(f"{count:6}  {fault}")
    print(f"up to {asked.inputs} inputs, {sum(counted.values())} faults of {len(counted)} kinds")
    return 1 if counted else 0


if __name__ == "__main__":
    sys.exit(main())
