"""The errors with which a request to a tool bridge fails, as its caller sees them.

A bridge reports an error in one of three places: in the field `error` of a response, in the last chunk of a stream, or
by the status of the rpc with an `ErrorInfo` in the trailer ``dspex-error-bin`` (T-160). Snakepit ends a stream by a
status whose text is JSON (T-079). All of these are a `ToolExecutionError`; a status without further data is a
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
    """The bridge answered with an error: of the tool, of the arguments, of the session, of a limit.

    Attributes:
        tool: The tool that was called; empty where the request was about none.
        type: ``ToolNotFound``, ``ValidationError``, ``TimeoutError``, ``ResourceExhausted``, ``SessionExpired`` or
            ``InternalError``; other bridges may have more.
        message: The bridge's text.
        details: Details from the bridge, such as ``code`` and ``field``.
        stacktrace: The stacktrace of the tool; most bridges keep it to themselves.
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
        """The error within its type, such as ``missing_arg``; empty if the bridge gives none."""
        return self.details.get("code", "")

    def __str__(self) -> str:
        where = f"{self.tool}: " if self.tool else ""
        return f"{where}{self.type}: {self.detail}"


class ToolCommunicationError(CallFailed):
    """The rpc failed: there is no connection, time ran out, or the bridge refused without an `ErrorInfo`.

    Attributes:
        code: The status of gRPC.
    """

    def __init__(self, code: Status, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code


def failed(tool: str, info: pb.ErrorInfo) -> ToolExecutionError:
    """Make the exception for an error that a bridge sent."""
    return ToolExecutionError(tool, info.type, info.message, info.details, stacktrace=info.stacktrace)


def from_status(tool: str, error: grpc.RpcError, target: str) -> CallFailed:
    """Make the exception for an rpc that has ended with another status than OK.

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
    """The status with which an rpc has ended."""
    return _parts(error)[0]


def _parts(error: Any) -> tuple[Status, str, Iterable[tuple[str, str | bytes]]]:
    number: int = error.code().value[0]
    return Status(number), error.details() or "", error.trailing_metadata() or ()


def told_in(trailers: Iterable[tuple[str, str | bytes]]) -> pb.ErrorInfo | None:
    """The error in the trailers of an rpc; None if there is none, or it cannot be read."""
    for key, value in trailers:
        if key == TRAILER and isinstance(value, bytes):
            try:
                return pb.ErrorInfo.FromString(value)
            except WireError:
                break  # its details are lost; the status stays
    return None


def _snakepit(tool: str, status: Status, text: str) -> ToolExecutionError | None:
    """The error in a status of Snakepit: the text of INTERNAL is JSON, that of NOT_FOUND names a session or a tool."""
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
    # the type is the name of a Python class and not one of the bridge's kinds (T-065 has a field for it)
    details = {"exception": said["type"]} if isinstance(said.get("type"), str) else {}
    trace = said.get("traceback")
    return ToolExecutionError(
        tool, "InternalError", message, details, status=status, stacktrace=trace if isinstance(trace, str) else ""
    )
