"""The rpcs that get, set and list the variables of a host session; `core.variables` defines how these are stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import BadAny, unpack
from invoker.codecs.anyvalue.kinds import kind_of
from invoker.core.steps import Ask, Await, Step
from invoker.core.store import Reason
from invoker.core.variables import Talk, Variable, delete, listed, read, write
from invoker.errors import InvocationError, VariableError
from invoker.protocols.toolbridge.errors import BridgeError, Kind, session_gone, translated, unavailable
from invoker.protocols.toolbridge.host_sessions import LARGE, space_of
from invoker.protocols.toolbridge.sessions import check_id
from invoker.protocols.toolbridge.unary import UnarySession

R = TypeVar("R", pb.GetVariableRequest, pb.SetVariableRequest, pb.ListVariablesRequest)

_SECOND: Final = 1_000_000_000
_MOST: Final = 1000
"""How many variables are listed if the request sets no limit."""

_TAGS: Final = 100
"""How many tags a request to list variables may have; each variable is compared with each of them."""

_INT32: Final = 2**31 - 1
_GONE: Final = {"unknown": Reason.UNKNOWN, "expired": Reason.EXPIRED, "cleaned": Reason.DROPPED}


class Talking(UnarySession[R]):
    """The base of rpcs that ask the store several questions in turn, and make the response from the result."""

    session_id: str
    request: R
    _talk: Talk[Any]

    def talk(self, request: R, space: str) -> Talk[Any]:
        """Return a generator that asks questions about a space."""
        raise NotImplementedError

    def reported(self, result: Any) -> Sequence[Step]:
        """Make the response from the result of the questions."""
        raise NotImplementedError

    def asked(self, request: R) -> Sequence[Step]:
        """Check the id of the session, and ask the store the first question."""
        check_id(request.session_id)
        self.session_id, self.request = request.session_id, request
        self._talk = self.talk(request, space_of(request.session_id))
        return self._go_on(None)

    def answered(self, key: str, value: Any) -> Sequence[Step]:  # noqa: ARG002 - only one question is asked at a time
        """Ask the next question, or send the response."""
        return self._go_on(value)

    def _go_on(self, value: Any) -> Sequence[Step]:
        try:
            return (Ask("variables", self._talk.send(value)),)
        except StopIteration as end:
            return self.reported(end.value)
        except VariableError as error:
            raise told_of(error, self.session_id) from None


class GetSessionVariable(Talking[pb.GetVariableRequest]):
    """Reads one variable (T-115 to T-117)."""

    reads, answers = pb.GetVariableRequest, pb.VariableResponse

    def talk(self, request: pb.GetVariableRequest, space: str) -> Talk[Variable | None]:
        """Return the generator of questions that reads the variable."""
        return read(space, request.variable_name)

    def reported(self, result: Variable | None) -> Sequence[Step]:
        """Send the variable; a missing variable is not an error."""
        response = pb.VariableResponse(exists=result is not None)
        if result is not None:
            response.value.ParseFromString(result.value)
            if self.request.include_metadata:
                response.metadata.CopyFrom(_metadata(result))
        return self.reply(response)


class SetSessionVariable(Talking[pb.SetVariableRequest]):
    """Writes one variable, or deletes it if the request has no value (T-118 to T-120).

    A value that no tool could decode is refused (T-052), since it would make later calls fail.
    """

    reads, answers = pb.SetVariableRequest, pb.StatusResponse

    def asked(self, request: pb.SetVariableRequest) -> Sequence[Step]:
        """Check whether the value can be decoded; a large value is decoded in another thread."""
        value = request.value.SerializeToString()
        aside = self.host_sessions.aside
        if len(value) > LARGE and aside is not None and aside.is_due():
            self.request = request
            return (Await("read", partial(aside.run, partial(_check, value))),)
        _check(value)
        return super().asked(request)

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Ask the first question after the value was decoded, or the next one."""
        if key != "read":
            return super().answered(key, value)
        if isinstance(value, InvocationError):
            raise value
        return super().asked(self.request)

    def talk(self, request: pb.SetVariableRequest, space: str) -> Talk[Variable | None]:
        """Return the generator that writes the variable, or deletes it if the request has no value."""
        if not request.HasField("value"):
            return delete(space, request.variable_name)
        given = request.metadata if request.HasField("metadata") else None
        return write(
            space,
            request.variable_name,
            request.value.SerializeToString(),
            by="python" if given is not None and given.created_by == "python" else "elixir",
            tags=None if given is None else given.tags,
            creates=request.create_if_missing,
        )

    def reported(self, result: Variable | None) -> Sequence[Step]:
        """Confirm that the variable was set or deleted."""
        done = "deleted" if result is None else "set"
        text = f"the variable {self.request.variable_name!r} is {done}"
        return self.reply(pb.StatusResponse(success=True, message=text))


class ListSessionVariables(Talking[pb.ListVariablesRequest]):
    """Lists variables without their values (T-122 to T-124)."""

    reads, answers = pb.ListVariablesRequest, pb.ListVariablesResponse

    def talk(self, request: pb.ListVariablesRequest, space: str) -> Talk[list[Variable]]:
        """Return the generator that lists the variables; raises BridgeError for an invalid limit or too many tags."""
        if request.limit < 0:
            text = f"limit is {request.limit}; expected a number that is not negative, where 0 is {_MOST}"
            raise BridgeError(Kind.VALIDATION, text, code="range", field="limit")
        if len(request.tags) > _TAGS:
            text = f"{len(request.tags)} tags exceed the limit of {_TAGS}"
            raise BridgeError(Kind.VALIDATION, text, code="range", field="tags")
        return listed(space, request.prefix, request.tags, request.limit or _MOST)

    def reported(self, result: list[Variable]) -> Sequence[Step]:
        """Send the rows of the variables, without their values."""
        response = pb.ListVariablesResponse()
        for one in result:
            metadata = _metadata(one)
            size = min(len(one.value), _INT32)
            response.variables.add(name=one.name, type=metadata.type, size_bytes=size, metadata=metadata)
        return self.reply(response)


def _check(value: bytes) -> None:
    """Raise if a value cannot be decoded.

    A DataFrame is not checked, since its libraries may not be installed.
    """
    try:
        unpack(value)
    except BadAny as error:
        if error.code != "missing_dependency":
            raise BridgeError(Kind.VALIDATION, error.detail, field="value", **error.details) from None


def told_of(error: VariableError, session_id: str) -> BridgeError:
    """The error of the bridge for an error of a variable."""
    if error.code == "store":
        return unavailable(error.detail)
    if error.code in _GONE:
        return session_gone(session_id, _GONE[error.code])
    return translated(error)


def stamp(time_ns: int) -> Timestamp:
    """Convert a time in nanoseconds to a Timestamp."""
    seconds, nanos = divmod(time_ns, _SECOND)
    return Timestamp(seconds=seconds, nanos=nanos)


def _metadata(variable: Variable) -> pb.VariableMetadata:
    return pb.VariableMetadata(
        type=kind_of(variable.value),
        created_at=stamp(variable.created_ns),
        updated_at=stamp(variable.updated_ns),
        created_by=variable.about.by,
        tags=variable.about.tags,
    )
