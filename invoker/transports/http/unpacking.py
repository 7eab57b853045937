"""`Unpacker`: undoes the content codings of a request's body, a piece at a time.

Theory. Few bytes can unpack to very many: gzip makes a thousand bytes from one, zstd thirty thousand, and these factors
multiply if a body is packed twice. So bytes are unpacked only when they are taken. Each coding is a stage, whose output
is the next one's input::

    wire --feed--> [gzip] --at most PIECE_BYTES--> [zstd] --at most PIECE_BYTES--> take

One `take` is one step of one stage, so it never lasts long, and a caller in a loop can let others have a turn. The
reader counts the output. The bytes between the stages, and each member of gzip or frame of zstd that begins, are
counted here: `_SLACK_BYTES` plus `_TIMES` times the received bytes are allowed, a limit that a single stage cannot
reach.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final, Protocol

from invoker.errors import DecodeError
from invoker.transports.http.codings import GZIP, PACKED, ZSTD, zstd_module

STEPS: Final = 16
"""How many steps are short enough for one turn of the loop."""

PIECE_BYTES: Final = 64 * 1024
"""The most bytes that are unpacked at once."""

_SLICE_BYTES: Final = 4 * 1024
"""The most bytes that are given to a stage at once; bytes that it does not take are copied."""
_SLACK_BYTES: Final = 16 * 1024 * 1024
_TIMES: Final = 1100
_MEMBER_BYTES: Final = 8 * 1024
"""Beginning a member costs as much as unpacking this many bytes."""
_WINDOW_LOG: Final = 23
"""The largest window of zstd, 8 MiB (RFC 9659)."""


class _Member(Protocol):
    """Unpacks one member of gzip, or one frame of zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Unpacker:
    """Undoes the codings of one body.

    Args:
        codings: The codings in the order in which they were applied; of `invoker.transports.http.codings.UNPACKED`.
    """

    def __init__(self, codings: Sequence[str]) -> None:
        self._stages = [_Stage(one) for one in reversed(codings)]
        self._came = 0
        self._spent = 0

    def feed(self, data: bytes) -> None:
        """Take more of the body."""
        self._came += len(data)
        self._stages[0].feed(data)

    def steps(self, most: int) -> bytes | None:
        """Call `take` up to ``most`` times, until it gives bytes."""
        data = self.take()
        while data == b"" and most > 1:
            most -= 1
            data = self.take()
        return data

    def take(self) -> bytes | None:
        """Some unpacked bytes, perhaps none; None once all received bytes are unpacked.

        Raises:
            DecodeError: The body is not valid for its Content-Encoding, or expands too much between two stages.
        """
        stages = self._stages
        for at in range(len(stages) - 1, -1, -1):
            stage = stages[at]
            if stage.is_hungry:
                continue
            members = stage.members
            data = stage.take()
            self._spent += (stage.members - members) * _MEMBER_BYTES
            if at + 1 == len(stages):
                self._check()
                return data
            stages[at + 1].feed(data)
            self._spent += len(data)
            self._check()
            return b""
        return None

    def close(self) -> None:
        """Check that the body is complete, once it has ended and all of it was taken.

        Raises:
            DecodeError: The body is cut short.
        """
        for one in self._stages:
            one.close()

    def _check(self) -> None:
        if self._spent > _SLACK_BYTES + _TIMES * self._came:
            raise DecodeError(f"a body of {self._came} bytes expands too much when it is decompressed")


class _Stage:
    """Undoes one content coding, gzip or deflate, of a body."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._member: _Member | None = None
        self._data = b""
        self._at = 0
        self._is_full = False  # the last piece had the largest allowed size, so more bytes may be waiting
        self.members = 0

    @property
    def is_hungry(self) -> bool:
        """Whether this stage needs more input to continue."""
        return self._at >= len(self._data) and not self._is_full

    def feed(self, data: bytes) -> None:
        self._data = self._data[self._at :] + data
        self._at = 0

    def take(self) -> bytes:
        member = self._member
        if member is None or member.eof:
            member = self._next()
        part = self._data[self._at : self._at + _SLICE_BYTES]
        try:
            piece = member.decompress(part, PIECE_BYTES)
        except _faults() as error:
            raise DecodeError(f"the body is not {self._coding}, as its Content-Encoding says: {error}") from None
        left = member.unused_data if member.eof else getattr(member, "unconsumed_tail", b"")  # zstd keeps the rest
        self._at += len(part) - len(left)
        self._is_full = len(piece) >= PIECE_BYTES and not member.eof
        return piece

    def close(self) -> None:
        member = self._member
        if member is None or not member.eof:
            raise DecodeError(f"the body ends before its {self._coding} does")

    def _next(self) -> _Member:
        """Begin a member; after the first one only further members may come."""
        if self.members and self._coding == "deflate":
            raise DecodeError("data follows the end of the compressed body")
        self.members += 1
        self._member = _member(self._coding)
        return self._member


def _member(coding: str) -> _Member:
    if coding == ZSTD:
        zstd = zstd_module()
        member: _Member = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
        return member
    # `deflate` is the zlib format; a few old clients send raw deflate under this name.
    return zlib.decompressobj(zlib.MAX_WBITS + 16 if coding == GZIP else zlib.MAX_WBITS)


def _faults() -> tuple[type[Exception], ...]:
    """The errors that libraries raise for bytes that they cannot unpack."""
    return (zlib.error, zstd_module().ZstdError) if ZSTD in PACKED else (zlib.error,)
