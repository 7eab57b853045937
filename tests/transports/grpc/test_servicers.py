"""Generated servicers on the fast transport: health and reflection, and what else such servicers do."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from invoker.protocols.riff.wire import SERVICE
from invoker.server.endpoints.reflection import add_reflection
from invoker.server.endpoints.statuses import Health
from tests.transports.riff import FAST, Riff, eventually, form

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(params=FAST)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def sync(x: bytes) -> bytes:
    return x


async def asyn(x: bytes) -> bytes:
    return x


class Odd:
    """Methods that end in other ways; each is given a context."""

    def __init__(self) -> None:
        self.left = threading.Event()
        self.entered = threading.Event()

    async def raises(self, request: bytes, context: Any) -> bytes:
        raise ValueError("a secret")

    async def aborts(self, request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now")
        return b""

    async def hangs(self, request: bytes, context: Any) -> bytes:
        self.entered.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.left.set()
        return b""

    async def tells(self, request: bytes, context: Any) -> bytes:
        context.set_code(grpc.StatusCode.DATA_LOSS)
        context.set_details("lost")
        return str(0 < context.time_remaining() <= 5).encode()

    def add_to(self, transport: Any) -> None:
        methods = {
            name: grpc.unary_unary_rpc_method_handler(getattr(self, name))
            for name in ("raises", "aborts", "hangs", "tells")
        }
        transport.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("odd.Odd", methods),))


def test_R015_health_is_checked_listed_and_watched(kind):
    """A watcher hears of a change; an unknown service is NOT_FOUND."""
    ready = [True]

    async def is_ready() -> bool:
        return ready[0]

    health = Health((SERVICE,), is_ready)
    with Riff(kind, form(kind, sync, asyn), add=lambda transport: health.add_to(transport.server)) as riff:
        stub = health_pb2_grpc.HealthStub(riff.channel)
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        for _ in range(20):
            assert stub.Check(request, timeout=5).status == _SERVING
        with pytest.raises(grpc.RpcError) as refused:
            stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=5)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        if hasattr(stub, "List"):  # younger than the package that goes with protobuf 6
            assert set(stub.List(health_pb2.HealthListRequest(), timeout=5).statuses) == {"", SERVICE}
        watch = stub.Watch(request)
        assert next(watch).status == _SERVING
        ready[0] = False
        riff.run(health.refresh())
        assert next(watch).status == _NOT_SERVING
        watch.cancel()
        assert riff.call(b"x").rest() == [b"x"]
        assert eventually(lambda: not _tasks(riff))


def _tasks(riff: Riff) -> list[str]:
    async def look() -> list[str]:
        return [one.get_name() for one in asyncio.all_tasks() if one.get_name() == "servicer"]

    found: list[str] = riff.run(look())
    return found


def test_R015_reflection_names_the_services(kind):
    """And gives the file of one of them."""
    with Riff(kind, form(kind, sync, asyn), add=lambda transport: add_reflection((SERVICE,), transport.server)) as riff:
        ask = reflection_pb2_grpc.ServerReflectionStub(riff.channel).ServerReflectionInfo
        requests = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
        ]
        listed, found = list(ask(iter(requests), timeout=5))
        assert SERVICE in {one.name for one in listed.list_services_response.service}
        assert found.file_descriptor_response.file_descriptor_proto


def test_other_endings_of_a_servicer(kind):
    """An exception tells nothing of itself; abort and set_code choose; a cancel and a stop reach the method."""
    odd = Odd()
    with Riff(kind, form(kind, sync, asyn), add=odd.add_to) as riff:
        seen = {}
        for name in ("raises", "aborts", "tells", "other"):
            with pytest.raises(grpc.RpcError) as error:
                riff.channel.unary_unary(f"/odd.Odd/{name}")(b"x", timeout=5)
            seen[name] = (error.value.code(), error.value.details())
        assert seen == {
            "raises": (grpc.StatusCode.UNKNOWN, "a servicer failed"),
            "aborts": (grpc.StatusCode.FAILED_PRECONDITION, "not now"),
            "tells": (grpc.StatusCode.DATA_LOSS, "lost"),
            "other": (grpc.StatusCode.UNIMPLEMENTED, "Method not found!"),
        }
        call = riff.channel.unary_unary("/odd.Odd/hangs").future(b"x")
        assert odd.entered.wait(5)
        call.cancel()
        assert odd.left.wait(2)
        assert eventually(lambda: not _tasks(riff))
        odd.entered.clear()
        odd.left.clear()
        again = riff.channel.unary_unary("/odd.Odd/hangs").future(b"x")
        assert odd.entered.wait(5)
        riff.run(riff.transport.stop(0))
        assert odd.left.is_set()
        assert again.code() in {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}


def test_a_unary_method_without_a_request_is_told_so(kind):
    """A half-close before the message."""
    with Riff(kind, form(kind, sync, asyn), add=Odd().add_to) as riff:
        assert riff.raw(path="/odd.Odd/tells").half_close().code is grpc.StatusCode.INTERNAL
