"""What to do about a finding: a text, of which the verdict's sentence takes the beginning and the finding all of it."""

from __future__ import annotations


class Advice(str):
    """A remedy whose first part can be told alone; as a text it is both parts together."""

    __slots__ = ("short",)
    short: str

    def __new__(cls, short: str, detail: str = "") -> Advice:
        """Return the remedy ``short + detail``; ``detail`` begins as it follows on: with a blank and a bracket, or a semicolon."""
        made = super().__new__(cls, short + detail)
        made.short = short
        return made


def short_of(remedy: str) -> str:
    """Return the part of a remedy that can be told alone; of a plain text all of it."""
    return remedy.short if isinstance(remedy, Advice) else remedy
