"""What a request gives to a function that takes any number of inputs (``*args``): parts named as its inputs.

Each further name is a further input. Where ``*args`` takes values, its own name may repeat, and each value is an input
of its own, as ``?xs=1&xs=2`` is for ``def total(*xs: int)``; where it takes streams, they are items of one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from invoker.author.binding import MOST_INPUTS, far_too_many, missing, nearest, unknown
from invoker.codecs import Part
from invoker.codecs.containers import json_list_exceeds
from invoker.errors import DecodeError
from invoker.protocols.web.fields import Signature
from invoker.protocols.web.values import form_pairs, is_form_of, object_members, query_pairs, read_parts

__all__ = ["check_inputs", "labels", "parts_of", "queried"]

_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_PARTS: Final = "multipart/form-data"


def parts_of(signature: Signature, query: str, content_type: str, body: bytes) -> list[Part] | None:
    """The parts of a request whose whole body is here, without the query; None: the body is the first input.

    Args:
        signature: The signature of the function.
        query: Without the question mark.
        content_type: The content type as it came; empty when it was missing.
        body: All of it.

    Raises:
        DecodeError: The body or the query cannot be read.
    """
    essence = content_type.partition(";")[0].strip().lower()
    if essence == _PARTS:
        return read_parts(content_type, body)
    read = {_FORM: _pairs, _JSON: _members}.get(essence)
    if read is not None and (spread := read(signature, body, content_type)) is not None:
        return spread
    names = {part.name for part in queried(signature, query)}
    if not names:
        return None
    if not body:
        return []
    return [Part(next((one for one in signature.inputs if one not in names), signature.inputs[-1]), body, content_type)]


def queried(signature: Signature, query: str) -> list[Part]:
    """The values in a query for inputs.

    Raises:
        DecodeError: It is not UTF-8.
    """
    return [Part(name, value.encode()) for name, value in query_pairs(query) if name in signature.inputs]


def labels(signature: Signature, parts: Sequence[Part]) -> list[str]:
    """The name of the input that each part is for."""
    if not signature.opens_values or not signature.inputs:
        return [part.name for part in parts]
    own, taken = signature.inputs[-1], {part.name for part in parts}
    found: list[str] = []
    count = 0
    for part in parts:
        name = part.name
        if name == own:
            while count and (name := f"{own}{count}") in taken:
                count += 1
            taken.add(name)
            count += 1
        found.append(name)
    return found


def check_inputs(signature: Signature, names: Collection[str] | None) -> None:
    """Refuse too many inputs, and a request without an input that the function waits for.

    Args:
        signature: The signature of the function.
        names: The names of the parts; empty: the body is the first input; None: there is none.
    """
    if names is not None and len(set(names)) > MOST_INPUTS:
        raise DecodeError(str(far_too_many(signature.name, len(set(names)), MOST_INPUTS)))
    fixed = signature.inputs[:-1]
    lacking = [one for one in (fixed if names is None or names else fixed[1:]) if one not in (names or ())]
    if lacking:
        fault = missing(signature.name, lacking[0])
        raise DecodeError(f"{fault}; give it as a query parameter, a field of a form or a member of a JSON object")


def _pairs(signature: Signature, body: bytes, content_type: str) -> list[Part] | None:
    known = _known(signature)
    if b"=" not in body or not (signature.opens_fields or is_form_of(body, known)):
        return None
    pairs = form_pairs(body, content_type)
    if pairs is None or _is_strange(signature, [name for name, _ in pairs]):
        return None
    return [Part(name, value.encode()) for name, value in pairs if name in known]


def _is_strange(signature: Signature, keys: Collection[str]) -> bool:
    """Whether a body has names that are no parameter's; where no input takes an object, they are refused or dropped."""
    known = _known(signature)
    stranger = None if signature.drops else next((key for key in keys if key not in known), None)
    if stranger is not None and signature.opens_fields:
        raise DecodeError(str(unknown(signature.name, stranger, known, meant=nearest(stranger, known))))
    return stranger is not None


def _members(signature: Signature, body: bytes, content_type: str) -> list[Part] | None:
    is_open, known = signature.opens_fields, _known(signature)
    members = object_members(body, content_type) if is_open or signature.own_keys is not None else None
    if members is None or not (is_open or _is_named(signature, members)) or _is_strange(signature, members):
        return None
    found: list[Part] = []
    for name, value in members.items():
        if name not in known:
            continue
        values: list[Any] = [value]
        if signature.opens_values and name == signature.inputs[-1] and bytes(value)[:1] == b"[":
            values = _elements(bytes(value))
        found += [Part(name, bytes(one), _JSON) for one in values]
    return found


def _is_named(signature: Signature, keys: Collection[str]) -> bool:
    """Whether an object gives inputs by their names, though it might be one itself: none of them is a field's name."""
    own = signature.own_keys or frozenset()
    return own.isdisjoint(keys) and {*keys} <= {*_known(signature)} and not {*keys}.isdisjoint(signature.inputs)


def _elements(value: bytes) -> list[msgspec.Raw]:
    if json_list_exceeds(value, MOST_INPUTS):
        raise DecodeError(f"a list of more than {MOST_INPUTS} values is given, and at most so many are taken")
    return msgspec.json.decode(value, type=list[msgspec.Raw])


def _known(signature: Signature) -> tuple[str, ...]:
    return (*signature.inputs, *(one.name for one in signature.options))
