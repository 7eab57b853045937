"""Calls whose frames are joined: when they are over."""

from __future__ import annotations

import pytest

from invoker.transports.grpc.joiningcall import JoiningCall
from tests.transports.grpc.posted import Event, Posted


class _Listener:
    settles = False

    def __init__(self, wire: JoiningCall, *, finishes: bool) -> None:
        self._thread_call, self._finishes = wire, finishes

    def gone(self) -> None:
        if self._finishes:
            self._thread_call.finish(1, "gone")


@pytest.mark.parametrize("is_finished", [True, False])
def test_E003_a_session_is_over_once_its_peer_is_gone_whatever_is_on_its_way(is_finished):
    """A transport that stops brings no more events; if one comes after all, it does not count twice."""
    call, told = Posted(), []
    wire = JoiningCall(call, call)
    wire._listener = _Listener(wire, finishes=not is_finished)
    wire.over = lambda: told.append("over")
    wire.write(b"on its way")
    assert call.posted
    if is_finished:
        wire.finish(0, "")
    assert told == []
    wire._on_close(Event(is_cancelled=True))
    assert told == ["over"]
    wire._on_sent(Event())
    assert told == ["over"]


def test_E003_a_session_that_ends_after_its_peer_has_gone_is_over_at_once():
    """The queue poller of a transport that has stopped meanwhile flushes nothing any more."""
    call, told = Posted(), []
    call.later = lambda flush: None
    wire = JoiningCall(call, call)
    wire._listener = _Listener(wire, finishes=False)
    wire.over = lambda: told.append("over")
    wire._on_close(Event(is_cancelled=True))
    assert told == []
    wire.finish(1, "gone")
    assert told == ["over"]
