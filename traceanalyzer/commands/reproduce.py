"""The command line that gives the same output again, to be printed under it."""

from __future__ import annotations

import click
from click.core import ParameterSource

from traceanalyzer.render.shell import shell_line

_OF_THIS_RUN = frozenset({"output", "progress"})
"""Where the output went and how it was followed: neither changes a number."""


def command_line(ctx: click.Context) -> str:
    """Return the command of a context on one line, as bash reads it, with the options given and nothing of the machine.

    Folders of the arguments are left out, since they name machines and users: the command is run in the folder of its files.
    """
    arguments: list[str] = []
    options: list[str] = []
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            arguments += [v for v in (value if isinstance(value, tuple) else (value,)) if v is not None]
        elif parameter.name not in _OF_THIS_RUN and _given(ctx, parameter):
            options += _option(parameter, value)
    return shell_line(ctx.info_name or "", arguments, options)


def _given(ctx: click.Context, parameter: click.Parameter) -> bool:
    return ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE


def _option(parameter: click.Parameter, value: object) -> list[str]:
    name = next((o for o in parameter.opts if o.startswith("--")), parameter.opts[0])
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [name] if value else list(parameter.secondary_opts[:1])
    values = value if isinstance(value, tuple) else (value,)
    # one word, so that a value that begins with "-" is no option
    return [word for v in values for word in ([f"{name}={v}"] if str(v).startswith("-") else [name, str(v)])]
