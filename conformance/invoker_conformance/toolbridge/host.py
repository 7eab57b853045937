"""`Host`: what a scenario of a tool bridge chapter uses: sessions, and tests for tools."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.toolbridge.rpcs import Refused, Rpcs
from invoker_conformance.toolbridge.session import Session

T = TypeVar("T")

_NOBODYS_KEYWORD = "no_tool_of_the_suite_has_this"


class Host(Rpcs):
    """The host program of one scenario, which is the client of the bridge."""

    noun = "tool"

    @asynccontextmanager
    async def session(self, session_id: str = "", **config: Any) -> AsyncIterator[Session]:
        """Make a session, which is cleaned up at the end."""
        session = self.named(session_id or f"conformance-{uuid.uuid4().hex}")
        await session.begin(**config)
        try:
            yield session
        finally:
            async with self.aside():
                await session.clean(force=True)

    @asynccontextmanager
    async def beside(self, work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Run a call in the background; at the end it is cancelled if it still runs."""
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def named(self, session_id: str) -> Session:
        """A session with this id, which need not exist."""
        return Session(self, session_id)

    async def _mark(self, key: str) -> Any:
        async with self.session() as session:
            return await session.value("marks", key)

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Call the tool with an argument that no tool accepts; the answer shows whether the tool exists."""
        request = pb.ToolCallRequest(tool_id=function)
        try:
            async with self.session() as session:
                request.session_id = session.id
                request.kwargs[_NOBODYS_KEYWORD].SetInParent()
                answer = await self.ask("ExecuteTool", request, pb.ToolCallResponse)
        except Refused as refused:
            return refused.code
        is_missing = answer.error.type == "ToolNotFound"
        return grpc.StatusCode.NOT_FOUND if is_missing else grpc.StatusCode.OK


def names_of(tools: Sequence[pb.ToolSpec]) -> list[str]:
    """The names of tools, in order."""
    return [tool.name for tool in tools]
