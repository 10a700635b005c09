"""The template environment of every HTML output: texts are escaped, unknown names are errors."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from traceanalyzer.render.escape import code_spans

if TYPE_CHECKING:
    from jinja2 import Environment


def render_template(name: str, context: dict[str, Any]) -> str:
    """Return a template of this package filled in."""
    return _environment().get_template(name).render(context).strip() + "\n"


@cache
def _environment() -> Environment:
    # one for the process: it keeps the templates that it has compiled
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("traceanalyzer.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code_spans"] = lambda text: Markup(code_spans(text))
    return environment
