"""ExecuteTool: docs/reference/tool-bridge.md 2.5, and the limits of 2.4."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import Failure, scenario
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.rpcs import Refused

_LATE_S = 2.0
"""How many seconds after its time limit a call may end. T-054 allows 250 ms; more is tolerated on a busy machine."""


@scenario("T-064", function="add")
async def a_result(host: Host) -> None:
    """A result comes with the request's id and with metrics; an empty result is null."""
    async with host.session() as session:
        answer = await session.send(session.request("add", [1], {"b": 4}, request_id="r-1"))
        if session.result(answer) != 5:
            raise host.failure(str(answer), "5")


@scenario("TT-32", "T-065", "T-159", function="raising")
async def a_tool_that_raises(host: Host) -> None:
    """A tool that raises gives InternalError with its text and its class, and without a stacktrace."""
    async with host.session() as session:
        for text in ("boom", "日本", "two\nlines"):
            error = await session.fails("InternalError", "", "raising", text)
            if text not in error.message or not error.details.get("exception", "").endswith("ValueError"):
                raise host.failure(f"{error.message!r} {dict(error.details)}", f"{text!r}, and exception=ValueError")
            if error.stacktrace:
                raise host.failure(f"the stacktrace {error.stacktrace[:80]!r}", "none")
        if "ValueError" not in (error := await session.fails("InternalError", "", "raising", "")).message:
            raise host.failure(repr(error.message), "the name of the class, where there is no text")


@scenario("T-067", function="counted")
async def a_generator_without_a_stream(host: Host) -> None:
    """A call of a generator gives its items as a list; more than a thousand items are refused."""
    async with host.session() as session:
        await session.gives([0, 1, 2], "counted")
        await session.gives([], "counted", 0)
        await session.gives(list(range(1000)), "counted", 1000)
        await session.fails("ResourceExhausted", "too_many_chunks", "counted", 1001)


@scenario("T-069", function="configured")
async def context_of_a_call(host: Host) -> None:
    """The context of a call reaches the function, and is no argument."""
    async with host.session() as session:
        request = session.request("configured", ["user"], {}, context={"user": "ada", "other": "x"})
        answer = await session.send(request)
        if session.result(answer) != "ada":
            raise host.failure(str(answer), "'ada'")
        await session.gives(None, "configured", "user")


@scenario("TT-33", "TT-34", "T-070", "T-071", function=("add", "marks"))
async def the_same_request_again(host: Host) -> None:
    """In a session with caching a request id runs once, and another request of this id is refused."""
    watch = await host.watch("add.calls")
    async with host.session(enable_caching=True) as session:
        request = session.request("add", [1], {}, request_id="same")
        answers = await asyncio.gather(*(session.send(request) for _ in range(20)))
        answers.append(await session.send(request))
        if len({answer.SerializeToString(deterministic=True) for answer in answers}) != 1:
            raise host.failure("different answers to one request id", "the same answer each time")
        await watch.stays("add.calls", 1)
        other = session.request("add", [2], {}, request_id="same")
        session.failed(await session.send(other), "ValidationError", "request_id_conflict")
    async with host.session(enable_caching=True) as session:
        await session.send(session.request("add", [1], {}, request_id="same"))
        await watch.stays("add.calls", 2)


@scenario("TT-36", "T-072", "T-073", function=("add", "raising", "marks"))
async def requests_that_run_again(host: Host) -> None:
    """A request that failed, and any request of a session without caching, runs again when it is sent again."""
    watch = await host.watch("add.calls", "raising.calls")
    async with host.session(enable_caching=True) as session:
        request = session.request("raising", ["x"], {}, request_id="same")
        for _ in range(2):
            session.failed(await session.send(request), "InternalError")
    await watch.stays("raising.calls", 2)
    async with host.session() as session:
        for _ in range(2):
            session.result(await session.send(session.request("add", [1], {}, request_id="same")))
    await watch.stays("add.calls", 2)


@scenario("TT-35", "T-075", function=("waiting", "marks"))
async def a_duplicate_outlives_the_first(host: Host) -> None:
    """When the caller of the first request leaves, its duplicate still gets the result."""
    watch = await host.watch("waiting.calls")
    async with host.session(enable_caching=True) as session:
        request = session.request("waiting", [1.0], {}, request_id="same")
        async with host.beside(session.send(request)) as first:
            await watch.reaches("waiting.calls", 1)
            async with host.beside(session.send(request)) as second:
                await asyncio.sleep(0.1)
                first.cancel()
                if session.result(await second) != 1.0:
                    raise host.failure("another result", "1.0")
    await watch.stays("waiting.calls", 1)


@scenario("TT-25", "TT-26", "T-054", "T-055", "T-057", function=("waiting", "deaf", "brief"))
async def calls_that_take_too_long(host: Host) -> None:
    """The request's time limit applies, unless that of the tool is shorter.

    The bridge does not wait for a function that ignores its cancellation.
    """
    async with host.session(default_timeout_ms=300) as session:
        session.failed(
            await session.send(session.request("add", [1], {}, timeout_ms=-1)), "ValidationError", field="timeout_ms"
        )
        for tool, timeout_ms, wanted in (
            ("waiting", 200, 200),
            ("deaf", 200, 200),
            ("waiting", 0, 300),
            ("brief", 60_000, 500),
        ):
            began = host.clock()
            answer = await session.send(session.request(tool, [3.0], {}, timeout_ms=timeout_ms))
            took = host.clock() - began
            error = session.failed(answer, "TimeoutError")
            if error.details.get("timeout_ms") != str(wanted) or not wanted / 1000 - 0.05 <= took < _LATE_S:
                raise host.failure(
                    f"{dict(error.details)} after {took:.2f} s", f"timeout_ms={wanted}, and then at once"
                )


@scenario("TT-27", "T-056", function=("waiting", "marks"))
async def a_caller_that_has_less_time(host: Host) -> None:
    """The caller's own deadline ends the rpc and the function."""
    watch = await host.watch("waiting.calls", "waiting.closed")
    async with host.session() as session:
        try:
            answer = await session.send(session.request("waiting", [60.0], {}), deadline_s=0.3)
        except Refused as refused:
            if refused.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise host.failure(refused.met, "DEADLINE_EXCEEDED") from None
        else:
            session.failed(answer, "TimeoutError")  # the bridge reported the deadline before the client noticed it
        await watch.reaches("waiting.closed", 1)


@scenario("TT-28", "T-058", function=("single", "waiting", "marks"))
async def calls_above_the_limit(host: Host) -> None:
    """A call above the limit of its tool or its session fails at once; afterwards there is room."""
    watch = await host.watch("single.calls", "waiting.calls")
    async with host.session() as session, host.session(max_concurrent_tools=1) as other:
        for owner, tool, scope in ((session, "single", "tool"), (other, "waiting", "session")):
            async with host.beside(owner.value(tool, 1.0)) as running:
                await watch.reaches(f"{tool}.calls", 1)
                error = await owner.fails("ResourceExhausted", "concurrency", tool, 0.0)
                host.details(error, limit="1", scope=scope)
                await running
            await owner.value(tool, 0.0)


@scenario("TT-29", "TT-24", "T-059", "T-051", function="seldom")
async def too_often(host: Host) -> None:
    """Three calls a minute pass in each session; a call that is refused for its arguments does not count."""
    async with host.session() as session:
        await session.fails("ValidationError", "", "seldom", "no number")
        for number in range(3):
            await session.value("seldom", number)
        error = await session.fails("ResourceExhausted", "rate_limit", "seldom", 4)
        if not 0 < int(error.details.get("retry_after_ms", "0")) <= 60_000:
            raise host.failure(str(dict(error.details)), "retry_after_ms within a minute")
    async with host.session() as other:
        await other.value("seldom", 1)


@scenario("TT-31", "T-062", "T-063", "T-159", function=("octets", "size"))
async def messages_that_are_too_large(host: Host) -> None:
    """A result that is too large is an error, a request that is too large a status; the next call works."""
    most = host.target.message_bytes
    async with host.session() as session:
        error = await session.fails("ResourceExhausted", "result_too_large", "octets", most + 1)
        if int(error.details.get("size", "0")) <= most or error.details.get("limit") != str(most):
            raise host.failure(str(dict(error.details)), f"size above {most} and limit={most}")
        try:
            answer = await session.execute("size", bytes(most + 1))
        except Refused as refused:
            if refused.code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise host.failure(refused.met, "RESOURCE_EXHAUSTED") from None
        else:
            raise Failure(str(answer)[:200], "RESOURCE_EXHAUSTED", f"a request of {most + 1} bytes")
        await session.gives(most // 2, "size", bytes(most // 2))


@scenario("TT-30", "T-061", function=("hungry", "add"))
async def a_tool_that_eats_memory(host: Host) -> None:
    """A call that takes too much memory fails alone, and the bridge continues."""
    async with host.session() as session:
        await session.fails("ResourceExhausted", "memory", "hungry", 4096)
        await session.gives(3, "add", 1)


@scenario("T-178", function="add")
async def a_client_of_snakepit(host: Host) -> None:
    """A client of Snakepit's own service gets UNIMPLEMENTED, and the bridge continues."""
    channel: Any = host.target.channel(host.function)
    for method in ("Ping", "ExecuteTool", "ExecuteStreamingTool"):
        call = channel.unary_unary(f"/snakepit.bridge.BridgeService/{method}")(b"", timeout=host.timeout_s)
        if (code := await call.code()) is not grpc.StatusCode.UNIMPLEMENTED:
            raise host.failure(f"{code.name} for snakepit.bridge.BridgeService/{method}", "UNIMPLEMENTED")
    async with host.session() as session:
        await session.gives(3, "add", 1)


@scenario("T-161", "T-159", function="add")
async def requests_that_cannot_be_read(host: Host) -> None:
    """Bytes that are not a message fail only their own rpc."""
    channel: Any = host.target.channel(host.function)
    for method in pb.DESCRIPTOR.services_by_name["SnakepitBridge"].methods_by_name:
        call = channel.unary_stream(f"/dspex.bridge.SnakepitBridge/{method}")(b"\xff\xff\xff", timeout=host.timeout_s)
        if await call.code() is grpc.StatusCode.OK:
            raise host.failure(f"OK for garbage to {method}", "an error")
    async with host.session() as session:
        await session.gives(3, "add", 1)
