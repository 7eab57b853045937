"""Bounds the time for reading JSON with many numbers that msgspec reads slowly.

Theory. A parser of JSON reads nearly all numbers in 30 ns. Those beyond 1e288, or closer to zero than 1e-289, and a few
that lie between two floats, such as 1e23, take msgspec 10 µs, during which no other thread of Python runs: 4 MB of
``[1e308,1e308,...]`` would stop the process for ten seconds. Python's own parser takes a quarter of a microsecond for
any number, and lets other threads run. So a payload with many such numbers is read by Python's parser, as strictly as
by msgspec.

The allowed number depends on the size, since a request may consist of thousands of payloads: msgspec reads only as many
such numbers as take no longer than Python's parser would for the whole payload, and at most five milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec

from invoker.codecs.handover import HANDED_OVER
from invoker.codecs.wholes import REFUSED, retried

SMALL_BYTES: Final = 64
"""A payload of at most this many bytes is read within a tenth of a millisecond, whatever its numbers are."""

_FEW: Final = 16
"""How many numbers with an exponent of three digits any payload may have."""

_BYTES_EACH: Final = 256
"""A payload may have one more such number for each of this many bytes."""

_MOST: Final = 500
"""The most such numbers of any payload, which take five milliseconds."""

_MOST_EXACT: Final = 5000
"""The most such numbers for types that only msgspec can read exactly; they take a twentieth of a second."""

_MOST_HALFWAY: Final = 100_000
_HALFWAY: Final = (b"e23", b"e+23", b"E23", b"E+23")
"""Matches exponents with which some numbers take a third of a microsecond each."""

_KINDS: Final = bytes.maketrans(b"123456789E+", b"000000000e-")

_PAIR: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def json_value(payload: bytes | msgspec.Raw) -> Any:
    """The value of a JSON text, as msgspec reads it.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: The text is nested too deeply.
    """
    return _read(payload)


def bounded(parse: Callable[[Any], Any], convert: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """A parser of JSON that reads payloads with many slow numbers by Python's own parser.

    Args:
        parse: Reads all other payloads.
        convert: Makes the result of ``parse`` from plain lists, dicts, texts and numbers.
    """

    def read(payload: Any) -> Any:
        if isinstance(payload, msgspec.Raw):
            payload = bytes(payload)
        if (
            len(payload) <= SMALL_BYTES
            or (type(payload) is bytes and payload.count(b"e") + payload.count(b"E") <= _FEW)
            or not is_costly(payload)
        ):
            try:
                return parse(payload)
            except msgspec.ValidationError:
                if convert is None or (made := retried(convert, json_value(payload))) is REFUSED:
                    raise
                return made
        value = _patient(payload)
        try:
            return value if convert is None else convert(value)
        except msgspec.ValidationError:
            if convert is None or (made := retried(convert, value)) is REFUSED:
                raise
            return made

    return read


def capped(parse: Callable[[Any], Any], convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A parser for types that keep all digits of a number.

    Python's own parser would lose digits, so this one refuses payloads with many slow numbers.

    Args:
        parse: Reads all other payloads; it raises ValueError, as the result does.
        convert: Makes the result of ``parse`` from plain lists, dicts, texts and numbers.
    """

    def read(payload: Any) -> Any:
        if len(payload) > _MOST_EXACT and is_costly(payload, _MOST_EXACT):
            raise ValueError(f"it has more than {_MOST_EXACT} numbers with an exponent of three digits")
        try:
            return parse(payload)
        except msgspec.ValidationError:
            if (made := retried(convert, json_value(payload), is_exact=True)) is REFUSED:
                raise
            return made

    return read


def is_costly(payload: bytes | str, most: int = 0) -> bool:
    """Whether many numbers of a JSON text may take long; texts that look like such numbers also count.

    Args:
        payload: The text.
        most: How many such numbers the payload may have; 0: a number that depends on its size.
    """
    data = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
    most = most or min(_MOST, max(_FEW, len(data) // _BYTES_EACH))
    letters = data.count(b"e") + (data.count(b"E") if b"E" in data else 0)
    if letters <= most:
        return False
    kinds = data.translate(_KINDS)
    if kinds.count(b"0e000") + kinds.count(b"0e-000") > most:
        return True
    return letters > _MOST_HALFWAY and sum(map(data.count, _HALFWAY)) > _MOST_HALFWAY


def _patient(payload: bytes | str) -> Any:
    text = payload if isinstance(payload, str) else str(payload, "utf-8")
    if _HALF.search(text) and _HALF.search(_PAIR.sub("", text.replace("\\\\", ""))):
        raise ValueError("a text has half of a surrogate pair")
    with HANDED_OVER:
        return _DECODER.decode(text)


def read_float(text: str) -> float:
    """A number of JSON with a fraction or an exponent; a parser lets other threads run when it calls this.

    Raises:
        ValueError: The number is out of range.
    """
    number = float(text)
    if number - number != 0.0:  # `float` gave infinity
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def read_constant(text: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's parser takes."""
    raise ValueError(f"{text} is not a JSON number")


_DECODER: Final = json.JSONDecoder(parse_float=read_float, parse_constant=read_constant)
_read: Final = bounded(msgspec.json.decode)
