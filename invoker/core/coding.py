"""Decodes payloads and encodes values, for one input or output of a `Plan`: closures by media type and by class.

They are made when the first message or value of a kind comes, and shared by all invocations of the plan, so they hold
no state of an invocation. Peers and functions choose the kinds, so only some closures are kept, and all are dropped
when there are too many (R-011). Several threads may look and remember at once: each step is one operation on a dict.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from invoker.author.spec import IGNORED, StreamSpec, Take
from invoker.codecs import Offer, Registry
from invoker.codecs.anyvalue import ANY
from invoker.codecs.constrained import constrained
from invoker.codecs.leftout import completing
from invoker.codecs.open import open_decoder
from invoker.codecs.promised import check_promise
from invoker.codecs.shaped import fitted_output
from invoker.codecs.text import TextCodec
from invoker.codecs.typed import leaves
from invoker.codecs.validated import validated_output
from invoker.errors import EncodeError, UnacceptedType, UnsupportedMediaType
from invoker.errors.wording import Place
from invoker.fields.constraints import UNBOUND
from invoker.mediatypes import MediaType, parse, rank
from invoker.message import EMPTY, METADATA, REFERENCE, Message, Metadata, Ref

MOST_KNOWN: Final = 32
LONGEST_KEY: Final = 256
"""The most characters of a media type whose closure is remembered; a longer one is looked up for each message."""

Decode: TypeAlias = Callable[[Message[bytes]], Any]
Encode: TypeAlias = Callable[[Any], Message[bytes]]

K = TypeVar("K")
V = TypeVar("V")


class Decoders:
    """Finds the decoders for the messages of one input.

    Args:
        index: The index of the input.
        spec: The spec of the input.
        registry: Codecs.
        is_open: Whether media types without a codec are taken, too.

    Attributes:
        known: Remembered decoders, by media type.
    """

    __slots__ = ("_is_open", "_registry", "index", "known", "spec")

    def __init__(self, index: int, spec: StreamSpec, registry: Registry, *, is_open: bool = False) -> None:
        self.index = index
        self.spec = spec
        self.known: dict[str, Decode] = {}
        self._registry = registry
        self._is_open = is_open

    def find(self, media_type: str) -> Decode:
        """A closure that decodes messages of a media type.

        Raises:
            UnsupportedMediaType: No codec decodes it.
        """
        found = self._make(media_type)
        if self.spec.constraints:
            found = constrained(found, self.spec.constraints, Place("input", self.index, self.spec.name))
        if len(media_type) <= LONGEST_KEY:
            _remember(self.known, media_type, found)
        return found

    def _make(self, media_type: str) -> Decode:
        if self.spec.type is IGNORED:
            return _nothing  # the payload is never read, so any media type is accepted
        try:
            return self._registry.decoder(media_type, self.spec.type, index=self.index, name=self.spec.name)
        except UnsupportedMediaType as error:
            if not self._is_open:
                raise
            # a parameter of Message takes any type (E-047)
            type_ = Any if self.spec.take is Take.MESSAGE else self.spec.type
            return open_decoder(media_type, type_, index=self.index, error=error)


class Encoders:
    """Encodes the values of one output, in media types that the peer accepts.

    Attributes:
        index: The index of the output.
        name: The name for texts of errors.
    """

    __slots__ = (
        "_accept",
        "_by_value",
        "_is_checked",
        "_known",
        "_marked",
        "_offers",
        "_registry",
        "_type",
        "index",
        "name",
    )

    def __init__(
        self,
        index: int,
        name: str,
        accept: str,
        registry: Registry,
        *,
        by_value: bool = False,
        type_: Any = Any,
        is_checked: bool = True,
        marked: StreamSpec | None = None,
    ) -> None:
        """Find the codecs that can encode for the accepted media types.

        Args:
            index: The index of the output.
            name: The name for texts of errors.
            accept: The media types that its peer accepts.
            registry: Codecs.
            by_value: Whether text is sent as text/plain and bytes as raw bytes (E-104), since the peer has no
                preference.
            type_: The type that its values must have, or are cast to if the function casts them.
            is_checked: Whether values of another class or shape, or that break a mark, are refused.
            marked: The output as the author annotated it.

        Raises:
            NotAcceptable: No codec satisfies ``accept`` (R-100).
        """
        self.index = index
        self.name = name
        self._accept = accept
        self._registry = registry
        self._by_value = by_value
        self._type = type_
        self._is_checked = is_checked
        self._marked = marked
        self._offers: tuple[Offer, ...] = registry.offers(accept, index=index, name=name)
        self._known: dict[type, Encode] = {}

    def encode(self, value: Any) -> Message[bytes]:
        """Serialise one value in the best accepted media type that can carry it.

        Args:
            value: A bare value, or a `Message` whose headers are copied and whose media type, if any, is obeyed.

        Raises:
            EncodeError: The value is not what the function declares, no accepted codec takes it, or a header cannot be
                sent.

        Source: riff streaming specification, "OutputFrame" 1, 3, 4, 6 (R-099, R-104, R-107).
        """
        if type(value) is Message:
            return self._encode_message(value)
        encode = self._known.get(type(value))
        if encode is None:
            if type(value) is Ref:
                return _reference(value, self.index)
            if type(value) is Metadata:
                return self._encode_metadata(value)
            offers = self._offers_by_value(value) if self._by_value else self._offers
            encode = self._encoder(offers, value)
            _remember(self._known, type(value), encode)
        return encode(value)

    def _encoder(self, offers: tuple[Offer, ...], value: Any) -> Encode:
        """Make a closure that encodes values of this value's class, and check the class against the annotation."""
        where = Place("output", self.index, self.name)
        if self._type is Any or type(value) is self._type:
            encode = self._registry.encoder(offers, value, index=self.index)
            return completing(self._checked(encode, offers, where), type(value))
        if self._is_checked:
            check_promise(self._type, value, where)
        encode = self._registry.encoder(offers, value, index=self.index)
        encode = self._checked(fitted_output(encode, self._type, where, is_checked=self._is_checked), offers, where)
        return completing(encode, *leaves(self._type), type(value))

    def _checked(self, encode: Encode, offers: tuple[Offer, ...], where: Place) -> Encode:
        """Wrap an encoder so that it checks values against the annotation; a tool's bounds are checked elsewhere."""
        if not self._is_checked or self._marked is None:
            return encode
        is_tool = all(one.media_type.essence == ANY for one in offers)
        return validated_output(encode, self._marked.type, UNBOUND if is_tool else self._marked.constraints, where)

    def _offers_by_value(self, value: Any) -> tuple[Offer, ...]:
        kind = "text/plain" if isinstance(value, str) else "application/octet-stream"
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            return self._offers
        return tuple(sorted(self._offers, key=lambda one: one.media_type.essence != kind))

    def _encode_metadata(self, value: Metadata) -> Message[bytes]:
        """Encode metadata that the function gives between the items; metadata may have another type than the items."""
        encode = self._registry.encoder(self._offers, value.value, index=self.index)
        encoded = encode(value.value)
        return Message(encoded.payload, wire_headers({METADATA: value.key}, self.index), encoded.media_type)

    def _encode_message(self, message: Message[Any]) -> Message[bytes]:
        headers = wire_headers(message.headers, self.index) if message.headers else EMPTY
        if type(message.payload) is Ref:
            encoded = _reference(message.payload, self.index)
            return Message(b"", {**headers, **encoded.headers}, encoded.media_type)
        if message.media_type:
            encoded = self._encode_as(message.payload, message.media_type)
        elif type(message.payload) is Message:
            raise EncodeError(
                " was given a Message within a Message; yield the inner one", place=Place("output", self.index)
            )
        else:
            encoded = self.encode(message.payload)
        return Message(encoded.payload, headers, encoded.media_type) if headers else encoded

    def _encode_as(self, payload: Any, media_type: str) -> Message[bytes]:
        """Encode a value in the media type that the function has chosen.

        Bytes that no codec takes are sent as they are, since the function has encoded them itself. The media type that
        is sent is concrete and has no ``q`` (R-098).
        """
        try:
            chosen = parse(media_type)
        except (ValueError, TypeError, AttributeError) as error:
            was = f" was given {media_type!a}, which is not a media type: {error}"
            raise EncodeError(was, place=Place("output", self.index)) from None
        offers = tuple(offer for offer in self._offers if offer.media_type.essence == chosen.essence)
        if not offers and not chosen.is_wildcard:
            is_text = isinstance(payload, str) and self._accepts(chosen)  # H-208: HTML, SVG
            if is_text or (self._by_value and chosen.type == "text"):  # E-104
                offers = _text_offers(chosen)  # a function may choose any type for its text
        is_raw = isinstance(payload, (bytes, bytearray, memoryview))
        try:
            if offers:
                return self._encoder(offers, payload)(payload)
        except EncodeError:
            if not is_raw:
                raise
        if is_raw and not chosen.is_wildcard and self._accepts(chosen):
            params = tuple((name, value) for name, value in chosen.params if name != "q")
            return Message(bytes(payload), EMPTY, str(MediaType(chosen.type, chosen.subtype, params)))
        where, accepts = Place("output", self.index), f"the caller accepts {self._accept or '*/*'!r}"
        if not (chosen.is_wildcard or self._accepts(chosen)):
            raise UnacceptedType(f" was given, but {accepts}", place=where, met=chosen.essence)
        raise EncodeError(
            f" was given {media_type!a}, but {accepts}"
            + ("" if is_raw else f", and no codec encodes {type(payload).__name__} as this type"),
            place=where,
        )

    def _accepts(self, chosen: MediaType) -> bool:
        return bool(rank(self._accept or "*/*", [chosen.essence]))


def _remember(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[key] = value


@functools.lru_cache(maxsize=64)
def _text_offers(media_type: MediaType) -> tuple[Offer, ...]:
    return (Offer(TextCodec((media_type.essence,)), media_type),)  # cached, since encoders are found by this object


def _nothing(_: Message[bytes]) -> None:
    return None


def _reference(value: Ref, index: int) -> Message[bytes]:
    """A message that refers to its content by a URI.

    Raises:
        EncodeError: Its media type is malformed, or its URI cannot be sent as a header.
    """
    try:
        media_type = parse(value.media_type)
    except (ValueError, TypeError, AttributeError) as error:
        was = f" was given a Ref of type {value.media_type!a}: {error}"
        raise EncodeError(was, place=Place("output", index)) from None
    return Message(b"", wire_headers({REFERENCE: value.uri}, index), str(media_type))


def wire_headers(headers: Any, index: int) -> dict[str, str]:
    """Convert headers so that they can be sent: text names and values, the first of several values (R-107, R-108).

    Raises:
        EncodeError: A name is empty, or a name or value is not valid Unicode.
    """
    made: dict[str, str] = {}
    for key, given in headers.items():
        first = given
        if isinstance(given, (list, tuple)):
            first = given[0] if given else ""
        name, value = str(key), str(first)
        if not name:
            raise EncodeError(" has a header without a name", place=Place("output", index))
        try:
            name.encode()
            value.encode()
        except UnicodeEncodeError:
            has = f" has a header {name!a} that is not valid Unicode"
            raise EncodeError(has, place=Place("output", index)) from None
        made[name] = value
    return made
