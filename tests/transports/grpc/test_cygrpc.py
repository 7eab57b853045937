"""The fence around grpcio's private layer: what is odd about it is a sentence, and the public transport serves."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from invoker.errors import ConfigError
from invoker.server.server import Server
from invoker.settings import Config
from invoker.transports.grpc import cygrpc as fence
from tests.transports.riff import Riff


class Altered:
    """The private layer with some of its names replaced; those replaced by None are missing."""

    def __init__(self, **names: Any) -> None:
        self._names, self._real = names, fence.cygrpc

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            return getattr(self._real, name)
        if self._names[name] is None:
            raise AttributeError(name)
        return self._names[name]


def test_the_installed_grpcio_is_usable():
    """Else none of the fast transport's tests would mean anything."""
    assert fence.unusable() == ""


@pytest.mark.parametrize("name", fence._SYMBOLS)
def test_a_missing_symbol_is_a_sentence(monkeypatch, name):
    """Each of those that the transport uses."""
    monkeypatch.setattr(fence, "cygrpc", Altered(**{name: None}))
    assert name in fence.unusable()


@pytest.mark.parametrize("name", fence._SERVER_METHODS)
def test_a_missing_method_is_a_sentence(monkeypatch, name):
    """Of the server."""
    real = {one: getattr(fence.cygrpc.Server, one) for one in fence._SERVER_METHODS if one != name}
    monkeypatch.setattr(fence, "cygrpc", Altered(Server=type("Server", (), real)))
    assert f"lacks Server.{name}" in fence.unusable()


def test_no_private_layer_at_all_is_a_sentence(monkeypatch):
    """A grpcio of another make."""
    monkeypatch.setattr(fence, "cygrpc", None)
    assert "no grpc._cython.cygrpc" in fence.unusable()


def odd(*_: Any) -> Any:
    raise TypeError("takes other arguments now")


@pytest.mark.parametrize(
    "name",
    [
        "Server",
        "CompletionQueue",
        "ReceiveCloseOnServerOperation",
        "ReceiveMessageOperation",
        "SendInitialMetadataOperation",
        "SendMessageOperation",
        "SendStatusFromServerOperation",
    ],
)
def test_a_layer_that_raises_is_a_sentence_and_ends(monkeypatch, name):
    """Wherever in the probe it does; the probe leaves neither a call nor a thread behind."""
    made = type(name, (getattr(fence.cygrpc, "Server", object),), {"__init__": odd}) if name == "Server" else odd
    monkeypatch.setattr(fence, "cygrpc", Altered(**{name: made}))
    assert "raised TypeError: takes other arguments now" in fence.unusable()


def test_a_layer_that_behaves_otherwise_is_a_sentence(monkeypatch):
    """A status that comes out as another one."""
    real = fence.cygrpc.SendStatusFromServerOperation
    monkeypatch.setattr(
        fence, "cygrpc", Altered(SendStatusFromServerOperation=lambda _, code, text, flags: real((), 13, text, flags))
    )
    assert "a call through its private layer gave" in fence.unusable()


def server(driver: str) -> Server:
    riff = Riff("aio", echo)
    config = Config(host="127.0.0.1", grpc_port=0, http=False, grpc_driver=driver)
    return Server(config, riff.driver.engine.catalog, riff.driver.engine.registry)


def echo(x: bytes) -> bytes:
    return x


async def test_under_auto_the_public_transport_serves_with_one_log_line(monkeypatch, caplog):
    """A new grpcio never keeps an invoker from starting."""
    monkeypatch.setattr(fence, "cygrpc", Altered(CompletionQueue=None))
    one = server("auto")
    with caplog.at_level(logging.WARNING):
        assert not one.lends
        await one.start()
    assert type(one._transports._grpc).__name__ == "AioTransport"
    await one.stop(drain_s=0)
    assert [record.message for record in caplog.records if "served by grpc.aio" in record.message] == [
        (
            "gRPC is served by grpc.aio, because the fast gRPC server cannot use the installed grpcio: "
            "its private layer lacks CompletionQueue"
        )
    ]


async def test_under_fast_it_is_an_error_of_the_configuration(monkeypatch):
    """Who asks for the fast transport is told why there is none."""
    monkeypatch.setattr(fence, "cygrpc", Altered(CompletionQueue=None))
    one = server("fast")
    with pytest.raises(ConfigError, match=r"cannot serve with the installed grpcio: .*CompletionQueue"):
        await one.start()
    await one.stop(drain_s=0)


async def test_under_aio_nothing_is_probed(monkeypatch):
    """The public transport, because it was asked for."""
    monkeypatch.setattr(fence, "unusable", odd)
    one = server("aio")
    await one.start()
    assert type(one._transports._grpc).__name__ == "AioTransport"
    await one.stop(drain_s=0)
