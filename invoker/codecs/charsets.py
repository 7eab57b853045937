"""Charsets: looks up their names, and converts text to bytes and back strictly."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache

JSON_CHARSETS = "utf-8, utf-16, utf-16le, utf-16be, utf-32, utf-32le, utf-32be"
TEXT_CHARSETS = "utf-8, utf-16, iso-8859-1, windows-1252 and the like"

_MARK = "\ufeff"
_UNICODE = frozenset({"utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"})
# Looking up names from the wire in `codecs` would import a module and keep an entry for each, so only known names are
# looked up.
_KNOWN = frozenset(aliases) | frozenset(aliases.values()) | {"utf_8_sig", "cp874", "koi8_t", "koi8_u"}
# Not charsets of text (bytes to bytes), with an escape syntax of their own, or slow on crafted input.
_REFUSED = frozenset({
    "base64", "bz2", "hex", "idna", "mbcs", "oem", "punycode", "quopri", "raw-unicode-escape", "rot-13", "rot13",
    "undefined", "unicode-escape", "unicode_escape", "raw_unicode_escape", "utf-7", "uu", "zlib",
})  # fmt: skip


def lookup(name: str, *, only_unicode: bool = False) -> str | None:
    """Python's name of a charset; None if the charset is not known.

    Args:
        name: The name that the peer sent; case, hyphens and underscores do not matter.
        only_unicode: Whether only the charsets of JSON are allowed (R-082).
    """
    return _lookup(name, only_unicode) if name.isascii() and len(name) <= 40 else None


def decoder(charset: str) -> Callable[[bytes], str]:
    """Make a strict decoder of bytes to text without the byte order mark; ``charset`` is a result of `lookup`.

    The closure raises UnicodeDecodeError.
    """
    if charset in ("utf-16", "utf-32"):
        return _marked(charset)

    def decode(payload: bytes) -> str:
        text = str(payload, charset)
        return text[1:] if text[:1] == _MARK else text

    return decode


def encoder(charset: str) -> Callable[[str], bytes]:
    """Make a strict encoder of text, which raises UnicodeEncodeError (R-103); utf-16 and utf-32 begin with a mark."""
    if charset in ("utf-16", "utf-32"):
        little = f"{charset}-le"
        return lambda text: (_MARK + text).encode(little)
    return lambda text: text.encode(charset)


def strip_mark(payload: bytes) -> bytes | None:
    """The UTF-8 payload without its byte order mark; None if it has no mark."""
    return payload[3:] if payload[:3] == codecs.BOM_UTF8 else None


def _marked(charset: str) -> Callable[[bytes], str]:
    """R-083: Decode by the byte order mark; without one, little-endian on every machine."""
    size = 2 if charset == "utf-16" else 4
    big = _MARK.encode(f"{charset}-be")

    def decode(payload: bytes) -> str:
        text = str(payload, f"{charset}-be" if payload[:size] == big else f"{charset}-le")
        return text[1:] if text[:1] == _MARK else text

    return decode


@lru_cache(maxsize=256)
def _lookup(name: str, only_unicode: bool) -> str | None:  # noqa: FBT001 - private, keyed by position
    if normalize_encoding(name.lower()) not in _KNOWN:
        return None
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if found in _REFUSED or (only_unicode and found not in _UNICODE):
        return None
    return "utf-8" if found == "utf-8-sig" else found
