"""`kind_of`: what kind of value a serialised ``google.protobuf.Any`` has, in the words of the tool bridge (T-122)."""

from __future__ import annotations

from typing import Any, Final

from invoker.codecs.anyvalue.errors import BadAny
from invoker.codecs.anyvalue.unpack import unpack
from invoker.codecs.anyvalue.wire import fields

__all__ = ["kind_of"]

_OPAQUE: Final = "opaque"
_BY_NAME: Final = {
    "google.protobuf.BytesValue": "binary",
    "google.protobuf.ListValue": "list",
    "pandas.DataFrame": "dataframe",
    "python.int": "integer",
}
"""Types whose values may be large, or need a library; their names say enough."""

_BY_CLASS: Final[dict[type[Any], str]] = {
    type(None): "null", bool: "boolean", int: "integer", float: "float", str: "string", bytes: "binary", list: "list",
    tuple: "list", dict: "map",
}  # fmt: skip


def kind_of(data: bytes) -> str:
    """One of null, boolean, integer, float, string, binary, list, map, dataframe; opaque for all others."""
    try:
        url = next((bytes(found) for number, wire, found in fields(data) if number == 1 and wire == 2), b"")
        name = url.decode().rpartition("/")[2]
        return _BY_NAME.get(name) or _BY_CLASS.get(type(unpack(data)), _OPAQUE)
    except (BadAny, ValueError):
        return _OPAQUE
