"""`RawCall`: what the raw calls of riff and of Evergreen share."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from invoker_conformance.rawcall import Ending, RawCall
from invoker_conformance.scenario import Failure


class Peer:
    """A gRPC call that gives these messages, then an end with this status; or nothing more, and takes nothing."""

    def __init__(self, *messages: bytes, ends: bool = True) -> None:
        self.messages = list(messages)
        self.ends = ends
        self.taken: list[bytes] = []
        self.is_cancelled = False
        self._cython_call = self

    def stream_stream(self, path: str) -> Any:
        assert path == "/x"
        return lambda **_: self

    async def wait_for_connection(self) -> None:
        """It is there at once."""

    async def send_serialized_message(self, data: bytes) -> None:
        if not self.ends:
            await asyncio.Event().wait()
        self.taken.append(data)

    async def done_writing(self) -> None:
        self.taken.append(b"end")

    async def read(self) -> Any:
        if self.messages:
            return self.messages.pop(0)
        if self.ends:
            return grpc.aio.EOF
        return await asyncio.Event().wait()

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.ABORTED

    async def details(self) -> str:
        return "so"

    def done(self) -> bool:
        return self.is_cancelled

    def cancel(self) -> None:
        self.is_cancelled = True


class Words(RawCall[bytes]):
    """A line of plain messages; what is said to be bad breaks a rule."""

    path = "/x"
    words = ("talk", "word", "answer", "HC")
    most_shown = 2

    async def _next(self, timeout_s: float | None) -> bytes | None:
        return await self._read(timeout_s)

    def _shown(self, one: bytes) -> str:
        return one.decode()

    def _broken_by(self, code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
        return ("bad", "good") if detail == "bad" else None


def line_to(peer: Any) -> Words:
    return Words(peer, timeout_s=0.05)


async def test_what_was_sent_is_kept_for_the_report() -> None:
    """The first few of it, and how many more."""
    peer = Peer()
    line = line_to(peer)
    assert line.sent == "nothing"
    assert await line.raw(b"a")
    assert await line.raw(b"b", "as told")
    await line.half_close()
    assert line.sent == "'a', as told, ... 1 more"
    assert peer.taken == [b"a", b"b", b"end"]
    assert line.failure("x", "y").sent == line.sent


async def test_what_comes_is_read_when_it_is_asked_for() -> None:
    """Then the ending; each is told in the words of the protocol."""
    line = line_to(Peer(b"one"))
    assert await line._further(None) == b"one"
    with pytest.raises(Ending) as ended:
        await line._next(None)
    assert (ended.value.code, ended.value.detail) == (grpc.StatusCode.ABORTED, "so")
    with pytest.raises(Failure) as failed:
        await line._further(None)
    assert failed.value.met == "the talk ended: ABORTED 'so'"
    with pytest.raises(Failure) as failed:
        await line.silent(1.0)
    assert failed.value.met == "the talk ended: ABORTED 'so'"


async def test_silence_is_told_from_an_answer() -> None:
    """A wait that ends in time leaves the read pending for the next."""
    line = line_to(Peer(ends=False))
    await line.silent(0.01)
    with pytest.raises(Failure) as failed:
        await line._further(0.01)
    assert failed.value.met == "no answer within 0.01 s"
    assert failed.value.expected == "a further answer"
    await line.close()
    with pytest.raises(Failure) as failed:
        await line_to(Peer(b"hi")).silent(1.0)
    assert failed.value.met == "the answer hi"


async def test_a_peer_that_takes_nothing_fails_in_time() -> None:
    """The words say of which call."""
    peer = Peer(ends=False)
    line = line_to(peer)
    with pytest.raises(Failure) as failed:
        await line.raw(b"x")
    assert failed.value.met == "the talk took no further word for 0.05 s"
    await line.close()
    assert peer.is_cancelled


async def test_a_status_that_breaks_a_rule_is_a_failure() -> None:
    """Whoever asked for something else."""
    peer = Peer()
    peer.details = lambda: asyncio.sleep(0, "bad")  # type: ignore[method-assign]
    with pytest.raises(Failure) as failed:
        await line_to(peer)._next(None)
    assert (failed.value.met, failed.value.expected) == ("bad", "good")
