"""StrEnum on Python 3.10, which has none: the members are their values in every text."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """An enumeration whose members are strings."""

        __str__ = str.__str__
        __format__ = str.__format__

        @staticmethod
        def _generate_next_value_(name, start, count, last_values):  # type: ignore[no-untyped-def]  # noqa: ARG004
            return name.lower()


__all__ = ["StrEnum"]
