"""A request for one value, and what prepares it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from invoker.core.budget import ProcessBudget
from invoker.core.http import BodyChunk, Response
from invoker.core.steps import Open
from invoker.core.unary import UnaryCall
from invoker.errors import FunctionError, InvocationError
from invoker.execution.driver import Driver
from invoker.message import Message
from invoker.transports.http.answering import BodyFirst, begin_unary
from invoker.transports.http.app import PreparedRequest, Unary
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.heads import read_head
from invoker.transports.http.request import Request
from tests.execution.memory import driver_of
from tests.transports.served import until

JSON = "application/json"


async def asquare(x: int) -> int:
    return x * x


def square(x: int) -> int:
    return x * x


class Source:
    """A connection that keeps responses."""

    peer = "192.0.2.1"

    def __init__(self) -> None:
        self.responses: list[tuple[int, bytes]] = []

    def answered(self, request: Request, response: Response) -> None:
        self.responses.append((response.status, response.body))

    def ask(self) -> None:
        pass


class Prepared(PreparedRequest):
    """Answers with the payload, or with the name of an error's class; for b"s" a session is needed."""

    def __init__(self, driver: Driver) -> None:
        self.timeout_s = None
        self.driver = driver
        self.fails = ""

    def unary(self, body: bytes) -> Unary | None:
        if self.fails == "unary":
            raise RuntimeError("a defect")
        if body == b"s":
            return None
        call = UnaryCall(Open("k"), [Message(body, {}, JSON)])
        return Unary(self.driver.engine.plan(call.open), call, self._respond, lambda: FunctionError("a second value"))

    def _respond(self, message: Message[bytes] | None, error: InvocationError | None) -> Response:
        if self.fails == "respond":
            raise RuntimeError("a defect")
        if error is not None:
            return self.refusal(error)
        return Response(200, (), b"" if message is None else message.payload)

    def refusal(self, error: InvocationError) -> Response:
        return Response(500, (), type(error).__name__.encode())


class Listening:
    """What a request has without a unary call; notes what it is given."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def arrived(self, frame: BodyChunk | None) -> bool:
        self.got.append(None if frame is None else frame.payload)
        return len(self.got) < 5

    def fail(self, error: InvocationError) -> None:
        self.got.append(error)

    def gone(self) -> None:
        self.got.append("gone")


class Asked:
    """A request, and what prepares it."""

    drivers: ClassVar[list[Driver]] = []

    def __init__(self, function: Callable[..., Any] = asquare) -> None:
        self.driver = driver_of(function)
        self.drivers.append(self.driver)
        self.prepared, self.source = Prepared(self.driver), Source()
        head = read_head(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
        self.request = Request(head, self.source, HttpSettings(), ProcessBudget())  # type: ignore[arg-type]
        self.listening: list[Listening] = []

    def begin(self, body: bytes = b"3") -> bool:
        self.request.feed(body, is_last=True)
        return begin_unary(self.request, self.prepared, self.request.body(), self.driver)

    def first(self) -> BodyFirst:
        def listen(_: Any) -> Listening:
            self.listening.append(Listening())
            return self.listening[-1]

        return BodyFirst(self.request, self.prepared, listen, self.driver)  # type: ignore[arg-type]

    async def answered(self) -> list[tuple[int, bytes]]:
        """The responses, once there is one."""
        await until(lambda: bool(self.source.responses))
        return self.source.responses

    async def left(self) -> list[tuple[int, bytes]]:
        assert await self.driver.left(5)
        assert not self.driver.conversations
        return self.source.responses
