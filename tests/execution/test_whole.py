"""Whole conversations: every frame is here before the function starts; what is kept, and what leaves early."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from invoker import Context, InputCancelled, Status
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.context import RUNNING
from invoker.core.streams import Limits
from invoker.errors import NotAcceptable, Overloaded, ProtocolViolation, ShuttingDown, UnsupportedMediaType
from tests.execution.wholes import LIMIT_S, WholeCall
from tests.execution.wires import direct_driver, gen, sink, square


@pytest.mark.parametrize("function", [square, gen])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_R031_R032_every_style_answers_in_order(function, count):
    """Mapped and streaming: as many outputs as inputs, OK; nothing leaves before the end."""
    call = WholeCall(direct_driver(function)).start()
    for number in range(count):
        call.data(b"%d" % number)
    assert call.end() is None
    assert call.payloads() == [b"%d" % (n * n) for n in range(count)]
    assert call.outlet.left == []
    assert call.driver.engine.counters.finished == {Status.OK: 1}
    counters = call.driver.engine.counters
    assert (counters.frames_in, counters.frames_out) == (count, count)


def test_a_sink_reads_to_the_end():
    """It has no output at all."""
    call = WholeCall(direct_driver(sink)).raw(b"\n\x00").data(b"1")
    assert call.end() is None
    assert call.payloads() == []


def test_a_short_conversation_is_known_to_nobody():
    """Neither the sweeper nor the drain has it afterwards, and the lead was not passed on."""
    call = WholeCall(direct_driver(gen)).start().data(b"1")
    assert call.end() is None
    assert call.driver.sweeper.conversations == []
    assert call.turn.passed == 0
    assert call.turn.busy is None


# What the context says.


def test_R012_each_invocation_has_its_own_context():
    """It is the running one while user code runs, answers nothing afterwards, and the thread forgets it."""
    seen: list[Context] = []
    running: list[object] = []

    def who(x: int, context: Context) -> int:
        seen.append(context)
        running.append(RUNNING.get() is context)
        return x

    driver = direct_driver(who)
    first, second = (WholeCall(driver).start().data(b"1") for _ in range(2))
    assert first.end() is None
    assert second.end() is None
    assert running == [True, True]
    assert seen[0].invocation_id != seen[1].invocation_id
    assert all(one.cancelled and one.run is None for one in seen)


def test_the_thread_forgets_the_context():
    """Log lines of the next call in this thread are its own."""
    driver, after = direct_driver(square), []
    call = WholeCall(driver).start().data(b"1")

    class Session:
        """Nothing is opened."""

        def receive(self, *_):
            return ()

        half_close = deliver = receive

    from invoker.execution.whole import Whole

    def both() -> None:
        call.run_here()
        after.append(RUNNING.get())
        assert Whole(Session(), driver, call.outlet).run([b""]).error is None

    thread = threading.Thread(target=both, name="invoker-both")
    thread.start()
    thread.join(LIMIT_S)
    assert after == [None]


def test_E126_what_the_context_sends_is_kept_in_order():
    """Between what the function yields."""

    def send(xs: Iterator[int], context: Context) -> Iterator[int]:
        for x in xs:
            context.outputs[0].send(x)
            yield x * 10

    call = WholeCall(direct_driver(send)).start().data(b"1").data(b"2")
    assert call.end() is None
    assert call.payloads() == [b"1", b"10", b"2", b"20"]


def test_R115_the_context_hears_of_a_peer_that_is_gone():
    """It asks the transport itself; the next emit of a call that is long ends the function."""
    inside, go, seen = threading.Event(), threading.Event(), []

    def busy(context: Context) -> Iterator[int]:
        try:
            seen.append(context.cancelled)
            inside.set()
            go.wait(LIMIT_S)
            seen.append(context.cancelled)
            yield 1
            seen.append("went on")
        finally:
            seen.append("left")

    call = WholeCall(direct_driver(busy)).start().run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    call.outlet.gone = True
    go.set()
    assert call.end().status is Status.CANCELLED
    assert seen == [False, True, "left"]
    assert call.driver.engine.counters.finished == {Status.CANCELLED: 1}


def test_R115_a_short_function_that_returns_since_its_peer_is_gone_was_cancelled():
    """It asks its context, and leaves politely: the invocation did not end well."""

    def polite(context: Context) -> Iterator[int]:
        if not context.cancelled:
            yield 1

    call = WholeCall(direct_driver(polite)).start()
    call.outlet.gone = True
    assert call.end().status is Status.CANCELLED
    assert call.driver.engine.counters.finished == {Status.CANCELLED: 1}


# Endings with an error.


def test_R046_a_second_start_is_refused_and_nothing_runs():
    """It fails this call only; the same driver serves the next one."""
    ran = []

    def note(x: int) -> int:
        ran.append(x)
        return x

    driver = direct_driver(note)
    error = WholeCall(driver).start().data(b"1").start().data(b"2").end()
    assert isinstance(error, ProtocolViolation)
    assert "only once" in str(error)
    assert ran == []
    assert WholeCall(driver).start().data(b"1").end() is None
    counters = driver.engine.counters
    assert (counters.opened, counters.finished) == (2, {error.status: 1, Status.OK: 1})
    doom = pb.InputSignal(data=pb.InputFrame(payload=b"1", contentType="application/x-doom")).SerializeToString()
    unread = WholeCall(driver).start().raw(doom).start().end()
    assert isinstance(unread, UnsupportedMediaType), "the first error counts"


@pytest.mark.parametrize("frames", [[b"\xff\xff\xff"], [b"\x12\x00"], []])
def test_R045_R048_R120_a_violation_before_the_start(frames):
    """Nothing is opened."""
    call = WholeCall(direct_driver(gen))
    for frame in frames:
        call.raw(frame)
    assert isinstance(call.end(), ProtocolViolation)
    assert call.driver.engine.counters.opened == 0


def test_R064_R065_a_frame_that_no_input_takes_ends_the_call():
    """A wrong index, and a media type without a codec."""
    assert isinstance(WholeCall(direct_driver(gen)).start().data(b"1", index=3).end(), ProtocolViolation)
    frame = b"\x12\x10\x0a\x01x\x12\x0bapplication"
    assert WholeCall(direct_driver(gen)).start().raw(frame).end().status is not Status.OK


@pytest.mark.parametrize("has_more", [True, False])
def test_R170_a_refusal_is_told_at_once_since_the_next_frame_is_here(has_more, monkeypatch):
    """Or the end of the frames; nobody waits."""
    monkeypatch.setattr("invoker.protocols.riff.session._PATIENCE_S", 3600)
    call = WholeCall(direct_driver(gen)).start("image/png")
    if has_more:
        call.data(b"1")
    assert isinstance(call.end(), NotAcceptable)
    assert call.driver.engine.counters.refused == 1
    assert not call.driver.waiting


def test_R025_R132_the_engine_refuses():
    """While it drains, unless the conversation began before; and beyond its limit."""
    driver = direct_driver(gen)
    driver.engine.is_draining = True
    assert isinstance(WholeCall(driver).start().data(b"1").end(), ShuttingDown)
    assert WholeCall(driver, is_early=True).start().data(b"1").end() is None
    driver.engine.is_draining = False
    driver.engine.max_invocations = 1
    driver.engine.running["one"] = None
    call = WholeCall(driver).start().data(b"1").run()
    driver.engine.running.clear() if call._ended.wait(LIMIT_S) else None
    assert isinstance(call.end(), Overloaded)


def test_R130_frames_beyond_the_cap_end_the_call():
    """They are counted like any."""
    driver = direct_driver(gen, limits=Limits(hard_frames=3))
    call = WholeCall(driver).start()
    for _ in range(4):
        call.data(b"1")
    assert call.end().status is Status.RESOURCE_EXHAUSTED
    assert WholeCall(driver).start().data(b"1").data(b"1").data(b"1").end() is None


def test_R113_values_before_the_error_are_delivered_before_it():
    """Two values, then the error."""

    def two() -> Iterator[int]:
        yield from (1, 2)
        raise ValueError("boom")

    call = WholeCall(direct_driver(two)).start()
    assert str(call.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert call.payloads() == [b"1", b"2"]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
def test_R123_exit_like_exceptions_fail_the_call_only(error):
    """They become Unexpected Error and never end the thread."""

    def leave(x: int) -> int:
        raise error

    assert str(WholeCall(direct_driver(leave)).start().data(b"1").end()).startswith("Invoker: Unexpected")


def test_R075_earlier_outputs_precede_a_decoding_error():
    """What came before a bad payload is answered; the generator is closed in its own thread."""
    closed = []

    def watch(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
        finally:
            closed.append(threading.current_thread().name)

    call = WholeCall(direct_driver(watch)).start().data(b"2").data(b"x").data(b"3")
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == [b"2"]
    assert closed == ["invoker-whole"]


def test_an_encode_error_ends_the_call():
    """A value that no codec takes."""

    def bad() -> Iterator[object]:
        yield 1
        yield object()

    call = WholeCall(direct_driver(bad)).start()
    assert call.end().status is Status.UNKNOWN
    assert call.payloads() == [b"1"]


def test_a_generator_that_has_not_ended_is_closed():
    """The session closes the conversation when the invocation fails; ``finally`` runs before the thread is free."""
    left = []

    def stubborn(xs: Iterator[int]) -> Iterator[int]:
        try:
            while True:
                try:
                    yield next(xs)
                except InputCancelled:
                    raise
                except Exception:
                    yield -1
        finally:
            left.append("left")

    call = WholeCall(direct_driver(stubborn)).start().data(b"x").data(b"1")
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == []
    assert left == ["left"]


def test_a_session_that_fails_is_a_defect_of_ours(caplog):
    """The peer hears of an internal error, and nothing is left open."""
    from invoker.protocols.riff.session import RiffSession

    class Broken(RiffSession):
        __slots__ = ()

        def half_close(self):
            raise ValueError("boom")

    call = WholeCall(direct_driver(square), session=Broken()).start().data(b"1")
    assert call.end().status is Status.INTERNAL
    assert "a session or transport failed" in caplog.text
    assert call.driver.engine.counters.finished == {Status.INTERNAL: 1}


# The end of the frames.


def test_R109_the_end_is_believed_only_where_it_matters():
    """A function that is mapped does not see it; a streaming one does, when it pulls behind the last frame."""
    call = WholeCall(direct_driver(square)).start().data(b"1")
    assert call.end() is None
    assert call.outlet.asked_end == 0
    seen: list[int] = []

    def pull(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            seen.append(call.outlet.asked_end)
            yield x
        seen.append(call.outlet.asked_end)

    call = WholeCall(direct_driver(pull)).start().data(b"1").data(b"2")
    assert call.end() is None
    assert seen == [0, 0, 1]


@pytest.mark.parametrize("settle_s", [0.0, 0.01])
def test_R109_R110_an_end_that_was_a_cancel_looks_like_a_cancel(settle_s):
    """The function never sees the end of its input; what it had given before is dropped with the call."""
    seen = []

    def total(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield sum(xs)
            seen.append("committed")
        except InputCancelled as error:
            seen.append(error.error.status)
            raise

    call = WholeCall(direct_driver(total), settle_s=settle_s).start().data(b"1")
    call.outlet.gone = True
    assert call.end().status is Status.CANCELLED
    assert seen == [Status.CANCELLED]


def test_R109_what_is_kept_leaves_before_the_end_settles():
    """And the lead is passed on, since the thread waits."""
    early: list[list[bytes]] = []
    call = WholeCall(direct_driver(gen), settle_s=0.01).start().data(b"3")
    call.outlet.on_end = lambda: early.append(list(call.outlet.left))
    assert call.end() is None
    assert [len(one) for one in early] == [1]
    assert call.turn.passed == 1


def test_R166_R168_options_and_values_wait_for_nothing():
    """The end is here, so missing options are missing; a value that comes too late is refused."""

    def scaled(xs: Iterator[int], factor: int = 1) -> Iterator[int]:
        for x in xs:
            yield x * factor

    driver = direct_driver(scaled)
    for frames, payloads in (((b"3", 1), (b"5", 0)), [b"15"]), (((b"5", 0),), [b"5"]):
        call = WholeCall(driver).start()
        for payload, index in frames:
            call.data(payload, index)
        assert call.end() is None
        assert call.payloads() == payloads
    assert isinstance(WholeCall(driver).start().data(b"5").data(b"3", 1).end(), ProtocolViolation)

    def times(x: int, factor: int) -> int:
        return x * factor

    assert WholeCall(direct_driver(times)).start().end() is None
