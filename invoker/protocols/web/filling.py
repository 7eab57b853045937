"""Which parameter gets what of an HTTP request: R-169.

A query parameter, a field of a form or a member of a JSON object fills the parameter of its name. An object or a form
is spread over the parameters only if each of its keys is one; else the body is a single value, which the first takes.
A key that this value would lose, because it is another parameter and no field of the first, is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import msgspec

from invoker.author.binding import missing, nearest, twice, unknown
from invoker.codecs import Part
from invoker.errors import DecodeError
from invoker.fields.spelling import misspelt
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.values import (
    form_pairs,
    from_parts,
    from_texts,
    is_form_of,
    message_of,
    object_members,
    query_pairs,
    read_parts,
    typed,
    without_empty,
)
from invoker.protocols.web.variadic import check_inputs, labels, parts_of, queried

__all__ = [
    "Filled", "bound_by", "fill", "fill_parts", "fill_query", "from_query", "is_plain", "straight",
]  # fmt: skip

Filled: TypeAlias = tuple[tuple[str, ...], list[tuple[int, Message[bytes]]]]
"""Names of the inputs, and what is fed to them in order."""

_Given: TypeAlias = list[tuple[str, Message[bytes]]]

_MOST_NAMES = 100
"""Names that ``**kwargs`` takes of one request; what is bound by names is remembered."""

_OF_SOCKETS = ("inputs", "outputs")
"""Keys that name the streams of a WebSocket (H-059)."""

_LABEL = "in"
_OCTETS = "application/octet-stream"
_TEXT = "text/plain"
_JSON = "application/json"
_NO_OBJECT = frozenset({bytes([one]) for one in b'-0123456789"[tfn'})
"""First characters of JSON that is no object."""
_AS_JSON = (b"{", b"[")
_BLANKS = 64
_FORM = "application/x-www-form-urlencoded"
_PARTS = "multipart/form-data"


def fill(signature: Signature, query: str, content_type: str, body: bytes, headers: Headers) -> Filled:
    """The values of a request whose whole body is here, by parameter.

    Args:
        signature: The signature of the function.
        query: Without the question mark.
        content_type: The content type as it came; empty when it was missing.
        body: All of it.
        headers: The headers for every message.

    Raises:
        DecodeError: A value is missing, nearest, is given twice, or cannot be read.
    """
    if signature.more is not None:
        signature = _with_names(signature, query, content_type, body)
    fields = signature.fields
    if not fields and signature.more is None:
        if not (signature.inputs or signature.is_open):
            if body:
                raise DecodeError(f"the function takes no input, but the body has {len(body)} bytes; send no body")
            return (), []
        if signature.is_open:
            parts = parts_of(signature, query, content_type, body)
            if parts is not None:
                return fill_parts(signature, query, parts, headers)
            is_value = bool(body or content_type)
            check_inputs(signature, () if is_value else None)
            if not is_value:
                return _with_options(signature, query, headers, ((), []))
        filled = (_LABEL,), [(0, Message(body, headers, content_type or _OCTETS))]
        return _with_options(signature, query, headers, filled)
    given = from_query(signature.name, fields, query, headers) if query else []
    if fields and (body or content_type):
        spread = _spread(signature, content_type, body, headers)
        if spread is None:
            first = fields[0]
            spread = [(first.name, Message(body, headers, typed(first, content_type) or _OCTETS))]
        if body or all(name != fields[0].name for name, _ in given):
            given += spread  # otherwise `curl -d ''` has sent a POST whose query has everything
    return _arranged(signature, given, met=(content_type, body))


def straight(signature: Signature, query: str, content_type: str) -> tuple[tuple[str, ...], str] | None:
    """The names of the inputs, and the media type of the body, if that is the first parameter's value as it is.

    None if this depends on the body; see `is_plain`, which each body has to be.
    """
    if query or not content_type or not signature.fields or signature.more is not None:
        return None
    first, essence = signature.fields[0], content_type.partition(";")[0].strip().lower()
    if essence in (_FORM, _PARTS) or (essence == _JSON and content_type != _JSON):
        return None
    media_type = typed(first, content_type)
    try:
        names, given = _arranged(signature, [(first.name, Message(b"", EMPTY, media_type))])
    except DecodeError:
        return None
    return (names, media_type) if given[0][0] == 0 else None


def is_plain(media_type: str, body: bytes) -> bool:
    """Whether a body is one value, for sure; the members of a JSON object may be several."""
    return media_type != _JSON or body[:1] in _NO_OBJECT


def fill_parts(signature: Signature, query: str, parts: Sequence[Part], headers: Headers) -> Filled:
    """The values of a request with a multipart body, whose parts are for the parameters of their names.

    Raises:
        DecodeError: A part belongs to no parameter; or as `fill`.
    """
    if not signature.fields:
        names, own = signature.inputs, [part.name for part in parts]
        if signature.is_open:
            if signature.drops:
                known = {*names, *(one.name for one in signature.options)}
                parts = [part for part in parts if part.name in known]
            parts = [*without_empty(signature.options, parts), *queried(signature, query)]
            own = labels(signature, parts)
            check_inputs(signature, own or None)
            options = {one.name for one in signature.options}
            there = [*names[:-1], *(name for name in own if name not in options)]
            names = tuple(dict.fromkeys((*there, *own)))  # ``*args`` gets just the parts that are there
        messages = [
            (_index(signature, name, names), message_of(part, headers)) for name, part in zip(own, parts, strict=True)
        ]
        return _with_options(signature, query, headers, (names, messages))
    if signature.more is not None:
        signature = _opened(signature, [*_query_keys(query), *(part.name for part in parts)])
    given = from_query(signature.name, signature.fields, query, headers) if query else []
    names = tuple(one.name for one in signature.fields)
    if signature.drops:
        _check_spelling(signature.name, names, [part.name for part in parts])
        parts = [part for part in parts if part.name in names]
    for part in parts:
        _index(signature, part.name, names)
    return _arranged(signature, given + from_parts(signature.fields, parts, headers))


def bound_by(signature: Signature, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of the parameters that are bound; None: the function's own inputs.

    ``*args`` to which nothing is given is bound to nothing, so that the function is called without it.
    """
    is_bound = signature.more is not None or (signature.is_open and {*names} <= {one.name for one in signature.options})
    return names if is_bound else None


def fill_query(signature: Signature, query: str, headers: Headers) -> Filled:
    """The values in a query, by the names of their inputs, if the other values come later.

    Raises:
        DecodeError: An option is given twice, or the query cannot be read.
    """
    if signature.more is not None:
        signature = _opened(signature, _query_keys(query))
    if not signature.fields and signature.more is None:
        return _with_options(signature, query, headers, (signature.inputs, []))
    return _arranged(
        signature, from_query(signature.name, signature.fields, query, headers) if query else [], is_all=False
    )


def _with_names(signature: Signature, query: str, content_type: str, body: bytes) -> Signature:
    """The signature, with one more field for each name in the query and the body that ``**kwargs`` takes.

    Raises:
        DecodeError: All is taken by names, and the body has none.
    """
    keys: Collection[str] | None = ()
    if body or content_type:
        essence = content_type.partition(";")[0].strip().lower()
        if essence == _PARTS:
            keys = [part.name for part in read_parts(content_type, body)]
        elif essence == _FORM:
            pairs = form_pairs(body, content_type) if b"=" in body or not body else None
            keys = None if pairs is None else [name for name, _ in pairs]
        else:
            keys = object_members(body, content_type) if essence == _JSON else None if body else ()
    if keys is None and not signature.fields:
        raise DecodeError(
            "the function takes each value by a name, and the body gives none; "
            "give a form, a JSON object, or a query such as ?name=value"
        )
    return _opened(signature, [*_query_keys(query), *(keys or ())])


def _opened(signature: Signature, keys: Iterable[str]) -> Signature:
    more, known = signature.more, {one.name for one in signature.fields}
    names = [key for key in dict.fromkeys(keys) if key and key not in known]
    if len(names) > _MOST_NAMES:
        raise DecodeError(f"{len(names)} names are given that are no parameter's, and at most {_MOST_NAMES} are taken")
    assert more is not None
    extra = (msgspec.structs.replace(more, name=name) for name in names)
    return msgspec.structs.replace(signature, fields=(*signature.fields, *extra))


def _query_keys(query: str) -> list[str]:
    return [name for name, _ in query_pairs(query)]


def _with_options(signature: Signature, query: str, headers: Headers, filled: Filled) -> Filled:
    """A function of any number of inputs has its options by the names behind those of the inputs."""
    given = from_query(signature.name, signature.options, query, headers) if query and signature.options else []
    names, messages = filled
    for name, message in given:
        if name in names:
            raise DecodeError(str(twice(signature.name, name)))
        messages.append((len(names), message))
        names += (name,)
    return names, messages


def from_query(
    function: str, fields: Sequence[Field], query: str, headers: Headers
) -> list[tuple[str, Message[bytes]]]:
    """The values in a query for these parameters, by name; other keys are ignored.

    Raises:
        DecodeError: It is not UTF-8, or spells a parameter wrongly.
    """
    pairs = query_pairs(query)
    _check_spelling(function, [one.name for one in fields], dict.fromkeys(name for name, _ in pairs))
    return from_texts(fields, pairs, headers)


def _check_spelling(function: str, names: Sequence[str], keys: Collection[str]) -> None:
    """Refuse a key that is no parameter and nearly one that is not given (H-201).

    A link has keys of others in it (of trackers, of caches), so a key that is like no parameter is ignored.
    """
    strangers = [key for key in keys if key not in names and key not in _OF_SOCKETS]
    if strangers and (found := misspelt(strangers, [name for name in names if name not in keys])):
        raise DecodeError(str(unknown(function, found[0], names, meant=found[1])))


def _spread(signature: Signature, content_type: str, body: bytes, headers: Headers) -> _Given | None:
    """The body in pieces for several parameters; None if it is one value."""
    fields = signature.fields
    essence, first = content_type.partition(";")[0].strip().lower(), fields[0]
    if essence == _JSON and not _is_whole(signature, body, takes=first.takes_object):
        members = object_members(body, content_type)
        if members is None or not _fits(signature, members, "member", takes=first.takes_object):
            return None
        given = [(name, Message(bytes(value), headers, _JSON)) for name, value in members.items()]
        return _known(signature, given) if signature.drops else given
    if essence == _FORM:
        begins = body[:_BLANKS].lstrip()[:1]
        if begins in _AS_JSON and b"=" in body and first.known is None:
            raise DecodeError(
                f"the body begins with {begins.decode()!r}, as no form does; for JSON, send "
                "Content-Type: application/json, and for other text text/plain"
            )
        if b"=" not in body:  # what `curl -d Bob` means
            charset = content_type.partition(";")
            return [(first.name, Message(body, headers, _TEXT + charset[1] + charset[2]))]
        if _is_whole(signature, body, takes=first.takes_form) or _is_file(signature, body):
            return None
        pairs = form_pairs(body, content_type)
        if pairs is None or not _fits(signature, [name for name, _ in pairs], "field", takes=first.takes_form):
            return None
        return from_texts(fields, pairs, headers)
    if essence == _PARTS and not _is_whole(signature, body, takes=first.takes_parts):
        parts = read_parts(content_type, body)
        if not _fits(signature, [part.name for part in parts], "part", takes=first.takes_parts):
            return None
        known = {one.name for one in fields}
        return from_parts(fields, [part for part in parts if part.name in known], headers)
    return None


def _known(signature: Signature, given: _Given) -> _Given:
    names = {one.name for one in signature.fields}
    return [(name, message) for name, message in given if name in names]


def _is_file(signature: Signature, body: bytes) -> bool:
    """Whether a body that is called a form is bytes of another kind, which the first parameter takes."""
    is_bytes = signature.fields[0].known is not None and not signature.fields[0].takes_form
    return is_bytes and not is_form_of(body, [one.name for one in signature.fields])


def _is_whole(signature: Signature, body: bytes, *, takes: bool) -> bool:
    """Whether the whole body is the value of the first parameter, which takes it with any keys."""
    first, is_only = signature.fields[0], len(signature.fields) == 1
    is_unnamed = is_only and first.name.isascii() and first.name.encode() not in body  # others may be escaped
    return takes and len(signature.inputs) < 2 and not (first.is_bare or (first.keys is not None and not is_unnamed))


def _fits(signature: Signature, keys: Collection[str], what: str, *, takes: bool) -> bool:
    """Whether a body is spread: each key is a parameter, and it cannot be an object for the first one.

    Raises:
        DecodeError: It is not spread, and one of its keys is another parameter, which the first one would drop.
    """
    first, known = signature.fields[0], [one.name for one in signature.fields]
    own = first.keys or frozenset()
    if signature.drops and not (takes and first.keys is None):  # H-231
        _check_spelling(signature.name, [*known, *own], keys)
        keys = [key for key in keys if key in known or key in own]
    stranger = next((key for key in keys if key not in known), None)
    is_named = first.name in keys and first.name not in own
    if stranger is None and (is_named or not takes or len(signature.inputs) > 1):
        return True
    is_lost = first.is_scalar or (first.keys is not None and is_named)
    if stranger is not None and (is_lost or (what != "member" and not takes)):  # the whole cannot be its value either
        hint = " (--http-ignore-unknown ignores such names" if what != "member" else ""
        hint += "; text that is no form is sent as text/plain)" if what == "field" else ")" if hint else ""
        raise DecodeError(f"{unknown(signature.name, stranger, known, meant=nearest(stranger, known))}{hint}")
    lost = next((key for key in keys if key in known and key not in own), None)
    if first.keys is not None and lost is not None:
        raise DecodeError(
            f"the {what} {lost!a} is no field of parameter '{first.name}', which takes the body, but another "
            f"parameter; give it in the query (?{lost}=...), or give every parameter by its name ({', '.join(known)})"
        )
    return False


def _taken_whole(name: str, content_type: str, body: bytes) -> str:
    """A hint of what became of a body that its sender may have meant for several parameters."""
    essence = content_type.partition(";")[0].strip().lower()
    if body.lstrip()[:1] != b"{":
        return f"; the body was taken for '{name}'" if body and essence not in (_FORM, _PARTS) else ""
    if essence != _JSON:
        return (
            f"; the body was taken for '{name}', because its Content-Type is {essence or _OCTETS!a}; "
            "to give parameters by a JSON object, send Content-Type: application/json"
        )
    try:
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError) as error:
        return f"; the body was taken for '{name}', because it is no JSON object: {error}"
    return ""


def _arranged(
    signature: Signature, given: _Given, *, is_all: bool = True, met: tuple[str, bytes] = ("", b"")
) -> Filled:
    """Names and messages; without ``is_all`` more may come. What was ``met`` is for the texts of errors."""
    fields = signature.fields
    counts: dict[str, int] = {}
    for name, _ in given:
        counts[name] = counts.get(name, 0) + 1
    for one in fields:
        if one.is_value and counts.get(one.name, 0) > 1 and (is_all or one.is_option):
            raise DecodeError(str(twice(signature.name, one.name)))
        if is_all and one.needs_value and one.name not in counts:
            raise DecodeError(
                f"{missing(signature.name, one.name)}; give it as the body, a query parameter, a field of a form or a "
                "member of a JSON object",
                hint=_taken_whole(fields[0].name, *met),
            )
    if signature.more is not None:  # all of its inputs are bound by their names
        names = [one.name for one in fields if one.name in counts or not one.is_option]
        return tuple(names), [(names.index(name), message) for name, message in given]
    own = signature.inputs
    labels = own if len(own) > 1 else (_LABEL,)
    options = [one.name for one in fields[len(labels) :] if one.name in counts]
    places = {one.name: index for index, one in enumerate(fields[: len(labels)])}
    places.update((name, len(labels) + index) for index, name in enumerate(options))
    return (*labels, *options), [(places[name], message) for name, message in given]


def _index(signature: Signature, name: str, names: tuple[str, ...]) -> int:
    if not name or name not in names:
        hint = "--http-ignore-unknown ignores such names"
        raise DecodeError(f"{unknown(signature.name, name, names)} ({hint})")
    return names.index(name)
