"""Sessions on the loop: what their ends give back, and who is not left waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

from invoker.core.steps import Close, Emitted, EndInput, Event, Finished, Open, Step, Terms, Wants
from invoker.errors import LimitExceeded, ShuttingDown, Status
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.conftest import SLOW
from tests.execution.loop.test_sessions import FakeCall, Script, echo, feed, sync_echo
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.sessionlines import EvergreenCall
from tests.transports.evergreen import act, leaf


def half_closed_and_gone(peer: EvergreenCall) -> None:
    peer.half_close()
    peer.reactor.gone()


ENDINGS: dict[str, Callable[[EvergreenCall], Any]] = {
    "the peer is gone": lambda peer: peer.reactor.gone(),
    "a frame that is none": lambda peer: peer.reactor.arrived(b"\xff\xff"),
    "cut by a drain": lambda peer: peer.reactor.fail(ShuttingDown("cut")),
    "gone after the half-close": half_closed_and_gone,
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_E003_what_is_stored_is_given_back_although_a_function_stays(how):
    """A thread that blocks keeps its conversation for as long as it likes, but not its nodes."""
    entered, go = threading.Event(), threading.Event()

    def stuck(x: Iterator[str]) -> Iterator[str]:
        entered.set()
        go.wait(10)
        yield "late"

    peer = EvergreenCall(driver_of(stuck))
    peer.say(leaf("big", b"x" * 1_000_000), leaf("p", b"a", more=True), act("stuck", {"x": "p"}, {"out": "r"}))
    await until(entered.is_set)
    graph = peer.session.graph
    assert len(graph.nodes) == 3
    ended = ENDINGS[how](peer)
    if asyncio.iscoroutine(ended):
        await ended
    assert peer.closed.done()
    assert (len(graph.nodes), graph.held, peer.session.stalled) == (0, 0, set())
    go.set()
    assert await peer.reactor.driver.left(5)


@pytest.mark.parametrize("is_async", [True, False])
async def test_E107_a_function_whose_output_ends_its_session_does_not_wait_for_the_peer(is_async):
    """The peer does not read; the output that is too much ends the session, and its function leaves at once."""

    async def much() -> AsyncIterator[str]:
        yield "x" * 2000

    def sync_much() -> Iterator[str]:
        yield "x" * 2000

    driver = driver_of(much if is_async else sync_much, grace_s=60)
    peer = EvergreenCall(driver, EvergreenSettings(session_bytes=1000, fragment_bytes=100), is_full=True)
    peer.say(act(much.__name__ if is_async else sync_much.__name__, {}, {"out": "r"}))
    error = (await asyncio.wait_for(peer.closed, 5)).error
    assert error is not None
    assert error.status is Status.RESOURCE_EXHAUSTED
    assert peer.size > 0
    assert await driver.left(2 * SLOW)


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_a_reader_that_waits_already_hears_of_what_another_action_gives(function):
    """Its input stalls without being fed, since its window was used up; nobody else would look at it again."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Emitted and event.id == "a":
            script.stalled.add(("b", 0))
        elif type(event) is Wants:
            script.stalled.clear()
            return [feed("b"), EndInput("b", 0)]
        elif event == Finished("b"):
            return [Close(None)]
        return ()

    async def once() -> AsyncIterator[str]:
        await go.wait()
        yield "x"
        await asyncio.Event().wait()

    go, script = asyncio.Event(), Script(answer)
    peer = FakeCall(driver_of(once, function), script)
    peer.say(Open("a", function="once", terms=Terms.LOOSE), Open("b", function=function.__name__, terms=Terms.LOOSE))
    await until(lambda: peer.reactor.runners["b"].invocation.inputs[0].waiters)
    go.set()
    await peer.end()
    assert Wants("b", 0) in script.events


async def test_a_session_that_fails_is_released_once():
    """Also when what it raised is its own error."""
    script = Script()
    peer = FakeCall(driver_of(echo), script)
    peer.reactor.arrived(LimitExceeded("too much"))
    peer.reactor.gone()
    assert isinstance(await peer.end(), LimitExceeded)


async def test_E114_what_waits_is_told_once_while_another_input_is_stalled():
    """A function that takes nothing does not keep the loop busy."""

    async def asleep(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        async for x in xs:
            yield x

    script = Script()
    peer = FakeCall(driver_of(echo, asleep), script)
    script.stalled.add(("a", 0))
    peer.say(Open("a", function="asleep"), Open("b", function="echo"), *(feed("a") for _ in range(8)))
    await until(lambda: peer.reactor.runners["b"].invocation.inputs[0].waiters)
    peer.reactor.arrived(None)
    for _ in range(50):
        await asyncio.sleep(0)
    assert script.events == [Wants("b", 0, waits=True)]
    peer.reactor.gone()
    await peer.end()
