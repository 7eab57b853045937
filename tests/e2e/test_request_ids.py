"""`x-request-id` over gRPC: every method of every protocol repeats it, with each driver, and the log has it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2 as pb

from invoker.client import RiffClient
from tests.conftest import SLOW
from tests.serving import Served, serving

MODULES = ("answered_functions", "answered_functions_async")
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
OWN = ("grpc.",)
"""Health and reflection repeat nothing."""
_LOCAL = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
_numbers = itertools.count()


@pytest.fixture(scope="module", params=list(itertools.product(MODULES, ("fast", "aio"))), ids="-".join)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    module, driver = request.param
    with serving(f"tests.e2e.{module}", "--grpc-driver", driver, "--log-format", "json") as made:
        yield made


@pytest.fixture
def channel(served: Served) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(served.grpc, _LOCAL) as made:
        yield made


def test_H153_every_method_repeats_the_id(channel: grpc.Channel) -> None:
    """An empty message is an error for most of them, and a call of the others."""
    methods = list(methods_of(channel))
    assert {one.split("/")[1].rpartition(".")[2] for one in methods} >= {"Riff", "EvergreenService"}
    assert len(methods) > 20
    for path in methods:
        name = f"m{next(_numbers)}"
        call = channel.stream_stream(path)(iter([b""]), timeout=10 * SLOW, metadata=(("x-request-id", name),))
        assert [value for key, value in call.initial_metadata() if key == "x-request-id"] == [name], path
        call.cancel()


async def test_H153_it_stands_in_the_line_of_the_invocation(served: Served) -> None:
    """As `request_id`."""
    name = f"r{next(_numbers)}"
    async with RiffClient(served.grpc, metadata={"x-request-id": name}) as client:
        await client.invoke([["ok"]], function="word", content_type="text/plain").collect()
    for _ in range(int(200 * SLOW)):
        lines = [json.loads(one) for one in served.lines if '"invocation ended' in one and f'"{name}"' in one]
        if lines:
            break
        await asyncio.sleep(0.02)
    assert [one["request_id"] for one in lines] == [name]


def methods_of(channel: grpc.Channel) -> Iterator[str]:
    """The paths of all methods that reflection names, but those of gRPC itself."""
    listed = asked(channel, pb.ServerReflectionRequest(list_services="*")).list_services_response.service
    for service in [one.name for one in listed if not one.name.startswith(OWN)]:
        files = asked(channel, pb.ServerReflectionRequest(file_containing_symbol=service)).file_descriptor_response
        for data in files.file_descriptor_proto:
            made = descriptor_pb2.FileDescriptorProto.FromString(data)
            for one in made.service:
                if f"{made.package}.{one.name}" == service:
                    yield from (f"/{service}/{method.name}" for method in one.method)


def asked(channel: grpc.Channel, question: pb.ServerReflectionRequest) -> pb.ServerReflectionResponse:
    call = channel.stream_stream(REFLECTION)(iter([question.SerializeToString()]), timeout=10 * SLOW)
    return pb.ServerReflectionResponse.FromString(next(call))
