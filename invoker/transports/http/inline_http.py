"""`InlineHttp`: answers plain requests in the thread that reads them.

Theory. One thread *leads* (`execution.thread.leader_follower`): it waits for all connections at once, reads a request
from one, runs the function, and writes the response, during the run if it streams (`InlineStream`). Another thread
takes the lead as soon as this one may be busy for long. A connection whose request is not plain (`PlainHeads`) is
passed on to the loop's server together with the bytes that were read, before any response. So the loop's server handles
every case, and this is a fast path. A connection is

* *idle*: it waits for a request, in the order in which it became so;
* *begun*: a plain head has come, and some of its body; if the rest does not come soon, the loop waits for it;
* *taken*: a thread serves it, or the loop writes the rest of a response that the client does not take at once;
* *gone*: closed, or passed on to the loop's server for good.

A thread that takes a connection out of the dictionary of idle or of begun ones owns it: only one thread can do that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Final, cast

from invoker.core.http import Response
from invoker.errors import InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.thread.leader_follower import LeaderFollower, Turn
from invoker.transports.http.answering import answered
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.inline_connection import Connection, LateWrites, Reply, evictable, packed
from invoker.transports.http.inline_stream import InlineStream
from invoker.transports.http.plain import Plain, PlainHeads
from invoker.transports.http.streamed import StreamingSession
from invoker.transports.http.streamreply import StreamReply
from invoker.transports.http.writing import PIECE_BYTES, head_bytes, parts_of, response_bytes, size_of
from invoker.transports.sockets import ask_whether_alive

log = logging.getLogger(__name__)

_READ_BYTES: Final = 64 * 1024
_READS: Final = 16
"""A request that came in more pieces than this is passed on to the loop."""
_AT_ONCE: Final = 64
_NOTHING: Final[Iterator[bytes]] = iter(())
_EVICTABLE: Final = 64
_LOOK_S: Final = 0.1
"""Seconds between two checks for connections that wait for too long; also the time limit for the rest of a body."""


def can_lead() -> bool:
    """Whether this system has the calls that `InlineHttp` needs."""
    return hasattr(select, "epoll") and hasattr(os, "eventfd")


class InlineHttp:
    """Serves connections of HTTP/1.1 in clear text; made on the loop, whose thread calls the public methods.

    Args:
        driver: Runs the conversations.
        settings: Limits in time.
        adopt: Passes a connection on to the loop's server, with the bytes of a request that were read.
    """

    def __init__(self, driver: Driver, settings: HttpSettings, adopt: Callable[[socket.socket, bytes], object]) -> None:
        self._driver = driver
        self._settings = settings
        self.write_s = settings.write_s
        self._adopt = adopt
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._leader_follower = LeaderFollower(driver.threads, driver.sweeper, self._lead)
        self._has_started = self._is_leaving = self._is_stopping = self.is_serving = False
        self._connections: dict[int, Connection] = {}
        self._idle: dict[int, Connection] = {}
        self._begun: dict[int, Connection] = {}
        self._ready: deque[int] = deque()  # descriptors that can be read
        self._lock = threading.Lock()
        self._inside = 0  # how many threads lead, or serve work that they took while they led
        self._rests = LateWrites(settings.write_s, self._written, self.end, driver.engine.memory)
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._connections)

    def take(self, sock: socket.socket, heads: PlainHeads) -> None:
        """Serve a new connection, from its first request on."""
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask_whether_alive(sock)
        connection = Connection(sock, heads)
        if not self._has_started:
            try:
                self._leader_follower.start()
            except InvocationError as error:
                log.error("no thread can wait for requests: %s", error)
                self._is_leaving = True
            self._has_started = True
        if self._is_leaving:
            self._adopt(sock, b"")
            return
        self._connections[connection.fd] = self._idle[connection.fd] = connection
        self._epoll.register(connection.fd, select.EPOLLIN)
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    def evict(self, new_s: float = 0.0) -> bool:
        """End a connection without a request; returns whether there was one.

        Args:
            new_s: Seconds for which a connection that has sent nothing is spared.
        """
        for one in evictable(_first(self._idle, _EVICTABLE), time.monotonic() - new_s):
            if self._idle.pop(one.fd, None) is not None:
                self.end(one)
                return True
        return False

    def leave(self) -> None:
        """Give all connections to the loop's server; connections that a thread serves follow once they are answered."""
        self._is_leaving = True
        for connections in (self._idle, self._begun):
            while found := _first(connections):
                one = found[0]
                if connections.pop(one.fd, None) is not None:
                    self._hand_over(one, one.begun)

    async def stop(self, grace_s: float) -> int:
        """Wait for the running responses, then cut their connections; returns the number of cut ones. Idempotent."""
        self._is_stopping = True
        self.leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._connections:
                    self._changed.clear()
                    await self._changed.wait()
        cut = list(self._connections.values())
        self._rests.cancel()
        for one in cut:
            one.shut()  # the thread that serves it closes it
        if self._timer is not None:
            self._timer.cancel()
        self._leader_follower.stop()
        with self._lock:
            if not self._epoll.closed:
                os.eventfd_write(self._bell, 1)
        self._close()
        return len(cut)

    def _look(self) -> None:
        """End connections that are idle for too long, and pass requests with slow bodies on to the loop."""
        now = time.monotonic()
        for connections, most_s in ((self._idle, self._settings.idle_s), (self._begun, _LOOK_S)):
            while (found := _first(connections)) and now - found[0].since_s >= most_s:
                one = found[0]
                if connections.pop(one.fd, None) is None:
                    continue
                if connections is self._idle:
                    self.end(one)
                else:
                    self._hand_over(one, one.begun)
        self._timer = self._loop.call_later(_LOOK_S, self._look) if self._connections else None

    # These methods run in the threads that lead.

    def _lead(self, turn: Turn) -> None:
        """Wait for requests and answer them, until another thread leads."""
        with self._lock:
            self._inside += 1
        try:
            self._serve_all(turn)
        finally:
            with self._lock:
                self._inside -= 1
            if self._leader_follower.leader is None:
                self._close()

    def _serve_all(self, turn: Turn) -> None:
        ready, idle, begun = self._ready, self._idle, self._begun
        while turn.leads:
            if not ready:
                self._wait()
                continue
            fd = ready.popleft()
            connection = idle.pop(fd, None) or begun.pop(fd, None)
            if connection is None:
                self._park(fd)
                continue
            try:
                self._serve(connection, turn)
            except Exception:
                log.exception("a request failed inside the invoker")
                self.end(connection)

    def _wait(self) -> None:
        self.is_serving = False
        found = self._epoll.poll(None, _AT_ONCE)
        self.is_serving = True
        for fd, _ in found:
            if fd != self._bell:
                self._ready.append(fd)

    def _park(self, fd: int) -> None:
        """Stop watching a connection for now, since bytes come while another thread serves it.

        Sets the flag, then checks whether the connection is idle; `_release` does the reverse, so one of the two
        notices the other.
        """
        with self._lock:
            connection = self._connections.get(fd)
            if connection is None or connection.is_parked:
                return
            connection.is_parked = True
            if fd in self._idle or fd in self._begun:
                connection.is_parked = False
            else:
                self._epoll.unregister(fd)

    def _serve(self, connection: Connection, turn: Turn) -> None:
        """Read the bytes that came, and answer them if they are a whole plain request."""
        try:
            data = connection.sock.recv(_READ_BYTES)
        except BlockingIOError:
            self._release(connection, self._idle if not connection.begun else self._begun)
            return
        except OSError:
            self.end(connection)
            return
        connection.is_new = False
        if connection.begun:
            data = connection.begun + data if data else b""
        if not data:
            self.end(connection)
            return
        plain = connection.heads.read(data)
        if plain is None or self._driver.engine.is_draining or len(data) > plain.whole:
            self._hand_over(connection, data)
        elif len(data) < plain.whole:
            self._begin(connection, data)
        else:
            self._answer(connection, plain, data, turn)

    def _begin(self, connection: Connection, data: bytes) -> None:
        connection.begun = data
        connection.reads += 1
        if connection.reads < _READS:
            self._release(connection, self._begun)
        else:
            self._hand_over(connection, data)

    def _answer(self, connection: Connection, plain: Plain, data: bytes, turn: Turn) -> None:
        """Run the function, and write the response."""
        threads = self._driver.threads
        try:
            threads.enter()
        except InvocationError:  # the loop's server sends the refusal
            self._hand_over(connection, data)
            return
        connection.begun, connection.reads = b"", 0
        prepared = plain.prepared
        deadline = None if prepared.timeout_s is None else time.monotonic() + prepared.timeout_s
        if prepared.is_stream:
            self._stream(connection, plain, data[plain.size :], turn, deadline)
            return
        reply = Reply(self.write, connection, plain, deadline)
        try:
            response, is_long = answered(prepared, data[plain.size :], reply, self._driver, turn, deadline)
        except Exception:  # a fault of a handler; its text must not reach the peer
            log.exception("a request failed inside the invoker")
            response, is_long = reply.refusal(InternalError()), False
        finally:
            threads.leave()  # before the response ends, since the client may call again at once
        if not (is_long and reply.is_gone()):
            reply.answer(response if reply.is_over else packed(response, plain, turn))
        elif not reply.is_over:
            self.end(connection)

    def _stream(self, connection: Connection, plain: Plain, body: bytes, turn: Turn, deadline: float | None) -> None:
        """Run the function, and write the response while it runs."""
        try:
            begun, frames = plain.prepared.begin(body)
            session = cast(StreamingSession, begun)  # `is_stream` guarantees the type of the session
            reply = StreamReply(self, connection, plain, session, self._driver, deadline)
            stream = InlineStream(session, self._driver, reply, turn=turn, deadline=deadline)
            close = stream.run(frames)
        finally:
            self._driver.threads.leave()  # before the response ends, since the client may call again at once
        reply.finish(stream.sent, close, turn)

    # These methods are called from any thread.

    def begins(self, connection: Connection) -> bool:
        """Whether the connection ends after the response that is about to begin."""
        connection.ends = self._is_leaving or self._driver.engine.is_draining
        return connection.ends

    def write(self, connection: Connection, plain: Plain, response: Response) -> None:
        """Write a response, then wait for the next request or end the connection; the loop writes any rest."""
        connection.ends = ends = response.close or self._is_leaving or self._driver.engine.is_draining
        if response.pieces or len(response.body) > PIECE_BYTES:
            data = head_bytes(response, size_of(response), close=ends, headers=plain.headers)
            parts = parts_of(response)
        else:
            data = response_bytes(response, close=ends, headers=plain.headers)
            parts = _NOTHING
        self.write_last(connection, data, parts, size_of(response) if response.pieces else len(response.body))

    def write_last(self, connection: Connection, data: bytes, parts: Iterator[bytes] = _NOTHING, size: int = 0) -> None:
        """Write the end of a response, then continue as `write` does."""
        while data:
            try:
                written = connection.sock.send(data)
            except BlockingIOError:
                written = 0
            except OSError:
                self.end(connection)
                return
            if written < len(data):
                if not self._call_loop(self._rests.write, connection, chain((data[written:],), parts), size):
                    self.end(connection)
                return
            data = next(parts, b"")
        self._written(connection)

    def _written(self, connection: Connection) -> None:
        if connection.ends:
            self.end(connection)
        else:
            self._release(connection, self._idle)

    def _release(self, connection: Connection, to: dict[int, Connection]) -> None:
        """Put the connection into a dictionary, so that it has no owner until bytes come."""
        connection.since_s = time.monotonic()
        to[connection.fd] = connection
        if connection.is_parked:
            with self._lock:
                if connection.is_parked:
                    connection.is_parked = False
                    self._epoll.register(connection.fd, select.EPOLLIN)
        if self._is_leaving and to.pop(connection.fd, None) is not None:
            self._hand_over(connection, connection.begun)

    def _hand_over(self, connection: Connection, data: bytes) -> None:
        """Give a connection to the loop's server; if this transport has stopped, end it."""
        self._forget(connection)
        if self._is_stopping or not self._call_loop(self._adopt, connection.sock, data):
            connection.sock.close()

    def end(self, connection: Connection) -> None:
        """Forget a connection, and close its socket."""
        self._forget(connection)
        connection.sock.close()

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            if self._connections.pop(connection.fd, None) is not None and not connection.is_parked:
                with suppress(OSError, ValueError):
                    self._epoll.unregister(connection.fd)
        if self._is_leaving:
            self._call_loop(self._changed.set)

    def _call_loop(self, callback: Callable[..., object], *args: object) -> bool:
        """Schedule a function on the loop; returns False if the loop has closed."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop has closed
            return False
        return True

    def _close(self) -> None:
        """Close the descriptors of the poll, unless a thread may still wait for them."""
        with self._lock:
            if not self._inside and not self._epoll.closed:
                self._epoll.close()
                os.close(self._bell)


def _first(connections: dict[int, Connection], most: int = 1) -> list[Connection]:
    """The first entries of a dictionary that other threads change."""
    while True:
        with suppress(RuntimeError):
            return list(islice(connections.values(), most))
