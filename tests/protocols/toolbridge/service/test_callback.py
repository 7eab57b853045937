"""Calls of a host's tools, over a real channel (T-169 to T-174)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from invoker.codecs.anyvalue import pack
from invoker.core.budget import ProcessBudget
from invoker.errors import NestedError, Overloaded, Status
from invoker.execution.bodies.values import decode_value
from invoker.message import Metadata
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.service import callback
from invoker.protocols.toolbridge.service.addresses import Addresses
from invoker.protocols.toolbridge.service.callback import Callbacks, HostTools
from tests.execution.loopcalls import until
from tests.protocols.toolbridge.service.hosts import Host


def add(a: int, b: int = 1) -> int:
    return a + b


def refuse(a: int) -> int:
    raise ValueError(f"not {a}")


def stream_upto(n: int) -> Iterator[int]:
    yield from range(n)


def stream_broken(n: int) -> Iterator[Any]:
    yield n
    yield ValueError("enough")


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with Host(add=add, refuse=refuse, stream_upto=stream_upto, stream_broken=stream_broken) as made:
        yield made


@pytest.fixture
async def callbacks() -> AsyncIterator[Callbacks]:
    made = Callbacks(Addresses("loopback,unix"), 10 * 1024 * 1024)
    yield made
    await made.close()


async def called(
    tools: HostTools,
    name: str,
    *args: Any,
    deadline: float | None = None,
    metadata: dict[str, str] | None = None,
    **kw: Any,
) -> list[Any]:
    found = tools.find(name)
    assert found is not None
    calling = tools.call(
        found,
        [pack(one) for one in args],
        {key: pack(one) for key, one in kw.items()},
        deadline=deadline,
        metadata=metadata or {},
    )
    async with contextlib.aclosing(calling) as values:
        return [decode_value(one) async for one in values]


async def test_T171_tools_of_the_host_are_listed_with_a_prefix(host: Host, callbacks: Callbacks) -> None:
    tools = await callbacks.connect("s", host.address)
    assert [one.name for one in tools.specs] == [
        "callback:add", "callback:refuse", "callback:stream_broken", "callback:stream_upto",
    ]  # fmt: skip
    assert tools.find("callback:add") is tools.find("add") is tools.find("Host.add")
    assert tools.find("sub") is None
    tools.close()


async def test_T172_a_call_has_its_arguments_its_session_and_what_is_left_of_its_time(
    host: Host, callbacks: Callbacks
) -> None:
    tools = await callbacks.connect("s", host.address)
    metadata = {"x-dspex-hops": "1"}
    assert await called(tools, "add", 3, b=4, deadline=time.monotonic() + 20, metadata=metadata) == [7]
    _, sent, request = host.called[-1]
    assert request.session_id == "s"
    assert 15_000 < request.timeout_ms <= 20_000
    assert sent["x-dspex-hops"] == "1"
    assert await called(tools, "callback:stream_upto", 200) == list(range(200))
    tools.close()


async def test_T173_errors_keep_their_type_and_message(host: Host, callbacks: Callbacks) -> None:
    tools = await callbacks.connect("s", host.address)
    with pytest.raises(NestedError) as caught:
        await called(tools, "refuse", 5)
    error = caught.value
    assert (error.status, error.kind, error.detail) == (Status.INVALID_ARGUMENT, "ValidationError", "not 5")
    assert error.details == {"code": "mine", "remote": "true"}
    with pytest.raises(NestedError) as caught:
        await called(tools, "stream_broken", 5)
    assert (caught.value.kind, caught.value.detail) == ("InternalError", "enough")
    tools.close()


async def test_T169_a_host_that_nobody_reaches_makes_no_session(callbacks: Callbacks, monkeypatch: Any) -> None:
    """Whether nobody listens, or somebody does not answer in time."""
    async with Host(add=add) as gone:
        address = gone.address
    with pytest.raises(BridgeError) as caught:
        await callbacks.connect("s", address)
    assert caught.value.details["code"] == "callback_unreachable"
    monkeypatch.setattr(callback, "_LIST_S", 0.1)
    async with Host(add=add) as slow:
        slow.lists.clear()
        with pytest.raises(BridgeError) as caught:
            await callbacks.connect("s", slow.address)
        assert caught.value.details["code"] == "callback_unreachable"


async def test_sessions_of_one_address_share_a_channel_until_the_last_is_gone(host: Host, callbacks: Callbacks) -> None:
    first, second = await callbacks.connect("s", host.address), await callbacks.connect("t", host.address)
    assert len(host.channels) == 1
    first.close()
    first.close()
    await asyncio.sleep(0)
    assert await called(second, "add", 1) == [2]
    second.close()
    await asyncio.sleep(0)
    third = await callbacks.connect("u", host.address)
    assert len(host.channels) == 2
    third.close()


async def test_T152_health_tells_which_hosts_can_be_reached(callbacks: Callbacks) -> None:
    async with Host(add=add) as host:
        tools = await callbacks.connect("s", host.address)
        (name,) = callbacks.health()
        assert name.startswith("callback:")
        assert name.endswith(host.address)
        assert callbacks.health() == {name: True}
        await host.stop()
        await until(lambda: callbacks.health()[name] is False)
        tools.close()
    await until(lambda: not callbacks.health())


async def test_a_host_that_dies_during_a_call_ends_it(callbacks: Callbacks) -> None:
    never = asyncio.Event()
    async with Host(wait=never.wait) as host:
        tools = await callbacks.connect("s", host.address)
        running = asyncio.create_task(called(tools, "wait"))
        await host.begun.wait()
        await host.stop()
        with pytest.raises(NestedError) as caught:
            await running
        assert (caught.value.kind, caught.value.details["code"]) == ("InternalError", "callback_unreachable")
        assert caught.value.details["remote"] == "true"
        tools.close()


async def test_T172_a_deadline_that_passes_ends_the_call_there_and_here(callbacks: Callbacks) -> None:
    never = asyncio.Event()
    async with Host(wait=never.wait) as host:
        tools = await callbacks.connect("s", host.address)
        with pytest.raises(NestedError) as caught:
            await called(tools, "wait", deadline=time.monotonic() + 0.2)
        assert (caught.value.kind, caught.value.status) == ("TimeoutError", Status.DEADLINE_EXCEEDED)
        await host.gone.wait()
        tools.close()


async def test_a_stream_that_is_given_up_is_cancelled_at_the_host(callbacks: Callbacks) -> None:
    def stream_endless() -> Iterator[bytes]:
        while True:
            yield bytes(100_000)

    async with Host(stream_endless=stream_endless) as host:
        tools = await callbacks.connect("s", host.address)
        found = tools.find("stream_endless")
        assert found is not None
        values = tools.call(found, (), {}, deadline=None, metadata={})
        assert decode_value(await anext(aiter(values))) == bytes(100_000)
        await values.aclose()  # type: ignore[attr-defined]
        await host.gone.wait()
        tools.close()


async def test_bytes_in_several_chunks_are_put_together_and_other_metadata_is_told(callbacks: Callbacks) -> None:
    """As our own StreamTool sends large bytes."""

    def stream_pieces() -> Iterator[Any]:
        yield b"small"
        yield Metadata("bytes_total", 7)
        yield from (b"abc", b"def", b"g")
        yield Metadata("unit", "m")
        yield 5

    async with Host(stream_pieces=stream_pieces) as host:
        tools = await callbacks.connect("s", host.address)
        assert await called(tools, "stream_pieces") == [b"small", b"abcdefg", Metadata("unit", "m"), 5]
        tools.close()


@pytest.mark.parametrize("name", ["plain.sock", "with blank.sock", "50%25.sock", "a?b#c.sock", "gr\u00fc\u00dfe.sock"])
async def test_T170_a_host_on_a_unix_socket_is_called_where_it_was_judged(tmp_path: Path, name: str) -> None:
    """Whatever signs its path has."""
    made = Callbacks(Addresses(f"unix:{tmp_path}/*"), 1024 * 1024)
    host = Host(add=add)
    host.path = tmp_path / name
    async with host:
        tools = await made.connect("s", f"unix:{quote(str(tmp_path / name))}")
        assert await called(tools, "add", 3, b=4) == [7]
        tools.close()
    await made.close()


async def test_T169_a_list_of_tools_counts_as_memory_of_the_process(host: Host) -> None:
    """A hundred lists of ten MiB are some GiB: what does not fit is refused, and what goes is given back."""
    memory = ProcessBudget(600 * 1024)
    made = Callbacks(Addresses("loopback"), 10 * 1024 * 1024, memory)
    host.tools = {f"tool_{number}_{'x' * 45}": add for number in range(900)}
    tools = await made.connect("a", host.address)
    assert memory.held > 900 * 60
    with pytest.raises(Overloaded):
        await made.connect("b", host.address)
    tools.close()
    assert memory.held == 0
    (await made.connect("c", host.address)).close()
    assert memory.held == 0
    await until(lambda: not made._links)
