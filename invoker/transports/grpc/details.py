"""The code of a status, and its text, cut so that it fits into a trailer (R-118)."""

from __future__ import annotations

from urllib.parse import quote

from invoker.errors import InvocationError, LimitExceeded

DETAIL_BYTES = 4096
"""The most bytes of a status text after percent-encoding (R-118)."""

_SAFE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def status_of(error: InvocationError | None) -> tuple[int, str]:
    """The status code and the text of an ending; an ``error`` of None is OK."""
    return (0, "") if error is None else (int(error.status), str(error))


def oversize(size: int, most_bytes: int) -> LimitExceeded:
    """The error of a message of ``size`` bytes, where a method takes ``most_bytes`` at most (R-121)."""
    return LimitExceeded(f"a message of {size} bytes exceeds the limit of {most_bytes} bytes of this method")


def clip(detail: str, limit_bytes: int = DETAIL_BYTES) -> str:
    """Cut a status text on a character boundary so that its percent-encoded form keeps the limit (R-118).

    Lone surrogates, which cannot be encoded, are replaced by their escapes.
    """
    text = detail[: limit_bytes + 1].encode("utf-8", "backslashreplace").decode()  # it may be the peer's text
    if len(text) * 12 <= limit_bytes or len(quote(text, safe=_SAFE)) <= limit_bytes:
        return text
    room, kept = limit_bytes - 9, 0  # 9: the ellipsis
    for character in text:
        room -= len(quote(character, safe=_SAFE))
        if room < 0:
            break
        kept += 1
    return text[:kept] + "…"
