"""A claim whose operation is nowhere in the report is likely a slip of the pen: told at once, where it was made."""

from __future__ import annotations

from collections.abc import Iterable

import click

from traceanalyzer.options import Claim
from traceanalyzer.render.escape import terminal


def tell_unmatched(claims: Iterable[Claim], names: Iterable[str]) -> None:
    """Write one line on standard error for each claim that names no operation; ``names`` are those there are."""
    known = [name.lower() for name in names]
    for claim in claims:
        if claim.operation and not any(claim.operation.lower() in name for name in known):
            click.echo(
                f"traceanalyze: --claim {terminal(claim.text, 200)}: no operation has this name; it was not judged",
                err=True,
            )
