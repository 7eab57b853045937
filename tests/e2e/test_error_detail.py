"""What callers see of a function's exception, on every protocol."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from invoker.client import CallFailed, EvergreenSession, GraphPipe, GraphPipeError, SyncRiffClient
from invoker.protocols.evergreen.action_engine.wire import Action
from tests.e2e.process import Process, started
from tests.transports.sockets import item, open_peer

pytestmark = pytest.mark.timeout(15)

JSON = "application/json"
MODULE = """
import numpy as np
from collections.abc import Iterator
from numpy.typing import NDArray
from invoker import StatusError, Status, function

KEYS = {}

class Odd:
    def __iter__(self):
        raise KeyError("hunter2")

@function
def look(name: str) -> str:
    return KEYS[name]

@function
def stream(names: Iterator[str]) -> Iterator[str]:
    yield "first"
    raise RuntimeError("hunter2")

@function
def model(x: NDArray[np.float32]) -> NDArray[np.float32]:
    raise KeyError("hunter2")

@function
def chosen(name: str) -> str:
    raise StatusError(Status.NOT_FOUND, "no such key")
"""
PREFIX = "Invoker: Unexpected Error"
SHOWN = {
    "message": (f"{PREFIX}: KeyError: 'hunter2'", f"{PREFIX}: RuntimeError: hunter2"),
    "type": (f"{PREFIX}: KeyError", f"{PREFIX}: RuntimeError"),
    "none": (PREFIX, PREFIX),
}


@pytest.fixture(params=SHOWN)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Process, str]]:
    """A server of every protocol, and what it shows."""
    (tmp_path / "secrets_module.py").write_text(MODULE)
    env = {
        "INVOKER_ERROR_DETAIL": None if request.param == "message" else str(request.param),
        "INVOKER_PROTOCOLS": "riff,evergreen,http,graphpipe,action-engine",
    }
    with started("secrets_module", "--socket-path", "/actions", cwd=tmp_path, env=env) as process:
        yield process, request.param


def riff(address: str, function: str, value: str) -> str:
    """The text that a gRPC caller gets."""
    with SyncRiffClient(address) as client, pytest.raises(CallFailed) as failed:
        client.invoke([[value]], accept=JSON, content_type=JSON, function=function).collect()
    return failed.value.detail


def http(address: str, function: str, body: bytes) -> str:
    """The text that an HTTP caller gets."""
    headers = {"Accept": "text/plain", "Content-Type": JSON, "Invoker-Function": function}
    asked = urllib.request.Request(f"http://{address}/", body, headers)
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(asked, timeout=20)
    with failed.value as answer:
        return answer.read().decode().strip()


async def test_R117_a_setting_says_what_callers_see_of_an_exception(served: tuple[Process, str]) -> None:
    """Type and message by default, the type, or nothing; and always the text of a StatusError. The log has it all."""
    process, kind = served
    mapped, streamed = SHOWN[kind]
    grpc_address, http_address = process.ready()
    assert riff(grpc_address, "look", "hunter2") == mapped
    assert riff(grpc_address, "stream", "x") == streamed
    assert riff(grpc_address, "chosen", "x") == "no such key"
    assert http(http_address, "look", b'"hunter2"') == mapped
    async with EvergreenSession(grpc_address) as session:
        with pytest.raises(CallFailed) as failed:
            await session.act("look", {"name": "hunter2"}).items()
        assert failed.value.detail == f"Evergreen: Action Failed: action 'look' #1{mapped.removeprefix(PREFIX)}"
    with GraphPipe(f"http://{http_address}/graphpipe/model") as model, pytest.raises(GraphPipeError) as refused:
        model.infer(np.zeros(2, np.float32))
    assert str(refused.value).endswith(f"GraphPipe: Function Failed{mapped.removeprefix(PREFIX)}")
    async with open_peer(http_address, "/actions") as peer:
        await peer.say(
            Action("A", "look", (("name", "A#name"),), (("out", "A#out"),)), item("A#name", 0, b"hunter2", last=True)
        )
        told = repr(await peer.fragments())
        assert ("KeyError" in told, "hunter2" in told) == (kind != "none", kind == "message")
    process.wait_for("KeyError: 'hunter2'")
