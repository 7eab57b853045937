"""The fast transport: calls on grpcio's own completion queues, without a switch of threads for each message.

**In threads.** When every function is sync, each call of one invocation (riff) gets a completion queue and a thread of
its own (`ThreadCall`, `DirectConversation`). A few threads of the pool *lead*: each waits on the server's queue, serves
a riff call itself, and hands events of all other methods (sessions, health, reflection) to the loop. When the last
leader has taken a call, another thread takes its place as soon as that leader is about to wait, or has been in user
code for a beat of the sweeper; while calls are short, handing over would cost more than they do. Sessions of many
invocations share one more queue (`_side`), on which nothing waits before the first session begins.

**On the loop.** When any function is async, all calls share the server's queue, which the loop drains itself
(`QueuePoller`, `LoopCall`, `Reactor`). A sync function beside async ones runs in a thread of the pool. A unary call
whose frames come together needs no `Reactor` (`FramesFirst`).

ADR 0006 lists the private parts of grpcio that this uses.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc

from invoker.core.peers import with_peer
from invoker.core.steps import Close
from invoker.errors import InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.thread.direct import DirectConversation
from invoker.execution.thread.leader_follower import LeaderFollower, Turn
from invoker.execution.whole import Whole
from invoker.message import EMPTY, Headers
from invoker.traces import REQUEST_ID
from invoker.transports.grpc.answering import FramesFirst
from invoker.transports.grpc.cygrpc import cygrpc
from invoker.transports.grpc.details import status_of
from invoker.transports.grpc.joiningcall import JoiningCall
from invoker.transports.grpc.loopcall import LoopCall
from invoker.transports.grpc.methods import (
    CallMethod,
    LoopMethod,
    Method,
    OnClose,
    ResponseHeaders,
    SessionMethod,
    checked_bytes,
    largest_message,
    metadata_of,
    repeated_id,
)
from invoker.transports.grpc.queue_poller import QueuePoller
from invoker.transports.grpc.replybatch import ReplyBatch
from invoker.transports.grpc.servicers import Handlers, ServicerCall
from invoker.transports.grpc.settings import GrpcSettings
from invoker.transports.grpc.settling import settle_time
from invoker.transports.grpc.unarycall import ArrivalStats, ClosingCalls, UnaryCall
from invoker.transports.sockets import no_grpc

log = logging.getLogger(__name__)

_AHEAD = 16
"""How many calls of a method may arrive before a thread accepts the first of them."""

_MOST_STATS = 64

_CUT_S = 1.0
"""The least seconds that cut calls get to end."""

_OTHER, _SHUTDOWN = object(), object()
_NEVER_S = 1e12  # a deadline later than this counts as no deadline


class FastTransport:
    """A gRPC server on completion queues.

    Args:
        driver: Runs the conversations.
        methods: The methods that are served.
        credentials: The credentials for TLS; None serves plain text.
        settings: Limits and times.

    Attributes:
        server: Takes generated servicers, as a ``grpc.aio.Server`` does.
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
        self.server = Handlers()
        self._credentials = credentials
        self._server = cygrpc.Server(self.settings.options(largest_message(methods)), False)
        self._queue = cygrpc.CompletionQueue()
        self._server.register_completion_queue(self._queue)
        self._methods = tuple(methods)
        for method in self._methods:
            self._server.register_method(method.path)
        self._accepts = {method.path: functools.partial(self._accept_on_loop, method) for method in self._methods}
        self._most_bytes = {method.path: checked_bytes(method, self.settings) for method in self._methods}
        # None, since a call may have no metadata, which is ()
        self._last_metadata: tuple[Any, Headers, float, ResponseHeaders] = (None, EMPTY, 0.0, ())
        self._side: Any = None
        self._free: deque[Any] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_direct = driver.is_direct
        self._queue_poller: QueuePoller | None = None
        self._leader_follower: LeaderFollower | None = None
        self._closing_calls = ClosingCalls(self._free, driver)
        self._arrival_stats: dict[tuple[str, str], ArrivalStats] = {}
        self._is_started = False
        self._is_stopping = False
        self._stopped = asyncio.Event()

    def bind(self, address: str) -> int:
        """Bind ``host:port``; port 0 takes a free one.

        Returns:
            The port.

        Raises:
            StartupError: The address cannot be bound (R-006).
        """
        private = None if self._credentials is None else getattr(self._credentials, "_credentials")  # noqa: B009 - the stubs do not know it
        port = int(self._server.add_http2_port(address.encode(), private))
        if port == 0:
            raise no_grpc(address)
        return port

    async def start(self) -> None:
        """Begin to answer calls, with the driver on the running loop."""
        self._loop = self.driver.loop = asyncio.get_running_loop()
        self._server.start()
        self._is_started = True
        if self._is_direct:
            self._side = cygrpc.CompletionQueue()
            for method in self._methods * _AHEAD:
                if isinstance(method, CallMethod):
                    self._request(method)
                else:
                    self._request_on_loop(method)
            self._request_other()
            self._leader_follower = LeaderFollower(self.driver.threads, self.driver.sweeper, self._lead)
            self._leader_follower.start()
        else:
            self._side = self._queue
            self.driver.spawn = self._lend().spawn
            for method in self._methods * _AHEAD:
                self._request_on_loop(method)
            self._request_other_on_loop()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; running ones have ``grace_s`` before they are cut."""
        if not self._is_started or self._is_stopping:
            return
        self._is_stopping = True
        self._server.shutdown(self._queue, _SHUTDOWN if self._is_direct else lambda _: self._stopped.set())
        try:
            async with asyncio.timeout(grace_s):
                await self._calls_ended()
        except TimeoutError:
            self._server.cancel_all_calls()
            try:
                async with asyncio.timeout(max(grace_s, _CUT_S)):
                    await self._calls_ended()
            except TimeoutError:
                log.warning("some functions have not returned; their calls end with the process")
                return
        if self._leader_follower is not None:
            self._leader_follower.stop()
        self._queue.shutdown()
        if self._queue_poller is not None:
            if self._is_direct:
                self._side.shutdown()
            self._queue_poller.close()
        self._server.destroy()

    async def _calls_ended(self) -> None:
        await self._stopped.wait()
        if self._queue_poller is not None:
            await self._queue_poller.quiet()

    # In the pool's threads.

    def _lead(self, turn: Turn) -> None:
        """Wait for calls and serve them, until another thread leads."""
        queue, held = self._queue, ReplyBatch(turn, self._finish)
        while True:
            event = held.next(queue)
            tag = event.tag
            if type(tag) is tuple:
                if event.success:
                    self._request(tag[0])
                    self._accept(event, tag[0], tag[1], turn, held)
                    if not turn.leads:
                        held.let_go()
                        return
            elif tag is _SHUTDOWN:
                self._call_loop(self._stopped.set)
            elif tag is _OTHER:
                if event.success:
                    self._request_other()
                    self._call_loop(self._serve_other, event)
            elif tag is not None:
                self._call_loop(tag, event)
            else:  # the queue has been shut down
                return
            del event, tag  # the server cannot shut down while a variable keeps a call alive

    def _call_loop(self, callback: Any, *args: Any) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has closed, so nothing waits for this call
            self._loop.call_soon_threadsafe(callback, *args)

    def _request(self, method: CallMethod) -> None:
        """Request one more call from grpcio, with a completion queue of its own."""
        if self._is_stopping:
            return
        queue = self._free.pop() if self._free else cygrpc.CompletionQueue()
        try:
            self._server.request_registered_call(queue, self._queue, method.path, (method, queue))
        except ValueError:  # the transport began to stop meanwhile
            return

    def _request_other(self) -> None:
        if self._is_stopping:
            return
        try:
            self._server.request_call(self._queue, self._queue, _OTHER)
        except ValueError:
            return

    def _accept(self, event: Any, method: CallMethod, queue: Any, turn: Turn, held: ReplyBatch) -> None:
        """Serve one call in this thread, if a slot is free for it."""
        driver = self.driver
        call = UnaryCall(event.call, queue, driver, turn)
        try:
            driver.threads.enter()
        except InvocationError as error:
            log.info("a call was refused", extra={"detail": str(error)})
            call.headers = self._metadata(event.invocation_metadata)[2]
            self._finish(call, [], Close(error))
            return
        if self._closing_calls.calls:
            self._closing_calls.glance()
        try:
            self._converse(call, event, method, turn, held)
        except BaseException:
            # no known error is raised here
            log.exception("a call failed inside the invoker")
            call.cut(InternalError())
            self._finish(call, [], Close(InternalError()))

    def _converse(self, call: UnaryCall, event: Any, method: CallMethod, turn: Turn, held: ReplyBatch) -> None:
        """Run one call in a slot that was taken for it."""
        driver = self.driver
        sent: list[bytes] = []
        try:
            metadata, call.settle_s, call.headers = self._metadata(event.invocation_metadata)
            call.most_bytes = self._most_bytes[method.path]
            if method.knows_peer:
                metadata = _with_peer(event.call, metadata)
            session, deadline = method.session(metadata), _deadline(event)
            if call.take(functools.partial(self._stats_of, method, metadata), takes_one=method.takes_one):
                whole = Whole(session, driver, call, turn=turn, deadline=deadline)
                close, sent = whole.run(call.frames), whole.sent
            else:
                turn.pass_on()
                ordinary = call.ordinary()
                conversation = DirectConversation(session, ordinary, driver, deadline=deadline)
                driver.entered_direct(conversation)
                try:
                    close = conversation.run()
                finally:
                    driver.exited_direct(conversation)
        finally:
            driver.threads.leave()  # before the peer gets the end, since it may call again at once
        held.finish(call, sent, close)

    def _stats_of(self, method: CallMethod, metadata: Headers) -> ArrivalStats:
        """The statistics of calls of one kind. Peers choose the kinds, so few are remembered."""
        key = (method.path, method.kind(metadata))
        stats = self._arrival_stats.get(key)
        if stats is None:
            if len(self._arrival_stats) >= _MOST_STATS:
                self._arrival_stats.clear()
            stats = self._arrival_stats[key] = ArrivalStats()
        return stats

    def _finish(self, call: UnaryCall, frames: list[bytes], close: Close) -> None:
        if call.finish(frames, close):
            self._free.append(call.queue)
        else:
            self._closing_calls.add(call)

    # On the loop.

    def _serve_other(self, event: Any) -> None:
        method = event.call_details.method
        path = method.decode() if isinstance(method, bytes) else method
        handler = self.server.find(path, event.invocation_metadata)
        ServicerCall(event).start(handler)

    def _lend(self) -> QueuePoller:
        """Make the poller that brings events of calls to the loop.

        Where calls have threads of their own, the poller is made for the first session.
        """
        if self._queue_poller is None:
            assert self._loop is not None
            self._queue_poller = QueuePoller(self._side, self._loop, self.driver.engine.memory)
            self._queue_poller.start()
        return self._queue_poller

    def _request_on_loop(self, method: Method) -> None:
        """Request one more call from grpcio, whose events go to the loop."""
        if self._is_stopping:
            return
        self._server.request_registered_call(self._side, self._queue, method.path, self._accepts[method.path])

    def _request_other_on_loop(self) -> None:
        if not self._is_stopping:
            self._server.request_call(self._queue, self._queue, self._other_on_loop)

    def _other_on_loop(self, event: Any) -> None:
        if event.success:
            self._request_other_on_loop()
            self._serve_other(event)

    def _accept_on_loop(self, method: Method, event: Any) -> None:
        if not event.success:
            return
        self._request_on_loop(method)
        queue_poller = self._queue_poller or self._lend()
        metadata, settle_s, headers = self._metadata(event.invocation_metadata)
        most_bytes = self._most_bytes[method.path]
        call: LoopCall
        if isinstance(method, SessionMethod):
            call = joining = JoiningCall(event.call, queue_poller, settle_s, most_bytes)
            call.headers = headers
            call.open(method.begin(joining, metadata, _closing(call), _deadline(event)))
        else:
            call = LoopCall(event.call, queue_poller, settle_s, most_bytes, takes_one=method.takes_one)
            call.headers = headers
            session = method.session(_with_peer(event.call, metadata) if method.knows_peer else metadata)
            on_close, deadline = _closing(call), _deadline(event)
            if isinstance(method, LoopMethod):
                call.open(method.reactor(session, call, self.driver, on_close, deadline=deadline))
            else:
                reactor = functools.partial(
                    method.reactor, wire=call, driver=self.driver, on_close=on_close, deadline=deadline
                )
                stats_of = functools.partial(self._stats_of, method, metadata)
                call.open(FramesFirst(call, session, self.driver, queue_poller, reactor, stats_of, deadline))

    def _metadata(self, pairs: Any) -> tuple[Headers, float, ResponseHeaders]:
        """The text metadata of a call, the settle time of its half-close, and the headers of its response."""
        known, metadata, settle_s, headers = self._last_metadata
        if pairs != known:
            metadata = metadata_of(pairs)
            settle_s = settle_time(metadata, self.settings.settle_s)
            headers = repeated_id(metadata) if dict.__contains__(metadata, REQUEST_ID) else ()
            self._last_metadata = (pairs, metadata, settle_s, headers)
        return metadata, settle_s, headers


def _deadline(event: Any) -> float | None:
    deadline = event.call_details.deadline
    return time.monotonic() + deadline - time.time() if deadline < _NEVER_S else None


def _with_peer(call: Any, metadata: Headers) -> Headers:
    return with_peer(metadata, call.peer().decode(), cygrpc.peer_identities(call))


def _closing(call: LoopCall) -> OnClose:
    return lambda close: call.finish(*status_of(close.error), close.trailers)
