"""Arguments that name files: plain texts whose checks are the reader's, which a shell completes as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _Text = click.ParamType[str]
else:  # a generic type from click 8.2 on
    _Text = click.ParamType


class FileArgument(_Text):
    """A text that a shell completes by the names of files, or of folders (``kind`` ``dir``)."""

    name = "text"

    def __init__(self, kind: str = "file") -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Return the text as it is."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Leave the names to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.kind)]


FILE, FOLDER = FileArgument(), FileArgument("dir")
