"""The exercise of CONTRIBUTING.md: one pure module, one service and one row attach a protocol to both transports."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc.aio
import httpx
import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.steps import Close, Emitted, EndInput, Feed, Finished, Open, Send
from invoker.message import EMPTY, Message
from invoker.server.server import Server
from invoker.server.table import SERVICES, Table
from invoker.settings import setting_of
from tests.attach.toy.protocol import EchoSession
from tests.attach.toy.service import EchoService

HERE = Path(__file__).parent
CONTRIBUTING = HERE.parents[2] / "CONTRIBUTING.md"
TABLE = Table((*SERVICES, EchoService))


def shout(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word == "boom":
            raise ValueError("too loud")
        yield word.upper()


async def ashout(words: AsyncIterator[str]) -> AsyncIterator[str]:
    async for word in words:
        yield word.upper()


@pytest.mark.parametrize("driver", ["fast", "aio"])
@pytest.mark.parametrize("function", [shout, ashout])
async def test_the_row_serves_it_on_both_transports(driver, function):
    """On either gRPC transport, for functions of either form; HTTP hears of errors, too."""
    config = TABLE.configured(
        host="127.0.0.1", grpc_port=0, port=0, grpc_driver=driver, protocols=("http", "echo"), echo_path="/shout"
    )
    server = Server(config, Catalog([prepare_function(function).function]), builtin(entry_points=False), table=TABLE)
    await server.start()
    try:
        assert "\nserves: http, echo" in server.ready_block()
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            call = channel.stream_stream("/toy.Toy/Echo")(iter((b"one", b"two")))
            assert [one async for one in call] == [b"ONE", b"TWO"]
        async with httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False) as client:
            assert (await client.post("/shout", content=b"one\ntwo")).text == "ONE\nTWO"
            assert (await client.get("/livez")).text == "ok\n"
            if function is shout:
                answer = await client.post("/shout", content=b"boom")
                assert (answer.status_code, "too loud" in answer.text) == (500, True)
    finally:
        assert await server.stop(drain_s=1)


def test_its_setting_is_read_and_listed_like_any_other():
    """From the environment, and behind those of other services."""
    assert [setting_of(one).env for one in TABLE.settings][-1] == "INVOKER_ECHO_PATH"
    config = TABLE.read({"INVOKER_ECHO_PATH": "/here", "INVOKER_PROTOCOLS": "echo"})
    assert config.of(EchoService.settings).echo_path == "/here"
    assert TABLE.served(config) == (EchoService,)
    assert EchoService in TABLE.served(TABLE.configured())


def test_the_pure_module_is_tested_without_a_transport():
    """Frames and events in, steps out."""
    session = EchoSession(EMPTY)
    message = Message(b"x", media_type="text/plain")
    assert session.receive(b"x") == (Open("echo", accepts=("text/plain",)), Feed("echo", 0, message))
    assert session.half_close() == (EndInput("echo"),)
    assert session.deliver(Emitted("echo", 0, message)) == (Send(b"x"),)
    assert session.deliver(Finished("echo")) == (Close(),)


def test_the_pure_module_is_pure():
    """It knows the vocabulary and messages, and nothing that waits."""
    tree = ast.parse((HERE / "protocol.py").read_text())
    modules = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    assert not any(isinstance(one, ast.Import) for one in ast.walk(tree))
    assert modules == {"__future__", "collections.abc", "invoker.core.steps", "invoker.message"}


@pytest.mark.parametrize("name", ["protocol.py", "service.py"])
def test_the_page_shows_the_files_as_they_are(name):
    """What a reader copies from CONTRIBUTING.md is what these tests have run."""
    assert f"```python\n{(HERE / name).read_text()}```\n" in CONTRIBUTING.read_text()
