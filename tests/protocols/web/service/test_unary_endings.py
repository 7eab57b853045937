"""A call without a session ends as one with a session does, however it ends: the response, the log and what is left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from invoker.core.invocation import Invocation
from invoker.core.peers import LEFT
from invoker.core.unary import UnaryInvocation
from invoker.errors import Overloaded
from invoker.telemetry.live import Live
from invoker.transports.http.exchange import HttpSettings
from tests.protocols.web.service.alike import lines, two
from tests.transports.served import Served, until

pytestmark = pytest.mark.timeout(30)

Scenario = Callable[[Served, "Gate"], Awaitable[Any]]


class Gate:
    """What the functions of one server wait for; as `waits`, `stubborn`, `held` they take a request of theirs."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.let_go = threading.Event()
        self.seen: list[str] = []
        self.loop = asyncio.get_running_loop()

    async def waits(self, x: str) -> str:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.seen.append("cancelled")
            if x == "raises":
                raise ValueError("while it was cancelled") from None
            if x == "returns":
                return x
            raise
        return x

    async def stubborn(self, x: str) -> str:
        self.begun.set()
        for _ in range(2):
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.seen.append("cancelled")
        return x

    def held(self, x: str) -> str:
        self.loop.call_soon_threadsafe(self.begun.set)
        self.let_go.wait(5)
        if x == "raises":
            raise ValueError("when nobody waits any more")
        return x


def post(path: str, body: str, *, length: int | None = None) -> str:
    size = len(body) if length is None else length
    head = f"POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    return f"{head}Content-Length: {size}\r\n\r\n{body}"


async def run(scenario: Scenario, **about: Any) -> Any:
    """Play a scenario with a server that uses no sessions, and with one that does; return what both did."""
    gates = Gate(), Gate()
    found = []
    functions = (Via.waits, Via.stubborn, Via.held)
    async with two(*functions, **about) as both:
        for gate, one in zip(gates, both, strict=True):
            Via.gate = gate
            before = threading.active_count()
            with lines() as logged:
                result = await scenario(one.served, gate)
                gate.go.set()
                gate.let_go.set()
                driver = one.served.driver
                await until(lambda: not (driver.leaving or driver.direct or driver.engine.running))  # noqa: B023
                await until(lambda: not driver.threads.busy)  # noqa: B023
            assert not driver.conversations
            assert threading.active_count() <= before + 8
            counters = replace(driver.engine.counters, seconds=0.0)
            found.append((result, gate.seen, sorted(logged), one.told, counters))
        assert both.unary.kinds <= {UnaryInvocation}
        assert both.session.kinds <= {Invocation}
    assert found[0] == found[1]
    return found[0]


class Via:
    """The functions, which go to the gate of the server that is tested at the moment."""

    gate: Gate

    @staticmethod
    async def waits(x: str) -> str:
        return await Via.gate.waits(x)

    @staticmethod
    async def stubborn(x: str) -> str:
        return await Via.gate.stubborn(x)

    @staticmethod
    def held(x: str) -> str:
        return Via.gate.held(x)


def leaving(path: str, body: str) -> Scenario:
    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire:
            await wire.send(post(path, body))
            await gate.begun.wait()
            await until(lambda: path != "held" or any(one.is_swept for one in served.driver.direct))  # type: ignore[attr-defined]
        if path == "held":
            (invocation,) = served.driver.engine.running.values()
            await until(lambda: getattr(invocation.peer, "number", 0) == LEFT)
            gate.let_go.set()
        await until(lambda: not served.driver.engine.running)
        await until(lambda: not served.driver.leaving)
        return None

    return scenario


@pytest.mark.parametrize("path", ["waits", "stubborn", "held"])
@pytest.mark.parametrize("body", ["raises", "returns", "goes"])
async def test_R154_a_client_that_leaves(path: str, body: str) -> None:
    """The function is cancelled, and again when it goes on; what it does afterwards is nobody's business."""
    _, seen, logged, told, _ = await run(leaving(path, body))
    # An error of a thread's function is logged, although nobody waits for it any more.
    assert [one["status"] for one in told] == ["UNKNOWN" if (path, body) == ("held", "raises") else "CANCELLED"]
    assert len(seen) == {"waits": 1, "stubborn": 2, "held": 0}[path]
    assert any("cancelled again" in line for line in logged) is (path == "stubborn")


@pytest.mark.parametrize("path", ["waits", "stubborn", "held"])
@pytest.mark.parametrize("body", ["raises", "goes"])
async def test_a_request_that_takes_too_long_is_504(path: str, body: str) -> None:
    """The client waits for no function that goes on."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire:
            await wire.send(post(path, body))
            status, headers, text = await wire.answer()
            return status, sorted(headers), text

    (status, *_), seen, _, told, _ = await run(scenario, riff={"timeout_s": 0.2})
    assert status == 504
    assert [one["status"] for one in told] == ["UNKNOWN" if (path, body) == ("held", "raises") else "DEADLINE_EXCEEDED"]
    assert bool(seen) is (path != "held")


@pytest.mark.parametrize("path", ["waits", "held"])
@pytest.mark.parametrize("limit_s", [5.0, 0.1])
async def test_R025_a_drain_waits_and_then_cuts(path: str, limit_s: float) -> None:
    """Other calls are refused meanwhile, also those whose bodies have not come."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire, served.wire() as later:
            await wire.send(post(path, "goes"))
            await gate.begun.wait()
            await later.send(post(path, "be", length=4))
            await until(lambda: len(served.driver.conversations) + len(served.driver.direct) == 2 or path == "held")
            await asyncio.sleep(0.05)
            draining = asyncio.create_task(served.driver.drain(limit_s))
            await asyncio.sleep(0.02)
            await later.send("gu")
            refused = await later.answer()
            if limit_s > 1:
                assert not draining.done()
                gate.go.set()
                gate.let_go.set()
            answers = (refused[0], refused[2]), (await wire.answer())[::2], await draining
            gate.let_go.set()
            return answers

    (refused, answered, is_quiet), *_ = await run(scenario)
    assert refused[0] == 503
    assert (answered[0], is_quiet) == ((200, True) if limit_s > 1 else (503, False))


@pytest.mark.parametrize("path", ["waits", "stubborn", "held"])
async def test_an_invocation_that_is_stopped_says_why(path: str) -> None:
    """From any thread, whatever its function does. Until then the list of invocations has it."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire:
            await wire.send(post(path, "goes"))
            await gate.begun.wait()
            (shown,) = Live(served.driver.engine).snapshot()["invocations"]
            assert shown.pop("sinceS") >= 0
            (invocation,) = served.driver.engine.running.values()
            stopping = threading.Thread(target=invocation.stop, args=(Overloaded("it holds too much"),))
            stopping.start()
            answered = await wire.answer()
            stopping.join()
            gate.let_go.set()
            return answered[0], answered[2], shown

    (status, text, shown), *_ = await run(scenario)
    assert shown["status"] == "running"
    assert (status, b"it holds too much" in text) == (503, True)


@pytest.mark.parametrize("path", ["waits", "held"])
async def test_R132_a_call_too_many_is_refused(path: str) -> None:
    """It is logged and counted as such; the ones before it go on."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire, served.wire() as other:
            await wire.send(post(path, "goes"))
            await gate.begun.wait()
            await other.send(post(path, "goes"))
            status, headers, text = await other.answer()
            gate.go.set()
            gate.let_go.set()
            return status, headers["retry-after"], text, (await wire.answer())[::2]

    result, _, logged, _, counters = await run(scenario, max_invocations=1)
    assert (result[0], result[3]) == (503, (200, b'"goes"'))
    assert counters.refused == 1
    assert any(line.startswith("INFO invocation refused waits" if path == "waits" else "INFO") for line in logged)


@pytest.mark.parametrize("by", ["length", "chunks"])
@pytest.mark.parametrize("size", [60_000, 70_000, 1_000_000, 2_000_000])
async def test_R154_a_body_of_any_length_that_comes_behind_its_head(by: str, size: int) -> None:
    """A short one is waited for, a long one goes to a session, and one over the limit is refused."""

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, size, 9_000):
            yield b"a" * min(9_000, size - at)
            await asyncio.sleep(0)

    async def scenario(served: Served, gate: Gate) -> Any:
        gate.go.set()
        async with served.client() as client:
            more = {"content-length": str(size)} if by == "length" else {}
            headers = {"content-type": "text/plain", **more}
            answered = await client.post("/waits", content=pieces(), headers=headers)
            return answered.status_code, answered.headers["content-type"], answered.content.strip(b'"')

    if size > 65_536:  # both go the same way then
        async with Served.at(Via.waits, riff={"max_body_bytes": 1_500_000}) as served:
            Via.gate = Gate()
            status, _, content = await scenario(served, Via.gate)
    else:
        (status, _, content), *_ = await run(scenario, riff={"max_body_bytes": 1_500_000})
    assert status == (200 if size < 1_500_000 else 413)
    assert status == 413 or content == b"a" * size


async def test_R154_a_body_that_becomes_too_long_is_refused_at_once() -> None:
    """Also one that is short enough to be waited for, and does not end."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire:
            head = "POST /waits HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
            await wire.send(f"{head}Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(2):
                await wire.send("258\r\n", "a" * 600, "\r\n")
                await asyncio.sleep(0.01)
            async with asyncio.timeout(5):  # the body has 30 s
                status, _, text = await wire.answer()
            return status, text

    (status, _), *_ = await run(scenario, riff={"max_body_bytes": 1000})
    assert status == 413


async def test_a_body_that_does_not_come_is_408() -> None:
    """Nothing has begun."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire:
            await wire.send(post("waits", "a", length=2))
            status, _, text = await wire.answer()
            return status, text

    (status, _), _, _, told, counters = await run(scenario, settings=HttpSettings(body_s=0.1))
    assert (status, told, counters.opened) == (408, [], 0)


async def test_a_client_that_leaves_within_its_body_begins_nothing() -> None:
    """And nothing is waited for."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.wire() as wire:
            await wire.send(post("waits", "a", length=2))
            await until(lambda: len(served.driver.conversations) == 1)
        await until(lambda: not served.driver.conversations)

    *_, told, counters = await run(scenario)
    assert (told, counters.opened) == ([], 0)


@pytest.mark.parametrize("body", ["goes", "raises"])
async def test_http2_calls_without_a_session(body: str) -> None:
    """A client that leaves cancels its function."""

    async def scenario(served: Served, gate: Gate) -> Any:
        async with served.client(http2=True) as client:
            request = asyncio.create_task(client.post("/waits", content=body, headers={"content-type": "text/plain"}))
            await gate.begun.wait()
            if body == "goes":
                gate.go.set()
                answered = await request
                return answered.status_code, answered.content
            request.cancel()
        await until(lambda: not served.driver.engine.running)
        return None

    result, seen, *_ = await run(scenario)
    assert (result, seen) == (((200, b'"goes"'), []) if body == "goes" else (None, ["cancelled"]))


async def test_R134_an_invocation_that_lingers_is_told_of() -> None:
    """Once, while it goes on."""

    async def scenario(served: Served, gate: Gate) -> Any:
        served.driver.settings = replace(served.driver.settings, lingering_s=0.05)
        async with served.wire() as wire:
            with lines() as told:
                await wire.send(post("waits", "goes"))
                await until(lambda: any("goes on although" in line for line in told))
                await asyncio.sleep(0.1)  # another line would have come by now
            gate.go.set()
            return (await wire.answer())[::2]

    _, _, logged, *_ = await run(scenario)
    assert sum("goes on although its inputs ended" in line for line in logged) == 1
