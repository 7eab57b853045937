"""Decides which parameter gets which value of an HTTP request (R-169).

A query parameter, a field of a form or a member of a JSON object gives a value to the parameter of its name. An object
or a form gives values to several parameters only if each of its keys is the name of one; otherwise the whole body is
one value for the first parameter. If one of its keys is then the name of another parameter, and not a field of the
first, the body is refused, since that member would be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from invoker.author.binding import MOST_INPUTS, far_too_many
from invoker.codecs import Part
from invoker.errors import DecodeError
from invoker.errors.wording import unknown
from invoker.fields.spelling import misspelt
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.naming import bound, check_names, elements
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
from invoker.protocols.web.variadic import parts_of


class Filled(NamedTuple):
    """The names and messages with which an invocation is opened.

    Attributes:
        names: The names of the inputs that the function gets.
        messages: The messages that are fed to the inputs, in order.
        bound: See `invoker.core.steps.Open`.
    """

    names: tuple[str, ...]
    messages: list[tuple[int, Message[bytes]]]
    bound: tuple[str, ...] | None = None


_Given: TypeAlias = list[tuple[str, Message[bytes]]]

_OF_SOCKETS = ("inputs", "outputs")
"""Keys of the query that name the inputs and outputs of a WebSocket (H-059)."""

_LABEL = "in"
_IGNORE = "--http-ignore-unknown ignores such names"
_OCTETS = "application/octet-stream"
_TEXT = "text/plain"
_JSON = "application/json"
_NO_OBJECT = frozenset({bytes([one]) for one in b'-0123456789"[tfn'})
"""The first characters of JSON that is not an object."""
_AS_JSON = (b"{", b"[")
_BLANKS = 64
_FORM = "application/x-www-form-urlencoded"
_PARTS = "multipart/form-data"


def fill(signature: Signature, query: str, content_type: str, body: bytes, headers: Headers) -> Filled:
    """Assign the values of a request, whose whole body has come, to the parameters.

    Args:
        signature: The signature of the function.
        query: The query, without the question mark.
        content_type: The content type as it came; empty when it was missing.
        body: The whole body.
        headers: The headers for every message.

    Raises:
        DecodeError: A value is missing, has a misspelt name, is given twice, or cannot be decoded.
    """
    if signature.is_open:
        parts = parts_of(signature, content_type, body)
        whole = Message(body, headers, content_type or _OCTETS) if parts is None and (body or content_type) else None
        return _fill_open(signature, query, parts or (), headers, whole)
    fields = signature.fields
    if not fields and signature.more is None:
        if signature.inputs:
            return Filled((_LABEL,), [(0, Message(body, headers, content_type or _OCTETS))])
        if body:
            raise DecodeError(f"the function takes no input, but the body has {len(body)} bytes; send no body")
        return Filled((), [])
    given = from_query(signature, query, headers)
    if body or (content_type and fields):
        spread = _spread(signature, content_type, body, headers)
        if spread is None and not fields:
            raise DecodeError(
                "the function takes each value by a name, and the body gives none; "
                "give a form, a JSON object, or a query such as ?name=value"
            )
        if spread is None:
            first = fields[0]
            spread = [(first.name, Message(body, headers, typed(first, content_type) or _OCTETS))]
        if body or all(name != fields[0].name for name, _ in given):
            given += spread  # an empty form is what `curl -d ''` sends; all values are in the query
    return _arranged(signature, given, met=(content_type, body))


def straight(signature: Signature, query: str, content_type: str) -> tuple[tuple[str, ...], str] | None:
    """The names of the inputs and the media type of the body, if the whole body is the value of the first parameter.

    None if that depends on the body. The caller has to check each body by `is_plain`.
    """
    if query or not content_type or not signature.fields or signature.more is not None:
        return None
    first, essence = signature.fields[0], content_type.partition(";")[0].strip().lower()
    if essence in (_FORM, _PARTS) or (essence == _JSON and content_type != _JSON):
        return None
    media_type = typed(first, content_type)
    try:
        names, given, _ = _arranged(signature, [(first.name, Message(b"", EMPTY, media_type))])
    except DecodeError:
        return None
    return (names, media_type) if given[0][0] == 0 else None


def is_plain(media_type: str, body: bytes) -> bool:
    """Whether a body is certainly one value, and not a JSON object, whose members may be several values."""
    return media_type != _JSON or body[:1] in _NO_OBJECT


def fill_parts(signature: Signature, query: str, parts: Sequence[Part], headers: Headers) -> Filled:
    """Assign the parts of a multipart body, and the values in the query, to the parameters of their names.

    Raises:
        DecodeError: No parameter has the name of a part; or a value is wrong as for `fill`.
    """
    if signature.is_open:
        return _fill_open(signature, query, parts, headers)
    if signature.drops and signature.more is None:
        _check_spelling(signature.name, signature.known, [part.name for part in parts])
        parts = [part for part in parts if part.name in signature.known]
    check_names(signature, [*dict.fromkeys(part.name for part in parts)], f" ({_IGNORE})")
    more = from_parts(signature.fields, parts, headers, signature.more)
    return _arranged(signature, from_query(signature, query, headers) + more)


def fill_query(signature: Signature, query: str, headers: Headers) -> Filled:
    """The values in a query, by the names of their inputs; for requests whose other values come later.

    Raises:
        DecodeError: A parameter with a default is given twice, or the query cannot be decoded.
    """
    given = from_query(signature, query, headers)
    if signature.is_open or not (signature.fields or signature.more):
        check_names(signature, [name for name, _ in given])
        names = (*signature.inputs, *(name for name, _ in given))
        return Filled(names, [(names.index(name), message) for name, message in given])
    met = {name for name, _ in given} if signature.is_streaming else ()
    return _arranged(signature, given, later=[one for one in signature.inputs if one not in met])


def _fill_open(
    signature: Signature, query: str, parts: Sequence[Part], headers: Headers, whole: Message[bytes] | None = None
) -> Filled:
    """The values for a function of any number of inputs; the query may give inputs, too, like the parts of a body."""
    if signature.drops and signature.more is None:
        parts = [part for part in parts if part.name in signature.known]
    options = [one.name for one in signature.options]
    pairs = query_pairs(query) if query else []
    if signature.more is None:
        _check_spelling(signature.name, signature.known, dict.fromkeys(name for name, _ in pairs))
        pairs = [(name, value) for name, value in pairs if name in signature.known]
    queried = [Part(name, value.encode()) for name, value in pairs if name not in options]
    given = [(part.name, message_of(part, headers)) for part in (*without_empty(signature.options, parts), *queried)]
    if whole is not None:
        met = {part.name for part in queried}
        given.insert(0, (next((one for one in signature.inputs if one not in met), signature.inputs[-1]), whole))
    given += from_texts(signature.options, pairs, headers)
    keys, labels = elements(signature, [name for name, _ in given])
    places, found = bound(signature, keys)
    names = tuple(labels.get(key, key) for key in places)
    return Filled(names, [(places[key], one) for key, (_, one) in zip(keys, given, strict=True)], found.names)


def from_query(signature: Signature, query: str, headers: Headers) -> list[tuple[str, Message[bytes]]]:
    """The values in a query for parameters, by name; other keys are ignored, unless ``**kwargs`` takes them.

    Raises:
        DecodeError: The query is not UTF-8, or misspells a parameter.
    """
    if not query:
        return []
    fields, pairs = signature.options if signature.is_open else signature.fields, query_pairs(query)
    if signature.more is None:
        _check_spelling(signature.name, [one.name for one in fields], dict.fromkeys(name for name, _ in pairs))
    return from_texts(fields, pairs, headers, None if signature.is_open else signature.more)


def _check_spelling(function: str, names: Sequence[str], keys: Collection[str]) -> None:
    """Refuse a key that looks like a misspelt name of a missing parameter (H-201).

    Other programs, such as trackers and caches, add keys to links, so a key that resembles no parameter is ignored.
    """
    strangers = [key for key in keys if key not in names and key not in _OF_SOCKETS]
    if strangers and (found := misspelt(strangers, [name for name in names if name not in keys])):
        raise DecodeError(str(unknown(function, found[0], names, meant=found[1])))


def _spread(signature: Signature, content_type: str, body: bytes, headers: Headers) -> _Given | None:
    """The values that a body gives to parameters by their names; None if the whole body is one value."""
    essence, first = content_type.partition(";")[0].strip().lower(), _first(signature)
    if essence == _JSON and not _is_whole(signature, body, takes=first.takes_object):
        members = object_members(body, content_type)
        if members is None or not _fits(signature, members, "member", takes=first.takes_object):
            return None
        if len(members) > MOST_INPUTS:
            raise DecodeError(str(far_too_many(signature.name, len(members), MOST_INPUTS)))
        given = ((name, Message(bytes(value), headers, _JSON)) for name, value in members.items())
        return [one for one in given if signature.takes(one[0])]
    if essence == _FORM:
        begins = body[:_BLANKS].lstrip()[:1]
        if begins in _AS_JSON and b"=" in body and first.known is None:
            raise DecodeError(
                f"the body begins with {begins.decode()!r}, so it is not a form; for JSON, send "
                "Content-Type: application/json, and for other text text/plain"
            )
        if b"=" not in body:  # such as the body that `curl -d Bob` sends
            if not signature.fields:
                return None
            charset = content_type.partition(";")
            return [(first.name, Message(body, headers, _TEXT + charset[1] + charset[2]))]
        if _is_whole(signature, body, takes=first.takes_form) or _is_file(signature, body):
            return None
        pairs = form_pairs(body, content_type)
        if pairs is None or not _fits(signature, [name for name, _ in pairs], "field", takes=first.takes_form):
            return None
        return from_texts(signature.fields, pairs, headers, signature.more)
    if essence == _PARTS and not _is_whole(signature, body, takes=first.takes_parts):
        parts = read_parts(content_type, body)
        if not _fits(signature, [part.name for part in parts], "part", takes=first.takes_parts):
            return None
        parts = [part for part in parts if signature.takes(part.name)]
        return from_parts(signature.fields, parts, headers, signature.more)
    return None


def _first(signature: Signature) -> Field:
    """The first parameter, which takes a whole body; if there is none, the field for ``**kwargs``."""
    assert signature.fields or signature.more is not None
    return signature.fields[0] if signature.more is None or signature.fields else signature.more


def _is_file(signature: Signature, body: bytes) -> bool:
    """Whether a body is no form although its media type says so, and the first parameter takes its bytes."""
    first = _first(signature)
    return first.known is not None and not first.takes_form and not is_form_of(body, signature.known)


def _is_whole(signature: Signature, body: bytes, *, takes: bool) -> bool:
    """Whether the whole body is the value of the first parameter, which accepts any keys."""
    first, is_only = _first(signature), len(signature.fields) == 1 and signature.more is None
    is_unnamed = is_only and first.name.isascii() and first.name.encode() not in body  # non-ASCII may be escaped
    return takes and len(signature.inputs) < 2 and not (first.is_bare or (first.keys is not None and not is_unnamed))


def _fits(signature: Signature, keys: Collection[str], what: str, *, takes: bool) -> bool:
    """Whether a body gives values to parameters by name: each key is one, and the body is no object for the first.

    Raises:
        DecodeError: The body is one value for the first parameter, and a key would be lost: it is another parameter.
    """
    first, known = _first(signature), signature.known
    own = first.keys or frozenset()
    if signature.drops and signature.more is None and not (takes and first.keys is None):  # H-231
        _check_spelling(signature.name, [*known, *own], keys)
        keys = [key for key in keys if key in known or key in own]
    stranger = next((key for key in keys if not signature.takes(key)), None)
    is_named = first.name in keys and first.name not in own
    if stranger is None and (is_named or not takes or len(signature.inputs) > 1):
        return True
    is_lost = first.is_scalar or (first.keys is not None and is_named)
    # the whole body cannot be a value of the first parameter either
    if stranger is not None and (is_lost or (what != "member" and not takes)):
        hint = f" ({_IGNORE}" if what != "member" else ""
        hint += "; text that is not a form is sent as text/plain)" if what == "field" else ")" if hint else ""
        check_names(signature, [*dict.fromkeys(keys)], hint)
    lost = next((key for key in keys if signature.takes(key) and key not in own), None)
    if first.keys is not None and lost is not None:
        raise DecodeError(
            f"the {what} {lost!a} is not a field of parameter '{first.name}', which takes the body; it is a parameter "
            f"itself, so give it in the query (?{lost}=...), or give all of them by their names ({', '.join(known)})"
        )
    return False


def _taken_whole(name: str, content_type: str, body: bytes) -> str:
    """A hint for errors: the body was taken as one value, although it may have been meant for several parameters."""
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
        return f"; the body was taken for '{name}', because it is not a JSON object: {error}"
    return ""


def _arranged(
    signature: Signature, given: _Given, *, later: Collection[str] = (), met: tuple[str, bytes] = ("", b"")
) -> Filled:
    """Order the values by input, as the invocation is opened; ``met``: the body and its media type, for error texts."""
    own, fields = signature.inputs, signature.fields
    hint = _taken_whole(fields[0].name, *met) if met[1] and fields else ""
    places, found = bound(signature, [name for name, _ in given], later=later, hint=hint)
    if signature.more is not None:  # a function with ``**kwargs`` gets all inputs by name
        return Filled(found.names, [(places[name], message) for name, message in given], found.names)
    labels = own if len(own) > 1 else (_LABEL,)
    names = dict.fromkeys((*(one.name for one in fields[: len(labels)]), *found.names))
    places = {name: index for index, name in enumerate(names)}
    return Filled((*labels, *[*names][len(labels) :]), [(places[name], message) for name, message in given])
