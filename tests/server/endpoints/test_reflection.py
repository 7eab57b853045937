"""Server reflection, under both of its names."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2 as pb

from invoker.protocols.riff.wire import SERVICE
from invoker.server.endpoints.reflection import add_reflection

ALPHA, V1 = "grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection"


def typed_file() -> bytes:
    """A file that protobuf's own pool does not have."""
    made = descriptor_pb2.FileDescriptorProto(name="toy/toy.proto", package="toy", syntax="proto3")
    made.message_type.add(name="Ball")
    made.service.add(name="Toy").method.add(name="Throw", input_type=".toy.Ball", output_type=".toy.Ball")
    return made.SerializeToString()


@pytest.fixture
async def served():
    """How often the files were asked for, and a channel to a server."""
    asked = []

    def files():
        asked.append(1)
        return (typed_file(),)

    server = grpc.aio.server()
    add_reflection((SERVICE, "toy.Toy", SERVICE), server, files)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield asked, channel
    await server.stop(None)


async def ask(channel, version, **question):
    """One question, one answer."""
    call = channel.stream_stream(
        f"/{version}/ServerReflectionInfo",
        request_serializer=pb.ServerReflectionRequest.SerializeToString,
        response_deserializer=pb.ServerReflectionResponse.FromString,
    )()
    await call.write(pb.ServerReflectionRequest(**question))
    answer = await call.read()
    await call.done_writing()
    return answer


def named(answer) -> set[str]:
    """Names of the files of an answer."""
    files = answer.file_descriptor_response.file_descriptor_proto
    return {descriptor_pb2.FileDescriptorProto.FromString(one).name for one in files}


@pytest.mark.parametrize("version", [ALPHA, V1])
async def test_R015_H100_both_versions_list_each_service_once(served, version):
    """A caller such as buf curl needs no proto file, whichever version it asks."""
    _, channel = served
    answer = await ask(channel, version, list_services="")
    names = [one.name for one in answer.list_services_response.service]
    assert sorted(names) == sorted({SERVICE, "toy.Toy", "grpc.health.v1.Health", ALPHA, V1})


@pytest.mark.parametrize("version", [ALPHA, V1])
async def test_R015_H100_both_versions_know_a_service(served, version):
    """Its file comes with those that it imports; what is nowhere is NOT_FOUND."""
    _, channel = served
    assert named(await ask(channel, version, file_containing_symbol=SERVICE)) == {"invoker/_pb/riff/riff-rpc.proto"}
    answer = await ask(channel, version, file_containing_symbol="nowhere.Nothing")
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_H100_v1_describes_itself(served):
    """Its descriptors name no message of v1alpha."""
    _, channel = served
    answer = await ask(channel, V1, file_containing_symbol=V1)
    (file,) = answer.file_descriptor_response.file_descriptor_proto
    assert b"v1alpha" not in file
    made = descriptor_pb2.FileDescriptorProto.FromString(file)
    assert (made.name, made.package) == ("grpc/reflection/v1/reflection.proto", "grpc.reflection.v1")
    assert named(await ask(channel, V1, file_by_filename=made.name)) == {made.name}


async def test_H100_files_of_services_are_asked_for_when_they_are_needed(served):
    """A server whose callers ask for nothing else never makes them; they are made once."""
    asked, channel = served
    await ask(channel, V1, list_services="")
    await ask(channel, V1, file_containing_symbol=SERVICE)
    assert not asked
    for symbol in ("toy.Toy", "toy.Ball"):
        assert named(await ask(channel, V1, file_containing_symbol=symbol)) == {"toy/toy.proto"}
    assert asked == [1]


async def test_H100_messages_of_both_pools_have_no_extensions(served):
    """Proto3 has none; a message that is nowhere is NOT_FOUND."""
    _, channel = served
    for name in ("streaming.StartFrame", "toy.Ball"):
        answer = await ask(channel, V1, all_extension_numbers_of_type=name)
        assert answer.all_extension_numbers_response.base_type_name == name
    answer = await ask(channel, V1, all_extension_numbers_of_type="nowhere.Nothing")
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_H100_files_that_are_broken_leave_the_rest(caplog):
    """The log has why; v1 and the files before them are described."""
    server = grpc.aio.server()
    add_reflection(("toy.Toy",), server, lambda: (typed_file(), b"\x0a\x05"))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        for symbol in (V1, "toy.Toy"):
            assert named(await ask(channel, V1, file_containing_symbol=symbol))
    await server.stop(None)
    assert "cannot be described" in caplog.text
