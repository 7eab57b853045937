"""Frames of WebSocket, as a server reads and writes them (RFC 6455, 5); pure.

Theory. Messages come in frames, and control frames may come between the frames of one message::

    inside          frame                       next       gives
    --------------  --------------------------  ---------  --------------------------
    no message      text or binary, final       the same   a message
    no message      text or binary              a message  -
    no message      continuation                -          1002
    a message       continuation                the same   -
    a message       continuation, final         no message a message
    a message       text or binary              -          1002
    either          ping, pong, close           the same   a `Control`

Refused are: a frame without mask, a reserved bit, an unknown opcode, a length with more bytes than it needs, a control
frame that is long or a fragment, a close with half a code or a code that is not allowed (all with 1002), and text that
is not UTF-8 (1007). A frame that would make its message too long is refused as soon as its length has come (1009). No
extension is negotiated, so a reserved bit means nothing.

Memory is allocated for the bytes that have come, not for the announced length.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from invoker.core.http import LongMessage

CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

PROTOCOL_ERROR: Final = 1002
NO_UTF8: Final = 1007
TOO_BIG: Final = 1009

_CONTINUATION, _TEXT, _BINARY = 0, 1, 2
_FINAL: Final = 0x80
_WHOLE_TEXT: Final = _FINAL | _TEXT
_WHOLE_BINARY: Final = _FINAL | _BINARY
_SHORT: Final = 125
_REASON_BYTES: Final = 123
_HEAD: Final = 2
_MASK: Final = 4
_FRAGMENT_BYTES: Final = 96 * 1024
_MANY: Final = 512
"""Payloads with more bytes are unmasked by numpy or by tables; shorter payloads are unmasked as one integer."""

_HEADS: Final = {
    first: tuple(bytes((first, size)) for size in range(_SHORT + 1)) for first in (_WHOLE_TEXT, _WHOLE_BINARY)
}
_XOR: Final = tuple(bytes(one ^ other for one in range(256)) for other in range(256))


_Letters = codecs.getincrementaldecoder("utf-8")


class FrameError(Exception):
    """The bytes of a peer are not a valid frame.

    Attributes:
        code: The code of the close frame that the peer is sent.
    """

    def __init__(self, why: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(why)
        self.code = code


class Control(msgspec.Struct, frozen=True):
    """A control frame.

    Attributes:
        kind: `CLOSE`, `PING` or `PONG`; 0 in `FRAGMENT`.
        payload: Unmasked; of a close frame, the reason in UTF-8.
        code: The code of a close frame; 0 where it has none.
    """

    kind: int
    payload: bytes = b""
    code: int = 0


FRAGMENT: Final = Control(0)


class FrameReader:
    """Reads the frames of one client.

    Args:
        most_bytes: The most bytes of one message.
    """

    __slots__ = ("_at", "_come", "_data", "_letters", "_message", "_most_bytes", "_need", "_opcode", "_parts")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._data = b""
        self._at = 0  # where the next frame begins
        self._need = _HEAD  # how many bytes have to come before they are parsed again
        self._parts: list[bytes] = []  # the pieces that have come since
        self._come = 0  # how many bytes these pieces have
        self._opcode = 0  # opcode of the incomplete message; 0: there is none
        self._message = bytearray()
        self._letters = _Letters()

    @property
    def held(self) -> int:
        """Bytes that have come and are not yet returned in a message."""
        return len(self._data) - self._at + self._come + len(self._message)

    def feed(self, data: bytes) -> None:
        """Append bytes of the connection, of any length; `next` reads frames from them."""
        if self._at == len(self._data) and not self._parts:
            self._data, self._at = data, 0
        else:
            self._parts.append(data)
            self._come += len(data)

    def next(self) -> str | bytes | Control | None:  # noqa: C901 - every frame comes here, and each call costs
        """The next message, a text as `str`, or the next control frame; None if more has to come.

        `FRAGMENT` stands for a fragment that does not end its message, so that a caller can count all frames.

        Raises:
            FrameError: The bytes are not a valid frame; the bytes after them cannot be read.
        """
        while True:
            data, at = self._data, self._at
            have = len(data) - at
            if have < self._need:
                if have + self._come < self._need:
                    return None
                data, at = self._joined(), 0
                have = len(data)
            first, size = data[at], data[at + 1] - 128
            if size < 0:
                raise FrameError("a frame has no mask")
            if (first != _WHOLE_TEXT and first != _WHOLE_BINARY) or self._opcode:  # noqa: PLR1714 - it costs less
                self._check(first, size)
            begin = at + _HEAD + _MASK
            if size > _SHORT:
                wide = 2 if size == _SHORT + 1 else 8
                begin += wide
                if have < _HEAD + wide:
                    self._need = _HEAD + wide
                    continue
                size = _wide(data[at + _HEAD : at + _HEAD + wide])
            if size > self._most_bytes - len(self._message) and first & 0x0F < CLOSE:
                raise FrameError(f"a message exceeds the limit of {self._most_bytes} bytes", TOO_BIG)
            end = begin + size
            if end - at > have:
                self._need = end - at
                continue
            payload = _unmasked(data[begin:end], data[begin - _MASK : begin]) if size else b""
            self._need = _HEAD
            if end == len(data):
                self._data, self._at = b"", 0
            else:
                self._at = end
            if first == _WHOLE_TEXT:
                return _text(payload)
            if first == _WHOLE_BINARY:
                return payload
            return self._other(first, payload)

    def _joined(self) -> bytes:
        data = self._data = b"".join((self._data[self._at :], *self._parts))
        self._parts.clear()
        self._at = self._come = 0
        return data

    def _check(self, first: int, size: int) -> None:
        """Refuse the head of a frame that is not allowed; common heads are not checked here."""
        opcode = first & 0x0F
        if first & 0x70:
            raise FrameError("a frame has a reserved bit, but no extension was agreed on")
        if opcode in (_TEXT, _BINARY):
            if self._opcode:
                raise FrameError("a message begins within another one")
        elif opcode == _CONTINUATION:
            if not self._opcode:
                raise FrameError("a continuation comes without a message")
        elif opcode not in (CLOSE, PING, PONG):
            raise FrameError(f"a frame has the unknown opcode {opcode}")
        elif not first & _FINAL:
            raise FrameError("a control frame is a fragment")
        elif size > _SHORT:
            raise FrameError(f"a control frame exceeds the limit of {_SHORT} bytes")

    def _other(self, first: int, payload: bytes) -> str | bytes | Control:
        """The result of a control frame or a fragment."""
        if first & 0x0F >= CLOSE:
            return _control(first & 0x0F, payload)
        self._opcode = self._opcode or first
        if self._opcode == _TEXT:
            _text(payload, self._letters, is_last=bool(first & _FINAL))
        self._message += payload
        if not first & _FINAL:
            return FRAGMENT
        payload, opcode = bytes(self._message), self._opcode
        self._message = bytearray()
        self._opcode = 0
        return _text(payload) if opcode == _TEXT else payload


def _wide(data: bytes) -> int:
    size = int.from_bytes(data)
    if size <= (_SHORT if len(data) == 2 else 0xFFFF):
        raise FrameError("a frame encodes its length with more bytes than are needed")
    if size >> 63:
        raise FrameError("the length of a frame has its highest bit set")
    return size


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    if size <= _MANY:
        key = (mask * (size + 3 >> 2))[:size]
        return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
    numpy: Any = sys.modules.get("numpy")  # ten times as fast, but too large (20 MB) to import for this alone
    # otherwise another thread is importing it at the moment
    if hasattr(numpy, "frombuffer") and hasattr(numpy, "uint32"):
        whole = size & -_MASK
        words = numpy.frombuffer(payload, numpy.uint32, whole // _MASK) ^ numpy.frombuffer(mask, numpy.uint32)
        rest = bytes(one ^ other for one, other in zip(payload[whole:], mask, strict=False))
        return bytes(words.tobytes() + rest)
    made = bytearray(payload)
    for at, one in enumerate(mask):
        made[at::_MASK] = made[at::_MASK].translate(_XOR[one])
    return bytes(made)


def _text(payload: bytes, letters: codecs.IncrementalDecoder | None = None, *, is_last: bool = True) -> str:
    """Decode a text; ``letters`` holds the incomplete character at the end of the previous fragment."""
    try:
        return payload.decode() if letters is None else letters.decode(payload, is_last)
    except UnicodeDecodeError as error:
        raise FrameError(f"a text is not UTF-8: {error.reason} at byte {error.start}", NO_UTF8) from None


def _control(kind: int, payload: bytes) -> Control:
    if kind != CLOSE or not payload:
        return Control(kind, payload)
    code = int.from_bytes(payload[:2])
    if len(payload) == 1:
        raise FrameError("a close frame has only half of a code")
    if not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999):  # RFC 6455, 7.4, and IANA's list
        raise FrameError(f"a close frame has the code {code}, which must not be sent")
    _text(payload[2:])
    return Control(kind, payload[2:], code)


def framed(message: str | bytes) -> bytes:
    """The bytes of one frame, unmasked and final, that carries a whole message."""
    if type(message) is str:
        first, payload = _WHOLE_TEXT, message.encode()
    else:
        first, payload = _WHOLE_BINARY, message  # type: ignore[assignment]  # it is either text or bytes
    size = len(payload)
    return _HEADS[first][size] + payload if size <= _SHORT else _frame(first, payload)


def fragments(message: str | bytes | LongMessage) -> Iterator[bytes]:
    """A message as frames that are made when they are taken; a long message becomes several frames."""
    if not isinstance(message, LongMessage):
        yield framed(message)
        return
    opcode, last = _TEXT if message.is_text else _BINARY, b""
    for part in message.parts:
        view = memoryview(part)
        for at in range(0, len(view), _FRAGMENT_BYTES):
            if last:
                yield _frame(opcode, last)
                opcode = _CONTINUATION
            last = bytes(view[at : at + _FRAGMENT_BYTES])
    yield _frame(_FINAL | opcode, last)


def _frame(first: int, payload: bytes) -> bytes:
    size = len(payload)
    if size <= _SHORT:
        return b"%c%c%b" % (first, size, payload)
    if size <= 0xFFFF:
        return b"%c\x7e%b%b" % (first, size.to_bytes(2), payload)
    return b"%c\x7f%b%b" % (first, size.to_bytes(8), payload)


def control(kind: int, payload: bytes = b"") -> bytes:
    """A control frame; its payload has at most 125 bytes."""
    assert len(payload) <= _SHORT
    return b"%c%c%b" % (_FINAL | kind, len(payload), payload)


def closing(code: int, reason: str = "") -> bytes:
    """A close frame. A reason that is too long is shortened; a frame without a code has no reason."""
    if not code:
        return control(CLOSE)
    told = reason.encode("utf-8", "backslashreplace")[:_REASON_BYTES]
    return control(CLOSE, code.to_bytes(2) + told.decode("utf-8", "ignore").encode())
