"""Attaches the toy protocol to both transports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invoker.attach.service import Service
from invoker.settings import parsers as parse
from invoker.settings.setting import setting

if TYPE_CHECKING:
    from invoker.core.http import Response
    from invoker.execution.driver import Driver
    from invoker.transports.grpc.methods import Method
    from invoker.transports.http.app import Handler
    from invoker.transports.http.exchange import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoSettings:
    """What may be chosen of the toy."""

    echo_path: str = setting(
        "/echo", "INVOKER_ECHO_PATH", parse.path, "Path on the HTTP port at which the toy answers.", heading="toy",
    )  # fmt: skip


class EchoService(Service):
    """The toy: frames on the gRPC transport, lines on the HTTP transport."""

    name = "echo"
    interface = 1
    settings = EchoSettings
    on_grpc = True
    on_http = True

    def grpc_methods(self) -> Sequence[Method]:
        """A method in which each call is a conversation."""
        from invoker.transports.grpc.methods import CallMethod
        from tests.attach.toy.protocol import EchoSession

        return (CallMethod("toy.Toy", "Echo", EchoSession),)

    def http_handler(self, path: str) -> Handler | None:
        """Who answers the path of the toy."""
        is_ours = path == self.around.config.of(EchoSettings).echo_path
        return EchoHandler(self.around.driver) if is_ours else None


class EchoHandler:
    """Answers requests: each is a conversation whose frames are lines."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def answer(self, exchange: Exchange) -> Response:
        """Answer one request."""
        from invoker.core.http import Response
        from invoker.execution.loop.request import converse
        from invoker.message import EMPTY
        from tests.attach.toy.protocol import EchoSession

        body = await exchange.whole(self._driver.engine.limits.hard_bytes)
        if body is None:
            return Response(413, (), b"")
        lines, answers = iter(bytes(body).splitlines()), []

        async def read() -> bytes | None:
            return next(lines, None)

        error = await converse(EchoSession(EMPTY), self._driver, read, answers.append)
        if error is not None:
            return Response(500, (), str(error).encode())
        return Response(200, (("Content-Type", "text/plain"),), b"\n".join(answers))
