"""The public grpc.aio transport: calls over HTTP/2.

Frames go through as serialised bytes, so a message that is not protobuf fails its own call with the invoker's text
(R-120). Two facts of grpc.aio shape this file: a cancel, a lost connection, a passed deadline and an oversize frame
first look like a normal end of the request stream, and the handler is cancelled up to 7 ms later (R-109, R-121); and a
status text beyond 8 KiB reaches clients as RESOURCE_EXHAUSTED (R-118).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import grpc
import grpc.aio

from invoker.core.peers import with_peer
from invoker.errors import InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.traces import REQUEST_ID
from invoker.transports.grpc.aiocall import AioCall
from invoker.transports.grpc.details import clip
from invoker.transports.grpc.methods import (
    Method,
    SessionMethod,
    checked_bytes,
    largest_message,
    metadata_of,
    repeated_id,
)
from invoker.transports.grpc.settings import GrpcSettings
from invoker.transports.sockets import no_grpc

log = logging.getLogger(__name__)

_CODES = {code.value[0]: code for code in grpc.StatusCode}

_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class AioTransport:
    """A grpc.aio server.

    Args:
        driver: Runs the conversations.
        methods: The methods that are served.
        credentials: The credentials for TLS; None serves plain text.
        settings: Limits and times.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        methods: Sequence[Method],
        credentials: grpc.ServerCredentials | None = None,
        settings: GrpcSettings | None = None,
    ) -> None:
        self.driver = driver
        self.settings = settings or GrpcSettings()
        self.credentials = credentials
        self.server = grpc.aio.server(options=self.settings.options(largest_message(methods)))
        for method in methods:
            handler: Any = grpc.stream_stream_rpc_method_handler(partial(self._serve, method))
            handlers = grpc.method_handlers_generic_handler(method.service, {method.name: handler})
            self.server.add_generic_rpc_handlers((handlers,))

    def bind(self, address: str) -> int:
        """Bind ``host:port``; port 0 takes a free one.

        Returns:
            The port.

        Raises:
            StartupError: The address cannot be bound (R-006).
        """
        try:
            if self.credentials is not None:
                port = self.server.add_secure_port(address, self.credentials)
            else:
                port = self.server.add_insecure_port(address)
        except RuntimeError:
            port = 0
        if port == 0:
            raise no_grpc(address)
        return port

    async def start(self) -> None:
        """Begin to answer calls on the sockets that `bind` has opened."""
        await self.server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; running ones have ``grace_s`` before they are cut."""
        await self.server.stop(grace_s)

    async def _serve(self, method: Method, _: object, context: _Context) -> None:
        remaining = context.time_remaining()
        deadline = None if remaining is None else time.monotonic() + remaining  # type: ignore[redundant-expr]  # the stubs miss that it may be None
        try:
            error = await self._run(method, context, deadline)
        except Exception:  # a bug in a session or driver; the peer must not see its text
            log.exception("a call failed inside the invoker")
            error = InternalError()
        if error is not None:
            context.set_code(_CODES[error.status])
            context.set_details(clip(str(error)))

    async def _run(self, method: Method, context: _Context, deadline: float | None) -> InvocationError | None:
        metadata = metadata_of(context.invocation_metadata())
        call = AioCall(
            context,
            self.settings.settle_s,
            joins=isinstance(method, SessionMethod),
            most_bytes=checked_bytes(method, self.settings),
            memory=self.driver.engine.memory,
            headers=repeated_id(metadata) if dict.__contains__(metadata, REQUEST_ID) else (),
        )
        if isinstance(method, SessionMethod):
            return await call.run(method.begin(call, metadata, call.close, deadline))
        if method.knows_peer:
            metadata = with_peer(metadata, context.peer(), context.peer_identities())
        session = method.session(metadata)
        return await call.run(method.reactor(session, call, self.driver, call.close, deadline=deadline))
