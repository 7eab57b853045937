"""`Run`: one execution of an agent: a task that waits after each report until that is taken.

The session of a run awaits `Run.next` again and again. If the wait for a report is cancelled, or the run is dropped,
its task is cancelled: the running tool ends with it, and the model is not asked again (T-149).
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from invoker.codecs.anyvalue import ANY
from invoker.context import Context
from invoker.errors import InternalError
from invoker.execution.bodies.runner import later
from invoker.execution.bodies.values import decode_value, encode_argument
from invoker.message import Headers, Message
from invoker.protocols.toolbridge.agents import Agent, News, Running
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions


class Run:
    """One run of an agent.

    Args:
        host_sessions: The host sessions of this process, with that of the run.
        agent: The agent.
        running: The run's entry in `HostSessions`.
        given: The inputs of the signature.
        metadata: The metadata of the rpc, for the tools.

    Raises:
        BridgeError: The session is gone.
    """

    def __init__(
        self, host_sessions: HostSessions, agent: Agent, running: Running, given: dict[str, Any], metadata: Headers
    ) -> None:
        assert running.session is not None
        host_sessions.begin(running)
        self._hands = hands = Hands(running.session, Context(agent.id, agent.id, metadata=metadata, configs=(running,)))
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(agent.runner.run(hands, given), name=agent.id)
        running.cancel = partial(_stop, hands, self._task)  # the task must not refer to this object
        self._task.add_done_callback(lambda _task: _over(host_sessions, running, hands))
        weakref.finalize(self, later, loop, self._task.cancel)

    async def next(self) -> News:
        """The next report; the last one is a `Result`, or an InvocationError that is raised."""
        news, task = self._hands.news, self._task
        taking = asyncio.ensure_future(news.get())
        try:
            await asyncio.wait((taking, task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            if not taking.done():
                taking.cancel()
        if taking.done() and not taking.cancelled():
            news.task_done()
            return taking.result()
        if task.cancelled():
            raise self._hands.error or InternalError()
        return task.result()  # type: ignore[no-any-return]  # as a Runner gives it


def _stop(hands: Hands, task: asyncio.Task[Any], error: BridgeError) -> None:
    hands.error = error
    task.cancel()


def _over(host_sessions: HostSessions, running: Running, hands: Hands) -> None:
    hands.context.release()
    running.cancel = None
    host_sessions.end(running)


class Hands:
    """The actions of a run: it reports its progress, and calls the tools of its session.

    Attributes:
        context: The context of the run, as the caller of tools.
        error: Why the run was stopped.
        news: The report that is not yet taken.
    """

    def __init__(self, session: HostSession, context: Context) -> None:
        self.context = context
        self.error: BridgeError | None = None
        self.news: asyncio.Queue[News] = asyncio.Queue(1)
        self._scope = session.scope

    async def tell(self, news: News) -> None:
        """Report progress, and wait until the report is taken."""
        await self.news.put(news)
        await self.news.join()

    async def call(self, tool: str, given: dict[str, Any]) -> Message[bytes]:
        """Call a tool as every other caller does: arguments are checked, and limits and the audit log apply (T-148).

        Raises:
            InvocationError: The call was refused, or has failed.
        """
        kwargs = {name: encode_argument(value, name, ANY) for name, value in given.items()}
        messages: AsyncIterator[Message[bytes]] = self._scope.call(self.context, tool, (), kwargs, streams=False)
        async with contextlib.aclosing(messages):  # type: ignore[type-var]  # a Scope gives async generators
            async for message in messages:
                return message
        raise InternalError

    def value(self, message: Message[bytes]) -> Any:
        """Decode the value of a tool's result."""
        return decode_value(message)
