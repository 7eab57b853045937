"""`invoker.transports.http.app`: who answers which path; more in tests/services, where there are handlers."""

from __future__ import annotations

from typing import Any

import httpx

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.http import RequestHead
from invoker.execution.driver import Driver
from invoker.transports.http.app import prompt_of, whole_of
from invoker.transports.http.transport import HttpTransport


async def test_a_path_that_nobody_answers_is_404() -> None:
    """The transport itself runs no function."""
    engine = Engine(Catalog([]), builtin())
    driver = Driver(engine)
    transport = HttpTransport(driver, lambda _: None, port=0)
    address = await transport.start()
    try:
        async with httpx.AsyncClient() as client:
            response = await client.post(f"http://{address}/", content=b"1")
        assert (response.status_code, response.text) == (404, "Invoker: Not Found\n")
    finally:
        await transport.stop(1)
        driver.close()


def test_a_handler_says_how_it_answers_if_it_can() -> None:
    """One that cannot, and no handler at all, need a task."""

    class Both:
        def prompt(self, head: RequestHead) -> str:
            return f"prompt {head.path}"

        def whole(self, head: RequestHead) -> str:
            return f"whole {head.path}"

    head = RequestHead("POST", "/x")
    both: Any = Both()
    assert (prompt_of(both, head), whole_of(both, head)) == ("prompt /x", "whole /x")
    for none in (None, object()):
        assert prompt_of(none, head) is None  # type: ignore[arg-type]  # whatever it is
        assert whole_of(none, head) is None  # type: ignore[arg-type]  # as above
