"""Any session over any driver: what the peer gets, and what the session is told, do not depend on who waits.

Sessions of one call run on all drivers. Those of Evergreen and of action-engine open many invocations and store what
they are sent, so they run on a `SessionReactor` only: tests/execution/loop and tests/protocols.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from numpy.typing import NDArray

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import (
    Ask,
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Fetch,
    Finished,
    Join,
    Open,
    Send,
    Step,
    Subscribe,
    Timer,
)
from invoker.core.store import Get
from invoker.errors import Cancelled, InternalError, InvocationError, NotReady, ProtocolViolation
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.sessions import SessionReactor
from invoker.message import Message
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.graphpipe.session import GraphPipeSession
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.web.fields import signature_of
from invoker.protocols.web.http import BodyChunk, HttpSession, RequestHead
from tests.execution.loopcalls import JSON, until
from tests.execution.memory import driver_of
from tests.execution.scripted import Script
from tests.execution.wires import LIMIT_S, Call, direct_driver
from tests.protocols.graphpipe.asking import ask, model_of, values

Outputs = tuple[Iterator[str], Iterator[str]]


def echo(xs: Iterator[str]) -> Iterator[str]:
    yield from xs


def twice(xs: Iterator[str], ys: Iterator[str]) -> Outputs:
    return (x for x in xs), (y for y in ys)


def endless() -> Iterator[str]:
    while True:
        yield "x"


def endless_twice() -> Outputs:
    return endless(), iter(())


class LoopWire:
    """A wire of a reactor that keeps what it is given; there is always room."""

    is_gone = False
    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.closed: list[Close] = []

    def accepted(self) -> None:
        """Nobody asks."""

    def ask(self) -> None:
        """All frames are given whether they are asked for or not."""

    def write(self, frame: Any) -> bool:
        assert not self.closed, "a frame behind the status"
        self.sent.append(frame)
        return True

    async def room(self) -> None:
        raise AssertionError("there is always room")


class Storing:
    """A session of one call as one that stores: it stores nothing."""

    headers: tuple[tuple[str, str], ...] = ()
    stalled: frozenset[tuple[str, int]] = frozenset()
    hears_waits = is_full = False
    held = 0

    def __init__(self, session: Any) -> None:
        self.receive, self.half_close, self.deliver = session.receive, session.half_close, session.deliver

    def release(self) -> None:
        """Nothing is held."""


async def over(kind: str, session: Any, frames: Iterable[Any], *functions: Any) -> tuple[list[Any], Close]:
    """Run a session over a driver to its end: what was sent, and with what it closed."""
    if kind in ("direct", "several"):
        driver = direct_driver(*functions)
        call = Call(driver, session=session)
        for frame in frames:
            call.half_close() if frame is None else call.raw(frame)
        await asyncio.to_thread(call.end)
        return [frame for frame, _ in call.wire.sent], call.close
    driver = driver_of(*functions)
    wire = LoopWire()
    reactor: Any
    if kind == "session":
        reactor = SessionReactor(Storing(session), wire, driver, wire.closed.append, fetch=None)  # type: ignore[arg-type]
    else:
        reactor = Reactor(session, wire, driver, wire.closed.append)
    for frame in frames:
        reactor.arrived(frame)
    await until(lambda: wire.closed)
    assert await driver.left(LIMIT_S)
    assert not driver.engine.running
    return wire.sent, wire.closed[0]


WAYS = [
    pytest.param("direct", echo, endless, id="direct"),
    pytest.param("several", twice, endless_twice, id="several"),
    pytest.param("reactor", echo, endless, id="reactor"),
    pytest.param("reactor", twice, endless_twice, id="reactor of two outputs"),
    pytest.param("session", echo, endless, id="session reactor"),
    pytest.param("session", twice, endless_twice, id="session reactor of two outputs"),
]
every_way = pytest.mark.parametrize(("kind", "fn", "forever"), WAYS)

ERROR = NotReady("enough")


def feed(payload: str) -> Feed:
    return Feed("a", 0, Message(payload.encode(), media_type="text/plain"))


def answering(more: Callable[[Event], Iterable[Step]] = lambda _: ()) -> Script:
    """A session that sends each output on, closes as its invocation finished, and does more."""

    def answer(event: Event) -> Iterable[Step]:
        given = tuple(more(event))
        if isinstance(event, Emitted):
            return given or (Send(event.message.payload.strip(b'"')),)
        if isinstance(event, Finished):
            return (*given, Close(event.error))
        return given

    return Script(answer)


OPEN, END = Open("a"), EndInput("a")


@every_way
async def test_outputs_are_sent_in_order_and_the_end_is_told(kind, fn, forever):
    """Feeds, the end of one input, and that of all."""
    script = answering()
    sent, close = await over(kind, script, [[OPEN, feed("x")], [feed("y")], [EndInput("a", 0)], [END]], fn)
    assert (sent, close) == ([b"x", b"y"], Close())
    assert script.of(Finished) == [Finished("a")]


@every_way
async def test_a_cancel_between_frames_ends_the_invocation_with_its_error(kind, fn, forever):
    """The session is told so, and what comes behind it is ignored."""
    script = answering()
    frames = [
        [OPEN],
        [feed("x")],
        [Cancel("a", ERROR), feed("y"), END, CloseOutput("a", 0), Cancel("a", Cancelled("no"))],
    ]
    sent, close = await over(kind, script, frames, fn)
    assert close == Close(ERROR)
    assert script.of(Finished) == [Finished("a", ERROR)]
    assert b"y" not in sent


@every_way
async def test_a_cancel_in_answer_to_an_output_ends_the_function(kind, fn, forever):
    """Although it would go on for ever."""
    script = answering(lambda event: [Cancel("a", ERROR)] if isinstance(event, Emitted) else ())
    sent, close = await over(kind, script, [[OPEN]], forever)
    assert (sent, close) == ([], Close(ERROR))
    assert len(script.of(Emitted)) == 1


@every_way
async def test_a_cancel_with_the_open_lets_nothing_begin(kind, fn, forever):
    """The function is not called."""
    script = answering()
    sent, close = await over(kind, script, [[OPEN, Cancel("a", ERROR)]], forever)
    assert (sent, close) == ([], Close(ERROR))
    assert not script.of(Emitted)


@every_way
async def test_an_output_without_reader_is_closed_in_the_function(kind, fn, forever):
    """Which ends by itself then."""
    script = answering(lambda event: [Send(b"x"), CloseOutput("a", 0)] if isinstance(event, Emitted) else ())
    sent, close = await over(kind, script, [[OPEN, END]], forever)
    assert set(sent) == {b"x"}
    assert close == Close()


@every_way
async def test_one_output_may_be_answered_by_several_frames(kind, fn, forever):
    """They leave in the order in which the session gave them."""
    script = answering(lambda event: [Send(b"1"), Send(b"2")] if isinstance(event, Emitted) else ())
    sent, _ = await over(kind, script, [[OPEN, feed("x"), feed("y"), END]], fn)
    assert sent == [b"1", b"2", b"1", b"2"]


@every_way
async def test_frames_may_be_sent_at_any_time(kind, fn, forever):
    """Before anything is open, while a function waits for input, and behind its end."""
    script = answering(lambda event: [Send(b"last")] if isinstance(event, Finished) else ())
    frames = [[Send(b"first")], [OPEN], [Send(b"while")], [feed("x"), END]]
    sent, close = await over(kind, script, frames, fn)
    assert sent == [b"first", b"while", b"x", b"last"]
    assert close == Close()


@every_way
async def test_a_session_may_close_while_a_function_runs(kind, fn, forever):
    """That is told to leave, and the session hears no more."""
    end = Close(ERROR, (("a", "b"),))
    script = answering()
    sent, close = await over(kind, script, [[OPEN], [end]], fn)
    assert (sent, close) == ([], end)
    assert not script.of(Finished)
    script = answering(lambda event: [end] if isinstance(event, Emitted) else ())
    assert await over(kind, script, [[OPEN]], forever) == ([], end)


@every_way
async def test_a_session_may_close_without_opening_anything(kind, fn, forever):
    """With what it sent before."""
    assert await over(kind, answering(), [[Send(b"no"), Close(ERROR)]], fn) == ([b"no"], Close(ERROR))


@every_way
async def test_a_refused_open_is_finished(kind, fn, forever):
    """Commands of an invocation that there is not are ignored."""
    script = answering()
    sent, close = await over(kind, script, [[feed("x"), END], [Open("a", "nobody"), feed("x"), END]], fn)
    assert sent == []
    assert isinstance(close.error, InvocationError)
    assert [one.error for one in script.of(Finished)] == [close.error]


@every_way
async def test_a_timer_elapses_while_nothing_runs(kind, fn, forever):
    """And what the session says to that is done."""
    script = answering(lambda event: [OPEN, feed("x"), END] if isinstance(event, Elapsed) else ())
    assert await over(kind, script, [[Timer(0.001)]], fn) == ([b"x"], Close())


@pytest.mark.parametrize("step", [Fetch("k", "file:///x", 1), Ask("k", Get("s", "n")), Subscribe("s"), Join("b")])
@pytest.mark.parametrize(("kind", "fn"), [("direct", echo), ("several", twice)])
async def test_a_step_that_a_thread_cannot_do_fails_its_own_call(kind, fn, step, caplog):
    """Transports are typed so that no such session gets a thread (`CallSession`); if one does, it is our error."""
    _, close = await over(kind, answering(), [[OPEN], [step]], fn)
    assert isinstance(close.error, InternalError)
    assert "CallSession" in caplog.text


# Real sessions.


def square(x: int) -> int:
    return x * x


def start(*types: str) -> bytes:
    return pb.InputSignal(start=pb.StartFrame(expectedContentTypes=types)).SerializeToString()


def data(payload: bytes) -> bytes:
    return pb.InputSignal(data=pb.InputFrame(payload=payload, contentType=JSON)).SerializeToString()


def both(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
    return (x * x for x in xs), iter(())


def forever_of(xs: Iterator[int]) -> Iterator[int]:
    while True:
        yield 1


def doubled(x: NDArray[Any]) -> NDArray[Any]:
    return x * 2


def http_of(driver: Driver) -> HttpSession:
    (function,) = driver.engine.catalog
    signature = signature_of(function.spec, driver.engine.registry_for(function))
    return HttpSession(lambda _: signature, max_body_bytes=100)


@pytest.mark.parametrize(
    ("kind", "fn"), [(one.values[0], both if "two" in one.id or one.id == "several" else square) for one in WAYS]
)
async def test_riff(kind, fn):
    """Values, and an error of the peer."""
    sent, close = await over(
        kind, RiffSession(), [start(*[JSON] * (1 + (fn is both))), data(b"2"), data(b"3"), None], fn
    )
    assert [pb.OutputSignal.FromString(one).data.payload for one in sent] == [b"4", b"9"]
    assert close == Close()
    _, close = await over(kind, RiffSession(), [b"\xff\xff"], fn)
    assert isinstance(close.error, ProtocolViolation)


once = pytest.mark.parametrize("kind", ["direct", "reactor", "session"])


@once
@pytest.mark.parametrize(("fn", "status"), [(square, 200), (forever_of, 500)])
async def test_riff_http(kind, fn, status):
    """One value is the response; of a second one the client is told, although the function would go on for ever."""
    head = RequestHead("POST", "/", headers=[("Content-Type", "application/json"), ("Accept", "*/*")])
    (response,), close = await over(kind, http_of(driver_of(fn)), [head, BodyChunk(b"3"), None], fn)
    assert response.status == status
    assert (close.error is None) == (status == 200)


@once
async def test_graphpipe(kind):
    """The request is one frame, and so is the answer."""
    model = model_of(doubled)
    frames = [prepare(model, ask([1.0, 2.0])), None]
    (answer,), close = await over(kind, GraphPipeSession(model), frames, doubled)
    assert values(answer.response()) == [[2.0, 4.0]]
    assert close == Close()


@pytest.mark.parametrize("kind", ["direct", "several"])
def test_a_session_that_closes_is_not_kept_waiting_by_user_code(kind):
    """The peer of a thread is told at once, however long the function takes to leave."""
    go = threading.Event()

    def busy(xs: Iterator[str]) -> Iterator[str]:
        try:
            yield from xs
        finally:
            go.wait(LIMIT_S)

    def busy_twice(xs: Iterator[str], ys: Iterator[str]) -> Outputs:
        return busy(xs), iter(())

    call = Call(direct_driver(busy if kind == "direct" else busy_twice), session=answering())
    call.raw([OPEN]).raw([Close(ERROR)])
    assert call.wire.told.wait(LIMIT_S)
    assert call.wire.status == (ERROR.status, str(ERROR))
    go.set()
    assert call.end() is ERROR


@pytest.mark.parametrize(("kind", "fn"), [("direct", echo), ("several", twice)])
def test_R127_several_frames_of_one_output_wait_for_room_one_by_one(kind, fn):
    """So do those that no output caused."""
    script = answering(lambda event: [Send(b"1"), Send(b"2")] if isinstance(event, Emitted) else ())
    call = Call(direct_driver(fn), session=script, is_slow=True)
    call.raw([OPEN, Send(b"0"), feed("x")]).raw([Send(b"while"), feed("y"), END])
    for count in range(1, 7):
        with call.wire.arrived:
            assert call.wire.arrived.wait_for(lambda count=count: len(call.wire.sent) == count, LIMIT_S)
        call.wire.take()
    assert call.end() is None
    sent = [frame for frame, _ in call.wire.sent]
    assert sorted(sent) == [b"0", b"1", b"1", b"2", b"2", b"while"]
    assert sent[0] == b"0"
    assert [one for one in sent if one in b"12"] == [b"1", b"2", b"1", b"2"]


def test_an_input_that_comes_behind_a_frame_that_waited_for_room_is_noticed(hasty_threads):
    """By the thread of another output, which may wait for the wire by then."""
    for _ in range(40):
        test_R127_several_frames_of_one_output_wait_for_room_one_by_one("several", twice)
