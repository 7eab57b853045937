"""`Service`: what a protocol need not say."""

from __future__ import annotations

from invoker.services.service import Service
from tests.services.around import around


async def test_a_service_without_anything_of_its_own_attaches_nothing():
    """Each method has a default."""
    service = Service(around())
    assert not service.grpc_methods()
    assert not service.on_grpc
    assert not service.on_loop
    await service.stop()
