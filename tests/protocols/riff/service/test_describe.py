"""Tests of what a server tells of its functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, cast

import grpc
import grpc.aio
import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Message, function
from invoker._pb.invoker import describe_pb2 as pb
from invoker.author.prepare import prepare_function
from invoker.author.reader import read
from invoker.client import RiffClient
from invoker.core.catalog import Catalog
from invoker.errors import FunctionError
from invoker.protocols.riff.client.request import Request
from invoker.protocols.riff.service.describe import add_describe, describe
from tests.serving import TestServer

NONE: Iterator[str] = iter(())


@dataclass
class Row:
    a: int


def takes(type_: Any) -> list[str]:
    def body(value):  # type: ignore[no-untyped-def]
        return value

    body.__annotations__ = {"value": type_}
    return list(describe(read(body)).inputs[0].media_types)


def gives(type_: Any) -> list[str]:
    def body(value):  # type: ignore[no-untyped-def]
        return value

    body.__annotations__ = {"return": type_}
    return list(describe(read(body)).outputs[0].media_types)


@pytest.mark.parametrize(
    ("type_", "best"),
    [(str, "text/plain"), (int, "text/plain"), (bool, "text/plain"), (int | None, "text/plain"), (Any, "text/plain"),
     (str | Row, "text/plain"), (bytes, "application/octet-stream"), (list[int], "application/json"),
     (dict, "application/json"), (Mapping[str, int], "application/json"), (Row, "application/json"),
     (Row | None, "application/json"), (int | list[int], "application/json"), (Message[Row], "application/json"),
     (NDArray[np.float32], "application/json"), (Annotated[int, "x"], "text/plain")],
)  # fmt: skip
def test_values_are_typed_as_text_or_as_json(type_: Any, best: str) -> None:
    """The media type in which a person can type the annotated type comes first."""
    assert takes(type_)[0] == best


@pytest.mark.parametrize(
    ("type_", "types"),
    [(str, ["text/plain", "application/json"]), (Any, ["text/plain", "application/json"]),
     (Message[str], ["text/plain", "application/json"]), (int, []), (Row, []), (bytes, [])],
)  # fmt: skip
def test_a_str_is_read_as_text(type_: Any, types: list[str]) -> None:
    """Anything else as the server chooses."""
    assert gives(type_) == types


def test_declared_media_types_are_told() -> None:
    """As the decorator has them."""

    @function(input_types="image/png", output_types="text/csv")
    def thumbnail(image: bytes) -> bytes:
        return image

    told = describe(read(thumbnail))
    assert (list(told.inputs[0].media_types), list(told.outputs[0].media_types)) == (["image/png"], ["text/csv"])


def test_options_streams_and_triggers_are_told_apart() -> None:
    """R-164: required inputs first; an option is one value unless it is annotated as a stream."""

    def generate(prompts: Iterator[str], temperature: float = 1.0, more: Iterator[str] = NONE) -> Iterator[str]:
        """Some text.

        And more.
        """
        yield from prompts

    told = describe(read(generate))
    assert (told.name, told.doc) == ("generate", "Some text.")
    assert [(one.name, one.type, one.is_option, one.is_stream) for one in told.inputs] == [
        ("prompts", "str", False, True),
        ("temperature", "float", True, False),
        ("more", "str", True, True),
    ]

    def greet(name: str = "world", loud: bool = False) -> str:
        return name

    told = describe(read(greet))
    assert [(one.name, one.is_option, one.is_stream) for one in told.inputs] == [
        ("name", True, True),
        ("loud", True, False),
    ]

    def now() -> str:
        return "now"

    assert [(one.name, one.is_trigger) for one in describe(read(now)).inputs] == [("in", True)]

    def several(*words: Iterator[str]) -> Iterator[str]:
        for each in words:
            yield from each

    assert describe(read(several)).open_inputs

    def strict(a: int, b: int = 2, /, c: int = 3, **more: int) -> int:
        return a

    told = describe(read(strict))
    assert ([one.is_positional for one in told.inputs], told.open_names) == ([True, True, False], True)

    def loose(*words: str, **more: str) -> str:
        return ""

    assert not describe(read(loose)).open_names  # riff has labels only, beside any number of inputs


async def test_the_method_answers_for_one_function_of_a_catalogue() -> None:
    """And says which there are when it is not told which one is meant."""
    server = grpc.aio.server()
    names = ("ping", "pong")
    add_describe(Catalog([prepare_function(named(one)).function for one in names]), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/invoker.v1.Functions/Describe", pb.DescribeRequest.SerializeToString)
        told = pb.Function.FromString(await call(pb.DescribeRequest(function="pong")))
        assert told.name == "pong"
        for unknown in ("", "pung"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(pb.DescribeRequest(function=unknown))
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
            assert "ping, pong" in (caught.value.details() or "")
    await server.stop(None)


def named(name: str) -> Any:
    @function(name=name)
    def body(value: int) -> int:
        return value

    return body


@pytest.mark.timeout(60)
@pytest.mark.parametrize("driver", ["fast", "aio"])
async def test_both_drivers_serve_the_method(driver: str) -> None:
    """And our own client sends no name to a function of two inputs, though it is given one."""
    server = TestServer("functions.repeat:repeat", "--grpc-driver", driver)
    try:
        async with RiffClient(server.grpc) as client:
            known = await client.describe(Request())
            assert [one.name for one in known.inputs] == ["words", "counts"]
            assert await client.invoke([["a"]]).collect() == []
    finally:
        assert server.close() == 0


@pytest.mark.timeout(60)
async def test_who_turns_reflection_off_tells_nothing() -> None:
    """Callers are then served as by a foreign server."""
    server = TestServer("functions.repeat:repeat", "--no-reflection")
    try:
        async with RiffClient(server.grpc) as client:
            assert not await client.describe(Request())
            pairs = [(0, "ho"), (1, 2)]
            assert [out.value for out in await client.invoke(pairs=pairs).collect()] == ["ho", "ho"]
    finally:
        assert server.close() == 0


async def test_a_function_that_cannot_be_loaded_again_fails_the_call() -> None:
    """With the reason, and not as if there were no such function."""

    def find(name: str) -> Any:
        raise FunctionError("its module has a fault")

    server = grpc.aio.server()
    add_describe(cast(Catalog, SimpleNamespace(find=find)), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/invoker.v1.Functions/Describe", pb.DescribeRequest.SerializeToString)
        with pytest.raises(grpc.aio.AioRpcError, match="its module has a fault") as caught:
            await call(pb.DescribeRequest(function="ping"))
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    await server.stop(None)
