"""The part of the file that is in memory: grown piece by piece, dropped from the front, searched in linear time.

Everything that needs more text than is here asks for it, and what it then decides depends on the file alone, never on
where its pieces were cut. Growth is geometric, so that looking again after every piece stays linear in the size of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from traceanalyzer.trace.possessive import compiled

# Possessive: a string of any length takes no memory, and a string that never ends is tried once.
STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = compiled(STRING + rb'|[{}\[\]]|"', re.S)
_IN_STRING = compiled(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)
_BARE = compiled(rb'[^\s,:"{}\[\]]*+')
_CLOSERS = b"}]"


class TextWindow:
    """Text of the file from byte ``base`` on; ``data`` is what is here, ``eof`` whether nothing follows it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.data = b""
        self.base = 0
        self.eof = False

    def more(self) -> bool:
        """Append text, at least half as much as is here; False at the end of the input."""
        parts, size, wanted = [self.data], 0, len(self.data) // 2
        while size <= wanted:
            piece = next(self._pieces, None)
            if piece is None:
                self.eof = True
                break
            parts.append(piece)
            size += len(piece)
        if size:
            self.data = b"".join(parts) if parts[0] or len(parts) > 2 else parts[1]
        return size > 0

    def have(self, length: int) -> bool:
        """Bring at least this many bytes here; False when the file has fewer."""
        while len(self.data) < length:
            if self.eof or not self.more():
                return False
        return True

    def consume(self, upto: int) -> None:
        """Drop the first bytes."""
        self.data = self.data[upto:]
        self.base += upto

    def put_back(self, texts: list[bytes], base: int) -> None:
        """Take text again that was consumed: ``texts`` follow each other from byte ``base`` up to the text that is here."""
        self._pieces = chain(texts[1:], [self.data] if self.data else [], self._pieces)
        self.data, self.base, self.eof = texts[0], base, False

    def skip_blanks(self) -> bool:
        """Drop leading white space, however much of it there is; False where the file ends with it."""
        while True:
            kept = self.data.lstrip()
            self.consume(len(self.data) - len(kept))
            if kept:
                return True
            if not self.more():
                return False

    def skip_value(self, depth: int = 0) -> bool:
        """Drop the value that begins here, or what is left of one that is open ``depth`` brackets deep.

        Nothing of it is kept, however long it is. Returns False where the file ends before the value does.
        """
        data, at, in_string = self.data, 0, False
        if not depth and data[:1] not in (b'"', b"{", b"["):
            return self._skip_bare()
        while True:
            if in_string:
                match = _IN_STRING.match(data, at)
                at = match.end() if match else at
                if data[at : at + 1] == b'"':
                    in_string = False
                    at += 1
                    if not depth:
                        self.consume(at)
                        return True
            if not in_string:
                for match in _TOKEN.finditer(data, at):
                    first = data[match.start()]
                    if first == 0x22:
                        if match.end() - match.start() == 1:  # a string that does not end in this text
                            in_string = True
                            at = match.end()
                            break
                        if depth:
                            continue
                    else:
                        depth += 1 if first in b"{[" else -1
                    if depth <= 0:
                        self.consume(match.end())
                        return True
                else:
                    at = len(data)
                if in_string:
                    continue
            self.consume(at)
            if not self.more():
                return False
            data, at = self.data, 0

    def _skip_bare(self) -> bool:
        while True:
            match = _BARE.match(self.data)
            end = match.end() if match else 0
            rest = len(self.data) - end
            self.consume(end)
            if rest or not self.more():
                return bool(rest)

    def skip_to(self, pattern: re.Pattern[bytes], kept: int = 4096) -> bool:
        """Drop text up to the next match, which then begins the text at the match's first group, else at its start.

        Matches are shorter than ``kept`` bytes. Returns False where the file ends without one; everything is dropped then.
        """
        while True:
            match = pattern.search(self.data)
            if match is not None:
                self.consume(match.start(1) if pattern.groups else match.start())
                return True
            self.consume(max(0, len(self.data) - kept))
            if not self.more():
                self.consume(len(self.data))
                return False

    def rest(self, blanks: bytes) -> tuple[int, bool]:
        """Drop all text that is left; return its length without blanks around it, and whether there was anything else."""
        first = last = -1
        while True:
            body = self.data.lstrip(blanks)
            if body:
                if first < 0:
                    first = self.base + len(self.data) - len(body)
                last = self.base + len(self.data.rstrip(blanks))
            self.consume(len(self.data))
            if not self.more():
                return max(0, last - first), last >= 0


def close_of(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Walk the value that opens at ``start``, by its strings and brackets alone, no further than ``stop``.

    Returns (position behind its closing bracket or quote, -1 if it does not close, deepest nesting seen).
    """
    depth = deepest = 0
    for match in _TOKEN.finditer(data, start, stop):
        first = data[match.start()]
        if first == 0x22:
            if match.end() - match.start() == 1:
                return -1, deepest
            if not depth:
                return match.end(), deepest
        elif first in _CLOSERS:
            depth -= 1
            if depth <= 0:
                return match.end(), deepest
        else:
            depth += 1
            deepest = max(deepest, depth)
    return -1, deepest
