"""The blocker of the backlog protocol, where an operation's own launches fill the queue behind it."""

from __future__ import annotations

from tests.capture.fake_device import FakeDevice
from traceanalyzer.capture.protocols.backlog import Backlog


def test_fewer_calls_go_behind_a_blocker_when_their_launches_fill_the_queue():
    """60 kernels a call and 300 calls would be 18,600 entries; the queue holds about a thousand, and the host would wait."""
    device = FakeDevice()
    assert device.machine.depth < 60 * 300
    call = device.op([(5000, 2000)] * 60)
    protocol = Backlog()
    protocol.prepare(device, call, 300)
    readings = protocol.measure(device, call, 300)
    assert len(readings) == 300 and max(readings) == min(readings) == 60 * 2000
    assert protocol.parameters()["most_calls_behind_it"] * 62 < device.machine.depth
    assert protocol.parameters()["discarded_calls"] > 0
