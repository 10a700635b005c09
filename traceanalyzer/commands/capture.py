"""``traceanalyze capture``: record a benchmark under every protocol, then report on it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from traceanalyzer.commands.call_counts import call_options
from traceanalyzer.commands.numbers import Duration, Number
from traceanalyzer.commands.output import screen, utf8_stdout, write_output
from traceanalyzer.errors import CaptureUnavailable, ExitCode, OptionError, TraceAnalyzerError
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.base import RenderSettings, render
from traceanalyzer.render.formats import REPORT

EPILOG = """\b
Exit codes:
  0  captured
  1  captured, but the result is wrong against its reference
  2  bad input: no such file, function or option
  3  captured, but the times never became steady, or the trace cannot be judged (no device took part)
  4  not captured: the function failed, or torch or a device is missing; what was measured is kept
"""


@click.command(
    name="capture", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.argument("target", nargs=-1, required=True, type=click.UNPROCESSED, metavar="TARGET | -- PROGRAM ARGS...")
@click.option("-o", "--output", "out", metavar="DIR", help="Folder for trace and sidecar.  [default: capture-NAME]")
@click.option(
    "--protocols",
    default="all",
    show_default=True,
    metavar="KEYS",
    help="Protocols by key, with commas: wall_nosync, wall_sync_each, wall_sync_once, event_pair, event_pair_sync, event_loop, do_bench, backlog, graph_unrolled, profiler_self_time.",
)
@call_options
@click.option(
    "--preset", default="", metavar="NAME",
    help="Handed to the input maker; for a kernel of this project a preset it has, such as tiny.",
)  # fmt: skip
@click.option("--dtype", default="", metavar="NAME", help="Handed to the input maker, e.g. fp16.")
@click.option(
    "--implementation", default="", metavar="NAME", help="Of a kernel of this project: triton, reference, compiled, ..."
)
@click.option(
    "--direction", type=click.Choice(["forward", "backward"]), default="forward", show_default=True,
    help="Of a kernel of this project.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=int, help="Handed to the input maker.")
@click.option("--inputs", default="", metavar="NAME", help="Input maker.  [default: FUNCTION_inputs or make_inputs]")
@click.option(
    "--reference", default="", metavar="NAME", help="What the result is compared with.  [default: FUNCTION_reference]"
)
@click.option("--rtol", type=Number(), help="Relative tolerance of the result; goes with --atol.")
@click.option("--atol", type=Number(), help="Absolute tolerance of the result; goes with --rtol.")
@click.option(
    "--device", type=click.Choice(["auto", "cuda", "xpu", "mps", "cpu"]), default="auto", show_default=True,
    help="Where to run; cuda includes ROCm.",
)  # fmt: skip
@click.option(
    "--framework", type=click.Choice(["auto", "pytorch", "jax", "tensorflow"]), default="auto", show_default=True,
    help="Whose barrier and events; auto finds it from arguments and result.",
)  # fmt: skip
@click.option(
    "--budget", default=30.0, show_default=True, type=Duration("s", positive=True), metavar="TIME",
    help="Seconds for all readings together; slow functions get fewer calls.",
)  # fmt: skip
@click.option(
    "--timeout", default=900.0, show_default=True, type=Duration("s", positive=True), metavar="TIME", help="Stop the capture if it takes longer."
)  # fmt: skip
@click.option(
    "--after",
    default=0.0,
    show_default=True,
    type=Duration("s"),
    metavar="TIME",
    help="Script: seconds before the recording starts.",
)
@click.option(
    "--seconds", default=30.0, show_default=True, type=Duration("s", positive=True), metavar="TIME", help="Script: length of the recording, in seconds."
)  # fmt: skip
@click.option(
    "--steps",
    default=0,
    type=click.IntRange(0),
    metavar="N",
    help="Script: stop after this many optimizer steps; 0 is no limit.",
)
@click.option("--with-host", is_flag=True, help="Write the host's name into the sidecar; it is left out otherwise.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "markdown", "json", "html"]),
    default="text",
    show_default=True,
)
@click.option("--progress/--no-progress", default=True, help="Progress on standard error when it is a terminal.")
def command(
    target: tuple[str, ...], out: str | None, protocols: str, iters: int, warmup: int, preset: str, dtype: str, implementation: str, direction: str,
    seed: int, inputs: str, reference: str, rtol: float | None, atol: float | None, device: str, framework: str, budget: float,
    timeout: float, after: float, seconds: float, steps: int, with_host: bool, output_format: str, progress: bool,
) -> None:  # fmt: skip
    """Record a benchmark so that it can be judged, then report on it.

    TARGET is MODULE:FUNCTION, FILE.py:FUNCTION or a kernel of this project (empty, vector_add, softmax, rms_norm,
    matmul, msda). It is timed under every protocol, warmed up, compared with its reference in the same run, and
    recorded by the profiler; trace.json.gz and trace.sidecar.json are written to DIR.

    With -- SCRIPT.py ARGS an unmodified program runs under the profiler, within --seconds and --steps; so do
    -- python SCRIPT.py, -- -m MODULE and -- torchrun ... SCRIPT.py, which records one trace per rank.
    """
    from traceanalyzer.capture import require_torch
    from traceanalyzer.capture.job import Job
    from traceanalyzer.capture.place import made_since, stamps
    from traceanalyzer.capture.program import program_of
    from traceanalyzer.capture.protocols import chosen_protocols
    from traceanalyzer.capture.supervise import supervise

    program = program_of(target)
    if program is not None or framework == "pytorch":
        require_torch()
    keys = chosen_protocols((protocols,))
    if (rtol is None) != (atol is None):
        raise OptionError("bad_tolerance", "--rtol and --atol go together", hint="give both; 0 switches one off")
    name = program.name if program is not None else target[0].rpartition(":")[2]
    folder = Path(out or f"capture-{''.join(c if c.isalnum() or c in '._-' else '_' for c in name)[:60] or 'run'}")
    if folder.exists() and not folder.is_dir():
        raise OptionError("cannot_write", f"'{folder.name}' is a file", hint="give a folder with -o")
    job = Job(
        out=str(folder), status="", target="" if program is not None else target[0], script=program.script if program else "",
        module=program is not None and program.module, launcher=program.launcher if program else None,
        arguments=program.arguments if program else [],
        inputs=inputs, reference=reference, preset=preset, dtype=dtype, implementation=implementation, direction=direction, seed=seed,
        tolerance=None if rtol is None or atol is None else (rtol, atol), protocols=list(keys), warm_up=warmup, iterations=iters,
        budget_s=budget, device=device, framework=framework, with_host=with_host, after_s=after, most_s=seconds, most_steps=steps,
        progress=progress,
    )  # fmt: skip
    before = stamps(folder.absolute())
    try:
        with cleaning_up():
            failure = supervise(job, timeout)
    except KeyboardInterrupt:
        failure = CaptureUnavailable("interrupted", "interrupted; what was measured so far is kept")
    if job.launcher is not None:
        _show_ranks(folder, output_format, failure)
        return
    _show(folder, made_since(before, folder.absolute()), output_format, failure)


def _show(folder: Path, made: set[Path], output_format: str, failure: TraceAnalyzerError | None) -> None:
    """Print the report of what was ``made``, or what there is of it, and end with the exit code."""
    from traceanalyzer.capture.place import TRACE_NAME
    from traceanalyzer.trace.sidecar import read_sidecar, sidecar_path

    trace = folder / TRACE_NAME
    sidecar = read_sidecar(trace)[0] if sidecar_path(trace).absolute() in made else None
    utf8_stdout()
    status = ""
    if trace.absolute() in made:
        text, status = _report(trace, output_format)
        write_output(text, None, form=output_format)
    elif sidecar is not None and any(p.samples_us for o in sidecar.operations for p in o.protocols):
        if output_format == "json":
            from traceanalyzer.trace.sidecar import encode_sidecar

            write_output(encode_sidecar(sidecar).decode(), None, form="json")
        else:
            from traceanalyzer.render.unreported import render_measured

            write_output(render_measured(sidecar, width=screen()[0]), None)
    if sidecar is not None:
        files = " and ".join(p.name for p in (trace, sidecar_path(trace)) if p.absolute() in made)
        click.echo(f"wrote {files} to {folder}", err=True)
    if failure is not None:
        raise failure
    if sidecar is None:
        raise CaptureUnavailable(
            "nothing_measured", "the capture left nothing behind", hint="run it again with --debug"
        )
    if any(o.correctness.passed is False for o in sidecar.operations):
        click.echo(
            "traceanalyze: wrong_result: the result does not match its reference; its times are struck through",
            err=True,
        )
        sys.exit(int(ExitCode.FINDINGS))
    unsteady = next((o for o in sidecar.operations if not o.warm_up.steady), None)
    if unsteady is not None:
        click.echo(
            f"traceanalyze: not_steady: {unsteady.warm_up.reason}; the readings are valid, but not for a steady state",
            err=True,
        )
        sys.exit(int(ExitCode.CANNOT_JUDGE))
    if status == "cannot-judge" and not sidecar.operations:
        sys.exit(int(ExitCode.CANNOT_JUDGE))


def _show_ranks(folder: Path, output_format: str, failure: TraceAnalyzerError | None) -> None:
    """Print the report of the ranks that were recorded, and end with the exit code."""
    from traceanalyzer.api import ranks
    from traceanalyzer.render.base import render
    from traceanalyzer.render.formats import RANKS

    traces = sorted(folder.glob("trace.rank*.json.gz"))
    if traces:
        click.echo(f"wrote {len(traces)} traces with their sidecars to {folder}", err=True)
    if failure is not None:
        raise failure
    utf8_stdout()
    write_output(render(RANKS, output_format, ranks(folder, hta=False)), None, form=output_format)


def _report(trace: Path, output_format: str) -> tuple[str, str]:
    """Return the report of a trace as text, and its verdict's status."""
    from traceanalyzer.api import analyze

    width, color = screen()
    settings = RenderSettings(width=width, color=color)
    data = analyze(trace, options=AnalysisOptions(figures=output_format == "html")).data
    return render(REPORT, output_format, data, settings), data.verdict.status
