"""`Host`: what a scenario of a tool bridge chapter holds in its hands: sessions, and rpcs with their endings."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.riff.probe import Probe, Talk
from invoker_conformance.scenario import Failure, NotProvided
from invoker_conformance.target import Unreachable
from invoker_conformance.texts import preview
from invoker_conformance.toolbridge.rules import STATUS, told_in
from invoker_conformance.toolbridge.session import Listening, Session

__all__ = ["Host", "Refused", "Said"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")

_SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]
_NOBODYS_KEYWORD = "no_tool_of_the_suite_has_this"


@dataclass(frozen=True, slots=True)
class Said:
    """What was sent to a target, as a report quotes it."""

    sent: str


class Refused(Failure):
    """An rpc ended with another status than OK, which is a failure where nobody expects it.

    Attributes:
        code: The status.
        detail: Its text.
        error: What the trailer says; None: nothing.
    """

    def __init__(self, code: grpc.StatusCode, detail: str, error: pb.ErrorInfo | None, sent: str) -> None:
        told = f" with {error.type} {dict(error.details)}" if error else ""
        super().__init__(f"{code.name} {detail!r}{told}", "OK", sent)
        self.code = code
        self.detail = detail
        self.error = error


class Host(Probe):
    """The tools of one scenario: it plays the program on the other side of the bridge."""

    last_call: Talk | None

    @asynccontextmanager
    async def session(self, session_id: str = "", **config: Any) -> AsyncIterator[Session]:
        """A session that is there, and is cleaned up at the end."""
        session = self.named(session_id or f"conformance-{uuid.uuid4().hex}")
        await session.begin(**config)
        try:
            yield session
        finally:
            judged = self.last_call  # a failure has to quote what was sent in that call
            await session.clean(force=True)
            self.last_call = judged

    @asynccontextmanager
    async def beside(self, work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """A call that runs meanwhile; what is left of it at the end is cancelled."""
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def named(self, session_id: str) -> Session:
        """A session by its id, whether it is there or not."""
        return Session(self, session_id)

    async def ask(self, method: str, request: Message, answer: type[M], *, deadline_s: float | None = None) -> M:
        """Make a unary rpc.

        Raises:
            Refused: It ended with another status than OK.
            Failure: It did not end in time, or what came with it is not right.
        """
        told = self.note(method, request)
        call = self.call_of(method, request, answer)(request, timeout=deadline_s)
        try:
            async with asyncio.timeout(self.timeout_s):
                made: M = await call
        except TimeoutError:
            raise Failure(f"no end of {method} within {self.timeout_s:g} s", "an answer", told) from None
        except grpc.RpcError as error:
            raise self.refusal(error, told) from None
        return made

    @asynccontextmanager
    async def listen(
        self, method: str, request: Message, answer: type[M], *, deadline_s: float | None = None
    ) -> AsyncIterator[Listening[M]]:
        """Make an rpc that answers with a stream; what is left of it at the end is cancelled."""
        told = self.note(method, request)
        call = self.call_of(method, request, answer)(request, timeout=deadline_s)
        listening = Listening[M](self, call, told)
        try:
            yield listening
        finally:
            await listening.close()

    def call_of(self, method: str, request: Message, answer: type[Message]) -> Any:
        """The gRPC stub of a unary method, to be called."""
        channel = self.target.channel(self.function)
        make = channel.unary_stream if _SERVICE.methods_by_name[method].server_streaming else channel.unary_unary
        path = f"/{_SERVICE.full_name}/{method}"
        return make(path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString)

    def note(self, method: str, request: Message) -> str:
        """Remember what is sent, for reports."""
        text = (
            f"{method} {preview(request.SerializeToString())}" if request.ByteSize() > 2000 else _text(method, request)
        )
        self.last_call = Said(text)
        return text

    def refusal(self, error: grpc.RpcError, told: str) -> Refused:
        """What an rpc that failed says; its trailer is checked."""
        failed: Any = error
        info = told_in(tuple(failed.trailing_metadata() or ()), told)
        if failed.code() is grpc.StatusCode.UNAVAILABLE and info is None:
            raise Unreachable(f"{self.target.grpc_at}: {failed.details()}")
        return Refused(failed.code(), failed.details() or "", info, told)

    async def refuses(
        self, method: str, request: Message, answer: type[Message], kind: str, code: str = "", *, status: str = ""
    ) -> pb.ErrorInfo:
        """Require that an rpc without a field for errors ends with a status, and an error of this type in its trailer.

        Args:
            method: The method of the bridge.
            request: To it.
            answer: What it would answer.
            kind: Type of the error.
            code: Its details["code"]; empty: any.
            status: The gRPC status; empty: the one that belongs to the type (T-161).
        """
        wanted = status or STATUS[kind].name
        expected = f"{wanted}, with {kind}{f' code={code}' if code else ''} in the trailer"
        try:
            met = await self.ask(method, request, answer)
        except Refused as refused:
            info = refused.error
            if (
                refused.code.name == wanted
                and info
                and info.type == kind
                and (not code or info.details.get("code") == code)
            ):
                return info
            raise self.failure(refused.met, expected) from None
        raise self.failure(f"OK and {_text(type(met).__name__, met)}", expected)

    def failure(self, met: str, expected: str) -> Failure:
        """A failure that quotes what was sent last."""
        return Failure(met, expected, self.last_call.sent if self.last_call else "")

    async def mark(self, key: str) -> int:
        """A count that the tools keep in their process, read by the tool ``marks``."""
        judged = self.last_call
        async with self.session() as session:
            value = await session.value("marks", key)
        self.last_call = judged
        if not isinstance(value, int):
            raise Failure(f"{value!r} from the tool marks", "a whole number", f"marks({key!r})")
        return value

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Call the tool with an argument that no tool takes: it is missing if the answer says so."""
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

    async def provides(self, function: str) -> bool:
        """Whether the target has a tool."""
        return await self.target.provides(function, protocol="toolbridge", ask=self._answers)

    async def needs(self, method: str, request: Message, answer: type[M]) -> M:
        """As `ask`, for what a bridge may leave out.

        Raises:
            NotProvided: It answers UNIMPLEMENTED.
        """
        try:
            return await self.ask(method, request, answer)
        except Refused as refused:
            if refused.code is grpc.StatusCode.UNIMPLEMENTED:
                raise NotProvided(method) from None
            raise self.failure(refused.met, "an answer") from None


def _text(method: str, message: Message) -> str:
    """A message on one line."""
    text = " ".join(str(message).split())
    return f"{method} {{{text if len(text) <= 300 else text[:300] + '...'}}}"


def names_of(tools: Sequence[pb.ToolSpec]) -> list[str]:
    """The names of tools in their order."""
    return [tool.name for tool in tools]
