"""`Variables`: the named values of a session, which its tools can also read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.client.answers import when
from invoker.protocols.toolbridge.client.failure import failed
from invoker.protocols.toolbridge.client.link import Link
from invoker.protocols.toolbridge.client.streams import Stream
from invoker.protocols.toolbridge.client.values import packed, read


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
"""The default of `get` for a missing variable; it is not None, since a variable may hold None."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, with its value and further data.

    Attributes:
        type: ``integer``, ``string``, ``map`` and so on.
        created_by: The language that made it: ``elixir`` or ``python``.
    """

    value: Any
    type: str
    created_at: datetime
    updated_at: datetime
    created_by: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VariableRow:
    """A variable in a list, without its value."""

    name: str
    type: str
    size_bytes: int
    created_at: datetime
    updated_at: datetime
    created_by: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a variable.

    Attributes:
        operation: ``set`` (the variable is new, or existed when the watch began), ``update`` or ``delete``.
        value: The new value; None after ``delete``.
    """

    name: str
    operation: str
    value: Any
    at: datetime


class Watch(Stream[pb.VariableUpdate, Change]):
    """Iterates over changes of variables; of changes that come faster than they are read, only the latest is kept."""

    def _read(self, frame: pb.VariableUpdate) -> tuple[Change]:
        value = read(frame.value) if frame.HasField("value") else None
        return (Change(frame.name, frame.operation, value, when(frame.timestamp)),)


class Variables:
    """Reads and writes the variables of one session."""

    def __init__(self, link: Link, session_id: str) -> None:
        self._link = link
        self._session_id = session_id

    async def get(self, name: str, default: Any = MISSING) -> Any:
        """Get the value of a variable, or ``default`` if the variable does not exist."""
        request = pb.GetVariableRequest(session_id=self._session_id, variable_name=name)
        answer = await self._link.ask("GetSessionVariable", request, pb.VariableResponse)
        return read(answer.value) if answer.exists else default

    async def describe(self, name: str) -> Variable | None:
        """Get a variable with all its data; None if it does not exist."""
        request = pb.GetVariableRequest(session_id=self._session_id, variable_name=name, include_metadata=True)
        answer = await self._link.ask("GetSessionVariable", request, pb.VariableResponse)
        if not answer.exists:
            return None
        meta = answer.metadata
        made, changed = when(meta.created_at), when(meta.updated_at)
        return Variable(read(answer.value), meta.type, made, changed, meta.created_by, dict(meta.tags))

    async def set(
        self,
        name: str,
        value: Any,
        *,
        tags: Mapping[str, str] | None = None,
        created_by: str = "",
        create: bool = True,
    ) -> None:
        """Set the value of a variable.

        Args:
            name: The name of the variable.
            value: Any value that can be an argument of a tool.
            tags: New tags, which replace the old ones; None: the old ones are kept.
            created_by: ``python`` or ``elixir``, for new variables only; empty: ``elixir``.
            create: Whether the variable is made if it does not exist.

        Raises:
            ToolExecutionError: The bridge refused; ``code`` is ``variable_not_found`` if the variable does not exist.
        """
        request = pb.SetVariableRequest(
            session_id=self._session_id, variable_name=name, value=packed(value), create_if_missing=create
        )
        if tags is not None or created_by:
            request.metadata.CopyFrom(pb.VariableMetadata(tags=tags or {}, created_by=created_by))
        await self._change(request)

    async def delete(self, name: str) -> None:
        """Delete a variable; the protocol has no rpc for that, so a request without a value is sent (T-119).

        Raises:
            ToolExecutionError: The variable does not exist.
        """
        await self._change(pb.SetVariableRequest(session_id=self._session_id, variable_name=name))

    async def list(self, prefix: str = "", *, tags: Sequence[str] = (), limit: int = 0) -> list[VariableRow]:
        """List the variables, sorted by name.

        Args:
            prefix: The prefix of the names to list.
            tags: Each is ``key`` or ``key=value``; all must match.
            limit: How many variables to list at most; 0: 1000.
        """
        request = pb.ListVariablesRequest(session_id=self._session_id, prefix=prefix, tags=tags, limit=limit)
        answer = await self._link.ask("ListSessionVariables", request, pb.ListVariablesResponse)
        return [_row(one) for one in answer.variables]

    def watch(self, *names: str, initial: bool = True) -> Watch:
        """Watch for changes of variables.

        Args:
            names: The names of the variables; none: all.
            initial: Whether to begin with the existing values. Otherwise changes that are made before the bridge gets
                the request are missed.
        """
        request = pb.WatchVariablesRequest(session_id=self._session_id, variable_names=names, include_initial=initial)
        link = self._link
        return Watch(lambda: link.listen("WatchSessionVariables", request, pb.VariableUpdate), "", link.target)

    async def _change(self, request: pb.SetVariableRequest) -> None:
        answer = await self._link.ask("SetSessionVariable", request, pb.StatusResponse)
        if not answer.success:
            raise failed("", answer.error)


def _row(one: pb.VariableInfo) -> VariableRow:
    meta = one.metadata
    return VariableRow(
        name=one.name,
        type=one.type,
        size_bytes=one.size_bytes,
        created_at=when(meta.created_at),
        updated_at=when(meta.updated_at),
        created_by=meta.created_by,
        tags=dict(meta.tags),
    )
