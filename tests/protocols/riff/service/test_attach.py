"""`invoker.protocols.riff.service.attach`: what riff attaches to the gRPC transport."""

from __future__ import annotations

from invoker.author.reader import read
from invoker.protocols.riff.service.attach import RiffService
from tests.attach.around import around


def square(x: int) -> int:
    return x * x


def test_its_method_is_on_the_grpc_transport():
    """One, in which a call is an invocation."""
    assert [one.path for one in RiffService(around(square)).grpc_methods()] == ["/streaming.Riff/Invoke"]


def test_R005_its_sample_is_a_call():
    """Of the function, at the address."""
    assert RiffService(around(square)).sample(read(square), "h:1", is_one=True) == "call h:1 --data 7"
