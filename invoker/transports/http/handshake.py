"""Answers the handshake request of a WebSocket (RFC 6455, 4.2).

Whether the client may connect was already checked. A path without conversations is 404; an invalid handshake is 400, or
426 if another version of the protocol would be accepted. Then the service may refuse it. Otherwise a `SocketConnection`
takes the connection over.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import logging
from base64 import b64decode, b64encode
from typing import Any, Final

import msgspec

from invoker.core.http import RequestHead, Response
from invoker.core.problems import as_problem
from invoker.errors import InvocationError
from invoker.transports.http.app import NOT_FOUND, Begin, Conversation, HttpApp, SocketSettings
from invoker.transports.http.exchange import Exchange, Listener
from invoker.transports.http.heads import Head
from invoker.transports.http.request import Request
from invoker.transports.http.socketconnection import SocketConnection

log = logging.getLogger(__name__)

_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_VERSION: Final = "13"
_TEXT: Final = (("Content-Type", "text/plain"),)


def shake_hands(app: HttpApp, head: Head) -> Begin:
    """Find the handler for a handshake.

    Args:
        app: Has the handler of each path.
        head: The head of the handshake.
    """

    def begin(exchange: Exchange) -> Listener:
        assert isinstance(exchange, Request)  # WebSocket is not offered over HTTP/2
        request, handler = head.request, app.sockets(head.request.path)
        met = NOT_FOUND if handler is None else _refusal(head) or handler.meet(request)
        if isinstance(met, Response):
            told = {"status": met.status, "path": request.path, "detail": met.body.decode().rstrip()}
            log.info("a WebSocket was refused", extra=told)
            exchange.answer(closing(as_problem(met, request.value("accept"))))
        else:
            assert handler is not None  # otherwise the result is a response
            exchange.switch(_Switch(app, met, handler.settings, _accepted(request, met.subprotocol)))
        return _NOBODY

    return begin


def closing(response: Response) -> Response:
    """A refusal that closes the connection, since a proxy may already take the connection for a tunnel."""
    return msgspec.structs.replace(response, close=True)


def offered(head: RequestHead) -> list[str]:
    """The subprotocols that a client offers, best first."""
    return [one.strip() for one in head.value("sec-websocket-protocol").split(",") if one.strip()]


class _Switch:
    """Takes a connection over from HTTP/1, and turns it into a `SocketConnection`."""

    def __init__(self, app: HttpApp, conversation: Conversation, settings: SocketSettings, told: bytes) -> None:
        self._app = app
        self._conversation = conversation
        self._settings = settings
        self._told = told

    def __call__(self, transport: asyncio.Transport, data: bytes) -> None:
        app = self._app
        connection = SocketConnection(self._conversation, self._settings, app.connections, app.driver.engine.memory)
        transport.write(self._told)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if data:
            connection.data_received(data)


class _Nobody:
    """The listener of a request that is already answered."""

    def arrived(self, frame: Any | None) -> bool:  # noqa: ARG002 - see `Listener`
        return True

    def fail(self, error: InvocationError) -> None:
        pass

    def gone(self) -> None:
        pass


_NOBODY: Final = _Nobody()


def _refusal(head: Head) -> Response | None:
    """The response to an invalid handshake; None if it is valid."""
    request = head.request
    versions = [value for name, value in request.headers if name == "sec-websocket-version"]
    if versions != [_VERSION]:
        upgrade = (("Sec-WebSocket-Version", _VERSION), ("Upgrade", "websocket"), ("Connection", "upgrade"))
        was = f"Sec-WebSocket-Version is {', '.join(versions)!a}" if versions else "there is no Sec-WebSocket-Version"
        return _refused(426, f"{was}; expected version {_VERSION}", upgrade)
    keys = [value for name, value in request.headers if name == "sec-websocket-key"]
    if len(keys) != 1 or not _is_key(keys[0]):
        return _refused(400, "a handshake has one Sec-WebSocket-Key, which is 16 bytes in base64")
    if head.length != 0:
        return _refused(400, "a handshake has no body")
    return None


def _is_key(text: str) -> bool:
    try:
        return len(b64decode(text, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def _refused(status: int, why: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, (*_TEXT, *headers), f"Invoker: Bad Handshake: {why}\n".encode())


def _accepted(head: RequestHead, subprotocol: str) -> bytes:
    key = head.value("sec-websocket-key").encode()
    token = b64encode(hashlib.sha1(key + _MAGIC, usedforsecurity=False).digest())
    agreed = f"sec-websocket-protocol: {subprotocol}\r\n".encode() if subprotocol else b""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-accept: %b\r\n%b\r\n" % (token, agreed)
    )
