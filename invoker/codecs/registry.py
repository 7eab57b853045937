"""`Registry`: finds the codec that decodes an input, and negotiates the encoding of an output.

Theory. Codecs are kept in two orders. For a media type the *first* codec that names it is used, users' codecs before
the built-in ones and exact names before families. For ``*/*`` and ``type/*`` the *server order* decides, in which
users' codecs come last (R-097), unless the function declares the media types of its outputs. Negotiation returns
`Offer`s, best first; the first whose codec takes the value's type is used (R-099). Decoders and encoders are closures,
made once and cached, so that a message costs one call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from invoker.codecs import custom
from invoker.codecs.anyvalue import AnyCodec
from invoker.codecs.checkpoint import CheckpointCodec
from invoker.codecs.containers import MOST_CONTAINERS
from invoker.codecs.exact import ExactCodec
from invoker.codecs.form import FormCodec
from invoker.codecs.interface import Codec, Decode, Encode, Offer, Specialised, refusing
from invoker.codecs.json import JsonCodec
from invoker.codecs.msgpack import MsgpackCodec
from invoker.codecs.multipart import MultipartCodec
from invoker.codecs.octets import OctetsCodec, ReadyCodec
from invoker.codecs.pickle import PickleCodec
from invoker.codecs.refusal import quote, refuse_decode
from invoker.codecs.several import SeveralCodec
from invoker.codecs.shaped import shaped
from invoker.codecs.text import TextCodec
from invoker.codecs.validated import validated
from invoker.errors import EncodeError, NotAcceptable, UnsupportedMediaType
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType, Range, matches, parse, rank

OCTETS = "application/octet-stream"

_CACHED = 512
_CACHED_LENGTH = 512


def builtin_codecs(
    *, pickle: bool = False, arrays: bool = False, max_containers: int = MOST_CONTAINERS
) -> list[Specialised]:
    """New built-in codecs in server order (R-097)."""
    msgpack = MsgpackCodec()
    codecs: list[Specialised] = [
        JsonCodec(),
        TextCodec(),
        OctetsCodec(),
        FormCodec(),
        JsonCodec(("application/cloudevents+json", "application/*+json")),
        msgpack,
        MultipartCodec(),
        AnyCodec(),
        ExactCodec(),
        CheckpointCodec(),
    ]
    part: Specialised = msgpack
    if arrays:
        from invoker.codecs.npy import NpyCodec  # few functions use arrays, so the others start faster
        from invoker.codecs.tensor import TensorCodec

        codecs += [part := TensorCodec(), NpyCodec()]
    codecs.append(SeveralCodec(part))
    if pickle:
        codecs.append(PickleCodec())
    for one in codecs:
        one.max_containers = max_containers
    return codecs


class Registry:
    """Codecs by media type.

    Args:
        codecs: Codecs in server order; None means the built-in ones. Codecs that function authors have registered
            (`custom.codec`) are used as well.
    """

    __slots__ = (
        "_after", "_before", "_codecs", "_decoders", "_encoders", "_modules", "_offers", "_own", "_preferred", "_seen",
        "_version",
    )  # fmt: skip

    def __init__(self, codecs: Iterable[Codec | Specialised] | None = None) -> None:
        self._codecs = builtin_codecs() if codecs is None else [custom.adapt(one) for one in codecs]
        self._before: list[Specialised] = []
        self._after: list[Specialised] = []
        self._preferred: tuple[str, ...] = ()
        self._modules: tuple[str, ...] | None = None
        self._seen = self._own = custom.registered()
        self._version = object()
        self._decoders: dict[tuple[str, Any, int, str], Decode] = {}
        self._offers: dict[str, tuple[Offer, ...]] = {}
        self._encoders: dict[tuple[tuple[Offer, ...], type, int], Encode] = {}

    @property
    def version(self) -> object:
        """An object that is replaced after each change of the codecs.

        A decoder or encoder that was made for an older version must be made again.
        """
        if self._seen is not custom.registered():
            self._forget()
        return self._version

    def copy(self) -> Registry:
        """A new registry with the same codecs, which can be changed independently."""
        other = Registry(self._codecs)
        other._before, other._after = list(self._before), list(self._after)
        other._preferred = self._preferred
        other._modules, other._own = self._modules, self._own
        return other

    def belonging(self, modules: tuple[str, ...]) -> Registry:
        """The codecs of a function of these modules, without codecs that belong to other modules' functions."""
        if not any(one.owners for one in custom.registered()):
            return self
        other = self.copy()
        other._modules = modules  # noqa: SLF001 - it is a Registry, too
        other._forget()  # noqa: SLF001 - as above
        return other

    def register(self, codec: Codec | Specialised, *, first: bool = True) -> None:
        """Add a codec to this registry only.

        Args:
            codec: A codec, or a class whose instance is made without arguments.
            first: Whether the codec has priority over the registered ones (R-090).

        Raises:
            TypeError: The object is not a codec.
            ValueError: The codec names no media type.
        """
        one = custom.adapt(codec)
        if first:
            self._before.insert(0, one)
        else:
            self._after.append(one)
        self._forget()

    def declaring(self, inputs: Iterable[str], outputs: Iterable[str]) -> Registry:
        """A copy for a function that declares media types: media types without a codec are raw bytes, or text.

        Bytes that no other codec writes as a declared type are sent as they are, since the author has encoded them.

        Args:
            inputs: Media types of the function's inputs.
            outputs: Media types of the function's outputs; they come first if the peer leaves the choice to the server.
        """
        other = self.copy()
        declared = tuple(parse(text) for text in outputs)
        for one in (*declared, *(parse(text) for text in inputs)):
            if not any(other._claiming(one)):  # noqa: SLF001 - it is a Registry, too
                essences = (one.essence,)
                other.register(TextCodec(essences) if one.type == "text" else OctetsCodec(essences), first=False)
        for one in declared:
            if not one.is_wildcard:
                other.register(ReadyCodec((one.essence,)), first=False)
        other._preferred = tuple(one.essence for one in declared)  # noqa: SLF001 - as above
        return other

    def decoder(self, media_type: str, type_: Any, *, index: int = 0, name: str = "") -> Decode:
        """A closure that decodes messages of this media type to this type, and raises only DecodeError.

        Args:
            media_type: The received media type; empty means ``application/octet-stream`` (R-061).
            type_: The annotation; ``Any`` lets the codec choose (R-070).
            index: The index of the input, for texts of errors.
            name: The name of the input, for texts of errors.

        Raises:
            UnsupportedMediaType: The media type is malformed, is a wildcard, or has no codec (R-065, R-066, R-067).
        """
        self._refresh()
        key = (media_type, type_, index, name)
        try:
            found = self._decoders.get(key)
        except TypeError:  # an annotation that cannot be hashed
            return self._make_decoder(media_type, type_, index, name)
        if found is None:
            found = self._make_decoder(media_type, type_, index, name)
            if len(media_type) <= _CACHED_LENGTH:
                _remember(self._decoders, key, found)
        return found

    def offers(self, accept: str, *, index: int = 0, name: str = "") -> tuple[Offer, ...]:
        """Negotiate an output: all encodings that the peer accepts, best first.

        Args:
            accept: A comma list of media ranges; blank means no preference (R-101).
            index: The index of the output, for the text of the error.
            name: The name of the output, for the text of the error.

        Raises:
            NotAcceptable: No codec satisfies the list (R-100).
        """
        self._refresh()
        found = self._offers.get(accept)
        if found is None:
            found = tuple(self._make_offers(accept))
            if not found:
                called = f" {quote(repr(name))}" if name else ""
                raise NotAcceptable(f"Unsupported content-type {quote(repr(accept))} for output #{index}{called}")
            if len(accept) <= _CACHED_LENGTH:
                _remember(self._offers, accept, found)
        return found

    def encoder(self, offers: tuple[Offer, ...], value: Any, *, index: int = 0) -> Encode:
        """A closure that encodes values of this value's type in the best offer that takes them (R-099).

        Args:
            offers: The result of the method `offers`, or a part of it.
            value: Only its type counts.
            index: The index of the output, for texts of errors.

        Raises:
            EncodeError: No offer takes the value.
        """
        self._refresh()
        cls = type(value)
        found = self._encoders.get((offers, cls, index))
        if found is None:
            found = _make_encoder(offers, value, Place("output", index))
            _remember(self._encoders, (offers, cls, index), found)
        return found

    def _make_decoder(self, media_type: str, type_: Any, index: int, name: str) -> Decode:
        try:
            one = parse(media_type or OCTETS)
        except ValueError:
            raise _unsupported(media_type, index) from None
        claiming = () if one.is_wildcard else tuple(codec for codec in self._claiming(one) if codec.decodes)
        if not claiming:
            raise _unsupported(media_type, index)
        where = Place("input", index, name)
        try:
            for codec in claiming:
                if codec.can_decode(type_):
                    decode = shaped(codec.decoder(one, type_, where), type_, where)
                    return validated(decode, type_, where, one.essence, codec)
        except BaseException as error:  # noqa: BLE001 - a user's can_decode may raise anything
            return refusing(refuse_decode(error, where, one.essence, type_))
        return refusing(refuse_decode("its codec does not decode values of this type", where, one.essence, type_))

    def _make_offers(self, accept: str) -> Iterator[Offer]:
        def can_write(essence: str, wanted: Range) -> bool:
            return any(_writes(codec, wanted) for codec in self._claiming(parse(essence)))

        for essence, wanted in rank(accept, self._available(), accepts=can_write):
            one = parse(essence)
            by_name = wanted.specificity == 3 or essence in self._preferred
            for codec in self._claiming(one):
                # A family is offered only if the peer names a type of it. Under `*/*` bytes would become text.
                if _writes(codec, wanted) and (by_name or essence in codec.media_types):
                    asked = wanted.media_type
                    params = asked.params if "*" in codec.honours else asked.only(*codec.honours).params
                    is_named = wanted.specificity > 0 or essence in self._preferred
                    yield Offer(codec, MediaType(one.type, one.subtype, params), is_named=is_named)

    def _available(self) -> list[str]:
        """Media types in server order: declared, then built-in, then custom ones (R-097)."""
        server_order = (*self._codecs, *self._own, *self._before, *self._after)
        names = (one for codec in server_order if codec.encodes for one in codec.media_types)
        return list(dict.fromkeys((*self._preferred, *names)))

    def _claiming(self, media_type: MediaType) -> Iterator[Specialised]:
        """Codecs for a media type: exact names before families, users' codecs before the built-in ones."""
        codecs = (*self._before, *self._own, *self._codecs, *self._after)
        for codec in codecs:
            if media_type.essence in codec.media_types:
                yield codec
        for codec in codecs:
            names = codec.media_types
            if media_type.essence not in names and any(_covers(one, media_type) for one in names):
                yield codec

    def _refresh(self) -> None:
        """Clear the caches if a codec was registered since they were filled."""
        if self._seen is not custom.registered():
            self._forget()

    def _forget(self) -> None:
        self._seen = custom.registered()
        self._own = custom.registered(self._modules)
        self._decoders.clear()
        self._offers.clear()
        self._encoders.clear()
        self._version = object()  # set last, so that a thread that sees the new version finds no older closure


def builtin(
    *,
    pickle: bool = False,
    arrays: bool | None = None,
    entry_points: bool = True,
    max_containers: int = MOST_CONTAINERS,
) -> Registry:
    """The registry of a server.

    Args:
        pickle: Whether to read and write pickles; reading one runs code that its sender chose.
        arrays: Whether to read and write arrays, as tensors and as files of numpy; None: if numpy has been imported.
        entry_points: Whether codecs of installed packages are included.
        max_containers: The most lists and dicts that one payload of JSON or MessagePack may become.

    Raises:
        LoadError: A codec of an installed package cannot be loaded.
    """
    has_arrays = "numpy" in sys.modules if arrays is None else arrays
    registry = Registry(builtin_codecs(pickle=pickle, arrays=has_arrays, max_containers=max_containers))
    if entry_points:
        for one in custom.entry_points():
            registry.register(one)
    return registry


def _make_encoder(offers: tuple[Offer, ...], value: Any, where: Place) -> Encode:
    cls = type(value)
    for offer in offers:
        codec = offer.codec
        if isinstance(codec, custom.Adapted) and not codec.can_encode(value):
            continue
        if isinstance(codec, Specialised) and (encode := codec.encoder(offer, cls, where)) is not None:
            return encode
    only = offers[0].codec if all(offer.codec is offers[0].codec for offer in offers) else None
    if isinstance(only, Specialised) and (text := only.refusal(cls)):
        raise EncodeError(f": {text}", place=where)
    accepted = ", ".join(str(offer.media_type) for offer in offers[:10])
    raise EncodeError(
        f": no acceptable media type takes {cls.__name__}; acceptable are {quote(accepted)}",
        place=where,
        hint="; give a value that one of them takes, such as text, a list, a dict or a dataclass, or register a codec "
        "by @codec",
    )


def _writes(codec: Specialised, wanted: Range) -> bool:
    if not codec.encodes or (codec.by_name_only and wanted.specificity < 3):
        return False
    return codec.accepts(wanted.media_type)


def _covers(family: str, media_type: MediaType) -> bool:
    one = parse(family)
    return one.is_wildcard and matches(one, media_type)


def _unsupported(media_type: str, index: int) -> UnsupportedMediaType:
    return UnsupportedMediaType(f"Unsupported content-type {quote(repr(media_type))} for input #{index}")


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Cache a value; peers choose the keys, so a full cache is emptied."""
    if len(cache) >= _CACHED:
        cache.clear()
    cache[key] = value
