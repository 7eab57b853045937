"""Makes and reads HTTP/1.1 chunks and WebSocket frames, for the minimal client and server."""

from __future__ import annotations

from benchmarks.bodies import WrongReplyError

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MASK = b"\x12\x34\x56\x78"


def chunk(data: bytes) -> bytes:
    """Make one HTTP/1.1 chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def unchunked(data: bytes | bytearray, at: int = 0) -> bytes:
    """Join the chunks from offset ``at`` on, and return the body.

    Raises:
        WrongReplyError: A chunk is incomplete, or there are bytes after the last one.
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
        raise WrongReplyError(f"a chunk is incomplete: {bytes(data[-100:])!r}") from None
    if at != len(data):
        raise WrongReplyError(f"there are bytes after the last chunk: {bytes(data[at:][:100])!r}")
    return b"".join(parts)


def unmasked(text: bytes) -> bytes:
    """Make a text frame as servers send it; the text is shorter than 64 KiB."""
    return b"\x81" + _length(len(text), 0) + text


def masked(text: bytes) -> bytes:
    """Make a text frame as clients send it, which is masked; the text is shorter than 64 KiB."""
    mask = (_MASK * (len(text) // 4 + 1))[: len(text)]
    return (
        b"\x81" + _length(len(text), 0x80) + _MASK + bytes(one ^ other for one, other in zip(text, mask, strict=True))
    )


def _length(size: int, bit: int) -> bytes:
    return bytes([bit | size]) if size < 126 else bytes([bit | 126]) + size.to_bytes(2, "big")
