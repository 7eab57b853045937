"""The errors that a client raises when a request to a tool bridge fails.

A bridge reports an error in one of three places: in the field `error` of a response, in the last chunk of a stream, or
by the status of the rpc with an `ErrorInfo` in the trailer ``dspex-error-bin`` (T-160). Snakepit ends a stream by a
status whose text is JSON (T-079). All of these raise `ToolExecutionError`; a status without such data raises
`ToolCommunicationError`.

Source: docs/reference/tool-bridge.md 2.10 (T-159 to T-162).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.message import DecodeError as WireError

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.connect.failure import CallFailed, explained
from invoker.errors import Status
from invoker.message import EMPTY
from invoker.protocols.toolbridge.wire import KINDS, TRAILER


class ToolExecutionError(CallFailed):
    """The bridge answered with an error: of the tool, the arguments, the session, or a limit.

    Attributes:
        tool: The tool that was called; empty if the request called none.
        type: ``ToolNotFound``, ``ValidationError``, ``TimeoutError``, ``ResourceExhausted``, ``SessionExpired`` or
            ``InternalError``; other bridges may have more.
        message: The bridge's text.
        details: Details from the bridge, such as ``code`` and ``field``.
        stacktrace: The stacktrace of the tool; empty from most bridges.
    """

    def __init__(
        self,
        tool: str,
        type: str,
        message: str,
        details: Mapping[str, str] = EMPTY,
        *,
        status: Status | None = None,
        stacktrace: str = "",
    ) -> None:
        super().__init__(status or KINDS.get(type, Status.UNKNOWN), message)
        self.args = (tool, type, message, dict(details))
        self.tool = tool
        self.type = type
        self.details = dict(details)
        self.stacktrace = stacktrace

    @property
    def message(self) -> str:
        """The text of the error without its kind and its details."""
        return self.detail

    @property
    def code(self) -> str:
        """The code of the error within its type, such as ``missing_arg``; empty if the bridge sends none."""
        return self.details.get("code", "")

    def __str__(self) -> str:
        where = f"{self.tool}: " if self.tool else ""
        return f"{where}{self.type}: {self.detail}"


class ToolCommunicationError(CallFailed):
    """The rpc failed: no connection, the deadline, or an error without an `ErrorInfo`.

    Attributes:
        code: The status of gRPC.
    """

    def __init__(self, code: Status, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code


def failed(tool: str, info: pb.ErrorInfo) -> ToolExecutionError:
    """Make the exception for an `ErrorInfo` from a bridge."""
    return ToolExecutionError(tool, info.type, info.message, info.details, stacktrace=info.stacktrace)


def from_status(tool: str, error: grpc.RpcError, target: str) -> CallFailed:
    """Make the exception for an rpc that ended with another status than OK.

    Args:
        tool: The tool that was called; empty: none.
        error: The error that gRPC raised, which is also a call.
        target: The address of the bridge, for texts.
    """
    status, text, trailers = _parts(error)
    if info := told_in(trailers):
        return ToolExecutionError(
            tool, info.type, info.message, info.details, status=status, stacktrace=info.stacktrace
        )
    if told := _snakepit(tool, status, text):
        return told
    if status is Status.UNIMPLEMENTED:
        text = f"{text} ({target} serves no tool bridge, or not this rpc of it; see the log of its start)"
    return ToolCommunicationError(status, explained(status, text, target))


def status_of(error: grpc.RpcError) -> Status:
    """The status with which an rpc ended."""
    return _parts(error)[0]


def _parts(error: Any) -> tuple[Status, str, Iterable[tuple[str, str | bytes]]]:
    number: int = error.code().value[0]
    return Status(number), error.details() or "", error.trailing_metadata() or ()


def told_in(trailers: Iterable[tuple[str, str | bytes]]) -> pb.ErrorInfo | None:
    """The `ErrorInfo` in the trailers of an rpc; None if there is none, or it cannot be parsed."""
    for key, value in trailers:
        if key == TRAILER and isinstance(value, bytes):
            try:
                return pb.ErrorInfo.FromString(value)
            except WireError:
                break  # the details are lost, but the status is still reported
    return None


def _snakepit(tool: str, status: Status, text: str) -> ToolExecutionError | None:
    """Read the error in a status of Snakepit: JSON as the text of INTERNAL, a session or tool in NOT_FOUND."""
    if tool and status is Status.NOT_FOUND:
        is_session = text.lower().startswith("session")
        return ToolExecutionError(tool, "SessionExpired" if is_session else "ToolNotFound", text, status=status)
    if status is not Status.INTERNAL or not text.startswith("{"):
        return None
    try:
        said = json.loads(text)
    except ValueError:
        return None
    if not isinstance(said, dict) or not isinstance(message := said.get("message"), str):
        return None
    # Snakepit's type is the name of a Python class, and not a kind of the bridge (T-065 has a field for it)
    details = {"exception": said["type"]} if isinstance(said.get("type"), str) else {}
    trace = said.get("traceback")
    return ToolExecutionError(
        tool, "InternalError", message, details, status=status, stacktrace=trace if isinstance(trace, str) else ""
    )
