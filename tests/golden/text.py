"""Values as stable text: no module paths, no addresses, and nothing that differs between two runs."""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
from google.protobuf import text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as Protobuf

from invoker.errors import InvokerError
from invoker.message import Message

WORDS: dict[str, str] = {"StoreChanged": "Told"}
"""The word of the traces for a class or a field that was renamed: its name of today, and the name when it was recorded.

A rename adds a row here, and leaves the recorded files as they are.
"""

Reads = Callable[[bytes], Any]
"""Makes a protobuf message of a frame, so that the trace shows its fields; None: it is shown as bytes."""

_LONGEST = 160
_NO_TYPES = DescriptorPool()
"""Each ``Any`` is shown as it travels, whichever types this process happens to know."""
_MOMENT = re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|\+00:00)")
"""What an event of CloudEvents has as its time, unless its function says another."""


def show(value: Any, reads: Reads | None = None) -> str:
    """The text of any value that a session takes or gives."""
    if value is None or (isinstance(value, (bool, int, float)) and not isinstance(value, enum.Enum)):
        return repr(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _frame(bytes(value), reads)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, InvokerError):
        return _error(value)
    if isinstance(value, Protobuf):
        return _protobuf(value)
    return _compound(value, reads)


def _compound(value: Any, reads: Reads | None) -> str:
    if isinstance(value, Message):
        headers = f" {show(dict(value.headers))}" if value.headers else ""
        return f"<{value.media_type}{headers} {show(value.payload)}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {show(one, reads)}" for key, one in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(show(one, reads) for one in value)) + "}"
    if isinstance(value, msgspec.Struct):
        return _named(value, value.__struct_fields__, reads)
    if is_dataclass(value) and not isinstance(value, type):
        return _named(value, [one.name for one in fields(value)], reads)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _named(value, value._fields, reads)
    if isinstance(value, (tuple, list, Iterator)):
        return "[" + ", ".join(show(one, reads) for one in value) + "]"
    if isinstance(value, type):
        return WORDS.get(value.__name__, value.__name__)
    try:
        return _frame(bytes(memoryview(value)), reads)
    except TypeError:
        pass
    if callable(value):
        return "a callable"
    return f"a {WORDS.get(type(value).__name__, type(value).__name__)}"


def _named(value: Any, names: Any, reads: Reads | None) -> str:
    """A class by its word, and its fields that say something."""
    parts = [WORDS.get(type(value).__name__, type(value).__name__)]
    for name in names:
        field = getattr(value, name, None)
        if name.startswith("_") or field is None or field is False or (_is_sized(field) and len(field) == 0):
            continue
        parts.append(f"{WORDS.get(name, name)}={show(field, reads)}")
    return parts[0] + (f"({', '.join(parts[1:])})" if parts[1:] else "")


def _is_sized(value: Any) -> bool:
    return isinstance(value, (str, bytes, tuple, list, Mapping, set, frozenset))


def _key(key: Any) -> str:
    return key if isinstance(key, str) else show(key)


def _error(error: InvokerError) -> str:
    status = getattr(error, "status", None)
    name = status.name if isinstance(status, enum.Enum) else "ERROR"
    return f"{name} {_cut(repr(str(error)), str(error).encode(errors='surrogatepass'))}"


def _protobuf(message: Protobuf) -> str:
    text = text_format.MessageToString(message, as_one_line=True, print_unknown_fields=True, descriptor_pool=_NO_TYPES)
    return _cut("{" + text.strip() + "}", text.encode(), longest=4 * _LONGEST)


def _text(value: str) -> str:
    data = _MOMENT.sub(b"(now)", value.encode(errors="surrogatepass"))
    return _cut(repr(data.decode(errors="surrogatepass")), data)


def _frame(data: bytes, reads: Reads | None) -> str:
    data = _MOMENT.sub(b"(now)", data)
    if reads is not None:
        try:
            return f"{len(data)} bytes {show(reads(data))}"
        except Exception:
            return "unreadable " + show(data)
    try:
        text = data.decode()
        shown = f"b{text!r}" if text.replace("\r", "").replace("\n", "").isprintable() else f"x{data.hex()}"
    except UnicodeDecodeError:
        shown = f"x{data.hex()}"
    return _cut(shown, data)


def _cut(shown: str, data: bytes, longest: int = _LONGEST) -> str:
    if len(shown) <= longest:
        return shown
    return f"{shown[: longest // 2]}... {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}"
