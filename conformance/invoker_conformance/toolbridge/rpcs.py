"""`Rpcs`: makes rpcs of a tool bridge and checks their status. `Listening`: an rpc that answers with a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.riff.probe import Probe, Said
from invoker_conformance.scenario import Failure, NotProvided
from invoker_conformance.target import Unreachable
from invoker_conformance.texts import preview
from invoker_conformance.toolbridge.rules import STATUS, told_in

M = TypeVar("M", bound=Message)

_SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]


class Refused(Failure):
    """An rpc ended with another status than OK; it is a failure unless the scenario catches it.

    Attributes:
        code: The status.
        detail: The text of the status.
        error: The error in the trailer; None: there is none.
    """

    def __init__(self, code: grpc.StatusCode, detail: str, error: pb.ErrorInfo | None, sent: str) -> None:
        told = f" with {error.type} {dict(error.details)}" if error else ""
        super().__init__(f"{code.name} {detail!r}{told}", "OK", sent)
        self.code = code
        self.detail = detail
        self.error = error


class Rpcs(Probe):
    """Makes rpcs at the target."""

    async def ask(self, method: str, request: Message, answer: type[M], *, deadline_s: float | None = None) -> M:
        """Make a unary rpc.

        Raises:
            Refused: The rpc ended with another status than OK.
            Failure: The rpc did not end in time, or its trailers are wrong.
        """
        told = self.note(method, request)
        call = self.call_of(method, request, answer)(request, timeout=deadline_s)
        try:
            async with asyncio.timeout(self.timeout_s):
                made: M = await call
        except TimeoutError:
            raise Failure(f"no end of {method} within {self.timeout_s:g} s", "an answer", told) from None
        except grpc.aio.AioRpcError as error:
            raise self.refusal(error.code(), error.details(), error.trailing_metadata(), told) from None
        return made

    @asynccontextmanager
    async def listen(
        self, method: str, request: Message, answer: type[M], *, deadline_s: float | None = None
    ) -> AsyncIterator[Listening[M]]:
        """Make an rpc whose response is a stream; at the end it is cancelled if it still runs."""
        told = self.note(method, request)
        call = self.call_of(method, request, answer)(request, timeout=deadline_s)
        listening = Listening[M](self, call, told)
        try:
            yield listening
        finally:
            await listening.close()

    def call_of(self, method: str, request: Message, answer: type[Message]) -> Any:
        """The gRPC call of a unary method, for the caller to await."""
        channel = self.target.channel(self.function)
        make = channel.unary_stream if _SERVICE.methods_by_name[method].server_streaming else channel.unary_unary
        path = f"/{_SERVICE.full_name}/{method}"
        return make(path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString)

    def note(self, method: str, request: Message) -> str:
        """Keep the text of a request, for reports."""
        text = (
            f"{method} {preview(request.SerializeToString())}" if request.ByteSize() > 2000 else _text(method, request)
        )
        self.last_call = Said(text)
        return text

    def refusal(self, code: grpc.StatusCode, detail: str | None, trailers: Any, told: str) -> Refused:
        """Make the failure for an rpc with an error, and check its trailer."""
        info = told_in(tuple(trailers or ()), told)
        if code is grpc.StatusCode.UNAVAILABLE and info is None:
            raise Unreachable(f"{self.target.grpc_at}: {detail}")
        return Refused(code, detail or "", info, told)

    async def refuses(
        self, method: str, request: Message, answer: type[Message], kind: str = "", code: str = "", *, status: str = ""
    ) -> None:
        """Check that an rpc ends with a status, and with an error of this type in its trailer.

        Args:
            method: The method of the bridge.
            request: The request of the rpc.
            answer: The class of the response.
            kind: The type of the error; empty: there may be none.
            code: The detail ``code`` of the error; empty: any.
            status: The gRPC status; empty: the one of the type (T-161).
        """
        wanted = status or STATUS[kind].name
        expected = wanted + (f", with {kind}{f' code={code}' if code else ''} in the trailer" if kind else "")
        try:
            met = await self.ask(method, request, answer)
        except Refused as refused:
            info = refused.error or pb.ErrorInfo()
            if refused.code.name == wanted and kind in ("", info.type) and code in ("", info.details.get("code")):
                return
            raise self.failure(refused.met, expected) from None
        raise self.failure(f"OK and {_text(type(met).__name__, met)}", expected)

    def details(self, error: pb.ErrorInfo, **expected: str) -> None:
        """Check that an error has these details."""
        if any(error.details.get(name) != value for name, value in expected.items()):
            raise self.failure(str(dict(error.details)), f"details {expected}")

    async def needs(self, method: str, request: Message, answer: type[M]) -> M:
        """Make a unary rpc as `ask` does, for an rpc that a bridge need not serve.

        Raises:
            NotProvided: The bridge answers UNIMPLEMENTED.
        """
        try:
            return await self.ask(method, request, answer)
        except Refused as refused:
            if refused.code is grpc.StatusCode.UNIMPLEMENTED:
                raise NotProvided(method) from None
            raise self.failure(refused.met, "an answer") from None


class Listening(Generic[M]):
    """An rpc whose response is a stream, which is only read on request."""

    def __init__(self, host: Rpcs, call: grpc.aio.UnaryStreamCall[Any, M], sent: str) -> None:
        self._host = host
        self._call = call
        self._sent = sent

    async def next(self, timeout_s: float | None = None) -> M:
        """Return the next message.

        Raises:
            Refused: The rpc ended with another status than OK.
            Failure: The stream ended with OK, or no message came in time.
        """
        got = await self._read(timeout_s)
        if got is None:
            raise Failure("the end of the stream", "a further message", self._sent)
        return got

    async def all(self) -> list[M]:
        """Return all messages up to the end, which must be OK."""
        got = []
        while (one := await self._read(None)) is not None:
            got.append(one)
        return got

    def cancel(self) -> None:
        """Cancel the rpc."""
        self._call.cancel()

    async def close(self) -> None:
        """Cancel the stream if it still runs."""
        self._call.cancel()
        with suppress(asyncio.CancelledError, grpc.RpcError):
            await self._call.code()

    async def _read(self, timeout_s: float | None) -> M | None:
        waited = timeout_s or self._host.timeout_s
        try:
            async with asyncio.timeout(waited):
                got = await self._call.read()
        except TimeoutError:
            raise Failure(f"nothing for {waited:g} s", "a further message, or the end", self._sent) from None
        except grpc.RpcError:
            got = grpc.aio.EOF
        if got is not grpc.aio.EOF:
            return cast("M", got)  # `read` returns a message or EOF
        code = await self._call.code()
        if code is grpc.StatusCode.OK:
            return None
        detail, trailers = await self._call.details(), await self._call.trailing_metadata()
        raise self._host.refusal(code, detail, trailers, self._sent)


def _text(method: str, message: Message) -> str:
    """The text of a message on one line, for reports."""
    text = " ".join(str(message).split())
    return f"{method} {{{text if len(text) <= 300 else text[:300] + '...'}}}"
