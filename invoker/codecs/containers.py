"""Refuses payloads of JSON and MessagePack that would become too many lists and dicts, before they are decoded.

Theory. A list of one byte on the wire takes 56 bytes of memory and is one more object for the garbage collector to look
at; a decoder makes millions of them in one piece, while no other thread of Python runs. So containers are counted
first, and numbers, strings and other scalars, which are cheap, are not. There are three steps, each only if the
previous one does not suffice:

1. A payload of few bytes has few containers.
2. A payload in which few bytes can begin a container has few containers; some of these bytes may belong to strings and
  numbers.
3. Otherwise the tokens are counted by regular expressions whose matches are bounded, so that other threads can run.

A large payload is then decoded while the garbage collector is off, since none of the new objects is garbage.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any, Final

MOST_CONTAINERS: Final = 250_000
"""The most lists and dicts of one payload, unless ``INVOKER_MAX_CONTAINERS`` is set."""

SMALL_BYTES: Final = 16 * 1024
"""A payload of at most this many bytes makes too few objects to start the garbage collector."""

Exceeds = Callable[[bytes, int], bool]

_PIECE_BYTES: Final = 1 << 17
"""How many bytes are scanned at once, which takes less than two milliseconds."""


def careful(parse: Callable[[Any], Any], exceeds: Exceeds, most: int) -> Callable[[Any], Any]:
    """A parser that counts the containers of payloads of more than `SMALL_BYTES`.

    Args:
        parse: The parser of payloads.
        exceeds: Returns whether a payload has more containers than a number.
        most: Containers that a payload may have.

    Returns:
        A function that raises ValueError for a payload that has more.
    """

    def parse_large(payload: Any) -> Any:
        if len(payload) <= SMALL_BYTES:
            return parse(payload)
        if len(payload) > most and exceeds(payload, most):
            raise ValueError(f"it has more than {most} lists and objects, which is the limit (INVOKER_MAX_CONTAINERS)")
        return _undisturbed(parse, payload)

    return parse_large


_decoding: list[None] = []
"""One item for each running decode; methods of a list are atomic, so threads need no lock."""


def _undisturbed(parse: Callable[[Any], Any], payload: Any) -> Any:
    """Parse while the garbage collector is off.

    The last caller that finishes turns it on again. If two threads start and finish at the same time, one may decode
    with the collector on, which is only slower; the collector is never left off.
    """
    if not _decoding and not gc.isenabled():  # the author has turned the collector off, and it must stay off
        return parse(payload)
    _decoding.append(None)
    gc.disable()
    try:
        return parse(payload)
    finally:
        _decoding.pop()
        if not _decoding:
            gc.enable()


def json_exceeds(payload: bytes | str, most: int) -> bool:
    """Whether a JSON text has more than ``most`` arrays and objects."""
    if isinstance(payload, str):
        if payload.count("[") + payload.count("{") <= most:
            return False
        payload = payload.encode("utf-8", "surrogatepass")
    elif payload.count(b"[") + payload.count(b"{") <= most:
        return False
    if b"\\" in payload:  # remove pairs of backslashes first: the second one of a pair escapes nothing
        payload = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    count, is_inside = 0, False
    for start in range(0, len(payload), _PIECE_BYTES):
        signs = payload[start : start + _PIECE_BYTES].translate(None, _NO_SIGNS)
        parts = signs.replace(b'""', b"").split(b'"')  # drop empty strings: they hold no container
        count += sum(map(len, parts[is_inside::2]))
        is_inside ^= len(parts) % 2 == 0
        if count > most:
            return True
    return False


_NO_SIGNS: Final = bytes(one for one in range(256) if one not in b'"[{')


def json_list_exceeds(payload: bytes, most: int) -> bool:
    """Whether a JSON array has more than ``most`` elements, as far as its beginning shows.

    Splitting hundreds of thousands of elements takes a second, so only the first ones are counted here. An array with
    five or more levels of nesting, or one that is not JSON, may pass.
    """
    if payload.count(b",") < most:
        return False
    return re.compile(rb"\s*+\[(?:%b,){%d}" % (_ELEMENT, most), re.DOTALL).match(payload) is not None


def _element() -> bytes:
    """Make the pattern of an element without the comma after it, with at most four levels of containers."""
    text = rb'"(?:[^"\\]++|\\.)*+"'
    more = b""
    for _ in range(4):
        more = rb'|[\[{](?:%b|[^\[\]{}"]++%b)*+[\]}]' % (text, more)
    return rb'(?:%b|[^\[\]{}",]++%b)*+' % (text, more)


_ELEMENT: Final = _element()


def msgpack_exceeds(payload: bytes, most: int) -> bool:
    """Whether a MessagePack value has more than ``most`` arrays and maps."""
    count = 0
    for start in range(0, len(payload), _PIECE_BYTES):
        piece = bytes(payload[start : start + _PIECE_BYTES])
        count += len(piece) - len(piece.translate(None, _LEADS))
    if count <= most:
        return False
    at = count = 0
    while count <= most and at < len(payload):
        run = _SHORT.match(payload, at, at + _PIECE_BYTES)
        assert run is not None, "it matches nothing, too"
        found = _CONTAINERS.findall(payload, at, run.end())
        count += sum(len(one) if one[0] < 0xA0 else 1 for one in found if one)
        at = run.end() if run.end() > at else _behind(payload, at)
    return count > most


def _behind(payload: bytes, at: int) -> int:
    """The index at which a long string, binary or extension ends; for an invalid one it may be beyond the payload."""
    width, more = _LONG.get(payload[at], (0, 0))
    if not width:
        return len(payload)
    return at + 1 + width + more + int.from_bytes(payload[at + 1 : at + 1 + width], "big")


_LEADS: Final = bytes((*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))
"""The first bytes of arrays and maps."""

_LONG: Final = {
    0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0),
    0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1),
}  # fmt: skip
"""For each first byte, how many bytes the length has, and how many are between the length and the content."""

_SHORT_BYTES: Final = 32
"""The longest content of a token that the regular expression matches."""

_FIXED: Final = (  # the most frequent first: first bytes of tokens, and how many bytes follow them
    ((0xCB, 0xCF, 0xD3), 8),
    ((0xCA, 0xCE, 0xD2), 4),
    ((0xCD, 0xD1, 0xD4), 2),
    ((0xCC, 0xD0), 1),
)
_EXTENSIONS: Final = ((0xD5, 3), (0xD6, 5), (0xD7, 9), (0xD8, 17))


def _byte(*values: int) -> bytes:
    return b"".join(b"\\x%02x" % one for one in values)


def _scalars() -> bytes:
    """Make the pattern of all scalars: numbers first, then types of many sizes, after a check of the first byte."""
    several = [rb"[\x00-\x7f\xa0\xc0-\xc3\xe0-\xff]++"]
    several += [b"[" + _byte(*leads) + b"].{%d}" % size for leads, size in _FIXED]
    texts = (_byte(0xA0 + size) + b".{%d}" % size for size in range(1, 32))
    several.append(rb"(?=[\xa1-\xbf])(?:" + b"|".join(texts) + b")")
    for lead, (width, more) in _LONG.items():
        contents = (_byte(*size.to_bytes(width, "big")) + b".{%d}" % (size + more) for size in range(_SHORT_BYTES))
        several.append(_byte(lead) + b"(?:" + b"|".join(contents) + b")")
    several += [_byte(lead) + b".{%d}" % size for lead, size in _EXTENSIONS]
    return b"(?:" + b"|".join(several) + b")"


_SCALARS: Final = _scalars()
_CONTAINER: Final = rb"(?:[\x80-\x9f]++|[\xdc\xde]..|[\xdd\xdf]....)"
_SHORT: Final = re.compile(b"(?:" + _SCALARS + b"|" + _CONTAINER + b")*+", re.DOTALL)
_CONTAINERS: Final = re.compile(_SCALARS + b"++|(" + _CONTAINER + b")", re.DOTALL)


def check_array(array: Any) -> None:
    """Refuse an array that would become too many nested lists.

    An array without elements, or whose rows have one element each, can become millions of lists.

    Raises:
        ValueError: The array would become more lists than can be written.
    """
    lists = rows = 1
    for size in array.shape[:-1]:
        rows *= size
        lists += rows
    if lists > MOST_CONTAINERS + 2 * array.size:
        shape = list(array.shape)
        raise ValueError(f"an array of the shape {shape} has {lists} lists in it and {array.size} elements")
