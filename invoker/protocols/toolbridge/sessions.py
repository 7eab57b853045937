"""The rpcs that make a host session, clean it up, describe it and list its tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.steps import Ask, Await, Step, Timer
from invoker.core.store import Create, Drop, Look, Reason, Refused, Space
from invoker.errors import InvocationError, ShuttingDown
from invoker.errors.wording import draining
from invoker.protocols.toolbridge.errors import BridgeError, Kind, session_gone
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, HostTools, space_of
from invoker.protocols.toolbridge.unary import UnarySession

_ID_BYTES: Final = 256
_METADATA: Final = 32
_METADATA_BYTES: Final = 4096
_PATIENCE_S: Final = 5.0
"""Seconds for which a forced clean-up waits for the end of running operations."""

_FULL: Final = (Reason.SPACES, Reason.BYTES)
_SECOND: Final = 1_000_000_000


class InitializeSession(UnarySession[pb.InitializeSessionRequest]):
    """Makes a host session, or finds the one that an equal request made (T-001 to T-006)."""

    reads, answers = pb.InitializeSessionRequest, pb.InitializeSessionResponse
    _id, _about = "", b""
    _create: Step
    _host: HostTools | None = None

    def asked(self, request: pb.InitializeSessionRequest) -> Sequence[Step]:
        """Check the request; the store makes the space unless it exists."""
        if self.host_sessions.drains():
            raise ShuttingDown(draining("sessions"))  # T-153
        check_id(request.session_id)
        _check_metadata(request)
        for name in ("max_concurrent_tools", "default_timeout_ms"):
            value = getattr(request.config, name)
            if value < 0:
                raise BridgeError(
                    Kind.VALIDATION,
                    f"config.{name} is {value}; expected a number that is not negative, where 0 is the default",
                    code="range", field=f"config.{name}",
                )  # fmt: skip
        made = _creation(self.host_sessions, request)
        self._id, self._about, self._create = request.session_id, made.about, Ask("create", made)
        known, callbacks = self.host_sessions.find(request.session_id), self.host_sessions.callbacks
        if not request.callback_address or callbacks is None or (known is not None and known.callback is not None):
            return (self._create,)
        return (Await("host", partial(callbacks.connect, request.session_id, request.callback_address)),)

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Continue after the host was reached, or after the store has made or found the session."""
        if key == "host":
            if isinstance(value, InvocationError):
                raise value  # T-169: no session is made if its host cannot be reached
            self._host = value
            return (self._create,)
        try:
            return self._made(value)
        except BridgeError:
            if self._host is not None:
                self._host.close()
            raise

    def _made(self, value: Any) -> Sequence[Step]:
        if isinstance(value, Space) and value.about != self._about:
            # D2: a retry gets its session; a different request with the same id is an error.
            raise BridgeError(
                Kind.VALIDATION,
                "there is a session of this id with another config, callback address or metadata",
                code="session_exists", field="session_id",
            )  # fmt: skip
        session = found_session(self.host_sessions, self._id, value)
        if self._host is not None:
            self.host_sessions.meet(session, self._host)
        own = ("callback",) if session.callback is not None else ()
        return self.reply(
            pb.InitializeSessionResponse(
                success=True,
                tool_count=_tool_count(self.host_sessions, session),
                capabilities=(*self.host_sessions.capabilities, *own),
            )
        )


class CleanupSession(UnarySession[pb.CleanupSessionRequest]):
    """Deletes a host session (T-013 to T-015)."""

    reads, answers = pb.CleanupSessionRequest, pb.StatusResponse
    _id = ""
    _session: HostSession | None = None

    def asked(self, request: pb.CleanupSessionRequest) -> Sequence[Step]:
        """Let no more calls begin in the session, and drop its space."""
        check_id(request.session_id)
        self._id, host_sessions = request.session_id, self.host_sessions
        session = self._session = host_sessions.sessions.get(self._id)
        if session is not None:
            running = host_sessions.close(session, is_forced=request.force)
            if running and not request.force:
                raise _busy(running)
            host_sessions.keeper.settle(session)
        drop = Ask("drop", Drop(space_of(self._id), is_forced=request.force))
        return (drop, Timer(_PATIENCE_S)) if request.force else (drop,)

    def answered(self, key: str, value: Any) -> Sequence[Step]:  # noqa: ARG002 - only one question is asked
        """Answer that the session was dropped, or that another process still runs a call in it."""
        session = self._session
        if isinstance(value, Refused) and value.reason is Reason.HELD:
            if session is not None:
                self.host_sessions.reopen(session)
            raise _busy(value.count)
        if session is not None:
            self.host_sessions.remove(session, Reason.DROPPED)
        return self.reply(pb.StatusResponse(success=True, message=f"there is no session {self._id!r} any more"))

    def elapsed(self) -> Sequence[Step]:
        """Answer although a cancelled call still runs; no more calls can begin in the session."""
        text = f"the session {self._id!r} is cleaned up, although an operation in it has not ended yet"
        return self.reply(pb.StatusResponse(success=True, message=text))


class _Look(UnarySession[Any]):
    """The base of rpcs that need the state of a session."""

    def asked(self, request: Any) -> Sequence[Step]:
        """Ask for the state of the session; this counts as a use of the session."""
        check_id(request.session_id)
        self.session_id = request.session_id
        return (Ask("look", Look(space_of(self.session_id))),)

    def _known(self, value: Space | Refused) -> HostSession:
        return found_session(self.host_sessions, self.session_id, value)


class GetSessionInfo(_Look):
    """Describes a session and what runs in it (T-016)."""

    reads: ClassVar[type[Any]] = pb.GetSessionInfoRequest
    answers: ClassVar[type[Any]] = pb.SessionInfo

    def answered(self, key: str, value: Any) -> Sequence[Step]:  # noqa: ARG002 - only one question is asked
        """Send the description of the session that was found."""
        session = self._known(value)
        made = pb.SessionInfo(
            session_id=session.id,
            tool_count=_tool_count(self.host_sessions, session),
            variable_count=value.items,
            active_operations=len(session.operations),
            metadata=session.metadata,
        )
        made.created_at.seconds, made.created_at.nanos = divmod(value.created_ns, _SECOND)
        made.last_activity.seconds, made.last_activity.nanos = divmod(max(value.used_ns, session.used_ns), _SECOND)
        return self.reply(made)


class GetSessionTools(_Look):
    """Lists the tools of a session: the local ones by their names, then those of the host (T-033)."""

    reads: ClassVar[type[Any]] = pb.GetSessionToolsRequest
    answers: ClassVar[type[Any]] = pb.GetSessionToolsResponse

    _session: HostSession

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Send the list; if another process made the session, the host is first asked for its tools."""
        if key == "host":
            if isinstance(value, InvocationError):
                raise value
            self.host_sessions.meet(self._session, value)
            return self._list(self._session)
        session = self._session = self._known(value)
        address, callbacks = session.request.callback_address, self.host_sessions.callbacks
        if address and session.callback is None and callbacks is not None:
            return (Await("host", partial(callbacks.connect, session.id, address)),)
        return self._list(session)

    def _list(self, session: HostSession) -> Sequence[Step]:
        tools, own = self.host_sessions.tools, () if session.callback is None else session.callback.specs
        return self.reply(pb.GetSessionToolsResponse(tools=(*(tools.specs if tools.tells else ()), *own)))


def check_id(session_id: str) -> None:
    """Check the id of a session.

    Raises:
        BridgeError: The id is empty (T-002), too long, or has control characters (T-003).
    """
    size = len(session_id.encode())
    if not size:
        text = "session_id is empty; expected an id of the caller's choice"
    elif size > _ID_BYTES:
        text = f"session_id has {size} bytes; expected {_ID_BYTES} at most"
    elif not session_id.isprintable() and any(ord(one) < 32 or 127 <= ord(one) < 160 for one in session_id):
        text = f"session_id {session_id!a} has control characters"
    else:
        return
    raise BridgeError(Kind.VALIDATION, text, code="session_id", field="session_id")


def question_about(host_sessions: HostSessions, session_id: str) -> Create | Look:
    """The question for the store about a session that `HostSessions` does not know; `found_session` reads the answer.

    Raises:
        BridgeError: The id is invalid (T-003).
    """
    check_id(session_id)
    if host_sessions.settings.auto_session and not host_sessions.drains():
        return _creation(host_sessions, pb.InitializeSessionRequest(session_id=session_id))  # T-019
    return Look(space_of(session_id))


def found_session(host_sessions: HostSessions, session_id: str, value: Space | Refused) -> HostSession:
    """The session that the store knows.

    Raises:
        BridgeError: The store has no such session (T-008, T-009), or no room for a new one.
    """
    if isinstance(value, Refused):
        raise _no_room(value) if value.reason in _FULL else session_gone(session_id, value.reason)
    host_sessions.created += value.is_new
    return host_sessions.adopt(value)


def _creation(host_sessions: HostSessions, request: pb.InitializeSessionRequest) -> Create:
    """The request to the store that makes the space of a session; equal requests have equal texts (T-004, D4)."""
    request.config.SetInParent()
    about = request.SerializeToString(deterministic=True)
    return Create(space_of(request.session_id), host_sessions.settings.ttl_s, about)


def _check_metadata(request: pb.InitializeSessionRequest) -> None:
    count = len(request.metadata)
    met = f"{count} entries"
    if count <= _METADATA:
        size = sum(len(name.encode()) + len(value.encode()) for name, value in request.metadata.items())
        if size <= _METADATA_BYTES:
            return
        met = f"{count} entries of {size} bytes"
    raise BridgeError(
        Kind.VALIDATION,
        f"metadata has {met}; expected {_METADATA} of {_METADATA_BYTES} bytes at most",
        code="metadata_size", field="metadata",
    )  # fmt: skip


def _no_room(refused: Refused) -> BridgeError:
    is_count = refused.reason is Reason.SPACES
    met = f"{refused.count} sessions exist" if is_count else f"{refused.count} bytes are held by all sessions"
    code = "session_quota" if is_count else "session_bytes"
    return BridgeError(Kind.EXHAUSTED, f"{met}, and no more are allowed", code=code)


def _busy(running: int) -> BridgeError:
    many = "operation runs" if running == 1 else "operations run"
    return BridgeError(
        Kind.VALIDATION,
        f"{running} {many} in the session; wait for the end, or set force",
        code="active_operations", active_operations=running,
    )  # fmt: skip


def _tool_count(host_sessions: HostSessions, session: HostSession) -> int:
    return len(host_sessions.tools) + (0 if session.callback is None else len(session.callback.specs))
