"""Mutates traces and looks at every output: no crash, no hang, no negative time, no share over 100 %, no NaN in JSON.

Usage: python benchmarks/fuzz.py [--inputs N] [--seed S] [--limit SECONDS] [--keep DIR] [--seconds T] [TRACE ...]

Without TRACE the samples of this repository are mutated. The same seed makes the same inputs. Exit code 1 if anything is found;
``--keep`` writes each input that shows a fault.
"""

from __future__ import annotations

import argparse
import gzip
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
MOST_EVENTS = 600
"""Longer traces are cut to so many events, spread over the whole, so that a run does thousands of inputs."""
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 0.5, -0.001, 1e-9, 1e15, 1e18, -1e18, 2**53, 2**63, 2**64, 10**25, 1e308, "12", "-3", "1e5", "0x10", "nan", "\u0663", "", None, True, [], {}, "NaN",
)  # fmt: skip
TEXTS = (
    "", " ", "k", "=1+1", "\x1b[31mred", "\u202e", "<script>", "|", "`", "a" * 5000, "void f<int>(T1*)", "ncclKernel", "Memset (Device)", "cudaLaunchKernel", "\ud800", "100%", "\\",
)  # fmt: skip
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


def load(path: Path) -> Any:
    """Return a trace as JSON with at most MOST_EVENTS events."""
    data = path.read_bytes()
    found = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    events = found if isinstance(found, list) else found["traceEvents"]
    if len(events) > MOST_EVENTS:
        # whole stretches, so that launches keep their kernels
        heads = [e for e in events if isinstance(e, dict) and e.get("ph") == "M"][:60]
        timed = sorted(
            (e for e in events if isinstance(e, dict) and isinstance(e.get("ts"), int | float)), key=lambda e: e["ts"]
        )
        first = len(timed) // 3
        events = heads + timed[first : first + MOST_EVENTS]
        if isinstance(found, list):
            return events
        found["traceEvents"] = events
    return found


def mutated(rng: random.Random, seed: Any) -> bytes:
    """Return a trace with a few faults: of its events, then of its bytes."""
    copy = json.loads(json.dumps(seed))
    events = copy if isinstance(copy, list) else copy["traceEvents"]
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        if rng.random() < 0.8 and events:
            _change_events(rng, events)
        elif isinstance(copy, dict):
            key = rng.choice([*copy, "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds"])
            if key != "traceEvents":
                copy[key] = rng.choice((*NUMBERS, *TEXTS, [{}], {"rank": -1}, [{"id": 0, "name": 5}]))
    data = json.dumps(copy).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        data = _change_bytes(rng, bytearray(data))
    return data


def _change_events(rng: random.Random, events: list[Any]) -> None:
    at = rng.randrange(len(events))
    event = events[at] if isinstance(events[at], dict) else {}
    args = event.get("args") if isinstance(event.get("args"), dict) else {}
    kind = rng.randrange(14)
    if kind == 0:
        event[rng.choice(("ts", "dur", "pid", "tid", "id"))] = rng.choice(NUMBERS)
    elif kind == 1 and args:
        args[rng.choice(list(args))] = rng.choice((*NUMBERS, *TEXTS))
    elif kind == 2:
        event[rng.choice(("name", "cat", "ph", "bp"))] = rng.choice(
            (*TEXTS, *NUMBERS[:6], "B", "E", "f", "s", "kernel")
        )
    elif kind == 3:
        events[at:at] = [json.loads(json.dumps(event)) for _ in range(rng.choice((1, 3)))]
    elif kind == 4:
        del events[at : at + rng.choice((1, 5, 50))]
    elif kind == 5:
        rng.shuffle(events)
    elif kind == 6:
        scale = rng.choice((0, 1e-3, -1, 1e6))
        for e in events:
            if isinstance(e, dict) and isinstance(e.get("dur"), int | float) and rng.random() < 0.5:
                e["dur"] *= scale
    elif kind == 7:
        shift = rng.choice((-1e6, -50, 50, 1e12))
        cat = rng.choice(("kernel", "cuda_runtime", "gpu_memcpy", "user_annotation"))
        for e in events:
            if isinstance(e, dict) and e.get("cat") == cat and isinstance(e.get("ts"), int | float):
                e["ts"] += shift
    elif kind == 8:
        field = rng.choice(("stream", "device", "correlation", "context"))
        value = rng.choice((0, 1, 7, -1, 2**32 - 1, "x"))
        for e in events:
            if isinstance(e, dict) and isinstance(e.get("args"), dict) and field in e["args"] and rng.random() < 0.5:
                e["args"][field] = value
    elif kind == 9:
        for e in list(events):
            if (
                isinstance(e, dict)
                and e.get("ph") == "X"
                and isinstance(e.get("ts"), int | float)
                and rng.random() < 0.3
            ):
                e["ph"] = "B"
                events.append(
                    {k: e[k] for k in ("name", "pid", "tid") if k in e}
                    | {"ph": "E", "ts": e["ts"] + (e.get("dur") or 0 if isinstance(e.get("dur"), int | float) else 0)}
                )
    elif kind == 10:
        other = rng.choice(events)
        if isinstance(other, dict):
            for field in ("ts", "dur"):
                if field in other:
                    event[field] = other[field]
    elif kind == 11:
        events.insert(
            at,
            rng.choice(
                (None, 5, "x", [], {}, {"ph": "X"}, {"ph": "X", "ts": 1, "dur": 1, "name": "k", "cat": "kernel"})
            ),
        )
    elif kind == 12:
        keep = rng.choice(("kernel", "cuda_runtime", "gpu_memcpy", "user_annotation", "cpu_op"))
        events[:] = [e for e in events if not isinstance(e, dict) or e.get("cat") == keep or e.get("ph") == "M"] or [{}]
    else:
        name = rng.choice(TEXTS)
        for e in events:
            if isinstance(e, dict) and rng.random() < 0.2:
                e["name"] = name


def _change_bytes(rng: random.Random, data: bytearray) -> bytes:
    for _ in range(rng.choice((1, 3, 20))):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 7, 300))]
        elif kind == 2:
            data[at:at] = rng.choice(
                (b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\0", b"\xff", b"9" * 400, b"[" * 600)
            )
        elif kind == 3:
            data[at:at] = data[at : at + 400]
        else:
            del data[at + rng.randrange(1 + len(data) - at) :]
    return gzip.compress(bytes(data))[: rng.randrange(20, 10**6)] if rng.random() < 0.2 else bytes(data)


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
        whole = not re.search("slower|faster|interval|inflation|later|longer|scatter|reaches", shown)
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

    seeds = [load(p) for p in paths]
    base = examine(read(ROOT / "samples" / "cpu_bound_loop.json"), AnalysisOptions(samples=True))[2]
    counted: Counter[str] = Counter()
    until = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.json"
        for number in range(inputs):
            if until is not None and time.monotonic() > until:
                print(f"stopped by the clock after {number} inputs")
                break
            rng = random.Random(f"{seed}/{number}")
            file.write_bytes(mutated(rng, rng.choice(seeds)))
            for fault in set(faults(file, base, limit)):
                counted[fault] += 1
                if keep is not None and counted[fault] <= 2:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed}-{number}.json").write_bytes(file.read_bytes())
                    (keep / f"{seed}-{number}.txt").write_text(fault + "\n", encoding="utf-8")
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
