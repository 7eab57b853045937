"""`invoker.transports.http.cachedhead`: what a head means to a transport."""

from __future__ import annotations

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.http import RequestHead, Response
from invoker.execution.driver import Driver
from invoker.transports.http.app import Begin, Handler, HttpApp
from invoker.transports.http.cachedhead import CachedHead, SharedHeads
from invoker.transports.http.exchange import Exchange, HttpSettings, Listener
from invoker.transports.http.heads import head_of_fields, read_head
from invoker.transports.http.request import Request


class Plain:
    async def answer(self, exchange: Exchange) -> Response:
        raise AssertionError("nobody is answered here")


class Prompt(Plain):
    def prompt(self, head: RequestHead) -> Begin | None:
        return self.begin if head.query != "slow" else None

    def begin(self, request: Request) -> Listener:
        raise AssertionError("nor here")


HANDLERS: dict[str, Handler] = {"/plain": Plain(), "/prompt": Prompt()}


def known(path: str, *, host: str = "localhost", is_local: bool = False) -> CachedHead:
    driver = Driver(Engine(Catalog([]), builtin()))
    app = HttpApp(driver, HttpSettings(), HANDLERS.get)
    app.origins.bind("127.0.0.1", is_loopback=True)
    try:
        head = read_head(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return CachedHead(head, app, is_local=is_local)
    finally:
        driver.close()


async def test_it_knows_who_answers_and_how() -> None:
    """By the path; and whether without a task, by the head."""
    plain, prompt, none = known("/plain?x"), known("/prompt"), known("/none")
    assert (plain.handler, plain.begin, none.handler, none.begin) == (HANDLERS["/plain"], None, None, None)
    assert prompt.begin == HANDLERS["/prompt"].begin  # type: ignore[attr-defined]  # it is a Prompt
    slow = known("/prompt?slow")
    assert (slow.handler, slow.begin) == (HANDLERS["/prompt"], None)
    assert plain.head.request.query == "x"


async def test_it_knows_who_may_call() -> None:
    """Any host will do on a Unix socket."""
    refused = known("/plain", host="evil.example").verdict.response
    assert refused is not None
    assert refused.status == 403
    assert known("/plain", host="evil.example", is_local=True).verdict.response is None


async def test_fields_mean_the_same_once_they_were_read() -> None:
    """For the same fields of the same kind of client; a traced head is read each time, and few are kept."""
    driver = Driver(Engine(Catalog([]), builtin()))
    heads = SharedHeads(HttpApp(driver, HttpSettings(), lambda _: None))

    def get(fields: list[tuple[bytes, bytes]], *, is_local: bool = False) -> CachedHead:
        return heads.get(tuple(fields), head_of_fields, is_local=is_local)

    fields = [(b":method", b"GET"), (b":path", b"/a"), (b":scheme", b"http"), (b":authority", b"localhost")]
    trace = (b"traceparent", b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01")
    try:
        one = get(fields, is_local=False)
        assert get(list(fields), is_local=False) is one
        assert get(fields, is_local=True) is not one
        assert get([*fields, (b"x", b"y")], is_local=False) is not one
        assert get([*fields, trace], is_local=False) is not get([*fields, trace], is_local=False)
        for number in range(200):
            get([*fields, (b"x", b"%d" % number)], is_local=False)
            assert len(heads._known) <= 64
    finally:
        driver.close()
