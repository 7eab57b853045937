"""`Transfer`: passes bytes from a thread, which may block, to the loop.

The thread gives bytes; the loop takes the bytes that have come since it last took some. The bytes that wait for the
loop are bounded: the thread waits when there are `HIGH_BYTES` of them. The loop may stop the transfer at any time: the
thread then gets `Stopped` from its next step, and the socket it may be blocked in is shut down.

States: running -> over, which only the thread changes, with an error or without. The loop may also set ``is_stopped``,
which makes the thread end soon; but the transfer is over only when the thread has ended.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from invoker.errors import InternalError, InvocationError, LimitExceeded

log = logging.getLogger(__name__)

HIGH_BYTES = 64 * 1024
"""The thread waits while this many bytes have not been taken; the largest piece is less than twice that."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection. A peer whose window is full may otherwise probe it for a minute."""


class Stopped(Exception):
    """The loop has stopped this transfer, so the thread must end."""


class Transfer:
    """Reads one reference in a thread, for the loop on which this object is made.

    Args:
        work: Runs in the thread: passes the bytes that it reads to `give`; raises `InvocationError` when it cannot
            read.
        most: How many bytes may be read in all.
        on_end: Called on the loop when the thread is done.
    """

    def __init__(self, work: Callable[[Transfer], None], most: int, on_end: Callable[[], None]) -> None:
        self.most = most
        self._work = work
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._came = asyncio.Event()
        self._changed = threading.Condition()
        self._piece = bytearray()
        self._given = 0
        self._handle: socket.socket | None = None
        self._error: InvocationError | None = None
        self._is_over = False
        self._is_stopped = False

    # These methods are called on the loop.

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: The system gives no more threads.
        """
        threading.Thread(target=self._run, name="invoker-fetch", daemon=True).start()

    async def take(self) -> bytes:
        """Wait for bytes, and return those that came since the last call; empty when the thread is done.

        Raises:
            InvocationError: The thread ended with this error; it is raised once all bytes are taken.
        """
        while True:
            await self._came.wait()
            with self._changed:
                piece, self._piece = self._piece, bytearray()
                is_over = self._is_over
                self._changed.notify()
            if not is_over:
                self._came.clear()
            if piece:
                return bytes(piece)
            if is_over:
                if self._error is not None:
                    raise self._error
                return b""

    def stop(self) -> None:
        """Make the thread end soon, even when it waits for the network. Idempotent."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
            if self._handle is not None:
                with suppress(OSError):  # the connection is gone already
                    self._handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    self._handle.shutdown(socket.SHUT_RDWR)

    # These methods are called in the thread.

    def give(self, data: bytes) -> None:
        """Pass bytes to the loop; waits while too many have not been taken.

        Raises:
            Stopped: The loop has stopped the transfer.
            LimitExceeded: There are more bytes than allowed; the surplus is not passed on.
        """
        self._given += len(data)
        if self._given > self.most:
            raise LimitExceeded(f"a reference exceeds the limit of {self.most} bytes")
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or len(self._piece) < HIGH_BYTES)
            self._check()
            is_first = not self._piece
            self._piece += data
        if is_first:
            self._tell(self._came.set)

    def watch(self, connection: socket.socket) -> None:
        """Let `stop` shut this connection down, until `unwatch`.

        Raises:
            Stopped: The transfer was stopped already.
        """
        with self._changed:
            self._check()
            # a descriptor of its own: shutting it down ends the connection, and no close elsewhere can reuse its number
            # meanwhile
            self._handle = connection.dup()

    def unwatch(self) -> None:
        """Forget the connection, which is not used any more, so that `stop` does not shut it down."""
        with self._changed:
            handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    def _check(self) -> None:
        if self._is_stopped:
            raise Stopped

    def _run(self) -> None:
        error: InvocationError | None = None
        try:
            self._work(self)
        except Stopped:
            pass
        except InvocationError as failure:
            error = failure
        except Exception:
            log.exception("a reference could not be fetched")
            error = InternalError("a reference could not be fetched")
        self.unwatch()
        self._tell(lambda: self._end(error))

    def _end(self, error: InvocationError | None) -> None:
        with self._changed:
            self._is_over = True
        self._error = error
        self._came.set()
        self._on_end()

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, so the bytes are not taken any more
            self._loop.call_soon_threadsafe(what)
