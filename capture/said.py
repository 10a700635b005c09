"""What an exception says, on one line, whatever its class does when it is asked."""

from __future__ import annotations


def said(error: BaseException, most: int = 200) -> str:
    """Return the message of an exception without line breaks, cut to ``most`` characters."""
    try:
        text = str(error)
    except Exception:  # foreign classes may fail at this too
        text = "(its message cannot be shown)"
    return " ".join(text.split())[:most]
