"""Whole calls on a real gRPC connection: what is waited for, what leaves early, and who reads on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from invoker import Context, Status
from invoker._pb.dspex import bridge_pb2 as bridge
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.execution.thread.direct import DirectConversation
from invoker.execution.whole import Whole
from invoker.protocols.toolbridge.service.rpcs import SERVICE
from invoker.transports.grpc import unarycall as module
from invoker.transports.grpc.settings import GrpcSettings
from invoker.transports.grpc.unarycall import ArrivalStats
from tests.conftest import SLOW
from tests.transports.bridge import Bridged, packed, unpacked
from tests.transports.riff import PATH, Riff, data, eventually, start

PROMPT_S = 0.1 * SLOW


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each call was run; a client on a busy machine has time enough to send all of it."""
    seen: list[str] = []
    monkeypatch.setattr(module, "PARK_S", 0.5)
    for kind in (Whole, DirectConversation):

        def run(self: Any, *frames: Any, kind: Any = kind, real: Any = kind.run) -> Any:
            seen.append(kind.__name__)
            return real(self, *frames)

        monkeypatch.setattr(kind, "run", run)
    return seen


def at_once(riff: Riff, *frames: bytes, metadata: tuple[tuple[str, str], ...] = (), timeout: float = 10) -> Any:
    """A call whose frames and half-close leave together."""
    return riff.channel.stream_stream(PATH)(iter([start(), *frames]), metadata=metadata, timeout=timeout)


def payloads(call: Any) -> list[bytes]:
    return [pb.OutputSignal.FromString(one).data.payload for one in call]


def gen(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


def reply(x: bytes) -> bytes:
    return x


def none(xs: Iterator[bytes]) -> Iterator[bytes]:
    for _ in xs:
        pass
    yield from ()


def many(xs: Iterator[bytes]) -> Iterator[bytes]:
    for x in xs:
        for _ in range(10):
            yield x


@pytest.mark.parametrize(
    ("function", "frames", "given"),
    [
        (gen, [b"a"], [b"a"]),
        (reply, [b"a"], [b"a"]),
        (reply, [b"a", b"b", b"c"], [b"a", b"b", b"c"]),
        (none, [b"a"], []),
        (many, [b"a", b"b"], [b"a"] * 10 + [b"b"] * 10),
        (gen, [], []),
    ],
)
def test_a_call_that_comes_whole_is_answered(ran, function, frames, given):
    """No message, one, and several; the queue of each call serves another one."""
    with Riff("direct", function) as riff:
        for _ in range(60):
            call = at_once(riff, *[data(one) for one in frames])
            assert payloads(call) == given
            assert call.code() is grpc.StatusCode.OK
        assert ran.count("Whole") > 30
        assert eventually(lambda: riff.driver.engine.counters.finished == {Status.OK: 60})
        assert not riff.driver.direct
        assert len(riff.transport._free) + len(riff.transport._closing_calls.calls) < 40


def test_large_messages_in_several_batches(ran):
    """More than one send, and more than the peer's window at once."""

    def large(x: bytes) -> bytes:
        return x * 50_000

    with Riff("direct", large) as riff:
        for _ in range(5):
            call = at_once(riff, *[data(b"x")] * 10)
            got = payloads(call)
            assert [len(one) for one in got] == [50_000] * 10
    assert "Whole" in ran


def test_what_comes_too_late_is_read_by_the_ordinary_line(ran):
    """Nothing of what was received before is lost, and nothing comes twice."""
    with Riff("direct", gen) as riff:
        call = riff.call(b"a", b"b")
        assert call.some(2) == [b"a", b"b"]
        call.data(b"c")
        assert call.rest() == [b"c"]
        assert ran == ["DirectConversation"]


def test_a_call_with_many_frames_is_read_while_its_function_runs(ran):
    """They would all have to be kept else."""
    with Riff("direct", gen) as riff:
        frames = [b"%d" % number for number in range(500)]
        for _ in range(3):
            assert payloads(at_once(riff, *[data(one) for one in frames])) == frames
        assert "Whole" not in ran


def test_a_kind_of_calls_that_never_comes_whole_is_waited_for_rarely():
    """Twice as rarely after each wait in vain; a wait that pays is followed by others, and makes up for one in vain."""
    stats = ArrivalStats()
    waits = []
    for number in range(200):
        if stats.pays():
            waits.append(number)
            stats.learn(is_whole=False)
    assert waits == [0, 1, 4, 11, 26, 57, 120]
    while not stats.pays():
        pass
    stats.learn(is_whole=True)
    for _ in range(10):
        assert stats.pays()
        stats.learn(is_whole=True)
    skipped = []
    for _ in range(20):  # every other call comes whole
        stats.learn(is_whole=False)
        while not stats.pays():
            skipped.append(1)
        stats.learn(is_whole=True)
    assert skipped == []


def test_habits_are_of_one_function_each_and_bounded():
    """Callers choose the names."""
    with Riff("direct", gen, reply) as riff:
        for number in range(200):
            call = at_once(riff, data(b"x"), metadata=(("invoker-function", f"no{number}"),))
            with pytest.raises(grpc.RpcError):
                list(call)
        assert len(riff.transport._arrival_stats) <= 64
        call = riff.call(metadata=(("invoker-function", "gen"),))
        call.rpc.initial_metadata()  # it runs, although its end has not come: so the habit was asked for
        assert ("/streaming.Riff/Invoke", "gen") in riff.transport._arrival_stats
        call.data(b"x")
        call.half_close()
        assert call.ending()[0] == [b"x"]


# Early outputs.


def test_an_output_before_a_pause_leaves_within_some_beats(ran):
    """Although all of its input is here; and so do the headers, where there is no output."""
    paused, go = threading.Event(), threading.Event()

    def slow(xs: Iterator[bytes]) -> Iterator[bytes]:
        for x in xs:
            for _ in range(int(x)):
                yield x
            paused.set()
            go.wait(5)
            yield b"last"

    with Riff("direct", slow) as riff:
        for count in (0, 1, 5, 40):
            for _ in range(3):
                call = at_once(riff, data(b"%d" % count))
                assert paused.wait(2 * SLOW)
                began = time.monotonic()
                call.initial_metadata()
                for _ in range(count):
                    next(call)
                assert time.monotonic() - began < PROMPT_S
                go.set()
                assert payloads(call) == [b"last"]
                paused.clear()
                go.clear()
    assert "Whole" in ran


def test_R127_a_whole_call_whose_peer_does_not_read_is_suspended(ran):
    """An endless function comes to a halt, goes on when its peer reads, and ends when it leaves."""
    made, closed = [0], threading.Event()

    def endless(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            for _ in xs:
                pass
            while True:
                made[0] += 1
                yield bytes(64 * 1024)
        finally:
            closed.set()

    with Riff("direct", endless) as riff:
        for _ in range(3):
            closed.clear()
            made[0] = 0
            call = at_once(riff, data(b"x"))
            call.initial_metadata()
            halted = -1
            while halted != made[0]:
                halted = made[0]
                time.sleep(0.1)
            assert halted < 1000
            for _ in range(halted + 5):
                next(call)
            call.cancel()
            assert closed.wait(2 * SLOW)
        assert eventually(lambda: not riff.driver.engine.running)
        assert riff.driver.engine.counters.finished[Status.CANCELLED] == 3
    assert "Whole" in ran


# Cancels, deadlines, drains.


@pytest.mark.parametrize("ends", ["cancel", "deadline"])
def test_R115_R124_a_whole_call_hears_that_its_peer_has_gone(ran, ends):
    """Through its context at once; and the invocation ends as cancelled, or late."""
    inside, heard = threading.Event(), threading.Event()

    def work(xs: Iterator[bytes], context: Context) -> Iterator[bytes]:
        for _ in xs:
            inside.set()
            if eventually(lambda: context.cancelled, 5):
                heard.set()
            yield b"x"

    with Riff("direct", work) as riff:
        for count in range(1, 4):
            call = at_once(riff, data(b"x"), timeout=10 if ends == "cancel" else 0.3)
            assert inside.wait(2 * SLOW)
            if ends == "cancel":
                call.cancel()
            assert heard.wait(2 * SLOW)
            wanted = Status.CANCELLED if ends == "cancel" else Status.DEADLINE_EXCEEDED
            assert eventually(lambda: riff.driver.engine.counters.finished.get(wanted) == count)  # noqa: B023
            inside.clear()
            heard.clear()
    assert "Whole" in ran


def test_R109_a_sum_is_not_committed_when_its_call_was_cancelled(ran):
    """A peer of a stack that half-closes before it resets: the end of the input is believed only then."""
    committed = threading.Event()

    def total(xs: Iterator[bytes]) -> Iterator[bytes]:
        count = 0
        for _ in xs:
            count += 1
        committed.set()
        yield b"%d" % count

    with Riff("direct", total, transport={"settings": GrpcSettings(settle_s=0.5)}) as riff:
        options = [("grpc.primary_user_agent", "grpc-node-js/1.14"), ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{riff.port}", options) as channel:
            stub = channel.stream_stream(PATH)
            assert payloads(stub(iter([start(), data(b"x")]), timeout=5)) == [b"1"]
            assert committed.is_set()
            committed.clear()
            call = stub(iter([start(), data(b"x")]), timeout=5)
            assert eventually(lambda: len(riff.driver.engine.running) == 1, 2)
            call.cancel()
            assert eventually(lambda: not riff.driver.engine.running, 2)
        assert not committed.is_set()
        assert riff.driver.engine.counters.finished[Status.CANCELLED] == 1
    assert "Whole" in ran


def test_R025_a_drain_cuts_whole_calls(ran):
    """The peer hears of it although user code is busy; the thread is free once that comes back."""
    inside, go = threading.Event(), threading.Event()

    def block(x: bytes) -> bytes:
        inside.set()
        go.wait(5)
        return x

    with Riff("direct", block) as riff:
        call = at_once(riff, data(b"x"))
        assert inside.wait(2 * SLOW)
        assert riff.run(riff.driver.drain(0.05)) is False
        with pytest.raises(grpc.RpcError) as raised:
            list(call)
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert riff.driver.left_behind
        go.set()
        assert riff.run(riff.driver.left(5))
    assert ran == ["Whole"]


def test_R112_an_error_is_told_while_the_function_takes_its_time_to_leave(ran):
    """It swallows what its pull raised, and sleeps; the peer has the status meanwhile."""
    go = threading.Event()

    def deaf(xs: Iterator[int]) -> Iterator[int]:
        yield next(xs)
        try:
            next(xs)
        except Exception:
            go.wait(5)
        yield 1

    frames = [
        pb.InputSignal(data=pb.InputFrame(payload=one, contentType="application/json")).SerializeToString()
        for one in (b"1", b"x")
    ]
    with Riff("direct", deaf) as riff:
        for _ in range(3):
            call = at_once(riff, *frames)
            next(call)
            with pytest.raises(grpc.RpcError) as raised:
                next(call)
            assert raised.value.code() is grpc.StatusCode.UNKNOWN
            assert riff.driver.threads.busy == 1
            go.set()
            assert eventually(lambda: riff.driver.threads.busy == 0)
            go.clear()
    assert "Whole" in ran


def test_calls_beside_one_that_blocks_are_served(ran):
    """All of them come whole; the blocking one gives the lead away after a beat, and later before it begins."""
    go = threading.Event()

    def block(x: bytes) -> bytes:
        if x == b"block":
            go.wait(5)
        return x

    with Riff("direct", block) as riff:
        for _ in range(3):
            go.clear()
            blocked = [at_once(riff, data(b"block")) for _ in range(3)]
            began = time.monotonic()
            for _ in range(10):
                assert payloads(at_once(riff, data(b"x"))) == [b"x"]
            assert time.monotonic() - began < 1 * SLOW
            go.set()
            assert [payloads(one) for one in blocked] == [[b"block"]] * 3
    assert "Whole" in ran


def test_a_call_of_one_frame_waits_for_no_half_close(ran):
    """Its request says everything, so that it runs whole although its client never ends its frames."""
    with Bridged("direct-lending", reply) as served:
        served.session()
        args = [packed(b"x")]
        request = bridge.ToolCallRequest(session_id="s1", tool_id="reply", args=args).SerializeToString()
        call = served.raw(request, path=f"/{SERVICE}/ExecuteTool", timeout=10)
        [answer] = call.rpc
        assert unpacked(bridge.ToolCallResponse.FromString(answer).result) == b"x"
    assert ran == ["Whole"]
