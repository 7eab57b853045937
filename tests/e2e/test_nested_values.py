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
        with grpc.insecure_channel(one.grpc) as _channels[one.grpc]:
            made = rpc(one, "InitializeSession", session_id="s1", callback_address=host.address)
            assert made.success, made
            yield one
        del _channels[one.grpc]


_channels: dict[str, grpc.Channel] = {}
"""One for each server that runs, by its address."""


@pytest.fixture
def step(request: pytest.FixtureRequest) -> int:
    """Each way is tried with the first of so many values.

    With all of them behind the one driver. The other differs in how rpcs come and go, not in what becomes of the values
    of a call: there each way has a fifth of them, the next way the next fifth.
    """
    return 1 if request.node.callspec.params["served"] == "fast" else 5


def rpc(served: Served, name: str, **fields: Any) -> Any:
    method = pb.DESCRIPTOR.services_by_name["SnakepitBridge"].methods_by_name[name]
    request = getattr(pb, method.input_type.name)(**fields)
    answer = getattr(pb, method.output_type.name).FromString
    path = f"/dspex.bridge.SnakepitBridge/{name}"
    call = _channels[served.grpc].unary_unary(path, type(request).SerializeToString, answer)
    return call(request, timeout=60 * SLOW)


def execute(served: Served, tool: str, *args: Any) -> Any:
    response = rpc(served, "ExecuteTool", session_id="s1", tool_id=tool, args=[packed(one) for one in args])
    assert response.success, (tool, args, response.error)
    return unpacked(response.result)


def post(served: Served, tool: str, *args: Any) -> Any:
    body = json.dumps(dict(zip(("callee", "keys", "how"), args, strict=True))).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    request = urllib.request.Request(f"http://{served.http}/{tool}", body, headers=headers)
    with urllib.request.urlopen(request, timeout=60 * SLOW) as response:
        return json.load(response)


def ways(callees: tuple[str, ...]) -> list[tuple[str, str, str]]:
    return [
        (caller, callee, how)
        for caller in CALLERS
        for callee in (*callees, *STREAMS)
        for how in (("stream",) if callee in STREAMS else ("position", "keyword"))
    ]


def dealt(callees: tuple[str, ...], values: dict[str, Any], step: int) -> Iterator[tuple[str, str, str, list[str]]]:
    """Each way, with the names of the values that fall to it."""
    for number, way in enumerate(ways(callees)):
        first = number + 2 * CALLERS.index(way[0])  # or each callee would have the same part of every caller
        yield *way, [*values][first % step :: step]


def test_each_way_and_each_value_is_dealt_whatever_the_step() -> None:
    """A value comes by every kind of caller, to every kind of callee."""
    found = {(caller, callee, how, key) for caller, callee, how, keys in dealt(CALLEES, PLAIN, 5) for key in keys}
    assert {one[:3] for one in found} == {*ways(CALLEES)}
    assert {(one[0], one[3]) for one in found} == {(caller, key) for caller in CALLERS for key in PLAIN}
    assert {(one[1], one[3]) for one in found} >= {(callee, key) for callee in CALLEES for key in PLAIN}
    assert len(found) < len(ways(CALLEES)) * len(PLAIN) / 4


def changed(keys: list[str], found: list[str]) -> dict[str, str]:
    """The values that have not come through as they were, with what came instead."""
    pairs = zip(keys, found, strict=True)
    return {key: got for key, got in pairs if got != f"{VALUES[key]!r} {VALUES[key]!r}"}


@pytest.mark.timeout(120)
def test_T099_T106_T109_T172_T177_every_kind_of_value_reaches_every_kind_of_tool(served: Served, step: int) -> None:
    """In a session: what the callee saw, and what its caller got back, is what was given."""
    wrong = {}
    for caller, callee, how, keys in dealt((*CALLEES, "to_host", "callback:to_host"), VALUES, step):
        kept = [key for key in keys if callee not in STREAMS or key != "whole"]  # D29: in a list it is an int
        wrong[caller, callee, how] = changed(kept, execute(served, caller, callee, kept, how))
    assert not {way: found for way, found in wrong.items() if found}


def test_T099_T106_T109_T171_every_kind_of_value_comes_from_a_host(served: Served) -> None:
    wrong = {
        (callee, key): found
        for callee in (*CALLEES, "callback:to_host")
        for key, value in VALUES.items()
        if (found := f"{execute(served, callee, value, True)} {execute(served, callee, value)!r}")
        != f"{value!r} {value!r}"
    }
    assert not wrong


@pytest.mark.timeout(120)
def test_E129_every_kind_of_value_reaches_every_kind_of_function(served: Served, step: int) -> None:
    """Where there is no session."""
    wrong = {
        (caller, callee, how): found
        for caller, callee, how, keys in dealt(CALLEES, PLAIN, step)
        if (found := changed(keys, post(served, caller, callee, keys, how)))
    }
    assert not wrong


def test_T104_an_argument_without_a_form_is_named(served: Served, step: int) -> None:
    """By every way alike, and nothing is called."""
    for caller, callee, how, keys in dealt((*CALLEES, "to_host"), BROKEN, min(step, len(BROKEN))):
        name = "argument 'x'" if how == "keyword" else "argument #0"
        text = f"INVALID_ARGUMENT: {name}: "
        assert all(one.startswith(text) for one in execute(served, caller, callee, keys, how))
        if callee != "to_host":
            assert all(one.startswith(text) for one in post(served, caller, callee, keys, how))
