"""WatchSessionVariables: sends each change of a session's variables until the caller ends the rpc (T-127 to T-132).

The store reports the existing values, then the changes in their order. If the caller is slow, changes wait in
`invoker.core.store.News`; when there are too many, only the last change of each variable is kept.

All watches that send the update of a large variable at the same time share its bytes. Even so, the budget of the
process counts these bytes once for each watch, since only the connections know when the bytes were sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.varint import varint
from invoker.core.frames import SharedFrame
from invoker.core.steps import Send, Step, Subscribe
from invoker.core.store import Change, Refused
from invoker.core.variables import PREFIX, check_name
from invoker.errors import VariableError
from invoker.protocols.toolbridge.errors import BridgeError, Kind, session_gone
from invoker.protocols.toolbridge.host_sessions import LARGE, space_of
from invoker.protocols.toolbridge.sessions import check_id
from invoker.protocols.toolbridge.unary import UnarySession
from invoker.protocols.toolbridge.variables import stamp, told_of

_NAMES: Final = 10_000
"""How many variables can be watched by name: as many as a session may have (T-125)."""

_VALUE: Final = varint(pb.VariableUpdate.VALUE_FIELD_NUMBER << 3 | 2)
"""The protobuf tag of the value, which is followed by its length."""


class WatchSessionVariables(UnarySession[pb.WatchVariablesRequest]):
    """One watch; it ends with the session, or when the caller leaves."""

    reads, answers = pb.WatchVariablesRequest, pb.VariableUpdate
    _session_id = ""

    def asked(self, request: pb.WatchVariablesRequest) -> Sequence[Step]:
        """Subscribe to the space of the session; without names, to all variables (T-129)."""
        check_id(request.session_id)
        self._session_id = request.session_id
        if len(request.variable_names) > _NAMES:
            text = f"{len(request.variable_names)} variables exceed the limit of {_NAMES} that one request may watch"
            raise BridgeError(Kind.VALIDATION, text, code="range", field="variable_names")
        try:
            for name in request.variable_names:
                check_name(name)
        except VariableError as error:
            raise told_of(error, self._session_id) from None
        names = tuple(PREFIX + name for name in request.variable_names)
        return (Subscribe(space_of(self._session_id), names or None, has_initial=request.include_initial),)

    def told(self, topic: str, value: Any) -> Sequence[Step]:  # noqa: ARG002 - there is only one subscription
        """Send one change; the end of the session ends the rpc (T-131)."""
        if isinstance(value, Refused):
            raise session_gone(self._session_id, value.reason)
        if value.value is None or len(value.value) <= LARGE:
            return (Send(_update(value)),)
        return (Send(self._shared(value, value.value)),)

    def _shared(self, change: Change, value: bytes) -> SharedFrame:
        """The serialised update, which is shared by all watches of this change."""
        operation = _operation(change)
        head = pb.VariableUpdate(name=change.name.removeprefix(PREFIX)).SerializeToString()
        tail = pb.VariableUpdate(operation=operation, timestamp=stamp(change.updated_ns)).SerializeToString()
        key = (self._session_id, change.name, operation)
        return self.host_sessions.updates.join(key, (head, _VALUE, varint(len(value)), value, tail))


def _update(change: Change) -> bytes:
    update = pb.VariableUpdate(
        name=change.name.removeprefix(PREFIX), operation=_operation(change), timestamp=stamp(change.updated_ns)
    )
    if change.value is not None:
        update.value.ParseFromString(change.value)
    return update.SerializeToString()


def _operation(change: Change) -> str:
    return "delete" if change.value is None else "set" if change.is_new else "update"  # T-128
