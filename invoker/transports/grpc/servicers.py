"""Runs generated servicers (health, reflection) on the fast transport, with a context like that of grpc.aio.

These calls are rare and small, so the code is simple: one task a call, one future an operation. The context has only
those methods of ``grpc.aio.ServicerContext`` that such servicers use.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NoReturn

import grpc
import grpc.aio

from invoker.transports.grpc.cygrpc import NO_FLAGS, cygrpc

log = logging.getLogger(__name__)


class Handlers:
    """The methods of the servicers that were added, by path; generated code adds a servicer to it as to a server."""

    def __init__(self) -> None:
        self._generic: list[Any] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Add the methods of a servicer, as ``grpc.aio.Server`` does; called by generated code."""
        self._generic.extend(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Do nothing: generated code gives the same handlers to `add_generic_rpc_handlers`."""

    def find(self, method: str, metadata: Any) -> Any:
        """The handler of a method, or None."""
        details = _Details(method, metadata)
        for one in self._generic:
            found = one.service(details)
            if found is not None:
                return found
        return None


class _Details:
    __slots__ = ("invocation_metadata", "method")

    def __init__(self, method: str, metadata: Any) -> None:
        self.method = method
        self.invocation_metadata = metadata


class _Aborted(Exception):
    """Raised when the servicer ends the call with a status."""


class ServicerCall:
    """One call of a servicer's method, on the loop; also the context that the method is given.

    Args:
        event: The event as the private layer announced the call.
    """

    def __init__(self, event: Any) -> None:
        self._call = event.call
        self._deadline = event.call_details.deadline
        self._metadata = event.invocation_metadata
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._code, self._details = 0, ""
        self._is_open = False
        self._is_closed = False
        self._serialize: Callable[[Any], bytes] = bytes
        self._deserialize: Callable[[bytes], Any] = bytes

    def start(self, handler: Any) -> None:
        """Serve the call; without a handler it ends with the status UNIMPLEMENTED."""
        self._call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS),), self._closed)
        self._task = self._loop.create_task(self._run(handler), name="servicer")

    # The methods of the context that servicers use.

    def invocation_metadata(self) -> Any:
        """The metadata of the call, as the peer sent it: pairs of a key and a value."""
        return self._metadata

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, or None."""
        left = float(self._deadline) - time.time()
        return None if left > 1e9 else max(0.0, left)

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status that the call has if the method returns normally."""
        self._code = code.value[0]

    def set_details(self, details: str) -> None:
        """Set the text of the status that the call has if the method returns normally."""
        self._details = details

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:  # noqa: ARG002
        """End the call with a status."""
        self._code, self._details = code.value[0], details
        raise _Aborted

    async def write(self, message: Any) -> None:
        """Send one message, after the initial metadata if it is the first."""
        operations = [cygrpc.SendMessageOperation(self._serialize(message), NO_FLAGS)]
        if not self._is_open:
            self._is_open = True
            operations.insert(0, cygrpc.SendInitialMetadataOperation((), NO_FLAGS))
        event = await self._batch(operations)
        if not event.success:
            raise asyncio.CancelledError

    async def read(self) -> Any:
        """Wait for the next message; ``grpc.aio.EOF`` after the last one."""
        event = await self._batch([cygrpc.ReceiveMessageOperation(NO_FLAGS)])
        data = event.batch_operations[0].message()
        return grpc.aio.EOF if data is None else self._deserialize(data)

    # Private helpers.

    def _batch(self, operations: list[Any]) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = self._loop.create_future()

        def settle(event: Any) -> None:
            if not done.done():
                done.set_result(event)

        self._call.start_server_batch(operations, settle)
        return done

    def _closed(self, event: Any) -> None:
        self._is_closed = True
        if event.batch_operations[0].cancelled() and self._task is not None:
            self._task.cancel()

    async def _run(self, handler: Any) -> None:
        try:
            await self._serve(handler)
        except _Aborted:
            pass
        except asyncio.CancelledError:
            self._code, self._details = int(grpc.StatusCode.CANCELLED.value[0]), "cancelled"
        except Exception:
            log.exception("a servicer failed")
            self._code, self._details = int(grpc.StatusCode.UNKNOWN.value[0]), "a servicer failed"
        finally:
            self._task = None
        operations = [] if self._is_open else [cygrpc.SendInitialMetadataOperation((), NO_FLAGS)]
        operations.append(cygrpc.SendStatusFromServerOperation((), self._code, self._details, NO_FLAGS))
        await self._batch(operations)

    async def _serve(self, handler: Any) -> None:
        if handler is None:
            self._code, self._details = grpc.StatusCode.UNIMPLEMENTED.value[0], "Method not found!"
            return
        self._serialize = handler.response_serializer or bytes
        self._deserialize = handler.request_deserializer or bytes
        method = handler.stream_stream or handler.unary_stream or handler.stream_unary or handler.unary_unary
        argument = self._requests() if handler.request_streaming else await self.read()
        if argument is grpc.aio.EOF:
            self._code, self._details = grpc.StatusCode.INTERNAL.value[0], "a request was expected"
            return
        made = method(argument, self)
        if hasattr(made, "__aiter__"):
            async for message in made:
                await self.write(message)
        elif inspect.isawaitable(made):
            message = await made
            if not handler.response_streaming:
                await self.write(message)

    async def _requests(self) -> AsyncIterator[Any]:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message
