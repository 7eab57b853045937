"""The composition root."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import grpc.aio
import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.prepare import prepare_function
from invoker.client import CallFailed, RiffClient
from invoker.errors import HookError, StartupError, Status
from invoker.server import server as module
from invoker.server.building import build
from invoker.server.server import Server
from invoker.server.table import TABLE
from invoker.settings import Config
from tests.conftest import SLOW
from tests.transports.rawpeer import RawPeer


def config(**more):
    return TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, **more)


async def test_a_server_starts_both_transports_and_stops_cleanly():
    """The ready line names the addresses, why they are these, and a call to copy."""
    server = build(config(), "functions.square:square")
    await server.start()
    line, serves, command, page = server.ready_block().split("\n")
    assert line == f"ready: square on grpc={server.grpc_address} http={server.http_address} (set by INVOKER_HOST)"
    assert page == f"page: http://localhost:{server.http_address.rpartition(':')[2]}/"
    assert serves == "serves: riff, evergreen, http, graphpipe, toolbridge, typed"
    assert command.endswith(f"python -m invoker call localhost:{server.grpc_address.rpartition(':')[2]} --data 7")
    assert await server.is_ready()
    assert await server.stop(drain_s=1)
    assert not await server.is_ready()


async def test_the_http_transport_may_stay_shut():
    """--no-http: only gRPC is named."""
    server = build(config(http=False), "functions.square:square")
    await server.start()
    assert server.http_address == ""
    assert "http=" not in server.ready_block()
    await server.stop(drain_s=0)


@pytest.mark.parametrize(
    ("protocols", "transports"),
    [
        (("riff",), "grpc"),
        (("evergreen",), "grpc"),
        (("http",), "http"),
        (tuple(one for one in TABLE.names if one != "federated"), "grpc http"),  # that takes a file of rounds
    ],
)
async def test_only_what_is_asked_for_is_served(protocols, transports):
    """--protocols: the ready line names them, and the transports that they need."""
    server = build(config(protocols=protocols), "functions.square:square")
    await server.start()
    line = server.ready_block()
    assert [one for one in ("grpc", "http") if f"{one}=" in line] == transports.split()
    assert f"\nserves: {', '.join(protocols)}" in line
    assert ("try: python -m invoker call" in line) == ("riff" in protocols)
    assert await server.is_ready()
    assert await server.stop(drain_s=1)


async def test_what_must_not_be_served_is_an_error_for_who_asks_for_it_only(caplog):
    """The tool bridge on all interfaces: a line for debugging, and the end of a start that names it."""
    caplog.set_level("DEBUG", "invoker")
    open_to_all = {"host": "0.0.0.0", "grpc_port": 0, "port": 0}
    server = build(TABLE.configured(**open_to_all), "functions.square:square")
    await server.start()
    await server.stop(drain_s=0)
    said = [one.levelname for one in caplog.records if one.message.startswith("toolbridge is not served: ")]
    assert said == ["DEBUG"]
    with pytest.raises(StartupError, match="the tool bridge takes no calls of other machines without TLS"):
        TABLE.configured(**open_to_all, protocols=("riff", "toolbridge"))


async def test_R005_a_server_without_riff_shows_how_to_chat():
    """Where its first function holds conversations; the address is one that leads there."""
    server = build(config(protocols=("evergreen",)), "functions.generate:generate")
    await server.start()
    port = server.grpc_address.rpartition(":")[2]
    assert server.ready_block().endswith(f"try: python -m invoker chat localhost:{port} --action generate")
    await server.stop(drain_s=0)


async def test_a_guest_leaves_the_process_as_it_is(monkeypatch):
    """How Python collects garbage, and how many files may be open, are for whose process it is."""
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    before, (soft, hard) = gc.get_threshold(), resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.set_threshold(701, 11, 12)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        for is_guest, thresholds in ((True, (701, 11, 12)), (False, (20_000, 20, 20))):
            server = build(config(http=False), "functions.square:square", is_guest=is_guest)
            await server.start()
            await server.stop(drain_s=0)
            assert gc.get_threshold() == thresholds
            assert (resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 512) == is_guest
            assert bool(frozen) != is_guest
    finally:
        gc.set_threshold(*before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_R018_R023_hooks_frame_the_life_of_the_process():
    """init before the transports open; destroy after they closed, and also when init fails."""
    marks: list[str] = []

    def fn(x: int) -> int:
        return x

    fn.init = lambda: marks.append("init")
    fn.destroy = lambda: marks.append("destroy")
    server = served(fn)
    await server.start()
    assert marks == ["init"]
    await server.stop(drain_s=0)
    await server.stop(drain_s=0)
    assert marks == ["init", "destroy"]

    def broken() -> None:
        raise ValueError("no model")

    fn.init = broken
    server = served(fn)
    with pytest.raises(HookError, match="no model"):
        await server.start()
    assert server.grpc_address == ""
    assert marks == ["init", "destroy", "destroy"]


def served(fn) -> Server:
    from invoker.codecs import builtin
    from invoker.core.catalog import Catalog

    return Server(config(http=False), Catalog([prepare_function(fn).function]), builtin(entry_points=False))


async def test_R006_a_taken_port_stops_the_start():
    """The second server says which port it was."""
    first = build(config(http=False), "functions.square:square")
    await first.start()
    port = int(first.grpc_address.rpartition(":")[2])
    second = build(Config(host="127.0.0.1", grpc_port=port, http=False), "functions.square:square")
    with pytest.raises(StartupError, match=str(port)):
        await second.start()
    await second.stop(drain_s=0)
    await first.stop(drain_s=0)


@pytest.mark.parametrize(
    ("told", "status"), [("unknown", Status.UNKNOWN), ("invalid-argument", Status.INVALID_ARGUMENT)]
)
async def test_R069_bad_input_may_be_an_invalid_argument(told, status):
    """The switch changes the status and nothing else; servers of one process may differ in it."""
    other = build(config(http=False, bad_input="invalid-argument"), "functions.square:square")
    server = build(config(http=False, bad_input=told), "functions.square:square")
    await other.start()
    await server.start()
    async with RiffClient(server.grpc_address) as client:
        with pytest.raises(CallFailed) as failed:
            await client.invoke([[b"{"]], content_type="application/json").collect()
    assert failed.value.status is status
    assert failed.value.detail.startswith("Invoker: Bad Input Signal: input #0 'x': application/json cannot become int")
    await server.stop(drain_s=0)
    await other.stop(drain_s=0)


async def test_R117_the_policy_of_a_server_is_its_own():
    """What its setting says of exceptions goes to its engine."""
    server = build(config(http=False, error_detail="type"), "functions.square:square")
    assert server.engine.policy.shows == "type"


@pytest.mark.parametrize("said", ["auto", "message", "type", "none"])
@pytest.mark.parametrize(
    ("host", "is_public"),
    [("127.0.0.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True), ("::", True), ("192.0.2.1", True)],
)
async def test_R117_strangers_see_the_type_of_an_exception(host, is_public, said):
    """Its text may quote what is no business of theirs; unless the operator says what they see."""
    server = build(replace(config(http=False), host=host, error_detail=said), "functions.square:square")
    assert server.engine.policy.shows == ({True: "type", False: "message"}[is_public] if said == "auto" else said)


@pytest.mark.parametrize(("age_s", "is_told"), [("auto", False), (0.0, False), (0.2, True)])
async def test_a_connection_has_an_age_with_one_process_too(monkeypatch, age_s, is_told):
    """The client is told to connect anew, and the call that runs goes on; by default nobody is."""
    monkeypatch.setattr("invoker.execution.bodies.pool._IDLE_S", 0.05)
    server = build(config(http=False, connection_age_s=age_s), "functions.running_mean:running_mean")
    await server.start()

    def is_sent_away() -> bool:
        """Whether a connection is, within a time in which it surely would be."""
        with RawPeer(int(server.grpc_address.rpartition(":")[2])) as peer:
            return peer.is_sent_away(5 * SLOW if is_told else 0.5)

    async def numbers() -> AsyncIterator[int]:
        yield 1
        assert await asyncio.to_thread(is_sent_away) is is_told
        yield 3

    async with RiffClient(server.grpc_address) as client:
        assert [one.value async for one in client.invoke([numbers()])] == [1.0, 2.0]
    await server.stop(drain_s=0)


@pytest.mark.parametrize(("full_s", "is_ready"), [(0.001, False), (0.0, True), (3600.0, True)])
async def test_a_server_that_has_refused_for_long_is_not_ready(full_s, is_ready):
    """Until a slot is given back; a setting says how long, and 0 turns it off."""
    for slots in ("threads", "max_invocations"):
        server = build(config(http=False, full_s=full_s, **{slots: 1}), "functions.square:square")
        await server.start()
        holder = server.driver.threads if slots == "threads" else server.engine
        assert await server.is_ready()
        holder.full_since = time.monotonic() - 1
        assert await server.is_ready() is is_ready
        holder.full_since = 0.0
        assert await server.is_ready()
        await server.stop(drain_s=0)


@pytest.mark.parametrize(
    ("action", "parameter", "target", "status"),
    [
        ("GENERATE", "x", "", Status.OK),
        ("GENERATE", "number", "here", Status.OK),
        ("functions.square:square", "x", "", Status.OK),
        ("add", "x", "", Status.INVALID_ARGUMENT),
        ("generate", "x", "", Status.NOT_FOUND),
        ("GENERATE", "x", "there", Status.NOT_FOUND),
        ("GENERATE", "y", "", Status.INVALID_ARGUMENT),
    ],
)
async def test_E071_E074_E075_names_are_what_the_operator_says(action, parameter, target, status):
    """Actions, aliases of inputs, and targets; a function of another module is served, too."""
    more = {"actions": (("GENERATE", "functions.square:square"), ("SUM", "functions.add:add"))}
    server = build(config(http=False, inputs=(("number", "x"),), targets=("here",), **more), "functions.square:square")
    await server.start()
    message = pb.SessionMessage()
    fragment = message.node_fragments.add(id="p")
    fragment.chunk_fragment.metadata.mimetype, fragment.chunk_fragment.data = "text/plain", b"7"
    acted = message.actions.add(name=action, target_spec=pb.TargetSpec(id=target))
    acted.inputs.add(name=parameter, id="p")
    acted.outputs.add(name="out", id="r")
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        call = channel.stream_stream("/evergreen.v2.EvergreenService/StartSession")(iter([message.SerializeToString()]))
        got = b""
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for one in call:
                got += b"".join(f.chunk_fragment.data for f in pb.SessionMessage.FromString(one).node_fragments)
        assert (await call.code()).value[0] == status
    assert got == (b"49" if status is Status.OK else b"")
    assert await server.stop(drain_s=1)


async def test_functions_start_programs_though_an_author_has_installed_uvloop():
    """The policy that uvloop leaves has nothing that watches them; this loop is another."""
    uvloop = pytest.importorskip("uvloop")
    before = asyncio.get_event_loop_policy()
    try:
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        module._keep_policy()
        process = await asyncio.create_subprocess_exec("true")
        assert await process.wait() == 0
    finally:
        asyncio.set_event_loop_policy(before)
