"""`Registry`: which codec for which media type, and the negotiation of outputs.

Both questions are asked once and answered with a closure: `decoder` for an input and a media type, `encoder` for an output and a
type of values. The closures are the hot path; they raise `DecodeError` or `EncodeError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from invoker.codecs.base import BYTES_LIKE, Codec, Decode, Encode, bad_input, not_encodable, type_name
from invoker.codecs.json import JsonCodec, json_charset
from invoker.codecs.octets import RawCodec
from invoker.codecs.text import TextCodec, known_charset
from invoker.errors import DecodeError, EncodeError, NotAcceptable, UnsupportedMediaType
from invoker.mediatypes import MediaType, Range, parse, rank, ranges
from invoker.message import Message

__all__ = ["Offer", "Registry"]

_DEFAULT = "application/octet-stream"


class Offer(msgspec.Struct, frozen=True):
    """One way to write an output that its peer accepts.

    Attributes:
        codec: Writes it.
        media_type: Concrete, with the parameters that are echoed.
        is_any: Whether only ``*/*`` asked for it.
    """

    codec: Codec
    media_type: MediaType
    is_any: bool = False


class Registry:
    """Codecs by media type, in the server's order of preference (R-097).

    Args:
        codecs: The earlier ones are preferred when a range leaves the choice to us.
        order: Essences that go before all others.
    """

    def __init__(self, codecs: Iterable[Codec] = (), *, order: tuple[str, ...] = ()) -> None:
        self._codecs: dict[str, Codec] = {}
        self._families: dict[tuple[str, str], Codec] = {}
        self._order = order
        self._offers: dict[str, tuple[Offer, ...]] = {}
        for codec in codecs:
            self.register(codec)

    def register(self, codec: Codec) -> None:
        """Add a codec; it takes the place of whatever served its media types before (R-090).

        Raises:
            ValueError: One of its media types is malformed.
        """
        for text in codec.media_types:
            media_type = parse(text)
            if media_type.subtype.startswith("*+"):
                self._families[media_type.type, media_type.suffix] = codec
            elif media_type.is_wildcard:
                raise ValueError(f"a codec serves concrete media types or families like application/*+json, not {text!r}")
            else:
                self._codecs[media_type.essence] = codec
        self._offers.clear()

    def copy(self) -> Registry:
        """Another registry with the same codecs."""
        made = Registry(order=self._order)
        made._codecs = dict(self._codecs)
        made._families = dict(self._families)
        return made

    def declaring(self, inputs: Iterable[str], outputs: Iterable[str]) -> Registry:
        """A registry that also carries, as raw bytes, the media types which one function declares.

        Args:
            inputs: Media types of its inputs.
            outputs: Media types of its outputs; they come first when a range leaves the choice to us.
        """
        made = self.copy()
        preferred = tuple(parse(text).essence for text in outputs)
        for essence in (*preferred, *(parse(text).essence for text in inputs)):
            if made.find(essence) is None:
                made.register(RawCodec((essence,)))
        made._order = tuple(dict.fromkeys((*preferred, *self._order)))
        return made

    def find(self, essence: str) -> Codec | None:
        """The codec of a concrete media type, by its name or by its family."""
        found = self._codecs.get(essence)
        if found is None and "+" in essence:
            kind, _, subtype = essence.partition("/")
            found = self._families.get((kind, subtype.rpartition("+")[2]))
        return found

    def media_types(self) -> tuple[str, ...]:
        """Every concrete media type that can be written, in the server's order."""
        order = _server_order(one for one, codec in self._codecs.items() if not getattr(codec, "decodes_only", False))
        return tuple(dict.fromkeys((*(one for one in self._order if one in self._codecs), *order)))

    def decoder(self, media_type: str, type_: Any, *, index: int = 0) -> Decode:
        """How messages of one media type become values for one input.

        Args:
            media_type: As the frame says; empty means ``application/octet-stream`` (R-061).
            type_: What the function's parameter is annotated with.
            index: Of the input, for the error's text.

        Raises:
            UnsupportedMediaType: Malformed, a range, or without codec (R-065, R-066, R-067).
        """
        try:
            parsed = parse(media_type.strip() or _DEFAULT)
        except ValueError:
            parsed = None
        codec = None if parsed is None or parsed.is_wildcard else self.find(parsed.essence)
        if codec is None or parsed is None:
            raise UnsupportedMediaType(f"Unsupported content-type {media_type!r} for input #{index}")
        make = getattr(codec, "decoder", None)
        if make is not None:
            try:
                made: Decode = make(parsed, type_)
            except (TypeError, ValueError) as error:
                problem = f"input #{index} wants {type_name(type_)}, which {parsed.essence} cannot give: {error}"
                return _refusing(problem)
            return made
        return _guarded_decode(codec, media_type, type_)

    def offers(self, accept: str, *, index: int = 0, name: str = "") -> tuple[Offer, ...]:
        """Negotiate one output: what its peer accepts and we can write, the best first.

        Raises:
            NotAcceptable: Nothing (R-100).
        """
        found = self._offers.get(accept)
        if found is None:
            found = tuple(self._negotiate(accept))
            if len(self._offers) > 1000:  # noqa: PLR2004 - callers choose the text, so the cache is bounded
                self._offers.clear()
            self._offers[accept] = found
        if not found:
            named = f" {name!r}" if name else ""
            raise NotAcceptable(
                f"Unsupported content-type {accept!r} for output #{index}{named}; "
                f"there are {', '.join(self.media_types())}"
            )
        return found

    def encoder(self, offers: tuple[Offer, ...], value: Any, *, index: int = 0) -> Encode:
        """How values of the type of ``value`` are written under some offers; the caller remembers it by type.

        Raises:
            EncodeError: None of the offers takes such a value (R-099).
        """
        for offer in offers:
            # Text that was asked for by name carries bytes, but `*/*` gives bytes as octets (RA-08).
            if offer.is_any and offer.media_type.type == "text" and isinstance(value, BYTES_LIKE):
                continue
            try:
                takes = offer.codec.can_encode(value)
            except Exception as error:
                raise not_encodable(value, offer.media_type, error) from error
            if takes:
                make = getattr(offer.codec, "encoder", None)
                return make(offer.media_type, type(value)) if make is not None else _guarded_encode(offer)
        wanted = ", ".join(str(offer.media_type) for offer in offers)
        raise EncodeError(f"output #{index} was given {type_name(type(value))}, which none of {wanted} can carry")

    def _negotiate(self, accept: str) -> Iterable[Offer]:
        available = list(self.media_types())
        for one in ranges(accept):
            essence = one.media_type.essence
            if not one.media_type.is_wildcard and essence not in available and self.find(essence) is not None:
                available.append(essence)  # a member of a family, asked for by its name
        for essence, deciding in rank(accept, available):
            codec = self.find(essence)
            if codec is not None:
                kind, _, subtype = essence.partition("/")
                yield Offer(codec, MediaType(kind, subtype, _echoed(codec, essence, deciding)), not deciding.specificity)


_ORDER = (
    "application/json",
    "text/plain",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
    "application/cloudevents+json",
)


def _server_order(codecs: Iterable[str]) -> tuple[str, ...]:
    """R-097: the order for ranges; what is not named there comes after, as it was registered."""
    known = dict.fromkeys(codecs)
    return (*(one for one in _ORDER if one in known), *(one for one in known if one not in _ORDER))


def _echoed(codec: object, essence: str, deciding: Range) -> tuple[tuple[str, str], ...]:
    """R-102: a charset that can be written is echoed, and text's transfer form; everything else is not."""
    wanted = deciding.media_type
    if wanted.essence != essence:
        return ()
    kept = []
    for name, value in wanted.params:
        is_charset = name == "charset" and (json_charset(value) if isinstance(codec, JsonCodec) else known_charset(value))
        if is_charset or (name == "encoding" and isinstance(codec, TextCodec)):
            kept.append((name, value))
    return tuple(kept)


def _refusing(problem: str) -> Decode:
    def decode(_: Message[bytes]) -> Any:
        raise DecodeError(problem)

    return decode


def _guarded_decode(codec: Codec, media_type: str, type_: Any) -> Decode:
    """A codec's own exceptions become DecodeError; it may be anybody's code."""

    def decode(message: Message[bytes]) -> Any:
        try:
            return codec.decode(message, type_)
        except DecodeError:
            raise
        except Exception as error:
            raise bad_input(media_type, error, type_) from error

    return decode


def _guarded_encode(offer: Offer) -> Encode:
    codec, media_type, name = offer.codec, offer.media_type, str(offer.media_type)

    def encode(value: Any) -> Message[bytes]:
        try:
            made = codec.encode(value, media_type)
            if isinstance(made, Message):
                return made if made.media_type else Message(made.payload, made.headers, name)
            return Message(bytes(made), media_type=name)
        except EncodeError:
            raise
        except Exception as error:
            raise not_encodable(value, media_type, error) from error

    return encode
