"""`invoker.protocols.evergreen.service.attach`: Evergreen as the settings say."""

from __future__ import annotations

import pytest

from invoker.author.prepare import prepare
from invoker.author.reader import read
from invoker.errors import ConfigError, InvocationError
from invoker.protocols.evergreen.service.attach import EvergreenService
from tests.attach.around import around


def square(x: int) -> int:
    return x * x


async def test_E053_references_are_read_below_the_roots_only(tmp_path):
    """--ref-root; without one every reference is refused."""
    (tmp_path / "a.txt").write_bytes(b"content")
    uri = (tmp_path / "a.txt").as_uri()
    got: list[bytes] = []
    service = EvergreenService(around(square, ref_roots=(str(tmp_path),)))
    assert [one.path for one in service.grpc_methods()] == ["/evergreen.v2.EvergreenService/StartSession"]
    await service.fetch(uri, 100, got.append)
    await service.stop(1)
    assert got == [b"content"]
    service = EvergreenService(around(square))
    service.grpc_methods()
    with pytest.raises(InvocationError, match="Reference Refused"):
        await service.fetch(uri, 100, got.append)
    await service.stop(1)


async def test_a_host_that_cannot_be_is_told_before_a_port_opens():
    """--ref-http."""
    with pytest.raises(ConfigError):
        EvergreenService(around(square, ref_http="http://a.org")).grpc_methods()


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ((("a", "y"),), "no function has a parameter 'y'"),
        ((("a", "xx"),), "did you mean 'x'"),
        ((("a", "x"), ("a", "x")), "'a' is already an alias of another parameter"),
    ],
)
async def test_E075_an_alias_for_nothing_stops_the_start(inputs, text):
    """A typo is told before a port opens."""
    with pytest.raises(ConfigError, match=text):
        EvergreenService(around(square, inputs=inputs)).grpc_methods()


def test_R005_its_sample_is_a_conversation_where_the_function_holds_one():
    """For others it knows nothing to type."""
    chat = prepare("functions.generate:generate")[0].function.spec
    service = EvergreenService(around(square))
    assert service.sample(chat, "h:1", is_one=True) == "chat h:1 --action generate"
    assert service.sample(read(square), "h:1", is_one=True) == ""
