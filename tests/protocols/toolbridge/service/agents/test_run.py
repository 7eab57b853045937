"""Run: a task that goes on while its news are taken; with a runner of the tests instead of DSPy."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from invoker.core.store import Reason
from invoker.errors import InternalError
from invoker.message import EMPTY
from invoker.protocols.toolbridge.agents import Agent, Result, Running, Thought
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.llms import Llm
from invoker.protocols.toolbridge.service.agents.run import Hands, Run
from invoker.protocols.toolbridge.signature import AgentSignature
from tests.protocols.toolbridge.hosts import TestHostSessions, known, new_host_sessions

DONE = Result({"a": 1}, 1)


class Runner:
    """Does what a test says."""

    def __init__(self, work: Callable[[Hands], Any]) -> None:
        self.work = work
        self.left = asyncio.Event()

    async def run(self, hands: Hands, given: dict[str, Any]) -> Any:
        try:
            return await self.work(hands)
        finally:
            self.left.set()


def begun(runner: Runner, host_sessions: TestHostSessions | None = None) -> tuple[Run, Running]:
    """A run in a session."""
    host_sessions = host_sessions or new_host_sessions()
    agent = Agent("react_s1_0", AgentSignature.parse("q -> a"), (), 5, Llm("p", "m:f", "p", {}), False, runner)
    running = Running(known(host_sessions), {})
    return Run(host_sessions, agent, running, {}, EMPTY), running  # type: ignore[arg-type]


async def two(hands: Hands) -> Result:
    await hands.tell(Thought(1, "a"))
    await hands.tell(Thought(2, "b"))
    return DONE


async def test_news_come_in_order_and_the_result_last() -> None:
    run, running = begun(Runner(two))
    assert [await run.next() for _ in range(3)] == [Thought(1, "a"), Thought(2, "b"), DONE]
    await asyncio.sleep(0)
    assert running.session is not None
    assert not running.session.operations


async def test_it_waits_until_its_news_are_taken() -> None:
    went: list[int] = []

    async def work(hands: Hands) -> Result:
        await hands.tell(Thought(1, "a"))
        went.append(1)
        return DONE

    run, _ = begun(Runner(work))
    for _ in range(10):
        await asyncio.sleep(0)
    assert went == []
    await run.next()
    assert await run.next() == DONE


async def test_T149_a_cancel_of_the_wait_ends_it() -> None:
    runner = Runner(lambda _: asyncio.Event().wait())
    run, _ = begun(runner)
    waiting = asyncio.ensure_future(run.next())
    await asyncio.sleep(0)
    waiting.cancel()
    await runner.left.wait()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_T149_a_run_that_nobody_holds_ends() -> None:
    runner = Runner(two)
    run, _ = begun(runner)
    await run.next()
    del run
    gc.collect()
    await runner.left.wait()


async def test_its_session_can_stop_it() -> None:
    runner = Runner(lambda _: asyncio.Event().wait())
    run, running = begun(runner)
    waiting = asyncio.ensure_future(run.next())
    await asyncio.sleep(0)
    assert running.cancel is not None
    running.cancel(BridgeError(Kind.EXPIRED, "gone"))
    with pytest.raises(BridgeError, match="gone"):
        await waiting


async def test_errors_of_the_runner_are_raised() -> None:
    async def work(_: Hands) -> None:
        raise InternalError

    run, _ = begun(Runner(work))
    with pytest.raises(InternalError):
        await run.next()


async def test_no_run_begins_in_a_session_that_is_gone() -> None:
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    host_sessions.remove(session, Reason.DROPPED)
    with pytest.raises(BridgeError, match="cleaned up"):
        Run(
            host_sessions,
            Agent("x", AgentSignature.parse("q -> a"), (), 5, Llm("p", "m:f", "p", {}), False),
            Running(session, {}),
            {},
            EMPTY,
        )  # type: ignore[arg-type]
