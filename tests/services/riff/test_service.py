"""`invoker.services.riff.service`: what riff attaches to which door."""

from __future__ import annotations

from invoker.author.reader import read
from invoker.services.riff.service import RiffHttpService, RiffService
from tests.services.around import around


def square(x: int) -> int:
    return x * x


def test_its_method_is_on_the_grpc_door():
    """One, in which a call is an invocation."""
    assert [one.path for one in RiffService(around(square)).grpc_methods()] == ["/streaming.Riff/Invoke"]


def test_R005_its_sample_is_a_call():
    """Of the function, at the address."""
    assert RiffService(around(square)).sample(read(square), "h:1", is_one=True) == "call h:1 --data 7"


async def test_its_http_twin_answers_whatever_the_path_is():
    """By one front, which is there from the start on, so that the first request does not wait for it."""
    service = RiffHttpService(around(square))
    await service.start()
    assert service.http_front("/") is service.http_front("/any/path") is not None
