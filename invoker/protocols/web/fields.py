"""`Signature`: which values an HTTP request may give to a function; it has a `Field` for each parameter.

Everything that depends on the types of the parameters is computed here, once per function.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import FunctionSpec, ResultShape, StreamSpec, Style, Take
from invoker.codecs import Offer, Part, Registry, scalars, wants_arrays
from invoker.codecs.custom import Adapted
from invoker.codecs.form import is_object
from invoker.codecs.interface import Specialised
from invoker.codecs.typed import BYTES_LIKE, bytes_like, fields, is_any, members, narrowed
from invoker.errors import InvocationError, NotAcceptable, UnsupportedMediaType
from invoker.errors.wording import Place

_TEXTS = (
    "text/csv",
    "text/tab-separated-values",
    "text/html",
    "text/markdown",
    "text/xml",
    "text/css",
    "text/calendar",
)
"""Types of text that a text parameter takes although no codec knows them; other types are refused (R-093)."""

_PLAIN: Mapping[type, str] = {str: "text/plain", bytes: "application/octet-stream"}
_LINES = "application/x-ndjson"
_LISTS = (list, tuple, set, frozenset)
_SCALARS = (str, int, float, bool)
_TOLD = (*_SCALARS, bytes, dict, list, type(None))
"""Classes for which each codec can say, without a look at the value, whether it encodes them."""


_NO_BINDER: Final = Binder(FunctionSpec(""))


class Field(msgspec.Struct, frozen=True):
    """A parameter of a function, and how requests give it values.

    Attributes:
        name: The name of the input.
        is_option: Whether it has a default.
        is_value: Whether a request gives it one value only: it is the same for the whole call, or each further value
            would produce a further output.
        needs_value: Whether the function can only be called with a value for it.
        is_list: Whether its value is a list, whose items may be given one by one.
        is_bytes: Whether its values are bytes.
        is_json: Whether a single text is parsed as JSON; otherwise the text is the value, or an item of the list.
        is_scalar: Whether it is a text, a number or a boolean, to which no object can be converted.
        is_bare: Whether it has no annotation; then an object or a form whose names are all parameters gives values to
            those parameters (H-245).
        takes_object: Whether a whole JSON object may be its value.
        takes_form: Whether a whole form may be its value.
        takes_parts: Whether all parts of a multipart body together may be its value.
        keys: Names of the fields of its objects; None if objects may have other keys, too, or it takes no objects.
        texts: Media types without a codec that count as plain text for it.
        sent_as: The media type of its values if the request names none: plain text, JSON, or bytes.
        is_text: Whether every text is a valid value, even the empty one.
        skips_empty: Whether an empty field of a form counts as missing, because the parameter has a default and an
            empty text is not a valid value.
        known: A predicate for a parameter that takes bytes: whether a media type has a codec; payloads of all other
            types are taken as bytes. None: it takes no bytes.
    """

    name: str
    is_option: bool = False
    is_value: bool = False
    needs_value: bool = False
    is_list: bool = False
    is_bytes: bool = False
    is_json: bool = False
    is_scalar: bool = False
    is_bare: bool = False
    takes_object: bool = True
    takes_form: bool = True
    takes_parts: bool = True
    keys: frozenset[str] | None = None
    texts: frozenset[str] = frozenset()
    sent_as: str = "text/plain"
    is_text: bool = False
    skips_empty: bool = False
    known: Callable[[str], bool] | None = None


class Signature(msgspec.Struct, frozen=True):
    """What an HTTP session needs to know about a function.

    Attributes:
        inputs: Names of the required inputs.
        is_open: Whether it takes any number of further inputs.
        opens_values: Whether each of the further inputs is one value, not a stream.
        opens_fields: Whether a JSON object may give the further inputs by their names, because none of them takes
            objects.
        own_keys: Names of the fields of the objects that the further inputs take, if they take any; None: the objects
            may have other keys, too.
        fields: All parameters, those with a default included; empty if each request is one message for any function.
        options: The optional inputs of a function that takes any number of inputs; those of other functions are among
            ``fields``.
        outputs: Names of its outputs.
        is_safe: Whether GET may call it.
        is_streaming: Whether it receives its inputs as streams.
        gives_many: Whether it yields any number of values, independent of the number of its input values.
        pieces: The media type of a response body that joins its values one after the other; empty: the values are lines
            of JSON.
        is_told: Whether the first value determines the media type and the headers of such a body, because it is a
            message.
        own_lines: Whether a codec decodes a whole NDJSON body into one value of the first input.
        plain_type: The media type of a `Message` of text or bytes that names no media type; empty: values are not such
            messages, or the function declares their types.
        is_text: Whether its values are text, so that they are sent as UTF-8 if the function names no charset; None: its
            annotation does not show this, or it has several outputs.
        offers: Returns the media types that its value can have; None: it has several outputs, or none.
        can_give: Returns whether its value can have a type that an Accept header lists; None: the annotation does not
            show this.
        name: The name of the function.
        drops: Whether names in a form or an object that are not names of parameters are ignored (H-231); otherwise they
            are refused.
        gives_ahead: Whether a thread computes the next value while the previous one is sent.
        more: The field for ``**kwargs``, which takes values of all other names; None: the function has no ``**kwargs``.
        streams: Names of the inputs that take any number of values.
        binder: Assigns values to inputs by name.
    """

    inputs: tuple[str, ...]
    is_open: bool = False
    opens_values: bool = False
    opens_fields: bool = False
    own_keys: frozenset[str] | None = None
    fields: tuple[Field, ...] = ()
    options: tuple[Field, ...] = ()
    more: Field | None = None
    outputs: tuple[str, ...] = ("out",)
    is_safe: bool = False
    is_streaming: bool = False
    gives_many: bool = False
    pieces: str = ""
    is_told: bool = False
    own_lines: bool = False
    plain_type: str = ""
    is_text: bool | None = None
    offers: Callable[[], tuple[str, ...]] | None = None
    can_give: Callable[[str], bool] | None = None
    name: str = ""
    drops: bool = False
    gives_ahead: bool = False
    streams: frozenset[str] = frozenset()
    binder: Binder = _NO_BINDER

    @property
    def known(self) -> tuple[str, ...]:
        """The names of parameters that a request may give values for; ``**kwargs`` takes all other names."""
        return tuple([one.name for one in self.fields]) or (*self.inputs, *(one.name for one in self.options))

    def takes(self, name: str) -> bool:
        """Whether a value in a request may have this name."""
        return name in self.known or (self.more is not None and bool(name))

    @property
    def offered(self) -> tuple[str, ...]:
        """The media types that the function's value can have; empty if they are unknown."""
        return self.offers() if self.offers is not None else ()

    def named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Replace the labels of the required inputs by the names of their parameters."""
        if self.more is not None or self.is_open:
            return names
        free = max(len(self.inputs), 1)
        return (*self.known[:free], *names[free:])


def signature_of(spec: FunctionSpec, registry: Registry, *, drops: bool = False) -> Signature:
    """Read the spec of a function.

    Args:
        spec: The spec as it was read.
        registry: The codecs for values.
        drops: See `Signature`.
    """
    inputs = tuple(one.name for one in spec.inputs)
    own = [one for one in spec.inputs if not one.is_ignored]
    options = tuple(_field(one, spec, registry, is_option=True) for one in spec.spare)
    more = _more(spec, registry)
    required = tuple(_field(one, spec, registry, is_option=False) for one in own)
    if spec.open_inputs or not (own or options or more):
        made = Signature(
            inputs,
            spec.open_inputs,
            spec.open_inputs and bool(own) and (spec.style is Style.REQUEST_REPLY or own[-1].single),
            spec.open_inputs and not any(_may_be_object(one.type) for one in own),
            _all_keys([one.type for one in own if _may_be_object(one.type)]),
            options=options,
            more=more,
        )
    else:
        made = Signature(tuple(one.name for one in own), fields=(*required, *options), more=more)
    only = spec.outputs[0] if len(spec.outputs) == 1 and not spec.open_outputs else None
    is_stream = spec.style is Style.STREAMING and spec.call.result is not ResultShape.VALUE
    return msgspec.structs.replace(
        made,
        outputs=tuple(one.name for one in spec.outputs) if not spec.open_outputs else made.outputs,
        is_safe=spec.safe,
        is_streaming=spec.style is Style.STREAMING,
        gives_many=spec.open_outputs or len(spec.outputs) > 1 or (is_stream and bool(spec.outputs)),
        pieces=_pieces(only) if only is not None else "",
        is_told=only is not None and only.take is Take.MESSAGE,
        name=spec.name,
        drops=drops,
        gives_ahead=not spec.is_async,
        own_lines=bool(own) and _decodes(registry, own[0].type, _LINES),
        plain_type=next((_PLAIN[kind] for one in spec.outputs if (kind := _own_kind(one)) is not None), ""),
        is_text=_is_text(only.type) if only is not None else None,
        offers=partial(_offered, only) if only is not None else None,
        can_give=_can_give(only, registry) if only is not None else None,
        streams=frozenset(one.name for one in (*required, *options) if not one.is_value),
        binder=Binder(spec, most=MOST_INPUTS, has_labels=False),
    )


def _may_be_object(type_: Any) -> bool:
    return is_object(type_) or bytes_like(type_) is not None


def _all_keys(types: Sequence[Any]) -> frozenset[str] | None:
    each = [_keys(one) for one in types]
    known = [keys for keys in each if keys is not None]
    return frozenset().union(*known) or None if len(known) == len(each) else None


def _is_text(type_: Any) -> bool | None:
    kinds = members(type_)
    return False if all(kind in BYTES_LIKE for kind in kinds) else True if kinds == (str,) else None


def _pieces(one: StreamSpec) -> str:
    """The media type of a body made by joining the values, which are texts or bytes; empty: they cannot be joined."""
    kinds = members(one.type)
    if kinds != (str,) and not all(kind in BYTES_LIKE for kind in kinds):
        return ""
    return next(iter(one.media_types), _PLAIN[str if kinds == (str,) else bytes])


def _own_kind(one: StreamSpec) -> type | None:
    """The class of the payloads in messages; None if values are no messages, have several classes or declared types."""
    kinds = members(one.type)
    is_open = one.take is Take.MESSAGE and not one.media_types
    return kinds[0] if is_open and kinds in ((str,), (bytes,)) else None


def _can_give(one: StreamSpec, registry: Registry) -> Callable[[str], bool] | None:
    """R-146: Make a test whether Accept allows a type of the value; None if the value's classes do not show them."""
    classes = [typing.get_origin(kind) or kind for kind in members(one.type)]
    if one.take is not Take.PAYLOAD or not all(kind in _TOLD for kind in classes):
        return None

    def can_give(accept: str) -> bool:
        try:
            offers = registry.offers(accept)
        except NotAcceptable:
            return False
        return any(_takes(offer, cls) for offer in offers for cls in classes)

    return can_give


def _takes(offer: Offer, cls: type) -> bool:
    codec = offer.codec
    if isinstance(codec, Adapted) or not isinstance(codec, Specialised):
        return True  # the codec decides by the value, not by its class
    return codec.encoder(offer, cls, Place("value")) is not None


def _offered(one: StreamSpec) -> tuple[str, ...]:
    from invoker.author.described import given_as  # this imports all modules of schemas, and is seldom needed

    return given_as(one)


def _field(one: StreamSpec, spec: FunctionSpec, registry: Registry, *, is_option: bool) -> Field:
    kinds = members(one.type)
    is_mapped = spec.style is Style.REQUEST_REPLY
    streams = {each.stream.name for each in spec.call.parameters if each.stream is not None and each.streams}
    parts = [typing.get_args(kind)[:1] for kind in kinds if typing.get_origin(kind) in _LISTS]
    # `typing.List` may come without an item type
    items = [item for found in parts for item in members(found[0] if found else Any)]
    is_list = bool(items) or any(kind in _LISTS for kind in kinds)
    has_parts = Part in kinds or Part in items
    is_text_list = is_list and all(item is str or is_any(item) for item in items)
    is_dict = is_object(one.type) and not is_any(one.type)
    return Field(
        one.name,
        is_option=is_option,
        is_value=is_mapped or one.single or (is_option and one.name not in streams),
        needs_value=not is_option and (is_mapped or one.single),
        is_list=is_list and not has_parts,
        is_bytes=is_list and any(bytes_like(item) is not None for item in items),
        is_json=is_dict or wants_arrays([one.type]) or (is_list and not is_text_list),
        is_scalar=all(kind in _SCALARS or kind is type(None) for kind in kinds),
        is_bare=is_any(one.type),
        takes_object=_may_be_object(one.type),
        takes_form=is_object(one.type),
        takes_parts=is_object(one.type) or has_parts,
        keys=_keys(one.type),
        texts=_texts(one.type, registry) if kinds in ((str,), (bytes,)) else frozenset(),
        sent_as=_sent_as(one.type, is_text=is_any(one.type) or all(kind in _SCALARS for kind in kinds)),
        is_text=is_any(one.type) or str in kinds,
        skips_empty=is_option and not is_list and not _has_empty(one.type),
        known=partial(_decodes, registry, one.type) if bytes_like(one.type) is not None else None,
    )


def _more(spec: FunctionSpec, registry: Registry) -> Field | None:
    """The field for ``**kwargs``; a whole body is never one of its values."""
    if not spec.open_names:
        return None
    last = spec.call.parameters[-1]
    one = _field(last.stream or StreamSpec(last.name), spec, registry, is_option=True)
    return msgspec.structs.replace(
        one, is_scalar=True, takes_object=False, takes_form=False, takes_parts=False, skips_empty=False
    )


def _keys(type_: Any) -> frozenset[str] | None:
    """The names of the fields of a class, both the Python name and the JSON name of each."""
    found: set[str] = set()
    for one in members(type_):
        if fields(one) is None:
            if is_object(one) or bytes_like(one) is not None:
                return None
            continue
        more = getattr(one, "__pydantic_fields__", {}).values()
        aliases = [each.validation_alias for each in more if each.validation_alias is not None]
        allows = getattr(one, "model_config", {}).get("extra") == "allow"
        if allows or not all(isinstance(each, str) for each in aliases):
            return None
        found.update(fields(one) or (), aliases)
    return frozenset(found) or None


def _has_empty(type_: Any) -> bool:
    """Whether an empty text can be converted to this type; None does not count (H-237)."""
    if is_any(type_) or bytes_like(type_) is not None or str in members(type_):
        return True
    try:
        scalars.reader(narrowed(type_, (type(None),)))("")
    except ValueError:
        return False
    except TypeError:  # no text can be converted to it, unless a codec accepts it
        return not is_object(type_) and not wants_arrays([type_])
    return True


def _sent_as(type_: Any, *, is_text: bool) -> str:
    if is_text:
        return "text/plain"
    return "application/json" if bytes_like(type_) is None else "application/octet-stream"


def _decodes(registry: Registry, type_: Any, media_type: str) -> bool:
    try:
        registry.decoder(media_type, type_)
    except InvocationError:
        return False
    return True


def _texts(type_: Any, registry: Registry) -> frozenset[str]:
    found = set()
    for media_type in _TEXTS:
        try:
            registry.decoder(media_type, type_)
        except UnsupportedMediaType:
            found.add(media_type)
        except InvocationError:
            continue  # its codec does not decode values of this type, and callers get that error
    return frozenset(found)
