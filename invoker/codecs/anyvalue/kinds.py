"""`kind_of`: names the kind of value in a serialised ``google.protobuf.Any``, as the tool bridge does (T-122)."""

from __future__ import annotations

from typing import Any, Final

from invoker.codecs.anyvalue.errors import BadAny
from invoker.codecs.anyvalue.foreign import snakepit
from invoker.codecs.anyvalue.unpack import unpack
from invoker.codecs.anyvalue.wire import fields

_OPAQUE: Final = "opaque"
_BY_NAME: Final = {
    "google.protobuf.BytesValue": "binary",
    "google.protobuf.ListValue": "list",
    "google.protobuf.Struct": "map",
    "pandas.DataFrame": "dataframe",
    "python.int": "integer",
}
"""Types whose values may be large or need a library; the kind is found without reading the value."""

_LARGE: Final = 4096
"""The most bytes of a value that is read completely."""

_SPACE: Final = 100
_TAGS: Final = {
    "google.protobuf.Value": {b"\x1a": "string", b"\x2a": "map", b"\x32": "list"},
    "google.protobuf.StringValue": {b"\x0a": "string"},
}
_JSON: Final = {b'"': "string", b"{": "map", b"[": "list"}

_BY_CLASS: Final[dict[type[Any], str]] = {
    type(None): "null", bool: "boolean", int: "integer", float: "float", str: "string", bytes: "binary", list: "list",
    tuple: "list", dict: "map",
}  # fmt: skip


def kind_of(data: bytes) -> str:
    """One of null, boolean, integer, float, string, binary, list, map, dataframe; opaque for all others."""
    try:
        url = next((bytes(found) for number, wire, found in fields(data) if number == 1 and wire == 2), b"")
        name = url.decode().rpartition("/")[2]
        if (kind := _BY_NAME.get(name)) is not None:
            return kind
        if len(data) > _LARGE:
            return _of_large(name, data)
        return _BY_CLASS.get(type(unpack(data)), _OPAQUE)
    except (BadAny, ValueError):
        return _OPAQUE


def _of_large(name: str, data: bytes) -> str:
    """The kind, from the beginning of the content, since a list of variables must not read each value completely."""
    content = next((bytes(found) for number, wire, found in fields(data) if number == 2 and wire == 2), b"")
    tags = _TAGS.get(name)
    if tags is not None and content[:1] in tags:
        return tags[content[:1]]
    is_json = tags is not None or snakepit(name) is not None
    return _JSON.get(content[:_SPACE].lstrip()[:1], _OPAQUE) if is_json else _OPAQUE
