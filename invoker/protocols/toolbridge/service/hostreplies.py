"""Reads and checks the answers of a host that is called back: its list of tools, its streams, values and errors.

A host is another program, which may be wrong. Its mistakes are reported as errors of the host, with ``remote=true``,
not as bugs of the invoker or mistakes of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message as Protobuf

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import BadAny, known, pack, unpack
from invoker.errors import NestedError, Status
from invoker.protocols.toolbridge.client.failure import told_in
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.tools import TOOL_NAME, TOOL_NAMES

_ID_CHARS: Final = 256
_SHOWN: Final = 80


class Count:
    """Checks that no chunk of a stream is lost, and that the number of data chunks is the host's total (T-076, T-077).

    A host that numbers no chunk, or gives no total, is not checked.
    """

    def __init__(self) -> None:
        self._next = self._data = 0
        self._is_numbered: bool | None = None

    def take(self, chunk: pb.ToolStreamChunk, what: str | None) -> None:
        """Take the next chunk.

        Raises:
            NestedError: The chunk is not the next one, or others are missing at the end.
        """
        if self._next == 1:
            self._is_numbered = chunk.sequence != 0
        wanted = self._next if self._is_numbered is not False else 0
        if chunk.sequence != wanted:
            raise incomplete(f"has sent chunk {chunk.sequence} of its stream where {wanted} was expected")
        self._next += 1
        self._data += what == "data"
        if what == "complete" and chunk.complete.total_chunks not in (0, self._data):
            told = f"has sent {self._data} chunks of data, and says that it was {chunk.complete.total_chunks}"
            raise incomplete(told)


class Parts:
    """Joins bytes that came in several chunks (T-078)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._missing = 0
        self._parts: list[bytes] = []

    def begin(self, told: pb.StreamMetadata) -> bool:
        """Whether a piece of metadata says that bytes in several chunks follow."""
        size = _unpacked(told.value) if told.key == "bytes_total" else None
        if not isinstance(size, int) or size <= 0:
            return False
        if size > self._most:
            raise failure(f"the host is about to send {size} bytes in chunks; the limit is {self._most} bytes")
        self.check()
        self._missing = size
        return True

    def whole(self, payload: bytes) -> bytes | None:
        """The value that is complete with this chunk; None if more must come."""
        if not self._missing:
            return payload
        part = _unpacked(AnyMessage.FromString(payload))
        if not isinstance(part, bytes):
            raise failure("the host sent another value although bytes of the last one are missing")
        if len(part) > self._missing:
            raise failure(f"the host sent {len(part)} bytes of a value of which {self._missing} are missing")
        self._parts.append(part)
        self._missing -= len(part)
        if self._missing:
            return None
        parts, self._parts = self._parts, []
        return pack(b"".join(parts))

    def check(self) -> None:
        """Check that no bytes are missing, since the stream has ended or another value begins.

        Raises:
            NestedError: Bytes are missing.
        """
        if self._missing:
            raise incomplete(f"has sent a value of which {self._missing} bytes are missing")


def by_name(specs: Iterable[pb.ToolSpec]) -> dict[str, pb.ToolSpec]:
    """The tools of a host by their names and ids; an id takes precedence over a name (T-021).

    Raises:
        BridgeError: A name or an id is invalid (T-022), or two tools have it.
    """
    names: dict[str, pb.ToolSpec] = {}
    ids: dict[str, pb.ToolSpec] = {}
    for spec in specs:
        if TOOL_NAME(spec.name) is None:
            raise unlisted(f"with the tool {spec.name[:_SHOWN]!r}, whose name is not valid: it must be {TOOL_NAMES}")
        if len(spec.tool_id) > _ID_CHARS or not spec.tool_id.isprintable():
            raise unlisted(
                f"with the tool {spec.name!r}, whose id is longer than {_ID_CHARS} characters or not printable"
            )
        for taken, key, what in ((names, spec.name, "named"), (ids, spec.tool_id or spec.name, "with the id")):
            if key in taken:
                raise unlisted(f"with two tools {what} {key!r}")
            taken[key] = spec
    return names | ids


def remote(info: pb.ErrorInfo) -> NestedError:
    """An error that the host has reported (T-173)."""
    try:
        status = Kind(info.type).status
    except ValueError:
        status = Status.INTERNAL
    details = {**info.details, "remote": "true"}
    return NestedError(status, info.message, kind=info.type or Kind.INTERNAL.value, details=details)


_KINDS: Final = {
    grpc.StatusCode.NOT_FOUND: Kind.TOOL_NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT: Kind.VALIDATION,
    grpc.StatusCode.DEADLINE_EXCEEDED: Kind.TIMEOUT,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Kind.EXHAUSTED,
}


def failed(error: grpc.aio.AioRpcError) -> NestedError:
    """The error of a failed rpc: from its trailer; without one, from its status."""
    if info := told_in(error.trailing_metadata() or ()):
        return remote(info)
    code = error.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        return _nested(BridgeError(Kind.INTERNAL, "the host is gone", code="callback_unreachable"))
    kind = _KINDS.get(code, Kind.INTERNAL)
    return _nested(BridgeError(kind, error.details() or code.name, code="callback_failed", status=code.name))


M = TypeVar("M", bound=Protobuf)


def read(kind: type[M], data: bytes) -> M:
    """Parse a message that the host has sent.

    Raises:
        NestedError: The bytes are no message of this kind.
    """
    try:
        return kind.FromString(data)
    except WireError:
        raise failure(f"the host sent bytes that are not a valid {kind.__name__}") from None


def _unpacked(value: AnyMessage) -> Any:
    try:
        return unpack(value.SerializeToString())
    except BadAny as error:
        raise failure(f"the host sent a value that cannot be read: {error.detail}") from None


def readable(payload: bytes) -> bytes:
    """Check that a function can read a value of a host's tool; if it cannot, the error is the host's.

    Raises:
        NestedError: The value cannot be read.
    """
    try:
        return known(payload, unpack(payload), Any)
    except BadAny as error:
        raise failure(f"the host sent a value that cannot be read: {error.detail}") from None


def incomplete(text: str) -> NestedError:
    """The error of a stream in which a chunk is missing."""
    return _nested(BridgeError(Kind.INTERNAL, f"the host {text}", code="callback_incomplete"))


def failure(text: str) -> NestedError:
    """The error of a host that has sent an unusable answer."""
    return _nested(BridgeError(Kind.INTERNAL, text, code="callback_failed"))


def unlisted(why: str, what: str = "answered") -> BridgeError:
    """The error of a host that gave no list of tools, so that no session is made (T-169)."""
    text = f"the host {what} at the callback address {why}"
    return BridgeError(Kind.INTERNAL, text, code="callback_unreachable", field="callback_address")


def _nested(error: BridgeError) -> NestedError:
    return NestedError(error.status, error.detail, kind=error.kind.value, details={**error.details, "remote": "true"})
