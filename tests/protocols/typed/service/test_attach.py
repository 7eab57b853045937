"""`invoker.protocols.typed.service`: functions as typed methods behind both gRPC transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2 as pb

from invoker import function
from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.codec import Book
from invoker.protocols.typed.service.attach import TypedService
from invoker.server.server import Server
from invoker.server.table import TABLE
from tests.attach.around import around


def add(a: int, b: int = 5) -> int:
    return a + b


def spell(word: str) -> Iterator[str]:
    if word == "boom":
        raise RuntimeError("too loud")
    yield from word


def total(xs: Iterator[float]) -> float:
    return sum(xs)


def top(items: Iterator[str], k: int) -> Iterator[str]:
    yield from sorted(items)[:k]


async def echo(words: AsyncIterator[str], prefix: str = ">") -> AsyncIterator[str]:
    async for word in words:
        yield prefix + word


def late(prefix: str = "-", xs: Iterator[str] = ()) -> Iterator[str]:
    yield from (prefix + one for one in xs)


@function(isolation="process")
def alone(x: int) -> int:
    return x + 1


class Client:
    """Calls typed methods by their names, with messages in keywords."""

    def __init__(self, channel: Any, *functions: Any) -> None:
        specs = [prepare_function(one).spec for one in functions]
        self._calls = {one.spec.name: one for one in calls_of(specs)}
        self._pages = Book(lambda: specs).pages
        self._channel = channel

    async def call(self, name: str, *messages: dict[str, Any]) -> list[Any]:
        """What the only output gives."""
        page, call = self._pages[name], self._calls[name]
        requests = iter([page.request(**one).SerializeToString() for one in messages])
        answers = self._channel.stream_stream(call.path)(requests)
        return [page.response.FromString(one).out async for one in answers]


def server_of(*functions: Any, **settings: Any) -> Server:
    """A server that is not started."""
    config = TABLE.configured(host="127.0.0.1", grpc_port=0, http=False, **settings)
    return Server(config, Catalog([prepare_function(one).function for one in functions]), builtin(entry_points=False))


@pytest.mark.parametrize("driver", ["fast", "aio"])
@pytest.mark.parametrize("functions", [(add, spell, total, top), (add, spell, total, top, echo)])
async def test_H106_both_transports_serve_every_shape(driver, functions):
    """Where all functions are sync, and beside async ones."""
    server = server_of(*functions, grpc_driver=driver)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            client = Client(channel, *functions)
            assert await client.call("add", {"a": 1}) == [6]
            assert await client.call("add", {"a": 0, "b": 0}) == [0]
            assert await client.call("spell", {"word": "ab"}) == ["a", "b"]
            assert await client.call("total", {"xs": 1}, {"xs": 2.5}, {}) == [3.5]
            assert await client.call("total") == [0.0]
            assert await client.call("top", {"items": "b"}, {"items": "a"}, {"k": 1}) == ["a"]
            if echo in functions:
                assert await client.call("echo", {"words": "a", "prefix": ""}, {"words": "b"}) == ["a", "b"]
                assert await client.call("echo", {"words": "a"}) == [">a"]
    finally:
        await server.stop(drain_s=1)


@pytest.mark.parametrize("driver", ["fast", "aio"])
async def test_H108_statuses_are_those_of_grpc(driver):
    """What is the caller's fault is INVALID_ARGUMENT; what the function raises is UNKNOWN."""
    server = server_of(add, spell, grpc_driver=driver)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            paths = {one.spec.name: one.path for one in calls_of([prepare_function(one).spec for one in (add, spell)])}
            for path, payload, code, text in (
                (paths["add"], b"\x08", grpc.StatusCode.INVALID_ARGUMENT, "not a message of protobuf"),
                (paths["add"], b"\x0a\x01a", grpc.StatusCode.INVALID_ARGUMENT, ""),
                (paths["spell"], b"\x0a\x01\xff", grpc.StatusCode.INVALID_ARGUMENT, "parameter 'word'"),
                (paths["spell"], b"\x0a\x04boom", grpc.StatusCode.UNKNOWN, "too loud"),
            ):
                call = channel.unary_unary(path)(payload)
                if payload == b"\x0a\x01a":  # a field of another type is unknown to protobuf, so it is a zero
                    assert await call == b"\x08\x05"
                    continue
                with pytest.raises(grpc.aio.AioRpcError, match=text) as caught:
                    await call
                assert caught.value.code() is code
    finally:
        await server.stop(drain_s=1)


@pytest.mark.parametrize("driver", ["fast", "aio"])
async def test_H102_a_stream_with_a_default(driver):
    """It may begin late, or not at all."""
    server = server_of(late, grpc_driver=driver)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            client = Client(channel, late)
            assert await client.call("late", {"prefix": "!"}, {"xs": "a"}, {"xs": "b"}) == ["!a", "!b"]
            assert await client.call("late", {"xs": "a"}) == ["-a"]
            assert await client.call("late") == []
    finally:
        await server.stop(drain_s=1)


@pytest.mark.timeout(20)
async def test_H106_an_isolated_function_decodes_in_its_child():
    """The fields cross to it as they came."""
    server = server_of(alone)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            assert await Client(channel, alone).call("alone", {"x": 41}) == [42]
    finally:
        await server.stop(drain_s=1)


async def test_H106_reflection_tells_the_messages():
    """They are made when they are asked for."""
    server = server_of(add)
    await server.start()
    try:
        typed = next(one for one in server._services if isinstance(one, TypedService))
        assert "schemas" not in vars(typed._book)
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            ask = channel.stream_stream(
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                request_serializer=pb.ServerReflectionRequest.SerializeToString,
                response_deserializer=pb.ServerReflectionResponse.FromString,
            )
            service = typed._calls[0].service
            requests = [
                pb.ServerReflectionRequest(list_services=""),
                pb.ServerReflectionRequest(file_containing_symbol=service),
            ]
            listed, found = [one async for one in ask(iter(requests))]
        assert service in [one.name for one in listed.list_services_response.service]
        (file,) = found.file_descriptor_response.file_descriptor_proto
        made = descriptor_pb2.FileDescriptorProto.FromString(file)
        assert [one.name for one in made.service[0].method] == ["Add"]
        assert "schemas" in vars(typed._book)
    finally:
        await server.stop(drain_s=1)


def test_H106_functions_that_are_loaded_anew_are_not_served():
    """Their classes would be others than those of the messages."""
    assert TypedService.unfit(around(add).config) == ""
    assert "--reload-per-invocation" in TypedService.unfit(around(add, reload_per_invocation=True).config)


def test_H106_it_is_served_unless_protocols_are_chosen():
    """It costs the start next to nothing."""
    assert TypedService in TABLE.served(TABLE.configured())
    assert TypedService not in TABLE.served(TABLE.configured(protocols=("riff",)))
