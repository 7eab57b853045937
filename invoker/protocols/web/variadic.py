"""Cuts the body of a request to a function with ``*args`` into parts, which are named like its inputs.

Each further name is a further input. If the elements of ``*args`` are values, its name may be repeated, and each value
is an input of its own: ``?xs=1&xs=2`` gives two inputs to ``def total(*xs: int)``. If the elements are streams, values
of one name are items of one stream.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from invoker.author.binding import MOST_INPUTS
from invoker.codecs import Part
from invoker.codecs.containers import json_list_exceeds
from invoker.errors import DecodeError
from invoker.protocols.web.fields import Signature
from invoker.protocols.web.naming import check_names
from invoker.protocols.web.values import form_pairs, is_form_of, object_members, read_parts

_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_PARTS: Final = "multipart/form-data"


def parts_of(signature: Signature, content_type: str, body: bytes) -> list[Part] | None:
    """Cut a complete body into parts; None: the body is one value.

    Args:
        signature: The signature of the function.
        content_type: The content type as it came; empty when it was missing.
        body: The whole body.

    Raises:
        DecodeError: The body cannot be read.
    """
    essence = content_type.partition(";")[0].strip().lower()
    if essence == _PARTS:
        return read_parts(content_type, body)
    read = {_FORM: _pairs, _JSON: _members}.get(essence)
    return read(signature, body, content_type) if read is not None else None


def _pairs(signature: Signature, body: bytes, content_type: str) -> list[Part] | None:
    if b"=" not in body or not (signature.opens_fields or is_form_of(body, signature.known)):
        return None
    pairs = form_pairs(body, content_type)
    if pairs is None or _is_strange(signature, [name for name, _ in pairs]):
        return None
    return [Part(name, value.encode()) for name, value in pairs if signature.takes(name)]


def _is_strange(signature: Signature, keys: Collection[str]) -> bool:
    """Whether a body has names that are not names of parameters.

    If no input takes an object, an unknown name raises `DecodeError`.
    """
    strangers = [] if signature.drops else [key for key in dict.fromkeys(keys) if not signature.takes(key)]
    if strangers and signature.opens_fields:
        check_names(signature, [key for key in dict.fromkeys(keys) if key != signature.inputs[-1]])
    return bool(strangers)


def _members(signature: Signature, body: bytes, content_type: str) -> list[Part] | None:
    is_open = signature.opens_fields
    members = object_members(body, content_type) if is_open or signature.own_keys is not None else None
    if members is None or not (is_open or _is_named(signature, members)) or _is_strange(signature, members):
        return None
    found: list[Part] = []
    for name, value in members.items():
        if not signature.takes(name):
            continue
        values: list[Any] = [value]
        if signature.opens_values and name == signature.inputs[-1] and bytes(value)[:1] == b"[":
            values = _elements(bytes(value))
        found += [Part(name, bytes(one), _JSON) for one in values]
    return found


def _is_named(signature: Signature, keys: Collection[str]) -> bool:
    """Whether the keys of an object are names of inputs, and none is a field of the objects that inputs take."""
    own = signature.own_keys or frozenset()
    return own.isdisjoint(keys) and {*keys} <= {*signature.known} and not {*keys}.isdisjoint(signature.inputs)


def _elements(value: bytes) -> list[msgspec.Raw]:
    if json_list_exceeds(value, MOST_INPUTS):
        raise DecodeError(f"a list exceeds the limit of {MOST_INPUTS} values")
    return msgspec.json.decode(value, type=list[msgspec.Raw])
