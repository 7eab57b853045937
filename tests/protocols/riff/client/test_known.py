"""Tests of what is known of a function before it is called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from invoker._pb.invoker import describe_pb2 as pb
from invoker.protocols.riff.client.known import NOTHING, Known, ask

Answer = Callable[[pb.DescribeRequest, Any], Awaitable[pb.Function]]


@asynccontextmanager
async def asked(answer: Answer | None) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a server whose describe method is this one, or that has none."""
    server = grpc.aio.server()
    if answer is not None:
        method = grpc.unary_unary_rpc_method_handler(
            answer, pb.DescribeRequest.FromString, pb.Function.SerializeToString
        )
        handlers = grpc.method_handlers_generic_handler("invoker.v1.Functions", {"Describe": method})
        server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(None)


async def test_a_server_tells_of_the_function_that_is_named() -> None:
    """And gets the metadata of the call."""
    seen: dict[str, Any] = {}

    async def answer(request: pb.DescribeRequest, context: Any) -> pb.Function:
        seen.update(context.invocation_metadata())
        return pb.Function(name=request.function)

    async with asked(answer) as channel:
        known = await ask(channel, "f", (("x-id", "7"),))
    assert known.function == pb.Function(name="f")
    assert seen["x-id"] == "7"


async def test_nothing_is_known_of_foreign_functions() -> None:
    """Their servers have no such method."""
    async with asked(None) as channel:
        assert await ask(channel, "", ()) is NOTHING
    assert not NOTHING


async def test_a_server_that_does_not_answer_costs_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call goes on without."""
    monkeypatch.setattr("invoker.protocols.riff.client.known.ANSWER_S", 0.05)

    async def answer(request: pb.DescribeRequest, context: Any) -> pb.Function:
        await asyncio.Event().wait()
        return pb.Function()

    async with asked(answer) as channel:
        began = time.monotonic()
        assert await ask(channel, "", ()) is NOTHING
        assert 0.04 < time.monotonic() - began < 4


def test_labels_are_the_inputs_of_every_call() -> None:
    """The required ones; of a function that has options only, the first."""
    words, size, loud = pb.Input(name="words"), pb.Input(name="n", is_option=True), pb.Input(name="b", is_option=True)
    assert Known(pb.Function(inputs=[words, size, loud])).labels == 1
    assert Known(pb.Function(inputs=[words, words])).labels == 2
    assert Known(pb.Function(inputs=[size, loud])).labels == 1
    assert Known(pb.Function()).labels == NOTHING.labels == 0


def test_numbers_that_the_caller_chooses_are_not_known() -> None:
    """Neither inputs nor outputs; such a function is no source and no sink."""
    open_ = Known(
        pb.Function(inputs=[pb.Input(name="words")], outputs=[pb.Output()], open_inputs=True, open_outputs=True)
    )
    assert (open_.inputs, open_.outputs, open_.is_source, open_.is_sink) == ((), (), False, False)
    nothing = Known(pb.Function())
    assert (nothing.is_source, nothing.is_sink, NOTHING.is_source, NOTHING.is_sink) == (True, True, False, False)
