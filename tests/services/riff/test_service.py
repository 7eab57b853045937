"""`invoker.services.riff.service`: what riff attaches to which door."""

from __future__ import annotations

from invoker.services.riff.service import RiffService
from tests.services.around import around


def square(x: int) -> int:
    return x * x


def test_its_method_is_on_the_grpc_door():
    """One, in which a call is an invocation."""
    assert [one.path for one in RiffService(around(square)).grpc_methods()] == ["/streaming.Riff/Invoke"]
