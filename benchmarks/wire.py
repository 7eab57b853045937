"""Bytes of HTTP/1.1 chunks and of WebSocket frames, for a client and a server that do next to nothing."""

from __future__ import annotations

from benchmarks.bodies import WrongReplyError

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MASK = b"\x12\x34\x56\x78"


def chunk(data: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def unchunked(data: bytes | bytearray, at: int = 0) -> bytes:
    """The body that chunks are, from a place on.

    Raises:
        WrongReplyError: They are not whole, or something is behind the last one.
    """
    parts = []
    try:
        while True:
            end = data.index(b"\r\n", at)
            size = int(data[at:end], 16)
            at = end + 2 + size + 2
            if not size:
                break
            parts.append(data[end + 2 : at - 2])
    except ValueError:
        raise WrongReplyError(f"the chunks are cut: {bytes(data[-100:])!r}") from None
    if at != len(data):
        raise WrongReplyError(f"there is more behind the last chunk: {bytes(data[at:][:100])!r}")
    return b"".join(parts)


def unmasked(text: bytes) -> bytes:
    """A frame of text, as servers send it; of at most 125 bytes or 64 KiB."""
    return b"\x81" + _length(len(text), 0) + text


def masked(text: bytes) -> bytes:
    """The same as clients send it."""
    mask = (_MASK * (len(text) // 4 + 1))[: len(text)]
    return (
        b"\x81" + _length(len(text), 0x80) + _MASK + bytes(one ^ other for one, other in zip(text, mask, strict=True))
    )


def _length(size: int, bit: int) -> bytes:
    return bytes([bit | size]) if size < 126 else bytes([bit | 126]) + size.to_bytes(2, "big")
