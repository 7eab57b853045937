"""With `--no-reflection` no protocol tells which functions there are; without it each of these probes does."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.message import Message as Protobuf

from invoker._pb.dspex import bridge_pb2 as pb
from invoker._pb.riff import riff_rpc_pb2 as riff
from invoker.client import AsyncGraphPipe, EvergreenSession
from invoker.protocols.evergreen.action_engine.wire import Action
from tests.conftest import SLOW
from tests.serving import Served, serving
from tests.transports.sockets import open_peer

PROTOCOLS = "riff,http,evergreen,graphpipe,action-engine,toolbridge,typed"
WHOLE = ("quince_alpha", "quince_beta", "quince_gamma")
NEAR = "quince_alphx"
"""Like a function's name, and none."""


@pytest.fixture(scope="module", params=[True, False], ids=["told", "hidden"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Served, bool]]:
    env = {"INVOKER_PROTOCOLS": PROTOCOLS, "INVOKER_SOCKET_PATH": "/actions", "INVOKER_GRAPHPIPE_TCP": "127.0.0.1:0"}
    env |= {"INVOKER_EXTENSIONS": "discovery", "INVOKER_PAGE": "off"}
    with serving("tests.e2e.hidden_functions", *(() if request.param else ("--no-reflection",)), env=env) as one:
        yield one, request.param


def http(served: Served, method: str, path: str, **more: Any) -> str:
    with httpx.Client(trust_env=False, timeout=5 * SLOW) as client:
        response = client.request(method, f"http://{served.http}{path}", **more)
    return f"{response.headers} {response.text}"


def posted(path: str, **more: Any) -> Callable[[Served], str]:
    return lambda served: http(served, "POST", path, content=b"x", **more)


def got(path: str, **more: Any) -> Callable[[Served], str]:
    return lambda served: http(served, "GET", path, **more)


def rpc(path: str, request: Protobuf, answer: type[Protobuf]) -> Callable[[Served], str]:
    """What a rpc of one request answers: its messages, its status and its trailers."""

    def ask(served: Served) -> str:
        with grpc.insecure_channel(served.grpc) as channel:
            call = channel.stream_stream(path, lambda one: one.SerializeToString(), answer.FromString)
            told: list[Any] = []
            running = call(iter([request]), timeout=5 * SLOW)
            try:
                told.extend(running)
            except grpc.RpcError as error:
                told.append(error.details())  # type: ignore[attr-defined]
            told.extend(running.trailing_metadata() or ())
        return repr(told)

    return ask


def bridge(name: str, **fields: Any) -> Callable[[Served], str]:
    method = pb.DESCRIPTOR.services_by_name["SnakepitBridge"].methods_by_name[name]
    request = getattr(pb, method.input_type.name)(**fields)
    return rpc(f"/dspex.bridge.SnakepitBridge/{name}", request, getattr(pb, method.output_type.name))


def in_session(name: str, **fields: Any) -> Callable[[Served], str]:
    def ask(served: Served) -> str:
        bridge("InitializeSession", session_id="s")(served)
        return bridge(name, session_id="s", **fields)(served)

    return ask


def started(name: str = "") -> Callable[[Served], str]:
    def ask(served: Served) -> str:
        signal = riff.InputSignal(start=riff.StartFrame(expectedContentTypes=["*/*"]))
        metadata = (("invoker-function", name),) if name else ()
        with grpc.insecure_channel(served.grpc) as channel:
            path = f"/{riff.DESCRIPTOR.services_by_name['Riff'].full_name}/Invoke"
            call = channel.stream_stream(path, riff.InputSignal.SerializeToString, riff.OutputSignal.FromString)
            with pytest.raises(grpc.RpcError) as caught:
                list(call(iter([signal]), metadata=metadata, timeout=5 * SLOW))
            return f"{caught.value.details()} {caught.value.trailing_metadata()}"  # type: ignore[attr-defined]

    return ask


def acted(name: str) -> Callable[[Served], str]:
    async def act(served: Served) -> str:
        try:
            async with EvergreenSession(served.grpc, extensions=["discovery"]) as session:
                if name:
                    return await session.act(name, {"x": "1"}).text()
                return json.dumps(await session.actions())
        except Exception as error:
            return repr(error)

    return lambda served: asyncio.run(act(served))


def acted_by_socket(name: str) -> Callable[[Served], str]:
    async def act(served: Served) -> str:
        ports = (("actions", "A#actions"),) if name == "__list_actions" else ()
        async with open_peer(served.http, "/actions") as peer:
            await peer.say(Action("A", name, (), ports))
            return repr(await peer.fragments("A#__status__"))

    return lambda served: asyncio.run(act(served))


def named_on_the_socket(served: Served) -> str:
    line = next(one for one in served.lines if "graphpipe=" in one)
    host, _, port = line.partition("graphpipe=")[2].split()[0].strip('",').rpartition(":")
    name = NEAR.encode()
    with socket.create_connection((host, int(port)), timeout=5 * SLOW) as one:
        one.sendall(struct.pack("<I", len(name) + 0x80000000) + name)
        return repr(one.recv(65536))


def described(served: Served) -> str:
    async def ask() -> str:
        try:
            async with AsyncGraphPipe(f"http://{served.http}/graphpipe") as model:
                return repr(await model.metadata())
        except Exception as error:
            return repr(error)

    return asyncio.run(ask())


PROBES: dict[str, Callable[[Served], str]] = {
    "http root": posted("/"),
    "http root, read": got("/"),
    "http nothing": posted("/nope"),
    "http nothing, read": got("/nope"),
    "http near": posted(f"/{NEAR}"),
    "http near, stream": posted(f"/{NEAR}", headers={"Accept": "text/event-stream"}),
    "http header": posted("/", headers={"Invoker-Function": NEAR}),
    "http socket path": got(f"/{NEAR}/ws"),
    "functions": got("/functions"),
    "openapi": got("/openapi.json"),
    "graphpipe": got("/graphpipe"),
    "graphpipe page": got("/graphpipe", headers={"Accept": "text/html"}),
    "graphpipe nothing": got(f"/graphpipe/{NEAR}"),
    "graphpipe metadata": described,
    "graphpipe socket": named_on_the_socket,
    "riff": started(),
    "riff near": started(NEAR),
    "evergreen list": acted(""),
    "evergreen near": acted(NEAR),
    "action-engine list": acted_by_socket("__list_actions"),
    "action-engine near": acted_by_socket(NEAR),
    "bridge list": in_session("GetSessionTools"),
    "bridge near": in_session("ExecuteTool", tool_id=NEAR),
    "bridge stream": in_session("StreamTool", tool_id=NEAR),
    "bridge batch": in_session("BatchExecuteTools", items=[pb.ToolCallItem(tool_id=NEAR)]),
    "bridge metrics": bridge("GetMetrics"),
}


@pytest.mark.parametrize("probe", PROBES)
def test_H062_no_protocol_tells_which_functions_there_are(served: tuple[Served, bool], probe: str) -> None:
    """Each probe gets a name where names may be told, and none where they may not."""
    process, is_told = served
    told = PROBES[probe](process)
    assert any(name in told for name in WHOLE) is is_told, told


def test_H062_who_knows_a_name_calls_the_function(served: tuple[Served, bool]) -> None:
    """By each protocol, hidden or not."""
    process, _ = served
    assert http(process, "POST", "/quince_alpha", content=b"5", headers={"Content-Type": "application/json"})[-1] == "5"
    told = in_session("ExecuteTool", tool_id="quince_beta", kwargs={})(process)
    assert "missing_arg" in told
    assert "quince_alpha" in bridge("GetMetrics", metric_names=[tool_metric(process)])(process)


def tool_metric(process: Served) -> str:
    assert in_session("ExecuteTool", tool_id="quince_alpha")(process)
    return "tool.tests.e2e.hidden_functions:quince_alpha.active"
