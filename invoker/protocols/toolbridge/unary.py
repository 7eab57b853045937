"""`UnarySession`: the base class of the sessions of all rpcs with one request, except single tool calls.

A subclass names the classes of its request and response, and handles a request::

    class GetSessionInfo(UnarySession[pb.GetSessionInfoRequest]):
        reads, answers = pb.GetSessionInfoRequest, pb.SessionInfo

        def asked(self, request): return (Ask("look", Look(space_of(request.session_id))),)
        def answered(self, key, value): return self.reply(pb.SessionInfo(...))

The session of an rpc with a stream of responses makes `Send` steps itself, and ends with `Close`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message as Protobuf

from invoker.core.steps import Answered, Close, Elapsed, Event, Send, Step, StoreChanged
from invoker.errors import InvocationError, Status, StatusError
from invoker.message import EMPTY, Headers
from invoker.protocols.toolbridge.errors import ENDS_RPC, BridgeError, Kind, close_with, no_request, translated
from invoker.protocols.toolbridge.host_sessions import HostSessions

R = TypeVar("R", bound=Protobuf)


def parsed(host_sessions: HostSessions, reads: type[R], frame: bytes) -> R:
    """Parse a request.

    Raises:
        BridgeError: The frame is too large (T-063), or is not a message of this kind.
    """
    most = host_sessions.settings.message_bytes
    if len(frame) > most:
        host_sessions.too_large += 1
        raise BridgeError(
            Kind.EXHAUSTED,
            f"the request has {len(frame)} bytes and exceeds the limit of {most} bytes",
            code="request_too_large", size=len(frame), limit=most,
        )  # fmt: skip
    try:
        return reads.FromString(frame)
    except WireError:
        raise BridgeError(Kind.VALIDATION, f"the request is not a valid {reads.__name__}", code="decode") from None


class UnarySession(ABC, Generic[R]):
    """The session of an rpc with one request.

    Args:
        host_sessions: The host sessions.
        metadata: The metadata of the rpc.

    Attributes:
        reads: The class of the request.
        answers: The class of the response; if it has a field ``error``, errors are sent in it (T-160).
    """

    reads: ClassVar[type[Any]]
    answers: ClassVar[type[Any]]

    def __init__(self, host_sessions: HostSessions, metadata: Headers = EMPTY) -> None:
        self.host_sessions = host_sessions
        self.metadata = metadata
        self.is_closed = False
        self._is_asked = False

    # Subclasses override these.

    @abstractmethod
    def asked(self, request: R) -> Sequence[Step]:
        """Handle a request; may raise InvocationError."""

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Continue with the answer to a question; may raise InvocationError."""
        raise AssertionError(f"{type(self).__name__} asks no store: {key} {value!r}")

    def told(self, topic: str, value: Any) -> Sequence[Step]:
        """Continue with a change in the store; may raise InvocationError."""
        raise AssertionError(f"{type(self).__name__} subscribes to nothing: {topic} {value!r}")

    def elapsed(self) -> Sequence[Step]:
        """Continue when the time of a `Timer` has passed; may raise InvocationError."""
        raise AssertionError(f"{type(self).__name__} starts no timer")

    def heard(self, event: Event) -> Sequence[Step]:
        """Continue with an event of an invocation; may raise InvocationError."""
        raise AssertionError(f"{type(self).__name__} opens no invocation: {event!r}")

    # Subclasses call these.

    def reply(self, response: Protobuf) -> Sequence[Step]:
        """Send a response, and end the rpc with OK."""
        return (Send(response.SerializeToString()), self._closing(Close()))

    def fail(self, error: InvocationError) -> Sequence[Step]:
        """Send an error in the response if that has a field for errors, otherwise as the status of the rpc (T-160)."""
        if "error" in self.answers.DESCRIPTOR.fields_by_name and not isinstance(error, ENDS_RPC):
            return self.reply(self.answers(error=translated(error).kept().info()))
        return self.refuse(error)

    def refuse(self, error: InvocationError) -> Sequence[Step]:
        """End the rpc with the status of an error."""
        return (self._closing(close_with(error)),)

    # The methods of `Session`.

    def receive(self, frame: bytes) -> Sequence[Step]:
        """Translate the request; later frames are dropped."""
        if self._is_asked or self.is_closed:
            return ()
        self._is_asked = True
        try:
            request = parsed(self.host_sessions, self.reads, frame)
        except BridgeError as error:
            return self.refuse(error)
        try:
            return self.asked(request)
        except InvocationError as error:
            return self.fail(error)

    def half_close(self) -> Sequence[Step]:
        """Translate the half-close of the caller; an rpc without a request is refused."""
        if self._is_asked or self.is_closed:
            return ()
        return (self._closing(Close(no_request())),)

    def deliver(self, event: Event) -> Sequence[Step]:
        """Pass an event to the method for its kind; an error ends the rpc."""
        if self.is_closed:
            return ()
        try:
            if type(event) is Answered:
                return self.answered(event.key, event.value)
            if type(event) is StoreChanged:
                return self.told(event.topic, event.value)
            if type(event) is Elapsed:
                return self.elapsed()
            return self.heard(event)
        except InvocationError as error:
            return self.fail(error)

    def _closing(self, close: Close) -> Close:
        self.is_closed = True
        return close


class Unbuilt:
    """An rpc that this server does not serve."""

    def __init__(self, name: str) -> None:
        self._name = name

    def receive(self, frame: bytes) -> Sequence[Step]:  # noqa: ARG002 - the interface of a session
        """Refuse the rpc with UNIMPLEMENTED."""
        return (Close(StatusError(Status.UNIMPLEMENTED, f"{self._name} is not served here")),)

    def half_close(self) -> Sequence[Step]:
        """Refuse the rpc with UNIMPLEMENTED."""
        return self.receive(b"")

    def deliver(self, event: Event) -> Sequence[Step]:  # noqa: ARG002 - the interface of a session
        """Do nothing: the rpc has ended."""
        return ()
