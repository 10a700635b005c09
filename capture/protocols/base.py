"""The base of every protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter


class Abstain(Exception):
    """A protocol cannot give a reading here; the message is the reason."""


class Protocol(ABC):
    """One way of timing a call.

    ``key`` is the protocol's key in reports; ``column`` says which question it answers: ``device`` (how fast is the
    kernel), ``end-to-end`` (what does a call cost) or ``neither``. ``per_call``: one sample per call; otherwise one per
    block of calls, already divided by their number. ``loop``: calls follow each other without a barrier, so that a block
    needs them all (a backlog builds over many calls); otherwise they may be spread over the rounds.
    """

    key: ClassVar[str]
    column: ClassVar[str]
    needs: ClassVar[tuple[Capability, ...]] = ()
    per_call: ClassVar[bool]
    loop: ClassVar[bool] = True

    def cannot(self, device: DeviceAdapter) -> str:
        """Return why the device cannot run this protocol, empty if it can."""
        return next((reason for c in self.needs if (reason := device.lacks(c))), "")

    def prepare(self, device: DeviceAdapter, call: Call, calls: int) -> None:  # noqa: B027 - most need nothing
        """Do once, before the first measurement, what must not be timed. Raises :class:`Abstain`."""

    @abstractmethod
    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return readings per call in nanoseconds: of each call, or one for the block. Raises :class:`Abstain`.

        Begins and ends on an idle device.
        """

    def parameters(self) -> dict[str, str | int | float | bool]:
        """Return what else a reader must know to repeat the measurement."""
        return {}


def run(device: DeviceAdapter, call: Call, calls: int) -> Any:
    """Make calls and return what a barrier must wait for: all outputs where the framework needs them, else the last."""
    if device.holds_outputs:
        return [call() for _ in range(calls)]
    outputs = None
    for _ in range(calls):
        outputs = call()
    return outputs


def pairs(device: DeviceAdapter, events: list[tuple[Any, Any]]) -> Iterator[float]:
    """Yield the time between the events of each pair, all reached."""
    for start, stop in events:
        yield device.elapsed_ns(start, stop)
