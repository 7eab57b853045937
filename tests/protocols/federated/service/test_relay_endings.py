"""Leaders that end a conversation while its relay still writes; here they are bare servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from invoker.core.steps import Close
from invoker.errors import Status, StatusError
from invoker.protocols.federated.service.relay import Links, Relay
from invoker.protocols.federated.service.round_leadership import Leader
from tests.protocols.federated.service.devices import PATH


class Wire:
    """To a device: what it got, and whether it takes more."""

    is_gone = False

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.asked = 0
        self.is_waiting, self.has_room = asyncio.Event(), asyncio.Event()

    def accepted(self) -> None: ...

    def ask(self) -> None:
        self.asked += 1

    def write(self, frame: bytes) -> bool:
        self.got.append(frame)
        return self.has_room.is_set()

    async def room(self) -> None:
        self.is_waiting.set()
        await self.has_room.wait()


class Driver:
    """Knows who converses."""

    def __init__(self) -> None:
        self.now: set[Any] = set()
        self.entered, self.exited = self.now.add, self.now.remove


class Scene:
    """One relay between a device and a leader, which says two words, ends when told to, and never reads."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self.ends, self.driver, self.wire = asyncio.Event(), Driver(), Wire()
        self.closed: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self._code = code

    async def lead(self, _: Any, context: Any) -> AsyncIterator[bytes]:
        yield b"first"
        await self.ends.wait()
        yield b"last"
        if self._code is not grpc.StatusCode.OK:
            await context.abort(self._code, "rose is unknown")

    @asynccontextmanager
    async def relay(self, folder: Path) -> AsyncIterator[Relay]:
        service, _, method = PATH[1:].partition("/")
        handler = grpc.stream_stream_rpc_method_handler(self.lead)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        server.add_insecure_port(f"unix:{folder / 'door'}")
        await server.start()
        leader, links, driver = Leader(str(folder / "door"), "token", "here", "1"), Links(), self.driver
        close = self.closed.set_result
        made = Relay(PATH, links.channel(leader), leader, {}, self.wire, driver, close)  # type: ignore[arg-type]
        try:
            await self.wire.is_waiting.wait()
            yield made
        finally:
            await links.close()
            await server.stop(None)


async def send(relay: Relay, frame: bytes | None) -> None:
    """What the device sends, up to where it is carried."""
    assert not relay.arrived(frame)
    assert relay._up is not None
    await relay._up


@pytest.mark.parametrize("code", [grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT])
async def test_a_leader_that_ends_during_a_write_is_heard_to_its_end(tmp_path: Path, code: grpc.StatusCode) -> None:
    """Its words and its status come to the device, although grpc.aio says INTERNAL of the write that failed."""
    scene = Scene(code)
    async with scene.relay(tmp_path) as relay:
        scene.ends.set()
        asked = -1
        while scene.wire.asked > asked:  # until a write fails; its status is behind the word for which there is no room
            asked = scene.wire.asked
            await send(relay, b"more")
        assert await relay._call.code() is grpc.StatusCode.INTERNAL, "the status came first"
        scene.wire.has_room.set()
        error = (await scene.closed).error
        assert scene.wire.got == [b"first", b"last"]
        if code is grpc.StatusCode.OK:
            assert error is None
        else:
            assert isinstance(error, StatusError)
            assert (error.status, str(error)) == (Status.INVALID_ARGUMENT, "rose is unknown")
        assert scene.wire.asked == asked
        assert not scene.driver.now


async def test_a_half_close_that_fails_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """grpc.aio raises another error for it than for a write, if the deadline passes at that moment."""

    async def fail() -> None:
        raise grpc.aio.InternalError("execute_batch")

    scene = Scene(grpc.StatusCode.OK)
    async with scene.relay(tmp_path) as relay:
        monkeypatch.setattr(relay._call, "done_writing", fail)
        await send(relay, None)
        scene.ends.set()
        scene.wire.has_room.set()
        assert (await scene.closed).error is None
        assert scene.wire.got == [b"first", b"last"]
