"""Encodes the status of an action for the wire: a chunk whose first byte is the code, followed by the text."""

from __future__ import annotations

from invoker.errors import DecodeError, InvocationError, NotAcceptable, ProtocolViolation, Status, StatusError
from invoker.errors import UnsupportedMediaType as Unsupported
from invoker.protocols.evergreen.action_engine.wire import STATUS, Chunk, Metadata

_METADATA = Metadata(STATUS)
_MOST = 4096
_PEERS_FAULT = (DecodeError, NotAcceptable, ProtocolViolation, Unsupported)
"""Errors in the caller's input. All of them become INVALID_ARGUMENT, unlike in riff, where two are UNKNOWN."""


def status_chunk(error: InvocationError | None) -> Chunk:
    """The chunk that reports how an action ended; None means OK."""
    if error is None:
        return Chunk(b"\x00", metadata=_METADATA)
    status = Status.INVALID_ARGUMENT if isinstance(error, _PEERS_FAULT) else error.status
    detail = str(error).encode("utf-8", "backslashreplace")
    if len(detail) > _MOST:
        detail = detail[:_MOST].decode("utf-8", "ignore").encode() + b"..."
    return Chunk(bytes((status,)) + detail, metadata=_METADATA)


def status_error(chunk: Chunk) -> StatusError | None:
    """The error in a peer's status chunk; None for OK."""
    code = chunk.data[0] if chunk.data else 0
    if not code:
        return None
    known = Status(code) if code in set(Status) else Status.UNKNOWN
    return StatusError(known, chunk.data[1:].decode("utf-8", "replace"))
