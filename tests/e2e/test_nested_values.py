"""Values of every kind, from and to every kind of function, in a session of the tool bridge and out of one."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from tests.conftest import SLOW
from tests.e2e.value_functions import BROKEN, PLAIN, VALUES, given
from tests.protocols.toolbridge.service.hosts import Elixir
from tests.serving import Served, serving
from tests.transports.bridge import packed, unpacked

CALLERS = ("by_sync", "by_async", "by_isolated", "by_isolated_async")
CALLEES = ("to_sync", "to_async", "to_isolated", "to_isolated_async")
STREAMS = ("to_stream", "to_async_stream")


@pytest.fixture(scope="module", params=["fast", "aio"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """It knows a host with the tool ``to_host``, in the session ``s1``."""
    env = {"INVOKER_PROTOCOLS": "toolbridge,http"}
    with (
        serving("tests.e2e.value_functions", "--grpc-driver", request.param, env=env) as one,
        Elixir(to_host=given) as host,
    ):
        made = rpc(one, "InitializeSession", session_id="s1", callback_address=host.address)
        assert made.success, made
        yield one


def rpc(served: Served, name: str, **fields: Any) -> Any:
    method = pb.DESCRIPTOR.services_by_name["SnakepitBridge"].methods_by_name[name]
    request = getattr(pb, method.input_type.name)(**fields)
    with grpc.insecure_channel(served.grpc) as channel:
        answer = getattr(pb, method.output_type.name).FromString
        call = channel.unary_unary(f"/dspex.bridge.SnakepitBridge/{name}", type(request).SerializeToString, answer)
        return call(request, timeout=20 * SLOW)


def execute(served: Served, tool: str, *args: Any) -> Any:
    response = rpc(served, "ExecuteTool", session_id="s1", tool_id=tool, args=[packed(one) for one in args])
    assert response.success, (tool, args, response.error)
    return unpacked(response.result)


def post(served: Served, tool: str, *args: Any) -> str:
    body = json.dumps(dict(zip(("callee", "key", "how"), args, strict=True))).encode()
    request = urllib.request.Request(
        f"http://{served.http}/{tool}", body, headers={"Content-Type": "application/json", "Accept": "text/plain"}
    )
    with urllib.request.urlopen(request, timeout=20 * SLOW) as response:
        return str(response.read().decode())


def ways(callees: tuple[str, ...]) -> list[tuple[str, str, str]]:
    return [
        (caller, callee, how)
        for caller in CALLERS
        for callee in (*callees, *STREAMS)
        for how in (("stream",) if callee in STREAMS else ("position", "keyword"))
    ]


@pytest.mark.timeout(120 * SLOW)
def test_T099_T106_T109_T172_T177_every_kind_of_value_reaches_every_kind_of_tool(served: Served) -> None:
    """In a session: what the callee saw, and what its caller got back, is what was given."""
    wrong = {
        (caller, callee, how, key): found
        for caller, callee, how in ways((*CALLEES, "to_host", "callback:to_host"))
        for key, value in VALUES.items()
        if (callee not in STREAMS or key != "whole")  # D29: in a list, a whole double is an int
        and (found := execute(served, caller, callee, key, how)) != f"{value!r} {value!r}"
    }
    assert not wrong


def test_T099_T106_T109_T171_every_kind_of_value_comes_from_a_host(served: Served) -> None:
    wrong = {
        (callee, key): found
        for callee in (*CALLEES, "callback:to_host")
        for key, value in VALUES.items()
        if (found := f"{execute(served, callee, value, True)} {execute(served, callee, value)!r}")
        != f"{value!r} {value!r}"
    }
    assert not wrong


@pytest.mark.timeout(120 * SLOW)
def test_E129_every_kind_of_value_reaches_every_kind_of_function(served: Served) -> None:
    """Where there is no session."""
    wrong = {
        (caller, callee, how, key): found
        for caller, callee, how in ways(CALLEES)
        for key, value in PLAIN.items()
        if (found := post(served, caller, callee, key, how)) != f"{value!r} {value!r}"
    }
    assert not wrong


def test_T104_an_argument_without_a_form_is_named(served: Served) -> None:
    """By every way alike, and nothing is called."""
    for key in BROKEN:
        for caller, callee, how in ways((*CALLEES, "to_host")):
            name = "argument 'x'" if how == "keyword" else "argument #0"
            text = f"INVALID_ARGUMENT: {name}: "
            assert execute(served, caller, callee, key, how).startswith(text)
            if callee != "to_host":
                assert post(served, caller, callee, key, how).startswith(text)
