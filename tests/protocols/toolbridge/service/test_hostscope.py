"""What tools reach by their contexts, over real gRPC: tools of the process, and those of the host (T-169 to T-175)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from invoker import Context, Field, NestedError, function
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.agents import Running
from tests.conftest import SLOW
from tests.protocols.toolbridge.service.hosts import Elixir, Host
from tests.transports.bridge import TRANSPORTS, Bridged, error_of, packed, unpacked


def lookup(key: str, times: int = 1) -> str:
    """Of the host."""
    return key.upper() * times


def stream_words(n: int) -> Iterator[str]:
    """Of the host."""
    yield from (f"word {one}" for one in range(n))


def refuse(x: int) -> int:
    raise ValueError(f"the host takes no {x}")


HOST = {"lookup": lookup, "stream_words": stream_words, "refuse": refuse}


def positive(x: Annotated[int, Field(ge=1)]) -> int:
    return x * 10


def asks(key: str, ctx: Context) -> str:
    return str(ctx.call("lookup", key, times=2))


async def aasks(key: str, ctx: Context) -> str:
    return str(await ctx.call("callback:lookup", key, times=2))


def midstream(n: int, ctx: Context) -> Iterator[str]:
    for word in ctx.stream("stream_words", n):
        yield str(ctx.call("lookup", word))


async def amidstream(n: int, ctx: Context) -> AsyncIterator[str]:
    async for word in ctx.stream("stream_words", n):
        yield str(await ctx.call("lookup", word))


def refused(x: int, ctx: Context) -> int:
    return int(ctx.call("refuse", x))


async def arefused(x: int, ctx: Context) -> int:
    return int(await ctx.call("refuse", x))


def local(x: int, ctx: Context) -> int:
    return int(ctx.call("positive", x)) + 1


async def alocal(x: int, ctx: Context) -> int:
    return int(await ctx.call("positive", x)) + 1


def collects(n: int, ctx: Context) -> list[str]:
    return list(ctx.call("stream_words", n))


def missing(x: int, ctx: Context) -> str:
    try:
        ctx.call("nobody", x)
    except NestedError as error:
        return error.kind
    return ""


SYNC = (positive, asks, midstream, refused, local, collects, missing)
ASYNC = (aasks, amidstream, arefused, alocal)


@pytest.fixture(params=TRANSPORTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def functions(kind: str) -> tuple[Any, ...]:
    return SYNC if kind == "direct-lending" else (*SYNC, *ASYNC)


def with_host(bridged: Bridged, host: Host, session_id: str = "s1") -> Any:
    made = bridged.rpc("InitializeSession", session_id=session_id, callback_address=host.address)
    assert made.success, made
    return made


def test_T001_T033_T171_the_tools_of_the_host_are_counted_and_listed_behind_the_local_ones(kind: str) -> None:
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        made = with_host(bridged, host)
        names = [one.name for one in bridged.rpc("GetSessionTools", session_id="s1").tools]
        own = sorted(one.__name__ for one in functions(kind))
        assert names == [*own, "callback:lookup", "callback:refuse", "callback:stream_words"]
        assert made.tool_count == len(names)
        assert "callback" in made.capabilities


def test_T172_tools_call_the_host(kind: str) -> None:
    """From sync and async functions, by the name with and without the prefix, with defaults, and streams as lists."""
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        names = ["asks"] if kind == "direct-lending" else ["asks", "aasks"]
        for name in names:
            response = bridged.execute(name, "ab")
            assert unpacked(response.result) == "ABAB", response
        _, metadata, request = host.called[-1]
        assert request.session_id == "s1"
        assert 0 < request.timeout_ms <= 30_000
        assert metadata["x-dspex-hops"] == "1"
        assert unpacked(bridged.execute("collects", 3).result) == ["word 0", "word 1", "word 2"]


def test_T174_a_stream_calls_the_host_while_it_runs(kind: str) -> None:
    """Each item of a stream of the host is taken while other calls go there; nothing waits for ever."""
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        names = ["midstream"] if kind == "direct-lending" else ["midstream", "amidstream"]
        for name in names:
            response = bridged.execute(name, 40)
            assert unpacked(response.result) == [f"WORD {one}" for one in range(40)], response


def test_T173_errors_of_the_host_keep_their_type_and_message(kind: str) -> None:
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        names = ["refused"] if kind == "direct-lending" else ["refused", "arefused"]
        for name in names:
            response = bridged.execute(name, 7)
            assert not response.success
            assert (response.error.type, response.error.message) == ("ValidationError", "the host takes no 7")
            assert dict(response.error.details) == {"code": "mine", "remote": "true"}


def test_E129_local_tools_are_called_by_the_pipeline(kind: str) -> None:
    """Their arguments are validated, they are counted in the session, and observers hear of them."""
    with Bridged(kind, *functions(kind)) as bridged:
        heard: list[Any] = []
        bridged.bridge.host_sessions.observers.append(heard.append)
        bridged.session()
        names = ["local"] if kind == "direct-lending" else ["local", "alocal"]
        for name in names:
            assert unpacked(bridged.execute(name, 2).result) == 21
            response = bridged.execute(name, 0)
            assert (response.error.type, response.error.details["field"]) == ("ValidationError", "x"), response
        assert [(one.via, one.asked.tool_id) for one in heard[:4]] == [
            ("nested", "positive"), ("execute", "local"), ("nested", "positive"), ("execute", "local"),
        ]  # fmt: skip
        assert bridged.rpc("GetSessionInfo", session_id="s1").active_operations == 0
        assert unpacked(bridged.execute("missing", 2).result) == "ToolNotFound"
        session = bridged.session("tight", max_concurrent_tools=1)
        error = bridged.execute("local", 2, session_id=session).error
        assert (error.type, error.details["code"]) == ("ResourceExhausted", "concurrency")


def test_T175_a_correlation_id_goes_to_callbacks_and_observers(kind: str) -> None:
    """By metadata, by the context of the call, or made up."""
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        heard: list[Any] = []
        bridged.bridge.host_sessions.observers.append(heard.append)
        with_host(bridged, host)
        given = {"session_id": "s1", "tool_id": "asks", "args": [packed("x")]}
        request = pb.ToolCallRequest(**given)
        assert bridged.send("ExecuteTool", request, metadata=(("x-snakepit-correlation-id", "by-metadata"),)).success
        assert bridged.rpc("ExecuteTool", **given, context={"correlation_id": "by-context"}).success
        assert bridged.rpc("ExecuteTool", **given).success
        sent = [one[1]["x-snakepit-correlation-id"] for one in host.called if one[0] == "ExecuteTool"]
        assert sent[:2] == ["by-metadata", "by-context"]
        assert len(sent[2]) == 32
        assert [(one.via, one.correlation_id) for one in heard] == [
            (via, one) for one in sent for via in ("callback", "execute")
        ]  # fmt: skip


def test_T172_more_than_four_hops_are_refused(kind: str) -> None:
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        request = pb.ToolCallRequest(session_id="s1", tool_id="asks", args=[packed("x")])
        response = bridged.send("ExecuteTool", request, metadata=(("x-dspex-hops", "3"),))
        assert response.success
        assert host.called[-1][1]["x-dspex-hops"] == "4"
        for hops in ("4", "9" * 5000, "-1", "0x1", "1, 2"):
            response = bridged.send("ExecuteTool", request, metadata=(("x-dspex-hops", hops),))
            assert (response.error.type, response.error.details["code"]) == ("ResourceExhausted", "hops")


def test_T169_T170_a_host_that_cannot_be_called_back_gets_no_session(kind: str) -> None:
    with Bridged(kind, *functions(kind)) as bridged:
        for address, code in (("8.8.8.8:80", "callback_forbidden"), ("127.0.0.1:1", "callback_unreachable")):
            made = bridged.rpc("InitializeSession", session_id="s1", callback_address=address)
            assert (made.success, made.error.details["code"]) == (False, code)
            with pytest.raises(grpc.RpcError) as caught:
                bridged.rpc("GetSessionInfo", session_id="s1")
            assert error_of(caught.value)[1].type == "SessionExpired"


def test_T173_a_host_that_dies_during_a_call_fails_that_call(kind: str) -> None:
    async def waits(key: str, times: int) -> str:
        await asyncio.Event().wait()
        return key

    elixir = Elixir(lookup=waits)
    with elixir as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        request = pb.ToolCallRequest(session_id="s1", tool_id="asks", args=[packed("x")])
        method = "/dspex.bridge.SnakepitBridge/ExecuteTool"
        call = bridged.channel.unary_unary(method, pb.ToolCallRequest.SerializeToString, pb.ToolCallResponse.FromString)
        running = call.future(request, timeout=10 * SLOW)
        elixir.run(host.begun.wait())
        elixir.run(host.stop())
        error = running.result().error
        assert (error.type, error.details["code"]) == ("InternalError", "callback_unreachable")
        assert error.details["remote"] == "true"


def test_a_cancel_reaches_the_host(kind: str) -> None:
    async def waits(key: str, times: int) -> str:
        await asyncio.Event().wait()
        return key

    elixir = Elixir(lookup=waits)
    with elixir as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        request = pb.ToolCallRequest(session_id="s1", tool_id="asks", args=[packed("x")])
        method = "/dspex.bridge.SnakepitBridge/ExecuteTool"
        call = bridged.channel.unary_unary(method, pb.ToolCallRequest.SerializeToString, pb.ToolCallResponse.FromString)
        running = call.future(request, timeout=10 * SLOW)
        elixir.run(host.begun.wait())
        running.cancel()
        elixir.run(host.gone.wait())


def test_a_session_of_another_process_meets_its_host_when_that_is_needed(kind: str) -> None:
    """As if this process had only read of the session in the store: by GetSessionTools, or by the first call."""
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)

        def forget() -> None:
            session = bridged.bridge.host_sessions.sessions["s1"]
            session.callback.close()
            session.callback = None

        forget()
        assert unpacked(bridged.execute("asks", "x").result) == "XX"
        forget()
        assert "callback:lookup" in [one.name for one in bridged.rpc("GetSessionTools", session_id="s1").tools]
        assert bridged.bridge.host_sessions.sessions["s1"].callback is not None


def test_the_channel_is_closed_with_the_last_session(kind: str) -> None:
    """Also where a session is refused after its host was met, or asked for again."""
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        with_host(bridged, host)
        with_host(bridged, host, "s2")
        other = bridged.rpc("InitializeSession", session_id="s1", callback_address=host.address, metadata={"a": "b"})
        assert other.error.details["code"] == "session_exists"
        (link,) = bridged.bridge.callbacks._links.values()
        assert link.users == 2
        bridged.rpc("CleanupSession", session_id="s1")
        assert unpacked(bridged.execute("asks", "x", session_id="s2").result) == "XX"
        bridged.rpc("CleanupSession", session_id="s2")
        bridged.rpc("GetSessionInfo", session_id=bridged.session("s3"))
        assert not bridged.bridge.callbacks._links


def test_an_iterator_that_is_given_to_a_tool_is_a_list(kind: str) -> None:
    def total(xs: Iterator[int]) -> int:
        return sum(xs)

    def gives(n: int, ctx: Context) -> int:
        return int(ctx.call("total", iter(range(n))))

    async def agives(n: int, ctx: Context) -> int:
        return int(await ctx.call("total", (one for one in range(n))))

    served = (total, gives) if kind == "direct-lending" else (total, gives, agives)
    with Bridged(kind, *served) as bridged:
        bridged.session()
        for one in served[1:]:
            assert unpacked(bridged.execute(one.__name__, 4).result) == 6


def test_what_cannot_be_sent_to_a_host_is_refused(kind: str) -> None:
    def sends(x: int, ctx: Context) -> int:
        return int(ctx.call("lookup", {1: object()}))

    with Elixir(**HOST) as host, Bridged(kind, *functions(kind), sends) as bridged:
        with_host(bridged, host)
        calls = len(host.called)
        assert not bridged.execute("sends", 1).success
        assert len(host.called) == calls


def test_E129_tools_call_themselves_sixteen_deep(kind: str) -> None:
    def down(n: int, ctx: Context) -> int:
        return 0 if n == 0 else 1 + int(ctx.call("down", n - 1))

    async def adown(n: int, ctx: Context) -> int:
        return 0 if n == 0 else 1 + int(await ctx.call("adown", n - 1))

    served = (down,) if kind == "direct-lending" else (down, adown)
    with Bridged(kind, *served) as bridged:
        bridged.session()
        for one in served:
            assert unpacked(bridged.execute(one.__name__, 16).result) == 16
            error = bridged.execute(one.__name__, 17).error
            assert error.type == "ResourceExhausted"
            assert "exceed the limit of 16 levels" in error.message


def test_T022_functions_reach_one_that_cannot_be_a_tool(kind: str) -> None:
    """It is served besides, under a name that no host can call; hosts and models do not reach it."""

    def odd(x: int) -> list[int]:
        return [x, x]

    def calls(x: int, ctx: Context) -> list[int]:
        return [*ctx.call("gr\u00fc\u00dfe", x), *next(ctx.stream("gr\u00fc\u00dfe", x))]

    async def acalls(x: int, ctx: Context) -> list[int]:
        return list(await ctx.call("gr\u00fc\u00dfe", x))

    served = (calls,) if kind == "direct-lending" else (calls, acalls)
    with Bridged(kind, function(name="gr\u00fc\u00dfe")(odd), *served, is_asked=False) as bridged:
        bridged.session()
        for one in served:
            response = bridged.execute(one.__name__, 7)
            assert set(unpacked(response.result)) == {7}, response
        assert bridged.execute("gr\u00fc\u00dfe", 7).error.type == "ToolNotFound"
        assert [one.name for one in bridged.rpc("GetSessionTools", session_id="s1").tools] == sorted(
            one.__name__ for one in served
        )
        session = bridged.bridge.host_sessions.sessions["s1"]
        running = Context("agent", "agent", configs=(Running(session, {}),))
        with pytest.raises(NestedError, match="neither here nor at the session's host"):
            asyncio.run(anext(session.scope.call(running, "gr\u00fc\u00dfe", (), {}, streams=False)))


def test_T173_a_value_of_the_host_that_nobody_can_read_is_the_hosts_fault(kind: str) -> None:
    """Neither a ValidationError of who called, nor of who called that: by call, by stream, of one value and of many."""

    def wants(tool: str, ctx: Context) -> str:
        return repr(ctx.call(tool))

    def takes(tool: str, ctx: Context) -> str:
        return repr(list(ctx.stream(tool)))

    async def awants(tool: str, ctx: Context) -> str:
        return repr(await ctx.call(tool))

    def odd() -> AnyMessage:
        return AnyMessage(type_url="x/own.Type", value=b"\xff")

    def stream_odd() -> Iterator[AnyMessage]:
        yield odd()

    served = (wants, takes) if kind == "direct-lending" else (wants, takes, awants)
    with Elixir(odd=odd, stream_odd=stream_odd) as host, Bridged(kind, *served) as bridged:
        with_host(bridged, host)
        for one in served:
            for tool in ("odd", "stream_odd"):
                error = bridged.execute(one.__name__, tool).error
                assert (error.type, error.details["code"]) == ("InternalError", "callback_failed"), (one, tool, error)
                assert error.details["remote"] == "true"
        error = bridged.execute("callback:stream_odd").error
        assert (error.type, error.details["code"]) == ("InternalError", "callback_failed")
        assert bridged.execute("callback:odd").result.type_url == "x/own.Type"
