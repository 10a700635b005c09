"""Checks this project on the machine's GPU, within six minutes: ``python benchmarks/gpu_check.py [FOLDER] [--seconds 360]``.

1. Runs ``bench msda`` against its alternatives: the table that people ask for.
2. Captures ``empty``, ``vector_add`` (small) and ``msda`` (decoder, fp16, forward and backward) under every protocol, and
   compares each reading with what the model predicts for exactly that loop.
3. Runs the tests marked ``gpu``, and the encoder if time is left.

Each step runs in a process of its own within a bound of its own, and what it left is written at once: gpu-check.json, .md
and .txt in FOLDER, a folder for each capture with trace, sidecar and report, tests.txt, and bench/. What did not fit is said.

Exit codes: 0 all as it should be; 1 something that was measured is wrong (the table says what); 2 bad words; 3 nothing is
wrong, but time ran out before all was measured; 4 there is no GPU, or a package is missing. A machine needs torch and triton;
what the analyser needs beyond them comes from ``wheels/`` where it is not installed (``make gpu-check-wheels`` fills that
folder, on a machine with a package registry). The project itself need not be installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESERVE_S = 8.0
"""Kept back for the last tables."""


@dataclass(frozen=True)
class Step:
    """``most_s`` bounds it; with less than ``least_s`` left it is not begun. ``job`` are fields of a capture job."""

    name: str
    kind: str
    most_s: float
    least_s: float
    job: dict[str, Any] | None = None


def _ladder(name: str, target: str, preset: str, dtype: str, most_s: float, direction: str = "forward") -> Step:
    job = {"target": target, "preset": preset, "dtype": dtype, "implementation": "triton", "direction": direction}
    return Step(name, "ladder", most_s, 20.0, job)


STEPS = (
    Step("bench", "bench", 170, 60),
    _ladder("empty", "empty", "one", "fp32", 80),
    _ladder("vector_add", "vector_add", "small", "fp32", 60),
    _ladder("msda-decoder", "msda", "decoder", "fp16", 70),
    _ladder("msda-decoder-bwd", "msda", "decoder", "fp16", 70, "backward"),
    Step("tests", "tests", 150, 30),
    _ladder("msda-encoder", "msda", "encoder", "fp16", 60),
)
"""In order of worth: what is cut off is the end."""

NEEDED = ("click", "jinja2", "msgspec", "numpy", "rich")
"""What the captures, the analyser and the tables import beyond torch and triton, checked before anything is measured."""


def missing_packages() -> list[str]:
    """Return what of :data:`NEEDED` cannot be imported, after unpacking the wheels that were carried along."""
    missing = [n for n in NEEDED if find_spec(n) is None]
    wheels = sorted((ROOT / "wheels").glob("*.whl"))
    if not missing or not wheels:
        return missing
    place = Path(tempfile.mkdtemp(prefix="traceanalyzer-wheels-"))
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "-q", "--no-index", "--find-links", str(ROOT / "wheels"), "--target", str(place),
            *missing,
        ], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        rest = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(place), *([rest] if rest else [])])
        sys.path.insert(0, str(place))
        invalidate_caches()
    return [n for n in NEEDED if find_spec(n) is None]


def make_importable() -> None:
    """Let this process and those it starts import the packages of the repository, installed or not."""
    try:
        installed = find_spec("traceanalyzer.capture") is not None
    except ModuleNotFoundError:
        installed = False
    if installed:
        return
    sys.modules.pop("traceanalyzer", None)
    place = Path(tempfile.mkdtemp(prefix="traceanalyzer-")) / "traceanalyzer"
    place.mkdir()
    for item in [*(ROOT / "traceanalyzer").iterdir(), ROOT / "capture", ROOT / "kernels"]:
        (place / item.name).symlink_to(item)
    # neither the script's folder nor the working one may come first: there the packages lie elsewhere
    os.environ["PYTHONSAFEPATH"] = "1"
    rest = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(place.parent), *([rest] if rest else [])])
    sys.path.insert(0, str(place.parent))


def check(
    folder: Path, budget_s: float, *, run: Any = None, tests: Callable[[Path, float], tuple[str, str]] | None = None,
    steps: tuple[Step, ...] = STEPS, now: Callable[[], float] = time.monotonic, say: Callable[[str], None] = lambda _: None,
) -> Any:  # fmt: skip
    """Return the :class:`gpu_check_table.Check` of all steps that fit; ``run`` runs a capture job (a process, by default).

    Raises CaptureUnavailable where there is no GPU.
    """
    import gpu_check_table as table

    from traceanalyzer.capture.supervise import supervise
    from traceanalyzer.capture.survey import read_survey
    from traceanalyzer.capture.worker import Job

    run = run or supervise
    begun = now()
    with tempfile.TemporaryDirectory() as scratch:
        failure = run(
            Job(out=str(Path(scratch) / "survey"), status="", survey="empty", device="cuda"), min(120.0, budget_s)
        )
        if failure is not None:
            raise failure
        device = read_survey(Path(scratch) / "survey").device
    result = table.Check(device.name or device.kind, budget_s)
    folder.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(steps):
        left = budget_s - RESERVE_S - (now() - begun)
        if left < step.least_s:
            result.steps.append(
                table.StepRow(step.name, "left out", 0.0, f"{max(0.0, left):.0f} s of {budget_s:.0f} s were left")
            )
            continue
        say(f"{number + 1} of {len(steps)}: {step.name} ({left:.0f} s left)")
        start = now()
        try:
            state, reason = _take(step, folder, min(step.most_s, left), result, run, tests or run_tests, now)
        except KeyboardInterrupt:
            state, reason = "ended early", "interrupted"
        except Exception as error:  # one step's fault must not cost the others
            state, reason = "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        result.steps.append(table.StepRow(step.name, state, round(now() - start, 1), reason))
        result.spent_s = round(now() - begun, 1)
        write(result, folder)
        if reason == "interrupted":
            break
    result.spent_s = round(now() - begun, 1)
    write(result, folder)
    return result


def _take(
    step: Step, folder: Path, seconds: float, result: Any, run: Any, tests: Callable[[Path, float], tuple[str, str]],
    now: Callable[[], float],
) -> tuple[str, str]:  # fmt: skip
    if step.kind == "tests":
        return tests(folder, seconds)
    if step.kind == "bench":
        return _bench(folder, seconds, run, now)
    return _capture(step, folder, seconds, result, run)


def _capture(step: Step, folder: Path, seconds: float, result: Any, run: Any) -> tuple[str, str]:
    """Capture under every protocol; the tables get what there is, however it ended."""
    import gpu_check_table as table

    from traceanalyzer.capture.place import TRACE_NAME
    from traceanalyzer.capture.protocols import PROTOCOLS
    from traceanalyzer.capture.worker import Job
    from traceanalyzer.trace.sidecar import read_sidecar

    out = folder / step.name
    job = Job(
        out=str(out), status="", protocols=list(PROTOCOLS), budget_s=10.0, framework="pytorch", device="cuda", **(step.job or {})
    )  # fmt: skip
    failure = run(job, round(seconds))
    sidecar, damage = read_sidecar(out / TRACE_NAME)
    if sidecar is None or not sidecar.operations:
        return "failed", failure.one_line() if failure is not None else damage or "the capture left nothing behind"
    report, why = _report(out / TRACE_NAME)
    result.versions.update(sidecar.versions)
    result.ladder += table.ladder_rows(step.name, sidecar.operations[0], report, why, sidecar.calibration)
    result.captures.append(table.capture_row(step.name, sidecar, report, why))
    return ("ended early", failure.one_line()) if failure is not None else ("done", "")


def _report(trace: Path) -> tuple[Any, str]:
    """Return the report of a trace, written beside it too; None and why where there is none."""
    from traceanalyzer.api import analyze
    from traceanalyzer.errors import TraceAnalyzerError
    from traceanalyzer.render.console import render_console

    if not trace.is_file():
        return None, "there is no trace"
    try:
        data = analyze(trace).data
    except TraceAnalyzerError as error:
        return None, error.one_line()
    (trace.parent / "report.txt").write_text(render_console(data), encoding="utf-8")
    return data, ""


def _bench(folder: Path, seconds: float, run: Any, now: Callable[[], float]) -> tuple[str, str]:
    from traceanalyzer.capture.bench import BenchAsked, bench
    from traceanalyzer.render.bench.markdown import render_bench_markdown
    from traceanalyzer.render.bench.text import render_bench
    from traceanalyzer.render.json_v1 import dump

    out = folder / "bench"
    asked = BenchAsked("msda", "decoder", device="cuda", budget_s=4.0, timeout_s=90.0, limit_s=seconds)

    def keep(so_far: Any) -> None:
        out.mkdir(exist_ok=True)
        for name, content in (
            ("bench.json", dump(so_far.to_dict())), ("bench.md", render_bench_markdown(so_far)), ("bench.txt", render_bench(so_far))
        ):  # fmt: skip
            (out / name).write_text(content, encoding="utf-8")

    found = bench(asked, out, run=run, keep=keep, now=now)
    keep(found)
    if any(r.missing_kind == "interrupted" for r in found.rows):
        return "ended early", "interrupted"
    if found.wrong:
        return "failed", f"wrong results: {', '.join(found.wrong)}"
    left_out = sum(r.missing_kind == "left_out" for r in found.rows)
    return "done", f"{left_out} of {len(found.rows)} rows did not fit" if left_out else ""


def run_tests(folder: Path, seconds: float) -> tuple[str, str]:
    """Run the tests marked ``gpu`` and keep what they print; ended after ``seconds``."""
    log = folder / "tests.txt"
    command = [
        sys.executable, "-m", "pytest", "-p", "traceanalyzer.capture", "-p", "no:cacheprovider", "-m", "gpu", "-ra", "--tb=short", "-v",
        str(ROOT / "tests" / "gpu"),
    ]  # fmt: skip
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return "ended early", f"not done after {seconds:.0f} s; {log.name} has what passed until then"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1].strip("= ")[:160] if lines else "pytest printed nothing"
    if code == 0 and " passed" not in last:
        return "failed", f"no test ran: {last} ({log.name})"
    return ("done", last) if code == 0 else ("failed", f"{last} ({log.name})")


def write(result: Any, folder: Path) -> None:
    """Write the tables so far, each file whole or not at all."""
    import gpu_check_table as table

    from traceanalyzer.render.json_v1 import dump

    for ending, content in (
        (".json", dump(result.to_dict())),
        (".md", table.as_markdown(result)),
        (".txt", table.text(result)),
    ):
        partial = folder / f".gpu-check{ending}.part"
        partial.write_text(content, encoding="utf-8")
        partial.replace(folder / f"gpu-check{ending}")


def main(words: list[str]) -> int:
    """Run the check as the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check this project on the machine's GPU.")
    parser.add_argument("folder", nargs="?", default="gpu-check", help="where everything goes [gpu-check]")
    parser.add_argument("--seconds", type=float, default=360.0, help="for everything together [360]")
    asked = parser.parse_args(words)
    folder = Path(asked.folder).resolve()
    if folder.exists() and not folder.is_dir():
        print(f"gpu-check: '{folder.name}' is a file; give a folder", file=sys.stderr)
        return 2
    if missing := missing_packages():
        print(
            f"gpu-check: {', '.join(missing)} not installed, and wheels/ has none that fits this Python; run 'make gpu-check-wheels' "
            "where a package registry can be reached, and bring the folder along",
            file=sys.stderr,
        )
        return 4
    make_importable()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        import gpu_check_table as table

        from traceanalyzer.errors import TraceAnalyzerError
    except ImportError as error:
        print(
            f"gpu-check: {error.name} is not installed; install the project's extra: pip install -e '.[all]'",
            file=sys.stderr,
        )
        return 4
    try:
        result = check(folder, asked.seconds, say=lambda line: print(line, file=sys.stderr, flush=True))
    except TraceAnalyzerError as error:
        where = "; run it where there is one" if error.kind == "no_device" else ""
        print(
            f"gpu-check: {error.kind}: {error}{where}" if where else f"gpu-check: {error.one_line()}", file=sys.stderr
        )
        return int(error.exit_code)
    print(table.text(result), end="")
    print(f"everything is in {folder.name}/", file=sys.stderr)
    return 1 if result.wrong() else 3 if result.unfinished() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
