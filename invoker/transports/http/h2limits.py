"""The limits for a client of HTTP/2: those of h2, and `FrameRateLimit` for frames that are not part of a request.

A frame of nine bytes costs a server a thousand times as much as its sender: the server parses it, answers it, or begins
a request that the next frame takes back. So each connection has an allowance for frames that are neither a request nor
a part of one. The allowance grows slowly with time, and with the bytes that are sent to the client, since a client that
takes a long response has to send WINDOW_UPDATEs. A client that exceeds it gets ENHANCE_YOUR_CALM (RFC 9113, 10.5).

The parser handles all its input before other tasks can run, so it gets only a few frames at a time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hpack import Decoder, HeaderTuple, HPACKDecodingError

from invoker.transports.http.h1 import PREFACE

MOST_STREAMS: Final = 100
"""The most requests at once on one connection."""
MOST_HEAD_BYTES: Final = 64 * 1024
"""The most bytes of a decoded head, where each field counts 32 more (RFC 9113, 6.5.2)."""
_TABLE_BYTES: Final = 4096
"""The most bytes of the header table that is kept for a client. A client may ask for 4 GiB, and the whole table is
searched for each header."""

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY, _CONTINUATION = 0, 1, 3, 4, 7, 9
_UNKNOWN = b"\xfe"
"""An undefined type of frame, which every receiver must ignore (RFC 9113, 5.5)."""
_END_STREAM, _PADDED = 1, 8
_OF_HEADS: Final = frozenset({_HEADERS, _CONTINUATION})

_ALLOWANCE: Final = 1000.0
_RESET_FRAMES: Final = 2
"""RST_STREAM counts as this many frames, because a request was begun before it."""
_PER_SECOND: Final = 100.0
_BYTES_A_FRAME: Final = 1024
"""The client may send one more frame for each of these bytes that is sent to it: some send two WINDOW_UPDATEs for each
4 KiB."""
_SETTING_BYTES: Final = 64
"""A SETTINGS frame counts once more for each of these bytes, because it may hold thousands of settings."""
_FRAME_BYTES: Final = 16 * 1024
"""The most bytes of a frame that our SETTINGS allow. h2 would notice a longer one only at its end, and hold up to 16
MiB until then."""
_CONTINUATIONS: Final = 16
"""The most CONTINUATION frames of one head: a frame has up to 16 KiB, and heads of more than 64 KiB are refused
anyway."""
_HEAD_BYTES: Final = 128 * 1024
"""The most bytes of a head on the wire: it may have 64 KiB once decoded, and a client that encodes it badly sends twice
as many. Reading takes 0.3 us a byte, in one go."""
_UPDATES: Final = re.compile(rb"(?:[\x20-\x3e]|\x3f[\x80-\xff]*[\x00-\x7f]){3}")
"""Matches three changes of the table's size, more than a head needs (RFC 7541, 4.2). hpack accepts any number, at 6 us
each."""
_PADDING: Final = 256
_AT_ONCE: Final = 16
"""The most frames that are parsed in one turn: eight requests with their RST_STREAMs."""
_HEAD_STEP: Final = 512
"""A head counts as one more frame of its turn for this many bytes: each byte may be a field, which takes 6 us to
read."""
_HEAD: Final = 9


class _Decoder(Decoder):
    """Reads heads, each of which may change the size of the decoder's table at most twice."""

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:  # noqa: FBT001, FBT002 - as hpack has it
        if _UPDATES.match(data):
            raise HPACKDecodingError("a head changes the size of the table more than twice")
        return super().decode(data, raw)


def server_side() -> H2Connection:
    """The server's side of a connection, with our limits."""
    # Outgoing heads need no check, since `fields_of` makes valid ones.
    config = H2Configuration(
        client_side=False, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
    )
    h2 = H2Connection(config)
    settings = h2.local_settings
    settings.max_concurrent_streams, settings.max_header_list_size = MOST_STREAMS, MOST_HEAD_BYTES
    del settings[SettingCodes.ENABLE_CONNECT_PROTOCOL]  # WebSocket is not offered
    settings.acknowledge()  # otherwise these limits would apply only once the client has acknowledged them
    h2.decoder = _Decoder(MOST_HEAD_BYTES)
    return h2


def bound_table(h2: H2Connection) -> None:
    """Bound the table of sent headers, whose size the client's settings may have changed."""
    h2.encoder.header_table_size = min(h2.encoder.header_table_size, _TABLE_BYTES)


class FloodError(Exception):
    """The client has used up its allowance of frames, or has sent a frame or head that is too large.

    Attributes:
        code: The error code that is sent to the client.
    """

    def __init__(self, why: str, code: ErrorCodes = ErrorCodes.ENHANCE_YOUR_CALM) -> None:
        super().__init__(why)
        self.code = code


class FrameRateLimit:
    """Watches the frames of one client, from the preface on.

    Args:
        clock: The clock in seconds.

    Attributes:
        has_goaway: Whether the client has said that it begins no more requests. The frame is not passed to h2: h2 would
            drop the frames that it has made for the client, and send nothing more, although running requests may end
            (RFC 9113, 6.8).
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.has_goaway = False
        self._clock = clock
        self._allowance = _ALLOWANCE
        self._counted_s = clock()
        self._continued = 0
        self._came = 0  # how many bytes of the current head have come
        self._left = len(PREFACE)
        self._head = b""  # the incomplete header of a frame
        self._data = b""
        self._at = 0  # how many bytes of the first piece were taken

    def sent(self, size: int) -> None:
        """Count bytes that went to the client."""
        self._allowance += size / _BYTES_A_FRAME

    def fault(self) -> None:
        """Count a stream that was reset because of what its client sent.

        Clients can attack by causing many resets (CVE-2025-8671).

        Raises:
            FloodError: There were too many resets.
        """
        self._spend(_RESET_FRAMES)

    def put(self, data: bytes) -> None:
        """Append bytes that came."""
        self._data = self._head + self._data[self._at :] + data
        self._head, self._at = b"", 0
        now_s = self._clock()
        if self._allowance < _ALLOWANCE:
            self._allowance = min(_ALLOWANCE, self._allowance + (now_s - self._counted_s) * _PER_SECOND)
        self._counted_s = now_s

    @property
    def waiting(self) -> int:
        """How many bytes were not taken yet."""
        return len(self._data) - self._at

    def take(self) -> bytes:
        """The next bytes, of a few frames. They may begin inside a frame, but a head is never split.

        Raises:
            FloodError: Too many frames requested nothing, or one is too long.
        """
        data, begin, at, frames = self._data, self._at, self._at, 0
        while at < len(data) and frames < _AT_ONCE:
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            head = data[at : at + _HEAD]
            if len(head) < _HEAD:
                self._head, self._at = head, len(data)
                return data[begin:at]
            if head[3] == _GOAWAY:
                self.has_goaway = True
                data = data[: at + 3] + _UNKNOWN + data[at + 4 :]
            self._left = int.from_bytes(head[:3])
            self._count(head[3], head[4], self._left)
            at += _HEAD
            frames += 1 + self._left // _HEAD_STEP if head[3] in _OF_HEADS else 1
        self._at = at
        return data[begin:at]

    def _count(self, kind: int, flags: int, size: int) -> None:
        self._continued, self._came = (self._continued + 1, self._came + size) if kind == _CONTINUATION else (0, size)
        if size > _FRAME_BYTES:
            raise FloodError(f"a frame exceeds the limit of {_FRAME_BYTES} bytes", ErrorCodes.FRAME_SIZE_ERROR)
        if self._continued > _CONTINUATIONS:
            raise FloodError(f"a head exceeds the limit of {_CONTINUATIONS} CONTINUATION frames")
        if self._came > _HEAD_BYTES and self._continued:
            raise FloodError(f"a head exceeds the limit of {_HEAD_BYTES} bytes")
        if kind == _HEADERS:
            return
        if kind == _DATA and (flags & _END_STREAM or size > (_PADDING if flags & _PADDED else 0)):
            return
        more = size // _SETTING_BYTES if kind == _SETTINGS else 0
        self._spend(more + (_RESET_FRAMES if kind == _RST_STREAM else 1))

    def _spend(self, frames: int) -> None:
        self._allowance -= frames
        if self._allowance < 0:
            raise FloodError("the client sent too many frames that ask for nothing")
