"""Text handed out to worker processes, part by part, on the guess that each part is whole events.

A part that is a JSON array between brackets proves the guess: what is behind it then begins with an event. A part that is none
is put back, with all text behind it, and is read here, event by event where need be; so the result is that of one process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from traceanalyzer.trace.kineto import boundaries
from traceanalyzer.trace.kineto.crew import Crew, WorkerLost
from traceanalyzer.trace.kineto.text_window import TextWindow

_LONGEST_PAUSE = 64


class HandedOut:
    """Parts of the text of one file. ``most_bytes`` is the longest event that is read."""

    def __init__(self, text: TextWindow, crew: Crew, most_bytes: int) -> None:
        self._text = text
        self._crew: Crew | None = crew
        self._part_bytes = min(crew.part_bytes, most_bytes)
        self._not_before = 0
        self._pause = 1
        self._sent: deque[tuple[int, int, bytes]] = deque()

    def wanted(self, position: int) -> bool:
        """Return whether parts may be handed out from here on: after damage we read on alone for a while."""
        begins = self._text.data[position : position + 1] == b"{"
        return begins and self._crew is not None and self._text.base + position >= self._not_before

    def answers(self) -> Iterator[tuple[int, Any]]:
        """Yield worker and answer, part by part. The text begins with an event; afterwards with the first that is not in an answer."""
        text, crew, position = self._text, self._crew, 0
        assert crew is not None
        try:
            while True:
                high = position + self._part_bytes
                if high > len(text.data) and not text.eof:
                    text.consume(position)
                    position = 0
                    text.more()
                    continue
                cut = boundaries.last_boundary(text.data, position, min(high, len(text.data)))
                if cut <= position:
                    break
                if crew.full:
                    yield from self._settled(crew)
                following = text.data.index(b"{", cut)
                with memoryview(text.data) as view:
                    crew.give(view[position:cut])
                self._sent.append((text.base + position, cut - position, text.data[cut:following]))
                position = following
            text.consume(position)
            position = 0
            while self._sent:
                yield from self._settled(crew)
        except _Damaged:
            self._read_again(position, [crew.last_text(self._sent[0][1]), *crew.texts()])
            try:
                crew.forget()
            except WorkerLost:
                self._give_up()
            self._not_before = text.base + self._pause * self._part_bytes
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        except WorkerLost:
            self._read_again(position, crew.texts())
            self._give_up()

    def _give_up(self) -> None:
        if self._crew is not None:
            self._crew.close()
        self._crew = None

    def _settled(self, crew: Crew) -> Iterator[tuple[int, Any]]:
        worker, answer = crew.take()
        if answer is None:
            raise _Damaged
        self._sent.popleft()
        self._pause = max(1, self._pause - 1)
        yield worker, answer

    def _read_again(self, position: int, texts: list[bytes]) -> None:
        """Put text back that was handed out and is in no answer."""
        self._text.consume(position)
        parts = list(zip(texts, self._sent, strict=False))
        if parts:
            self._text.put_back([text + between for text, (_, _, between) in parts], parts[0][1][0])
        self._sent.clear()


class _Damaged(Exception):
    """A part is no JSON array."""
