"""``traceanalyze action``: the report step of action.yml. It is not in ``--help``: a workflow calls it, nobody types it."""

from __future__ import annotations

import os
import sys

import click


@click.command(name="action", hidden=True, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Report on the traces of a workflow; every input comes from the environment (INPUT_*, GITHUB_*, RUNNER_TEMP).

    Exits with 1 if a gate failed, with 2 on bad input, with 3 if a trace cannot be judged where a gate was asked for.
    """
    from traceanalyzer.action.run import run_step

    sys.exit(run_step(os.environ))
