"""Decodes references that contain their content (``data:``, RFC 2397), and finds the scheme of a reference.

Pure: nothing is fetched here.

The media type inside a ``data:`` URI is ignored; the media type of the Evergreen node counts (E-051).
"""

from __future__ import annotations

import binascii
import re
from urllib.parse import unquote_to_bytes

from invoker.errors import DecodeError, LimitExceeded
from invoker.errors.wording import quoted
from invoker.fetch.errors import ReferenceRefused

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FOREIGN = re.compile(r"[^\x21-\x7e]|#")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PREFIX = len("data:")


def scheme_of(uri: str) -> str:
    """The scheme of a URI, in lower case.

    Raises:
        ReferenceRefused: The URI is relative, and there is no base URI (E-058).
    """
    found = _SCHEME.match(uri)
    if found is None:
        raise ReferenceRefused(f"{quoted(uri)} is not an absolute URI; it must start with a scheme, such as data:")
    return found[1].lower()


def decode(uri: str, most: int) -> bytes:
    """Decode the bytes of a ``data:`` URI, from base64 or percent-encoding.

    Both forms are read strictly: only visible ASCII and complete escapes are allowed, and base64 needs the standard
    alphabet with its padding, which may be escaped. A ``+`` is a plus sign; ``#`` would start a fragment and has to be
    escaped.

    Args:
        uri: A URI whose scheme is ``data``, in any case.
        most: How many bytes it may hold after decoding.

    Raises:
        DecodeError: The URI is malformed.
        LimitExceeded: It holds more than ``most`` bytes.

    Source: docs/reference/evergreen.md E-052; RFC 2397.
    """
    head, comma, body = uri[_PREFIX:].partition(",")
    if not comma:
        raise DecodeError("a data: URI needs a comma before its data")
    if met := _FOREIGN.search(uri):
        raise DecodeError(f"a data: URI holds {met[0]!r} at {met.start()}, which must be escaped as %{_hex(met[0])}")
    if met := _BROKEN_ESCAPE.search(uri):
        raise DecodeError(f"a data: URI has a % without two hexadecimal digits at {met.start()}")
    data = unquote_to_bytes(body) if "%" in body else body.encode("ascii")
    if head.lower().endswith(";base64"):
        data = _from_base64(data)
    if len(data) > most:
        raise LimitExceeded(f"a data: URI holds {len(data)} bytes, which exceeds the limit of {most} bytes")
    return data


def _from_base64(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise DecodeError(f"a data: URI says base64, but its data is not: {str(error).lower()}") from None


def _hex(character: str) -> str:
    return "%".join(f"{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
