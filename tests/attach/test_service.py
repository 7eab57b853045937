"""`Service`: what a protocol need not say."""

from __future__ import annotations

from invoker.attach.service import Service
from invoker.author.reader import read
from tests.attach.around import around


async def test_a_service_without_anything_of_its_own_attaches_nothing():
    """Each method has a default."""

    def square(x: int) -> int:
        return x * x

    service = Service(around())
    assert not service.grpc_methods()
    assert not service.on_grpc
    assert not service.on_loop
    assert not service.on_http
    assert not service.ports(service.around.config)
    service.add_servicers(None, ())
    assert service.http_handler("/") is None
    assert service.socket_handler("/") is None
    assert not service.addresses
    assert service.sample(read(square), "localhost:1", is_one=True) == ""
    await service.start()
    service.leave()
    await service.stop(1)
