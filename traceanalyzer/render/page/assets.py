"""What every HTML page is made of: inlined scripts and styles, the policy that allows them alone, and data that cannot break out."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from traceanalyzer.render.json_v1 import dump

_SCRIPTS = (
    "page-base.js",
    "page-tables.js",
    "page-model.js",
    "page-paint.js",
    "page-gestures.js",
    "page-panel.js",
    "page-address.js",
    "page-timeline.js",
    "page-main.js",
)
_STYLES = ("page.css",)


@dataclass(frozen=True)
class PageAssets:
    """Texts to put into a page exactly as they are, and the Content-Security-Policy with their hashes."""

    script: str
    style: str
    policy: str


@lru_cache(maxsize=1)
def page_assets() -> PageAssets:
    """Return the assets. Nothing but the script and the style sheet may run or apply, and nothing may be fetched."""
    script = '"use strict";\n' + "".join(map(_asset, _SCRIPTS))
    style = "".join(map(_asset, _STYLES))
    for text, end in ((script, "</script"), (style, "</style")):
        if end in text.lower() or "<!--" in text or "\r" in text:
            raise AssertionError("an asset would end its own element")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return PageAssets(script, style, policy)


def page_data(value: Any) -> str:
    """Return a value as JSON for a ``<script type="application/json">`` block.

    ASCII alone, and no character that could end the block or open a comment in it.
    """
    text = dump(value, indent=None).rstrip("\n")
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    from importlib.resources import files

    return files("traceanalyzer.render").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
