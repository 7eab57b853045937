"""A direct call on its own queue: what it holds back, and how it hears of an end while its thread is busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc
import pytest

from invoker import Context, Status
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.transports.grpc.threadcall import ThreadCall
from tests.conftest import SLOW
from tests.transports.riff import Riff, data, eventually, start

PROMPT_S = 0.1 * SLOW
QUICKEST_S = 0.02 * SLOW
"""The quickest of some calls: a busy machine holds up some of them, and a beat that is too long holds up all."""


@pytest.mark.parametrize("quick", [0, 1, 2, 3, 10])
def test_an_output_before_a_pause_leaves_at_once(quick):
    """However many came quickly before it."""
    paused = threading.Event()
    go = threading.Event()

    def slow(xs: Iterator[bytes]) -> Iterator[bytes]:
        for _ in xs:
            for number in range(quick + 1):
                yield str(number).encode()
            paused.set()
            go.wait(5)
            yield b"last"

    took_s = []
    with Riff("direct", slow) as riff:
        for _ in range(4):
            call = riff.call(b"x")
            assert paused.wait(2 * SLOW)
            began = time.monotonic()
            assert call.some(quick + 1)[-1] == str(quick).encode()
            took_s.append(time.monotonic() - began)
            go.set()
            assert call.rest() == [b"last"]
            paused.clear()
            go.clear()
    assert (min(took_s) < QUICKEST_S, max(took_s) < PROMPT_S) == (True, True), took_s


def test_a_reply_does_not_wait_for_the_next_one():
    """Of a request/reply function whose next request is there already, and takes long."""
    paused, go = threading.Event(), threading.Event()

    def reply(x: bytes) -> bytes:
        if x == b"slow":
            paused.set()
            go.wait(5)
        return x

    with Riff("direct", reply) as riff:
        for count in (1, 2, 3, 20):
            took_s = []
            for _ in range(3):
                call = riff.call(*[b"x"] * count, b"slow", b"y")
                assert paused.wait(2 * SLOW)
                began = time.monotonic()
                assert call.some(count) == [b"x"] * count
                took_s.append(time.monotonic() - began)
                go.set()
                assert call.rest() == [b"slow", b"y"]
                paused.clear()
                go.clear()
            assert (min(took_s) < QUICKEST_S, max(took_s) < PROMPT_S) == (True, True), took_s


def test_R115_user_code_hears_of_a_cancel_through_its_context():
    """While it neither pulls nor emits."""
    busy, heard = threading.Event(), threading.Event()

    def work(xs: Iterator[bytes], context: Context) -> Iterator[bytes]:
        busy.set()
        if eventually(lambda: context.cancelled, 5):
            heard.set()
        yield b""

    with Riff("direct", work) as riff:
        call = riff.call()
        assert busy.wait(2 * SLOW)
        call.cancel()
        assert heard.wait(1 * SLOW)


_STRAY = [data(b"x", 7), start(), b"\xff", pb.InputSignal().SerializeToString()]


@pytest.mark.parametrize("wrong", _STRAY, ids=["argIndex", "another start", "garbage", "nothing"])
@pytest.mark.parametrize("emits", [True, False])
def test_R064_R046_a_violation_is_told_while_a_function_does_not_pull(emits, wrong):
    """A source, or a long computation: its caller hears within a second, and so does the function."""
    heard, left = threading.Event(), threading.Event()

    def work(xs: Iterator[bytes], context: Context) -> Iterator[bytes]:
        try:
            while not emits and not eventually(lambda: context.cancelled, 5):
                pass
            heard.set()
            while True:
                yield b"x"
                time.sleep(0.01)  # as a clock does; nothing waits for it
        finally:
            left.set()

    with Riff("direct", work) as riff:
        call = riff.call(b"fine", b"fine")
        call.rpc.initial_metadata()
        call.send(wrong)
        began = time.monotonic()
        _, code, text = call.ending()
        assert (code, text[:26]) == (grpc.StatusCode.UNKNOWN, "Invoker: Protocol Violatio")
        assert time.monotonic() - began < 1 * SLOW
        assert heard.wait(1 * SLOW)
        assert left.wait(1 * SLOW)
        assert eventually(lambda: riff.driver.engine.counters.finished == {Status.UNKNOWN: 1})


@pytest.mark.parametrize("size", [16, 100_000])
def test_a_frame_that_the_sweeper_sends_in_between_is_sent_once(size, monkeypatch):
    """At the worst moment: when the one before it has left, and its own thread is about to send it."""
    await_sent = ThreadCall._await_sent

    def swept_then(self):
        await_sent(self)
        with self.lock:
            self.flush()  # as the sweeper does

    monkeypatch.setattr(ThreadCall, "_await_sent", swept_then)

    def numbers(xs: Iterator[bytes]) -> Iterator[bytes]:
        for x in xs:
            for number in range(300):
                yield x + str(number).encode()

    with Riff("direct", numbers) as riff:
        padding, call = bytes(size), riff.call()
        for _ in range(3):
            call.send(data(padding))
            assert call.some(300) == [padding + str(number).encode() for number in range(300)]
        assert call.rest() == []


def test_frames_that_wait_for_a_function_are_kept_for_it():
    """What was looked at while it did not pull is there when it does, in order; and that is not all of it."""
    go = threading.Event()

    def late(xs: Iterator[bytes]) -> Iterator[bytes]:
        go.wait(5)
        yield from xs

    payloads = [str(number).encode() for number in range(100)]
    with Riff("direct", late) as riff:
        call = riff.call(*payloads)
        assert eventually(lambda: any(one._lookahead and one._lookahead._count >= 32 for one in riff.driver.direct))
        assert all(one._lookahead._count <= 64 for one in riff.driver.direct)
        go.set()
        assert call.rest() == payloads


def test_R115_an_emit_that_waits_for_room_ends_with_the_call():
    """The peer does not read, then cancels: the generator is closed within a second."""
    closed = threading.Event()

    def endless(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            while True:
                yield bytes(64 * 1024)
        finally:
            closed.set()

    with Riff("direct", endless) as riff:
        call = riff.call()
        call.rpc.initial_metadata()
        (conversation,) = riff.driver.direct
        assert eventually(lambda: conversation.wire.is_idle)
        call.cancel()
        assert closed.wait(1 * SLOW)


def test_R126_a_function_that_waits_for_room_lets_its_peer_write():
    """A peer that writes everything before it reads anything is served."""

    def double(xs: Iterator[bytes]) -> Iterator[bytes]:
        for x in xs:
            yield x
            yield x

    with Riff("direct", double) as riff:
        payload = bytes(16 * 1024)
        call = riff.call(*[payload] * 100)
        call.half_close()
        time.sleep(0.1)
        assert call.some(200) == [payload] * 200
        assert call.code is grpc.StatusCode.OK


def test_large_values_of_several_outputs_count_until_the_peer_takes_them():
    """Each output waits for room on the same wire; what is under way counts, and is given back with the call."""
    size, count = 1 << 20, 8

    def pair(xs: Iterator[bytes]) -> tuple[Iterator[bytes], Iterator[bytes]]:
        return (bytes(size) for _ in range(count)), (bytes(size) for _ in range(count))

    with Riff("direct", pair) as riff:
        memory = riff.driver.engine.memory
        call = riff.raw(start(outputs=2))
        assert eventually(lambda: memory.held >= size)
        assert [len(one) for one in call.rest()] == [size] * 2 * count
        assert eventually(lambda: not memory.held)


def test_several_outputs_end_with_their_call_when_memory_runs_out():
    """The peer takes nothing of them; its call ends and nothing is held for it."""

    def pair(xs: Iterator[bytes]) -> tuple[Iterator[bytes], Iterator[bytes]]:
        return (bytes(4 << 20) for _ in range(8)), (bytes(4 << 20) for _ in range(8))

    with Riff("direct", pair) as riff:
        memory = riff.driver.engine.memory
        memory.most_bytes = 1 << 20
        assert riff.raw(start(outputs=2)).code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert eventually(lambda: not memory.held)
