"""`invoker.protocols.web.service.attach`: what answers a path of the HTTP transport."""

from __future__ import annotations

from dataclasses import dataclass

from invoker.core.http import RequestHead
from invoker.protocols.web.service.attach import RiffHttpService
from invoker.protocols.web.service.sockets import NoSocketHandler
from tests.attach.around import around


@dataclass
class Asked:
    """As much of an exchange as is looked at."""

    head: RequestHead


def square(x: int) -> int:
    return x * x


async def test_its_http_twin_answers_whatever_the_path_is():
    """By one handler, which is there from the start on, so that the first request does not wait for it."""
    service = RiffHttpService(around(square))
    await service.start()
    assert service.http_handler("/") is service.http_handler("/any/path") is not None


async def test_H040_the_path_of_a_websocket_is_no_page() -> None:
    """426 to who may have meant to shake hands, 405 to who may not."""
    service = RiffHttpService(around(square))
    await service.start()
    assert (service.socket_handler("/square"), service.socket_handler("/other/ws")) == (None, None)
    assert service.socket_handler("/square/ws") is not None
    handler = service.http_handler("/square/ws")
    assert isinstance(handler, NoSocketHandler)
    answers = {}
    for method in ("GET", "HEAD", "POST", "DELETE"):
        exchange = Asked(RequestHead(method, "/square/ws"))
        response = await handler.answer(exchange)  # type: ignore[arg-type]  # it looks at the head alone
        answers[method] = (response.status, dict(response.headers).get("Upgrade"), dict(response.headers).get("Allow"))
    assert answers["GET"] == answers["HEAD"] == (426, "websocket", None)
    told = (await handler.answer(Asked(RequestHead("GET", "/square/ws")))).body.decode()  # type: ignore[arg-type]
    assert "open '/square/ws' by ws:// or wss://, or call the function at '/square'" in told
    assert answers["POST"] == answers["DELETE"] == (405, None, "GET, HEAD")
