"""``traceanalyze predict``: what each protocol would read, from numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from traceanalyzer.commands.numbers import Duration, parse_times
from traceanalyzer.commands.output import utf8_stdout, write_output
from traceanalyzer.errors import OptionError
from traceanalyzer.render.base import names, render
from traceanalyzer.render.formats import PREDICTION

_F = TypeVar("_F", bound=Callable[..., Any])


def _time_option(name: str, default_us: float, text: str) -> Callable[[_F], _F]:
    return click.option(name, default=default_us, show_default=True, type=Duration("us"), metavar="TIME", help=text)


@click.command(name="predict", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--dispatch",
    required=True,
    metavar="TIME",
    help="Host time per launch, us without a unit; with commas for several kernels: 40,5.",
)
@click.option("--kernel", required=True, metavar="TIME", help="Self-time per kernel; as many as --dispatch.")
@_time_option("--sync", 6.0, "Return cost of a synchronise.")
@_time_option("--latency", 4.0, "Launch latency, submission to device.")
@_time_option("--record", 2.0, "Host cost of an event record.")
@_time_option("--gap", 0.0, "Device time between queued kernels.")
@_time_option("--clear", 85.0, "Device time of the cache clear of do_bench.")
@_time_option("--clear-dispatch", 6.0, "Host time of that clear.")
@click.option(
    "--calls", default=1_000_000, show_default=True, type=click.IntRange(1, 10**9), metavar="N", help="Calls in a loop."
)
@click.option(
    "--graph-calls",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Calls unrolled in a graph.",
)
@click.option(
    "--depth",
    default=None,
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Entries of the launch queue; unset: never full.",
)
@click.option("--format", "output_format", type=click.Choice(names(PREDICTION)), default="text", show_default=True)
def command(
    dispatch: str, kernel: str, sync: float, latency: float, record: float, gap: float, clear: float, clear_dispatch: float, calls: int,
    graph_calls: int, depth: int | None, output_format: str,
) -> None:  # fmt: skip
    """Say what each timing protocol would read for a dispatch and a kernel time, in microseconds."""
    from traceanalyzer.analysis.protocols import Symbols, ladder
    from traceanalyzer.render.prediction import Prediction

    d, k = parse_times(dispatch, "--dispatch"), parse_times(kernel, "--kernel")
    if len(d) != len(k):
        raise OptionError(
            "bad_time", f"{len(d)} dispatch times and {len(k)} kernels", hint="give as many of one as of the other"
        )
    symbols = Symbols(
        d, k, latency=latency * 1000, record=record * 1000, sync=sync * 1000, gap=gap * 1000, clear=clear * 1000,
        clear_dispatch=clear_dispatch * 1000, calls=calls, graph_calls=graph_calls, depth=depth or 10 * calls * len(k),
    )  # fmt: skip
    readings = {p: round(v / 1000, 6) for p, v in ladder(symbols).items()}
    found = Prediction(readings, [x / 1000 for x in d], [x / 1000 for x in k])
    utf8_stdout()
    write_output(render(PREDICTION, output_format, found), None, form=output_format)
