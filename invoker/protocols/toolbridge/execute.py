"""`ExecuteTool`: one tool call with one response (T-064 to T-075).

Theory. If this process knows the session, a call opens its invocation at once, in the thread that has received its
frame. Three kinds of calls first need an answer from elsewhere, and continue on the event loop:

* the session is unknown here, so the store is asked: another process may have made the session, or it has ended; * the
session detects duplicates by request ids, and this id is new: all callers that send it share the call, which ends with
the last of them (T-075); * no tool of this process has this name, and the session has a host: the host's tool is called
by an rpc (T-171).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from invoker.core.steps import Answered, Ask, Await, CallStep, Close, Emitted, Event, Finished, Open, Send
from invoker.core.store import Look
from invoker.errors import InvocationError
from invoker.message import EMPTY, Headers
from invoker.protocols.toolbridge.errors import ENDS_RPC, BridgeError, close_with, no_request
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, space_of
from invoker.protocols.toolbridge.reply import call_response
from invoker.protocols.toolbridge.results import results_of
from invoker.protocols.toolbridge.sessions import found_session, question_about
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall
from invoker.protocols.toolbridge.unary import parsed
from invoker.protocols.toolbridge.wire import CallRequest

_NUMBERS: Final = itertools.count()


class ExecuteTool:
    """Translates one ``ExecuteTool`` rpc.

    Args:
        host_sessions: The host sessions.
        metadata: The metadata of the rpc.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_call",
        "_host_sessions",
        "_is_asked",
        "_is_closed",
        "_metadata",
        "_session",
        "_size",
    )

    def __init__(self, host_sessions: HostSessions, metadata: Headers = EMPTY) -> None:
        self._host_sessions = host_sessions
        self._metadata = metadata
        self._asked: Asked | None = None
        self._call: ToolCall | None = None
        self._again: ToolCall | None = None  # stands for this rpc, if the call of another rpc answers it
        self._session: HostSession | None = None
        self._size = 0
        self._is_asked = self._is_closed = False

    def receive(self, frame: bytes) -> Sequence[CallStep]:
        """Translate the request; later frames are dropped."""
        if self._is_asked:
            return ()
        self._is_asked = True
        host_sessions = self._host_sessions
        try:
            request = parsed(host_sessions, CallRequest, frame)
        except BridgeError as error:
            self._is_closed = True
            return (close_with(error),)
        asked = self._asked = Asked(
            request.session_id,
            request.tool_id,
            request.args,
            request.kwargs,
            request.request_id,
            request.timeout_ms,
            request.context,
            self._metadata,
        )
        self._size = len(frame)
        session = host_sessions.find(asked.session_id)
        try:
            if session is None:
                return (Ask("session", question_about(host_sessions, asked.session_id)),)
            if asked.request_id and session.caches:
                with host_sessions.lock:
                    entry = results_of(host_sessions, session).find(asked, host_sessions.now_ns())
                if entry is None or entry.response is None:
                    return (Ask("session", Look(space_of(session.id))),)
                return self._stored(entry.response)
            if self._is_of_host(session, asked):
                return (Ask("session", Look(space_of(session.id))),)  # the call continues on the event loop
        except BridgeError as error:
            return self._refuse(error)
        return self._found(session, asked)

    def half_close(self) -> Sequence[CallStep]:
        """Translate the half-close of the caller; an rpc without a request is refused."""
        if self._is_asked:
            return ()
        self._is_asked = self._is_closed = True
        return (Close(no_request()),)

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation, or the store's answer."""
        if self._is_closed:
            return ()
        if type(event) is Answered:
            return self._answered(event.key, event.value)
        call = self._call
        assert call is not None
        if type(event) is Emitted:
            return call.emitted(event)
        if type(event) is Finished:
            call.finish(event.error)
            return self._answer(call)
        return ()

    # Private helpers.

    def _answered(self, key: str, value: Any) -> Sequence[CallStep]:
        asked = self._asked
        assert asked is not None
        try:
            if key == "host":
                return self._returned(value)
            if key != "bound":
                return self._found(found_session(self._host_sessions, asked.session_id, value), asked)
            assert self._session is not None
            assert self._call is not None
            return self._run(self._session, asked, self._call)
        except BridgeError as error:
            return self._refuse(error)

    def _found(self, session: HostSession, asked: Asked) -> Sequence[CallStep]:
        """Begin the call; large arguments are first read in another thread."""
        call = self._call = ToolCall(self._host_sessions, asked, "execute")
        if self._is_of_host(session, asked):
            return self._forward(session, call)
        aside = call.aside(self._size)
        if aside is None:
            return self._run(session, asked, call)
        self._session = session
        return (aside,)  # type: ignore[return-value]  # only made on an event loop, where sessions may await

    def _run(self, session: HostSession, asked: Asked, call: ToolCall) -> Sequence[CallStep]:
        if asked.request_id and session.caches:
            return self._share(session, asked, call)
        steps = call.begin(session)
        if not steps:
            return self._answer(call)
        self._asked = call.asked  # for observers; large arguments are dropped, since the function has them
        return steps

    def _is_of_host(self, session: HostSession, asked: Asked) -> bool:
        """Whether this process does not have the tool, and the session has a host that may have it (T-171)."""
        return self._host_sessions.tools.find(asked.tool_id) is None and bool(session.request.callback_address)

    def _forward(self, session: HostSession, call: ToolCall) -> Sequence[CallStep]:
        try:
            within_s = call.begin_at_host(session)
        except BridgeError as error:
            call.finish(error)
            return self._answer(call)
        forward = Await("host", partial(session.scope.forward, call, within_s))
        return (forward,)  # type: ignore[return-value]  # as in `_found`

    def _returned(self, value: Any) -> Sequence[CallStep]:
        """Finish the call with the result, or the error, of the host's tool."""
        call = self._call
        assert call is not None
        error = value if isinstance(value, InvocationError) else None
        if error is None:
            try:
                call.check(value)
                call.items = [[value]]
            except BridgeError as refused:
                error = refused
        call.finish(error)
        return self._answer(call)

    def _share(self, session: HostSession, asked: Asked, call: ToolCall) -> Sequence[CallStep]:
        """Run the call for all callers that send its request id, or wait for one that runs; on the event loop."""
        host_sessions = self._host_sessions
        with host_sessions.lock:
            entry = results_of(host_sessions, session).find(asked, host_sessions.now_ns())
        if entry is None:
            # the invocation of an earlier call with this id may still be ending, perhaps of an earlier session
            call.key = f"{space_of(session.id)}#{next(_NUMBERS)}"
            with host_sessions.lock:
                results_of(host_sessions, session).begin(asked, call)
            return call.begin(session, is_shared=True) or self._answer(call)
        if entry.response is not None:
            return self._stored(entry.response)
        self._repeat(asked)
        running = self._call = entry.call
        assert running is not None, "there is no response yet"
        assert running.tool is not None
        return (Open(running.key, running.tool.function, is_shared=True),)

    def _refuse(self, error: BridgeError) -> Sequence[CallStep]:
        assert self._asked is not None
        call = ToolCall(self._host_sessions, self._asked, "execute")
        call.finish(error)
        return self._answer(call)

    def _stored(self, response: bytes) -> Sequence[CallStep]:
        """Answer with the stored response of an earlier call."""
        assert self._asked is not None
        self._repeat(self._asked).repeated(None)
        return self._reply(response)

    def _repeat(self, asked: Asked) -> ToolCall:
        """Let this rpc get the answer of a call that another rpc began; observers are notified of both (T-167)."""
        host_sessions = self._host_sessions
        with host_sessions.lock:
            host_sessions.hits += 1
        again = self._again = ToolCall(host_sessions, asked, "execute")
        again.tool = host_sessions.tools.find(asked.tool_id)
        return again

    def _reply(self, response: bytes) -> Sequence[CallStep]:
        self._close()
        return (Send(response), Close())

    def _close(self) -> None:
        """Drop the call, whose result may be large, since the rpc may be kept a little longer."""
        self._is_closed = True
        self._call = self._asked = self._again = self._session = None

    def _answer(self, call: ToolCall) -> Sequence[CallStep]:
        if self._again is not None:
            self._again.repeated(call.error)
        if isinstance(call.error, ENDS_RPC):
            self._close()
            return (close_with(call.error),)
        if call.entry is not None and call.entry.response is not None:
            return self._reply(call.entry.response)  # the shared call of all callers with this request id
        response = call_response(call)
        call.release()
        return self._reply(response)
