"""`Asker`: what a scenario of a GraphPipe chapter holds in its hands: requests to models over HTTP, and their marks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from invoker_conformance.graphpipe.read import Inferred, Metadata, Unreadable, read_metadata
from invoker_conformance.graphpipe.requests import METADATA, Request, infer
from invoker_conformance.graphpipe.rules import OCTETS, check_inferred, told
from invoker_conformance.graphpipe.tensors import INT64, Tensor, strings
from invoker_conformance.http import Answer, Connection, Transport
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import Failure, NotProvided
from invoker_conformance.target import ModelFacts, Unreachable

__all__ = ["Asker", "Said"]

_MISSING = 404


@dataclass(frozen=True, slots=True)
class Said:
    """What was sent to a target, as a report quotes it."""

    sent: str


class Asker(Probe):
    """The tools of one scenario."""

    @property
    def facts(self) -> ModelFacts:
        """What the suite was given about the target."""
        return self.target.models

    def path(self, function: str = "") -> str:
        """Where a model is: below /graphpipe of an address that serves several, else at the root of its own."""
        name = function or self.function
        address = self.target.http_at.of(name)
        return f"/graphpipe/{name}" if address is not None and address.is_shared else "/"

    def transport_of(self, function: str = "", *, unix: str = "") -> Transport:
        """The HTTP transport of a model, or a Unix socket that leads to the same.

        Raises:
            NotProvided: It has none.
        """
        name = function or self.function
        address = self.target.http_at.of(name)
        if address is None:
            raise NotProvided(f"an --http address of model {name}")
        return Transport(address, "", timeout_s=self.timeout_s, unix=unix)

    @asynccontextmanager
    async def connect(self, function: str = "") -> AsyncIterator[Connection]:
        """A connection of its own to a model's address, closed at the end."""
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
        """One request of any method on a connection of its own; without a request it has no body."""
        where, given = path or self.path(function), tuple(headers)
        async with self.connect(function) as connection:
            self.last_call = Said(_said(method, where, given, request))
            body = request.buffer if request is not None else b""
            await connection.send(method, where, (*given, ("Connection", "close")), body, said=self.last_call.sent)
            return await connection.answer(is_bodiless=method == "HEAD")

    async def send(self, connection: Connection, request: Request, how: str = "") -> None:
        """POST a request to the model under test on a connection, whose answer is to be read."""
        self.last_call = Said(f"{_said('POST', self.path(), (), request)}{how}")
        await connection.send("POST", self.path(), (), request.buffer, said=self.last_call.sent)

    async def ask(
        self, request: Request, headers: Iterable[tuple[str, str]] = (), *, path: str = "", function: str = ""
    ) -> Answer:
        """POST a request to a model."""
        return await self.exchange("POST", path, headers, request, function=function)

    def checked(self, answer: Answer) -> Inferred:
        """What an answer to a POST says; what holds for each of them is checked."""
        return check_inferred(answer, is_plain_status=self.facts.is_plain_status)

    def has_tensors(self, answer: Answer, *expected: Tensor) -> None:
        """Require that an answer is exactly these tensors, bit by bit."""
        wanted = "; ".join(map(str, expected)) or "no tensors"
        found = self.checked(answer)
        if found.errors or found.tensors != expected:
            raise Failure(f"{answer.status} {found}", wanted, answer.sent)

    def has_error(self, answer: Answer, *codes: int, mentions: Sequence[str] = ()) -> None:
        """Require that an answer is an error with one of these codes, whose message holds some words."""
        found = self.checked(answer)
        if not found.errors or found.errors[0][0] not in codes:
            raise Failure(f"{answer.status} {found}", told(codes), answer.sent)
        for word in mentions:
            if word not in found.errors[0][1]:
                raise Failure(str(found), f"{told(codes)} whose message holds {word!r}", answer.sent)

    async def infers(
        self, request: Request, headers: Iterable[tuple[str, str]] = (), *, function: str = ""
    ) -> tuple[Tensor, ...]:
        """POST a request that is to succeed, and give its tensors."""
        answer = await self.ask(request, headers, function=function)
        found = self.checked(answer)
        if found.errors:
            raise Failure(f"{answer.status} {found}", "tensors", answer.sent)
        return found.tensors

    async def gives(self, request: Request, *expected: Tensor, function: str = "") -> None:
        """A request is answered with exactly these tensors."""
        self.has_tensors(await self.ask(request, function=function), *expected)

    async def refuses(self, request: Request, *codes: int, mentions: Sequence[str] = (), function: str = "") -> None:
        """A request is answered with an error."""
        self.has_error(await self.ask(request, function=function), *codes, mentions=mentions)

    async def metadata(self, request: Request = METADATA, *, function: str = "") -> Metadata:
        """What a model says of itself."""
        return self.has_metadata(await self.ask(request, function=function))

    def has_metadata(self, answer: Answer) -> Metadata:
        """Require that an answer is a MetadataResponse."""
        answer.has(200, OCTETS)
        try:
            return read_metadata(answer.body)
        except Unreadable as error:
            raise Failure(f"{answer.status}, and {error}", "a MetadataResponse", answer.sent) from None

    async def survives(self) -> None:
        """The next request works: it asks for metadata."""
        judged = self.last_call
        await self.metadata()
        self.last_call = judged

    async def mark(self, key: str) -> int:
        """A count that the functions keep in their process, read through the model ``marks``."""
        judged = self.last_call  # a failure has to quote what was sent in that call
        found = await self.infers(infer(strings(key.encode(), shape=())), function="marks")
        self.last_call = judged
        if len(found) != 1 or found[0].type != INT64 or found[0].count != 1:
            met = "; ".join(map(str, found)) or "no tensors"
            raise Failure(f"{met} from the model marks", "one Int64", f"marks({key!r})")
        return int(found[0].values[0])

    async def provides(self, function: str) -> bool:
        """Whether the target serves a model: its metadata are asked for once, to see.

        Raises:
            Unreachable: Nothing answers at its address.
        """
        if self.target.http_at.of(function) is None:
            return False
        known = self.target.served_models
        if function not in known:
            try:
                answer = await self.ask(METADATA, function=function)
            except Failure:
                known[function] = True  # it does not answer well: a scenario's business
            except OSError as error:
                raise Unreachable(f"no HTTP server answers at {self.target.http_at.of(function)}: {error}") from None
            else:
                known[function] = answer.status != _MISSING
            self.last_call = None
        return known[function]


def _said(method: str, path: str, headers: Sequence[tuple[str, str]], request: Request | None) -> str:
    fields = "".join(f" [{name}: {value}]" for name, value in headers)
    return f"{method} {path}{fields}{f' {request}' if request is not None else ''}"
