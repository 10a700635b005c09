"""The command line that gives the same output again, to be printed under it."""

from __future__ import annotations

import shlex
from pathlib import PurePath

import click
from click.core import ParameterSource

from traceanalyzer.render.escape import visible

_OF_THIS_RUN = frozenset({"output", "progress"})
"""Where the output went and how it was followed: neither changes a number."""


def command_line(ctx: click.Context) -> str:
    """Return the command of a context on one line, as bash reads it, with the options given and nothing of the machine.

    Folders of the arguments are left out, since they name machines and users: the command is run beside its files.
    """
    arguments: list[str] = []
    words = ["traceanalyze", ctx.info_name or ""]
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            arguments += [_beside(v) for v in (value if isinstance(value, tuple) else (value,)) if v is not None]
        elif parameter.name not in _OF_THIS_RUN and _given(ctx, parameter):
            words += _option(parameter, value)
    return " ".join(shell_word(w) for w in [*words[:2], *arguments, *words[2:]])


def _given(ctx: click.Context, parameter: click.Parameter) -> bool:
    return ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE


def _option(parameter: click.Parameter, value: object) -> list[str]:
    name = next((o for o in parameter.opts if o.startswith("--")), parameter.opts[0])
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [name] if value else list(parameter.secondary_opts[:1])
    values = value if isinstance(value, tuple) else (value,)
    # one word, so that a value that begins with "-" is no option
    return [word for v in values for word in ([f"{name}={v}"] if str(v).startswith("-") else [name, str(v)])]


def _beside(path: str) -> str:
    name = PurePath(path).name or path
    return f"./{name}" if name.startswith("-") and path != "-" else name


def shell_word(text: str) -> str:
    """Return the text as one word of bash on one line, every character visible.

    What :func:`~traceanalyzer.render.escape.visible` would spell out stands as the bytes of its UTF-8 in ``$'...'``.
    """
    if visible(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(_dollar_quoted(c) for c in text) + "'"


def _dollar_quoted(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if visible(char) == char:
        return char
    return "".join(f"\\x{byte:02x}" for byte in _bytes(char))


def _bytes(char: str) -> bytes:
    try:
        return char.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return char.encode("utf-8", "surrogatepass")
