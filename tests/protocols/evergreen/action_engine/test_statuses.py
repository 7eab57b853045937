"""`invoker.protocols.evergreen.action_engine.statuses`: endings as chunks, and chunks as endings."""

from __future__ import annotations

import pytest

from invoker.errors import (
    DecodeError,
    FunctionError,
    InvocationError,
    NotAcceptable,
    ProtocolViolation,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.protocols.evergreen.action_engine.statuses import status_chunk, status_error
from invoker.protocols.evergreen.action_engine.wire import STATUS, Chunk, decode
from tests.protocols.evergreen.action_engine.recordings import messages


def test_a_normal_end_is_code_zero() -> None:
    """As the peers write it, but for the time."""
    told = decode(messages("single", "<")[-2]).fragments[0].content
    assert isinstance(told, Chunk)
    chunk = status_chunk(None)
    assert (chunk.data, chunk.media_type) == (told.data, told.media_type) == (b"\x00", STATUS)
    assert not chunk.is_null


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StatusError(Status.NOT_FOUND, "none"), 5),
        (FunctionError("ValueError: boom"), 2),
        (DecodeError("bad"), 3),
        (NotAcceptable("bad"), 3),
        (ProtocolViolation("bad"), 3),
        (UnsupportedMediaType("bad"), 3),
    ],
)
def test_an_error_is_its_code_and_text(error: InvocationError, code: int) -> None:
    """What the peer did wrong is INVALID_ARGUMENT."""
    chunk = status_chunk(error)
    assert chunk.data == bytes((code,)) + str(error).encode()


def test_a_long_text_is_cut_between_characters() -> None:
    """At 4 KiB."""
    data = status_chunk(StatusError(Status.INTERNAL, "é" * 5000)).data[1:]
    assert len(data) <= 4096 + 3
    assert data.decode().rstrip(".") == "é" * 2048


def test_a_status_of_a_peer_is_an_error() -> None:
    """With its code and text; OK is none, and an unknown code UNKNOWN."""
    found = status_error(Chunk(b"\x05nope"))
    assert found is not None
    assert (found.status, str(found)) == (Status.NOT_FOUND, "nope")
    assert status_error(Chunk(b"\x00")) is None
    assert status_error(Chunk(b"")) is None
    strange = status_error(Chunk(b"\xc8\xff"))
    assert strange is not None
    assert (strange.status, str(strange)) == (Status.UNKNOWN, "\ufffd")
