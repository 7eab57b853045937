"""Tests of the client against a bare peer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import grpc
import grpc.aio
import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.client import CallFailed, ConnectFailed, RiffClient
from invoker.connect.quiet import quieten
from invoker.errors import Status
from invoker.message import Message
from invoker.protocols.riff.client.known import NOTHING, Known
from invoker.protocols.riff.client.request import Request
from tests.protocols.riff.client.peer import Peer


async def numbers() -> AsyncIterator[int]:
    for number in range(3):
        yield number


async def test_values_go_out_and_come_back_decoded(peer: Peer) -> None:
    """Each under the type that it chooses."""
    async with RiffClient(peer.target) as client:
        outs = await client.invoke([["a", b"b", {"c": 1}]]).collect()
    assert [out.value for out in outs] == ["a", b"b", {"c": 1}]
    assert [out.media_type for out in outs] == ["text/plain", "application/octet-stream", "application/json"]
    assert peer.half_closed.is_set()


async def test_start_frame_says_what_was_asked_for(peer: Peer) -> None:
    """Names, types, function and metadata are on the wire."""
    async with RiffClient(peer.target, metadata={"tenant": "a"}) as client:
        await client.invoke(
            [["x"]],
            accept=["text/plain", "a/b, */*"],
            input_names=["in"],
            output_names=["one", "two"],
            function="two",
            metadata={"trace": "1"},
            headers={"X-A": "1"},
        ).collect()
    (start,) = peer.starts
    assert list(start.expectedContentTypes) == ["text/plain", "a/b, */*"]
    assert (list(start.inputNames), list(start.outputNames)) == (["in"], ["one", "two"])
    assert (peer.metadata["tenant"], peer.metadata["trace"], peer.metadata["invoker-function"]) == ("a", "1", "two")
    assert dict(peer.frames[0].headers) == {"X-A": "1"}


async def test_several_outputs_carry_index_and_name(peer: Peer) -> None:
    """So that a caller can tell them apart."""
    async with RiffClient(peer.target) as client:
        outs = [out async for out in client.invoke([["abc"]], function="two", output_names=["text", "size"])]
    assert [(out.index, out.name, out.value) for out in outs] == [(0, "text", "abc"), (1, "size", 3)]


async def test_messages_carry_headers(peer: Peer) -> None:
    """Both ways, and looked up without regard to case."""
    async with RiffClient(peer.target) as client:
        (out,) = await client.invoke([[Message("x", headers={"X-Id": "7"})]]).collect()
    assert out.headers["x-id"] == "7"


async def test_inputs_of_both_kinds_are_interleaved(peer: Peer) -> None:
    """An input that waits does not hold up another, and each keeps its order."""
    go_on = asyncio.Event()

    async def waits() -> AsyncIterator[str]:
        await go_on.wait()
        yield "late"

    seen = []
    async with RiffClient(peer.target) as client:
        async for out in client.invoke([waits(), ["a", "b"], numbers()], function="indexed"):
            seen.append(out.value)
            if len(seen) == 5:
                go_on.set()
    assert seen[-1] == "0:late"
    assert [one for one in seen if one[0] == "1"] == ["1:a", "1:b"]
    assert [one for one in seen if one[0] == "2"] == ["2:0", "2:1", "2:2"]


async def test_pairs_are_sent_in_exactly_their_order(peer: Peer) -> None:
    """For callers to whom the order between inputs matters."""
    pairs = [(1, "a"), (0, "b"), (1, "c"), (0, "d")]
    async with RiffClient(peer.target) as client:
        outs = await client.invoke(pairs=pairs, function="indexed").collect()
    assert [out.value for out in outs] == ["1:a", "0:b", "1:c", "0:d"]


async def test_conversation_waits_for_each_answer(peer: Peer) -> None:
    """Outputs arrive while inputs are still open."""
    words: asyncio.Queue[str | None] = asyncio.Queue()

    async def spoken() -> AsyncIterator[str]:
        while (word := await words.get()) is not None:
            yield word

    answers = []
    await words.put("a")
    async with RiffClient(peer.target) as client:
        async for out in client.invoke([spoken()]):
            answers.append(out.value)
            await words.put(None if len(answers) == 3 else out.value + "a")
    assert answers == ["a", "aa", "aaa"]


async def test_no_inputs_half_close_at_once(peer: Peer) -> None:
    """What a source is called with."""
    async with RiffClient(peer.target) as client:
        assert [out.value async for out in client.invoke(function="source")] == [0, 1, 2]
        assert await client.invoke().collect() == []
    assert peer.half_closed.is_set()


async def test_error_comes_after_the_values_before_it(peer: Peer) -> None:
    """With the peer's status and text."""
    seen = []
    async with RiffClient(peer.target) as client:
        outputs = aiter(client.invoke([["a"]], function="fail"))
        seen.append((await anext(outputs)).value)
        with pytest.raises(CallFailed, match="UNKNOWN: Invoker: Unexpected Error: ValueError: boom") as caught:
            await anext(outputs)
    assert seen == ["a"]
    assert (caught.value.status, caught.value.detail) == (Status.UNKNOWN, "Invoker: Unexpected Error: ValueError: boom")


async def test_break_cancels_the_call_and_closes_its_inputs(peer: Peer) -> None:
    """Nothing is left in the client, the peer or the caller's generators."""
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    async with RiffClient(peer.target) as client:
        async for out in client.invoke([endless()], function="endless"):
            if out.value == 5:
                break
        await asyncio.wait_for(closed.wait(), 5)
        assert await asyncio.to_thread(peer.cancelled.wait, 5)
        assert await client.invoke([["next"]]).value() == "next"


async def test_deadline_ends_the_call(peer: Peer) -> None:
    """By the peer's clock or ours, the status is the same."""
    async with RiffClient(peer.target) as client:
        with pytest.raises(CallFailed) as caught:
            await client.invoke([["a"]], function="silent", timeout_s=0.1).collect()
    assert caught.value.status is Status.DEADLINE_EXCEEDED
    assert await asyncio.to_thread(peer.cancelled.wait, 5)


async def test_cancelled_task_cancels_the_call(peer: Peer) -> None:
    """`asyncio.timeout` and task groups reach the peer."""
    async with RiffClient(peer.target) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.invoke([["a"]], function="silent").collect()
    assert await asyncio.to_thread(peer.cancelled.wait, 5)


async def test_what_an_input_raises_is_raised_to_the_reader(peer: Peer) -> None:
    """And the call is cancelled, so that the function does not take a part for the whole."""

    def bad() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    async with RiffClient(peer.target) as client:
        with pytest.raises(KeyError, match="mine"):
            await client.invoke([bad(), numbers()], function="silent").collect()
    assert await asyncio.to_thread(peer.cancelled.wait, 5)
    assert not peer.half_closed.is_set()


async def test_nobody_there_is_a_failed_connection() -> None:
    """At once, and told from a call that was refused."""
    async with RiffClient("127.0.0.1:1") as client:
        with pytest.raises(ConnectFailed, match=r"UNAVAILABLE: nothing listens at 127\.0\.0\.1:1") as caught:
            await client.invoke([["a"]]).collect()
    assert caught.value.status is Status.UNAVAILABLE


async def test_peer_that_drains_is_not_a_failed_connection(peer: Peer) -> None:
    """It has the same status, but the call has reached somebody."""
    async with RiffClient(peer.target) as client:
        with pytest.raises(CallFailed, match="UNAVAILABLE: Invoker: Shutting Down") as caught:
            await client.invoke([["a"]], function="shutting").collect()
    assert not isinstance(caught.value, ConnectFailed)


async def test_connection_that_never_comes_is_given_up() -> None:
    """A port that accepts and says nothing."""
    async with contextlib.AsyncExitStack() as stack:
        server = await asyncio.start_server(lambda _, writer: stack.callback(writer.close), "127.0.0.1", 0)
        stack.callback(server.close)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = await stack.enter_async_context(RiffClient(target, connect_timeout_s=0.2))
        began = time.monotonic()
        with pytest.raises(ConnectFailed, match=r"no connection to 127.0.0.1:\d+ within 0.2 s"):
            await client.invoke([["a"]]).collect()
        assert time.monotonic() - began < 5


async def test_many_calls_share_a_connection(peer: Peer) -> None:
    """Without mixing up their values."""
    async with RiffClient(peer.target) as client:
        calls = [client.invoke([[f"{number}.{part}" for part in range(20)]]).collect() for number in range(20)]
        for number, outs in enumerate(await asyncio.gather(*calls)):
            assert [out.value for out in outs] == [f"{number}.{part}" for part in range(20)]


async def test_closing_the_client_cancels_what_runs(threaded_peer: Peer) -> None:
    """And leaves no task behind."""
    quieten(asyncio.get_running_loop())
    before = asyncio.all_tasks()
    async with RiffClient(threaded_peer.target) as client:
        outputs = aiter(client.invoke([numbers()], function="endless"))
        await anext(outputs)
    assert await asyncio.to_thread(threaded_peer.cancelled.wait, 5)
    if left := asyncio.all_tasks() - before:
        _, pending = await asyncio.wait(left, timeout=5)
        assert not pending


async def test_client_that_is_not_open_says_so(peer: Peer) -> None:
    """Before and after its block."""
    client = RiffClient(peer.target)
    with pytest.raises(RuntimeError, match="not open"):
        client.invoke([["a"]])
    with pytest.raises(RuntimeError, match="not open"):
        await client.describe(Request())
    async with client:
        assert await client.invoke([["a"]]).value() == "a"
    with pytest.raises(RuntimeError, match="not open"):
        client.invoke([["a"]])
    async with client:
        assert await client.invoke([["again"]]).value() == "again"


async def test_inputs_and_pairs_exclude_each_other(peer: Peer) -> None:
    """One of them says what is sent."""
    async with RiffClient(peer.target) as client:
        with pytest.raises(TypeError, match="either inputs or pairs"):
            client.invoke([["a"]], pairs=[(0, "a")])


async def test_R166_values_that_are_sent_first_come_before_the_others(peer: Peer) -> None:
    """All of them, though the other input had its values at hand before."""
    request = Request(sent_first=[1], input_names=("words", "size"))
    async with RiffClient(peer.target) as client:
        await client.call([["a", "b"], ["1"]], request).collect()
    assert [frame.argIndex for frame in peer.frames] == [1, 0, 0]


async def test_a_server_is_asked_once_for_each_function(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first call that leaves its names to us; a foreign one is then sent in and out."""
    asked: list[str] = []

    async def ask(channel: object, function: str, metadata: object) -> Known:
        asked.append(function)
        return NOTHING

    monkeypatch.setattr("invoker.protocols.riff.client.client.ask", ask)
    async with RiffClient(peer.target) as client:
        for function in ("echo", "echo", "first"):
            await client.invoke([["a"]], function=function).collect()
        await client.invoke([["a"]], function="source", input_names=("a",), output_names=("b",)).collect()
    assert asked == ["echo", "first"]
    assert [(list(one.inputNames), list(one.outputNames)) for one in peer.starts] == [
        (["in"], ["out"]),
        (["in"], ["out"]),
        (["in"], ["out"]),
        (["a"], ["b"]),
    ]


async def test_a_client_that_is_open_keeps_its_connection(peer: Peer) -> None:
    """If somebody enters it again."""
    async with RiffClient(peer.target) as client:
        channel = client._channel
        assert await client.__aenter__() is client
        assert client._channel is channel


async def test_what_is_no_signal_ends_the_call_and_what_has_no_data_is_ignored() -> None:
    """R-160: newer peers have signals that this client does not know."""
    newer = pb.OutputSignal().SerializeToString()
    value = pb.OutputSignal(data=pb.OutputFrame(payload=b"a", contentType="text/plain")).SerializeToString()

    async def answer(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        for signal in (newer, value, b"\xff\xff"):
            yield signal

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(answer)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("streaming.Riff", {"Invoke": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with RiffClient(f"127.0.0.1:{port}") as client:
        outs = aiter(client.invoke([["x"]]))
        assert (await anext(outs)).value == "a"
        with pytest.raises(CallFailed, match="bytes that are not a valid OutputSignal"):
            await anext(outs)
    await server.stop(None)
