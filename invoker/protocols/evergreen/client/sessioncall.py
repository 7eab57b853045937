"""`SessionCall`: the gRPC call of a session.

It connects, negotiates extensions, reads into the inbox and writes from the outbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import grpc.aio
from google.protobuf.message import DecodeError as WireError

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.connect.exchange import Exchange
from invoker.connect.failure import CallFailed
from invoker.connect.metadata import metadata_pairs
from invoker.connect.tls import Tls, open_channel
from invoker.protocols.evergreen.client.arrivals import BadNode
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.outbox import Outbox

METHOD = "/evergreen.v2.EvergreenService/StartSession"
EXTENSIONS_KEY = "evergreen-extensions"

NEGOTIATION_S = 2.0
"""Seconds for which a session waits for the server's extensions; after that the server counts as having none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a session's call; they are described at `EvergreenSession`."""

    target: str
    extensions: tuple[str, ...]
    tls: Tls | None
    metadata: Mapping[str, str | bytes]
    timeout_s: float | None
    connect_timeout_s: float
    held_bytes: int


class SessionCall:
    """The gRPC call of one session.

    Attributes:
        outbox: The messages to send.
        extensions: The extensions that the server accepted.
        is_open: Whether the call was begun and its resources are not released yet.
    """

    def __init__(self, inbox: Inbox, settings: Settings) -> None:
        if settings.timeout_s is not None and not settings.timeout_s > 0:
            raise ValueError(f"timeout_s is {settings.timeout_s}, but it must be more than 0")
        self.outbox = Outbox(inbox.lift)
        self.extensions: frozenset[str] = frozenset()
        self.is_open = False
        self._inbox = inbox
        self._settings = settings
        self._metadata = self._metadata_pairs()
        self._is_used = False
        self._channel: grpc.aio.Channel | None = None
        self._exchange: Exchange | None = None
        self._reader: asyncio.Task[None] | None = None
        self._negotiator: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, and wait for the server's answer about extensions if some were asked for.

        Raises:
            RuntimeError: The call was opened before.
            ConnectFailed: There is no connection.
            CallFailed: The server refuses the session.
        """
        if self._is_used:
            raise RuntimeError("a session is used once; make another one")
        self._is_used = True
        settings = self._settings
        channel = self._channel = open_channel(settings.target, settings.tls, settings.held_bytes)
        call: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        exchange = self._exchange = Exchange(
            channel,
            lambda: call(metadata=self._metadata, timeout=settings.timeout_s),
            None,
            [self.outbox.feed()],
            target=settings.target,
            connect_timeout_s=settings.connect_timeout_s,
        )
        try:
            await exchange.open()
            self.is_open = True
            self._reader = asyncio.create_task(self._read(exchange), name="invoker-evergreen-reader")
            self._negotiator = asyncio.create_task(self._negotiate(exchange), name="invoker-evergreen-headers")
            if not exchange.is_connected:
                await self._reader
            elif settings.extensions:
                # E-014: a server need not send its headers before its first fragment, which may come late.
                either = {self._negotiator, self._reader}
                await asyncio.wait(either, timeout=NEGOTIATION_S, return_when=asyncio.FIRST_COMPLETED)
            if self._inbox.ended.is_set():
                self._inbox.check()
        except BaseException:
            self.cancel()
            await self.close()
            raise

    def half_close(self) -> None:
        """Half-close: no more actions and nodes will be sent."""
        self.outbox.end()

    def cancel(self) -> None:
        """End the call at once with CANCELLED."""
        self.fail(CallFailed.by_caller(), is_told=True)

    def fail(self, failure: CallFailed, *, is_told: bool = False) -> None:
        """End the call at once, for a reason on the client's side.

        Args:
            failure: The error for everything that waits on the session.
            is_told: Whether the error was already raised to the caller, so that the end of the block does not raise it
                again.
        """
        if not self._inbox.ended.is_set():
            self._inbox.is_told = is_told
            self._inbox.end(failure)
        if self._exchange is not None:
            self._exchange.cancel()
        self.outbox.close()

    async def close(self) -> None:
        """Wait until the call and its tasks have ended."""
        self.is_open = False
        if self._exchange is not None:
            await self._exchange.close()
        tasks = [task for task in (self._reader, self._negotiator) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._inbox.end(CallFailed.by_caller())
        self.outbox.close()
        if self._channel is not None:
            await self._channel.close()
        # The objects of a session form cycles; without this, its sockets would stay open until the garbage collector
        # runs.
        self._channel = self._exchange = self._reader = self._negotiator = None

    async def _negotiate(self, exchange: Exchange) -> None:
        said = ",".join(str(value) for key, value in await exchange.headers() if key == EXTENSIONS_KEY)
        self.extensions = frozenset(self._settings.extensions) & {token.strip() for token in said.split(",")}

    async def _read(self, exchange: Exchange) -> None:
        try:
            while (raw := await exchange.read()) is not None:
                self._inbox.receive(_parsed(raw))
                if self.outbox.is_closed:
                    continue  # the server has ended the session; only its last messages and its status show how
                await self._inbox.may_read()
            self._inbox.end(None)
        except BadNode as error:
            self._inbox.end(await exchange.refuse(str(error)))
        except CallFailed as failure:
            self._inbox.end(failure)
            exchange.cancel()
        finally:
            self.outbox.close()

    def _metadata_pairs(self) -> tuple[tuple[str, str | bytes], ...]:
        asked = {EXTENSIONS_KEY: ", ".join(self._settings.extensions)} if self._settings.extensions else {}
        return metadata_pairs(self._settings.metadata, asked)


def _parsed(raw: bytes) -> pb.SessionMessage:
    try:
        message = pb.SessionMessage.FromString(raw)
    except WireError:
        raise BadNode("bytes that are not a valid SessionMessage") from None
    if message.actions:
        raise BadNode(f"the action {message.actions[0].name[:64]!r}, but a server sends none")  # E-015
    return message
