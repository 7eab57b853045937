"""`invoker.transports.http.readcontrol`: reading is stopped once, and goes on once."""

from __future__ import annotations

import asyncio
import socket
import struct
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from invoker.transports.http import readcontrol as tap_module
from invoker.transports.http.readcontrol import ReadControl
from tests.transports.served import until


class Transport:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


def test_each_move_is_told_once() -> None:
    """asyncio and uvloop differ in what a second pause does, so there is none."""
    transport = Transport()
    read_control = ReadControl(transport)
    for move in (read_control.open, read_control.shut, read_control.shut, read_control.open, read_control.open):
        move()
    assert transport.calls == ["pause", "resume"]


def test_a_connection_that_closes_is_left_alone() -> None:
    """Its transport may refuse to be paused or resumed."""
    transport = Transport()
    read_control = ReadControl(transport)
    read_control.shut()
    transport.closing = True
    read_control.open()
    read_control.shut()
    assert transport.calls == ["pause"]


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[socket.socket, asyncio.Transport]]:
    """A peer, and the transport of our end of a TCP connection."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as peer:
        accepted, _ = listening.accept()
        transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, accepted)
        try:
            yield peer, transport
        finally:
            transport.abort()
            await asyncio.sleep(0)


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


async def test_H163_who_resets_while_nothing_is_read_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed within a second, whatever is unread."""
    monkeypatch.setattr(tap_module, "_LOOK_S", 0.01)
    lost = asyncio.Event()
    async with connected() as (peer, transport):
        read_control = ReadControl(transport, lost.set)
        read_control.shut()
        peer.send(b"unread")
        reset(peer)
        await lost.wait()


async def test_H163_who_sends_no_more_has_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it may wait for an answer; each time that something is read it has as long again."""
    monkeypatch.setattr(tap_module, "_LOOK_S", 0.01)
    lost, patient = asyncio.Event(), asyncio.Event()
    async with connected() as (peer, transport):
        read_control, other = (
            ReadControl(transport, lost.set, patience_s=0.1),
            ReadControl(transport, patient.set, patience_s=100),
        )
        peer.shutdown(socket.SHUT_WR)
        other.is_shut = True
        other._watch()
        read_control.shut()
        loop = asyncio.get_running_loop()
        shut_s = loop.time()
        await lost.wait()
        assert loop.time() - shut_s >= 0.1
        assert not patient.is_set()


async def test_H163_the_rest_of_who_sends_no_more_is_read_where_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its end is heard, which says whether anything is missing; nobody stops reading before that."""
    monkeypatch.setattr(tap_module, "_LOOK_S", 0.01)
    lost = asyncio.Event()
    async with connected() as (peer, transport):
        heard = Heard()
        transport.set_protocol(heard)
        read_control = ReadControl(transport, lost.set, patience_s=100)
        read_control.shut(takes_rest=True)
        peer.send(bytes(100_000))
        await asyncio.sleep(0.05)
        assert not heard.size
        peer.shutdown(socket.SHUT_WR)
        await until(lambda: heard.size)
        read_control.shut(takes_rest=True)
        await until(lambda: heard.has_ended)
        assert heard.size == 100_000
        assert not lost.is_set()


class Heard(asyncio.Protocol):
    """Counts what it hears."""

    size, has_ended = 0, False

    def data_received(self, data: bytes) -> None:
        self.size += len(data)

    def eof_received(self) -> bool:
        self.has_ended = True
        return True


async def test_a_peer_that_is_there_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody looks at one that is read again."""
    monkeypatch.setattr(tap_module, "_LOOK_S", 0.01)
    looks: list[int] = []
    ask = tap_module._events
    monkeypatch.setattr(tap_module, "_events", lambda fd: looks.append(fd) or ask(fd))
    lost = asyncio.Event()
    async with connected() as (_, transport):
        read_control = ReadControl(transport, lost.set, patience_s=0)
        read_control.shut()
        await until(lambda: len(looks) >= 3)
        assert not lost.is_set()
        read_control.open()
        await asyncio.sleep(0.03)
        count = len(looks)
        await asyncio.sleep(0.05)
        assert len(looks) == count


async def test_nothing_is_kept_by_a_connection_that_is_over() -> None:
    """The timer of the next look would keep it, and what it holds, for a second."""

    class Holder:
        def leave(self) -> None:
            pass

    async with connected() as (_, transport):
        holder = Holder()
        read_control = ReadControl(transport, holder.leave)
        read_control.shut()
        gone = weakref.ref(holder)
        read_control.close()
        del holder, read_control
        assert gone() is None
