"""A JSON array of events to rows: by category where all of them have a known one, else field by field."""

from __future__ import annotations

from typing import Any, Union

import msgspec
from msgspec import DecodeError, Raw, Struct, ValidationError

from traceanalyzer.trace.kineto.rows import TAGGED, LooseRow
from traceanalyzer.trace.row_faults import Damage, RowFault
from traceanalyzer.trace.salvage import Salvage

Batch = list[Struct]

_TAGGED_LIST: Any = msgspec.json.Decoder(list[Union[tuple(TAGGED)]])  # type: ignore[misc]  # noqa: UP007 - its members are made at run time
_LOOSE_LIST = msgspec.json.Decoder(list[LooseRow])
_LOOSE_ONE = msgspec.json.Decoder(LooseRow)
_RAW_LIST = msgspec.json.Decoder(list[Raw])


class RowDecoder:
    """Decodes arrays of events; it remembers which way the last of them went, and counts what is no event in the salvage."""

    def __init__(self, salvage: Salvage) -> None:
        self.salvage = salvage
        self._loose_first = 0

    def decode(self, text: bytes | memoryview) -> Batch:
        """Return the rows of a JSON array. Raises DecodeError or RecursionError when its text is broken."""
        if self._loose_first < 4:
            try:
                rows: Batch = _TAGGED_LIST.decode(text)
                self._loose_first = 0
                return rows
            except ValidationError:
                # a row without category, or with one we do not know: normal in small numbers
                self._loose_first += 1
            except DecodeError as error:
                if "JSON is malformed" in str(error):
                    raise
        try:
            return list(_LOOSE_LIST.decode(text))
        except ValidationError:
            return self._mixed(text)

    def _mixed(self, text: bytes | memoryview) -> Batch:
        rows: Batch = []
        others = 0
        for raw in _RAW_LIST.decode(text):
            try:
                rows.append(_LOOSE_ONE.decode(raw))
            except ValidationError:
                others += 1
        self.salvage.excluded[Damage(RowFault.NO_EVENT)] += others
        return rows
