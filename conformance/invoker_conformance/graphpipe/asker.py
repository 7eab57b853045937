"""`Asker`: what a scenario of a GraphPipe chapter uses: requests to models over HTTP, and counts of the models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc

from invoker_conformance.graphpipe.read import Inferred, Metadata, Unreadable, read_metadata
from invoker_conformance.graphpipe.requests import METADATA, Request, infer
from invoker_conformance.graphpipe.rules import OCTETS, check_inferred, told
from invoker_conformance.graphpipe.tensors import INT64, Tensor, strings
from invoker_conformance.http import Answer, Connection, Transport
from invoker_conformance.riff.probe import Probe, Said
from invoker_conformance.scenario import Failure, NotProvided
from invoker_conformance.target import Address, ModelFacts

_MISSING = 404


class Asker(Probe):
    """The tools of one GraphPipe scenario."""

    noun = "model"

    @property
    def facts(self) -> ModelFacts:
        """The facts about the target from the command line."""
        return self.target.models

    def path(self, function: str = "") -> str:
        """The path of a model: below /graphpipe if the address serves several, otherwise the root."""
        name = function or self.function
        address = self.address_of(name)
        return f"/graphpipe/{name}" if address is not None and address.is_shared else "/"

    def transport_of(self, function: str = "", *, unix: str = "") -> Transport:
        """The HTTP transport of a model, or the Unix socket for HTTP.

        Raises:
            NotProvided: The function has no transport.
        """
        name = function or self.function
        address = self.address_of(name)
        if address is None:
            raise NotProvided(f"an --http address for model {name}")
        return Transport(address, "", timeout_s=self.timeout_s, unix=unix)

    @asynccontextmanager
    async def connect(self, function: str = "") -> AsyncIterator[Connection]:
        """Open a new connection to the address of a model, which is closed at the end."""
        async with self.transport_of(function).connect() as connection:
            yield connection

    async def exchange(
        self,
        method: str,
        path: str = "",
        headers: Iterable[tuple[str, str]] = (),
        request: Request | None = None,
        *,
        function: str = "",
    ) -> Answer:
        """Send one request with any method on a new connection, and return the answer."""
        where, given = path or self.path(function), tuple(headers)
        async with self.connect(function) as connection:
            self.last_call = Said(_said(method, where, given, request))
            body = request.buffer if request is not None else b""
            await connection.send(method, where, (*given, ("Connection", "close")), body, said=self.last_call.sent)
            return await connection.answer(is_bodiless=method == "HEAD")

    async def send(self, connection: Connection, request: Request, how: str = "") -> None:
        """POST a request to the model under test on a connection; the caller has to read the answer."""
        self.last_call = Said(f"{_said('POST', self.path(), (), request)}{how}")
        await connection.send("POST", self.path(), (), request.buffer, said=self.last_call.sent)

    async def ask(
        self, request: Request, headers: Iterable[tuple[str, str]] = (), *, path: str = "", function: str = ""
    ) -> Answer:
        """POST a request to a model."""
        return await self.exchange("POST", path, headers, request, function=function)

    def checked(self, answer: Answer) -> Inferred:
        """Check the rules for each answer to a POST, and return its content."""
        return check_inferred(answer, is_plain_status=self.facts.is_plain_status)

    def has_tensors(self, answer: Answer, *expected: Tensor) -> None:
        """Check that an answer has exactly these tensors, bit by bit."""
        wanted = "; ".join(map(str, expected)) or "no tensors"
        found = self.checked(answer)
        if found.errors or found.tensors != expected:
            raise Failure(f"{answer.status} {found}", wanted, answer.sent)

    def has_error(self, answer: Answer, *codes: int, mentions: Sequence[str] = ()) -> None:
        """Check that an answer is an error with one of these codes, whose message contains these words."""
        found = self.checked(answer)
        if not found.errors or found.errors[0][0] not in codes:
            raise Failure(f"{answer.status} {found}", told(codes), answer.sent)
        for word in mentions:
            if word not in found.errors[0][1]:
                raise Failure(str(found), f"{told(codes)} whose message holds {word!r}", answer.sent)

    async def infers(
        self, request: Request, headers: Iterable[tuple[str, str]] = (), *, function: str = ""
    ) -> tuple[Tensor, ...]:
        """POST a request that must succeed, and return its tensors."""
        answer = await self.ask(request, headers, function=function)
        found = self.checked(answer)
        if found.errors:
            raise Failure(f"{answer.status} {found}", "tensors", answer.sent)
        return found.tensors

    async def gives(self, request: Request, *expected: Tensor, function: str = "") -> None:
        """Check that a request is answered with exactly these tensors."""
        self.has_tensors(await self.ask(request, function=function), *expected)

    async def refuses(self, request: Request, *codes: int, mentions: Sequence[str] = (), function: str = "") -> None:
        """Check that a request is answered with an error."""
        self.has_error(await self.ask(request, function=function), *codes, mentions=mentions)

    async def metadata(self, request: Request = METADATA, *, function: str = "") -> Metadata:
        """Get the metadata of a model."""
        return self.has_metadata(await self.ask(request, function=function))

    def has_metadata(self, answer: Answer) -> Metadata:
        """Check that an answer is a MetadataResponse, and return it."""
        answer.has(200, OCTETS)
        try:
            return read_metadata(answer.body)
        except Unreadable as error:
            raise Failure(f"{answer.status}, and {error}", "a MetadataResponse", answer.sent) from None

    async def survives(self) -> None:
        """Check that the server still works, by a request for metadata."""
        async with self.aside():
            await self.metadata()

    async def _mark(self, key: str) -> Any:
        found = await self.infers(infer(strings(key.encode(), shape=())), function="marks")
        if len(found) != 1 or found[0].type != INT64 or found[0].count != 1:
            return found
        return int(found[0].values[0])

    def address_of(self, function: str) -> Address | None:
        """The HTTP address of a model; None: there is none."""
        return self.target.http_at.of(function)

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Request the metadata of a model; returns NOT_FOUND for a 404, and otherwise OK, even for a wrong answer."""
        with suppress(Failure):
            async with self.aside():
                if (await self.ask(METADATA, function=function)).status == _MISSING:
                    return grpc.StatusCode.NOT_FOUND
        return grpc.StatusCode.OK


def _said(method: str, path: str, headers: Sequence[tuple[str, str]], request: Request | None) -> str:
    fields = "".join(f" [{name}: {value}]" for name, value in headers)
    return f"{method} {path}{fields}{f' {request}' if request is not None else ''}"
