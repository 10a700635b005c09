"""The hidden first line of a Markdown report, by which a bot finds the comment that it wrote before."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

MARKER = "traceanalyzer:report"
_MOST = 120


def marker(name: str = "", kind: str = MARKER) -> str:
    """Return ``<!-- traceanalyzer:report NAME -->``, on one line and closed by nothing inside it.

    ``name`` is percent-encoded as in an address, and so is every ``-`` that follows another: HTML ends a comment at
    ``-->`` and ``--!>``, older Markdown refuses ``--`` altogether. Two names never share a marker: what is cut from a
    long one is distinguished by a hash.
    """
    data = name.encode("utf-8", "surrogatepass")
    text = quote(data if len(name) <= _MOST else name[:_MOST].encode("utf-8", "surrogatepass"), safe="")
    if len(name) > _MOST:
        text += f"~{hashlib.sha256(data).hexdigest()[:16]}"
    # a leading or trailing "-" would touch the comment's own
    text = re.sub(r"(?<=-)-|^-|-$", "%2D", text)
    return f"<!-- {kind} {text} -->" if text else f"<!-- {kind} -->"
