"""Codecs of function authors, which are registered by a decorator, a call or an entry point.

::

    @codec("text/csv")
    class Csv:
        def decode(self, message, type_): return list(csv.reader(message.payload.decode().splitlines()))
        def encode(self, value, media_type): return render(value).encode()

    codec("image/x-portable-pixmap", decode=read_ppm, encode=write_ppm, encodes=Image)

Registered codecs have priority over built-in ones for the media types that they name, and come last if a peer accepts
any type (R-090, R-097). Each belongs to the functions of its module and of those that import it: a function has the
codecs that its own module registers, and those of every module that its module reaches. Codecs that were given to
`register` belong to all functions.
"""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from invoker.codecs.interface import Decode, Encode, Offer, Specialised
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import is_any
from invoker.errors import EncodeError, LoadError
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType, parse
from invoker.message import EMPTY, Message

C = TypeVar("C")

_registered: tuple[Specialised, ...] = ()

_WITHOUT_CODECS = sys.stdlib_module_names | {"invoker", "numpy"}
"""Packages that register no codec and import no module of an author."""


class Adapted(Specialised):
    """Wraps a user's codec in the interface of the built-in ones; its exceptions become the invoker's errors.

    Args:
        codec: An object with ``decode`` or ``encode``; ``can_encode`` and ``can_decode`` are optional.
        media_types: Essences and families, in lower case.
    """

    honours = ("*",)

    def __init__(self, codec: Any, media_types: tuple[str, ...]) -> None:
        super().__init__(media_types)
        self.codec = codec
        self.decodes = callable(getattr(codec, "decode", None))
        self.encodes = callable(getattr(codec, "encode", None))
        self.by_name_only = bool(getattr(codec, "by_name_only", False))

    def can_decode(self, type_: Any) -> bool:
        """Whether the codec may make this type; a codec without ``can_decode`` may make any."""
        ask = getattr(self.codec, "can_decode", None)
        return self.decodes and (ask is None or bool(ask(type_)))

    def claims(self, type_: Any) -> bool:
        """Whether the codec declares this type: by ``can_decode``, or by the return annotation of ``decode``."""
        if not self.decodes or hasattr(self.codec, "can_decode"):
            return self.can_decode(type_)
        made = _returned(getattr(self.codec, "hinted", self.codec.decode))
        if is_any(made) or made == type_:
            return True
        try:
            return isinstance(made, type) and isinstance(type_, type) and issubclass(made, type_)
        except TypeError:  # `type_` is a TypedDict, or a protocol that cannot be checked at run time
            return False

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that calls the codec's ``decode``."""
        decode_, essence = self.codec.decode, media_type.essence

        def decode(message: Message[bytes]) -> Any:
            try:
                return decode_(message, type_)
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that calls the codec's ``encode`` and checks the result; ``can_encode`` was called before."""
        encode_, media_type, name = self.codec.encode, offer.media_type, offer.media_type.essence

        def encode(value: Any) -> Message[bytes]:
            try:
                return _checked(encode_(value, media_type), media_type)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode

    def can_encode(self, value: Any) -> bool:
        """Whether the codec takes the value; a codec without ``can_encode`` may take any."""
        ask = getattr(self.codec, "can_encode", None)
        try:
            return self.encodes and (ask is None or bool(ask(value)))
        except BaseException as error:
            raise refuse_encode(error, Place("can_encode"), self.media_types[0], type(value)) from error


class _Functions:
    """A codec made from two functions of an author."""

    def __init__(self, decode: Any, encode: Any, encodes: tuple[type, ...]) -> None:
        if decode is not None:
            self.decode = lambda message, _: decode(message.payload)
            self.hinted = decode
        if encode is not None:
            self.encode = lambda value, _: encode(value)
        self._encodes = encodes
        self.key = tuple((getattr(one, "__module__", ""), getattr(one, "__qualname__", "")) for one in (decode, encode))

    def can_encode(self, value: Any) -> bool:
        return not self._encodes or isinstance(value, self._encodes)


def codec(
    *media_types: str,
    decode: Callable[[bytes], Any] | None = None,
    encode: Callable[[Any], bytes] | None = None,
    encodes: type | tuple[type, ...] = (),
) -> Callable[[type[C]], type[C]]:
    """Register a codec for the functions of the module that calls this, and of the modules that import that one.

    Use it as a decorator of a class that has ``decode(message, type_)``, ``encode(value, media_type)`` or both, and
    maybe ``can_encode(value)`` and ``can_decode(type_)``; the class is called without arguments. Or call it with
    functions.

    Args:
        media_types: Media types such as ``text/csv``; a family is written ``application/*+json`` or ``image/*``.
        decode: Converts the payload to a value.
        encode: Converts a value to the payload.
        encodes: The types that ``encode`` takes; empty means any.

    Raises:
        TypeError: The object is not a codec.
        ValueError: A media type is malformed.
    """
    if decode is not None or encode is not None:
        found = encodes if isinstance(encodes, tuple) else (encodes,)
        _add(Adapted(_Functions(decode, encode, found), _checked_types(media_types)), _importing())

    def decorate(cls: type[C]) -> type[C]:
        if not isinstance(cls, type):
            raise TypeError("@codec decorates a class; for functions write codec('text/csv', decode=..., encode=...)")
        _add(adapt(cls, media_types), _importing())
        return cls

    return decorate


def register(one: Any, media_types: tuple[str, ...] = ()) -> None:
    """Register a codec or its class for the whole process; the latest codec for a media type has priority.

    Raises:
        TypeError: The object is not a codec.
        ValueError: A media type is malformed, or there is none.
    """
    _add(adapt(one, media_types))


def unregister(one: Any) -> None:
    """Forget a codec that was registered; for tests."""
    _replace(tuple(each for each in _registered if one not in (each, type(each), _inner(each), type(_inner(each)))))


def registered(modules: tuple[str, ...] | None = None) -> tuple[Specialised, ...]:
    """Codecs that were registered, the latest first; a new tuple after each change.

    Args:
        modules: The modules of a function, for the codecs that belong to it; None: all codecs of this process.
    """
    if modules is None:
        return _registered
    return tuple(one for one in _registered if not one.owners or _reaches(modules, one.owners))


def adapt(one: Any, media_types: tuple[str, ...] = ()) -> Specialised:
    """Wrap any codec in the interface of the built-in ones.

    Raises:
        TypeError: The object is not a codec.
        ValueError: A media type is malformed, or there is none.
    """
    made = one() if isinstance(one, type) else one
    if isinstance(made, Specialised):
        return made
    if not callable(getattr(made, "decode", None)) and not callable(getattr(made, "encode", None)):
        name = type(made).__name__
        raise TypeError(f"{name} is not a codec: it has neither decode(message, type_) nor encode(value, media_type)")
    return Adapted(made, _checked_types(media_types or getattr(made, "media_types", ())))


def installed(group: str) -> list[Any]:
    """The entry points of installed packages in a group, in the order of their names.

    Reading the entry points of a hundred packages takes 20 ms, so it is done once for each `sys.path`.
    """
    return sorted(_installed(tuple(sys.path)).select(group=group), key=lambda one: one.name)


@functools.lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> Any:  # noqa: ARG001 - the key of the cache
    from importlib import metadata  # 20 ms, and only servers need it

    return metadata.entry_points()


def entry_points() -> list[Specialised]:
    """Codecs of installed packages: entry points of ``invoker.codecs``, each a codec, a class or a list of them.

    Raises:
        LoadError: An entry point cannot be loaded.
    """
    found: list[Specialised] = []
    for point in installed("invoker.codecs"):
        try:
            loaded = point.load()
            several = loaded if isinstance(loaded, (list, tuple)) else [loaded]
            found.extend(adapt(each) for each in several)
        except Exception as error:
            raise LoadError(f"codec '{point.name}' ({point.value}) cannot be loaded: {error}") from error
    return found


def _add(one: Specialised, owners: frozenset[str] = frozenset()) -> None:
    """Add a codec; a module that is imported again, as on reload, replaces its codecs."""
    one.owners = owners
    _replace((one, *(each for each in _registered if _key(each) != _key(one))))


def _replace(codecs: tuple[Specialised, ...]) -> None:
    global _registered  # noqa: PLW0603 - one tuple a process; readers compare its identity
    if {one.owners for one in codecs} != {one.owners for one in _registered}:
        _reaches.cache_clear()
    _registered = codecs


def _importing() -> frozenset[str]:
    """The module that called `codec`, and the modules that are being imported."""
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no public way to the globals of a caller
    while frame is not None and frame.f_globals is globals():
        frame = frame.f_back
    names = [frame.f_globals.get("__name__", "")] if frame is not None else []
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            names.append(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return frozenset(names)


@functools.lru_cache(maxsize=1024)
def _reaches(modules: tuple[str, ...], owners: frozenset[str]) -> bool:
    return any(name in owners for name in _reached(modules))


def _reached(modules: tuple[str, ...]) -> Iterator[str]:
    """These modules, and all modules of the modules, classes and functions in their globals, recursively."""
    queue, seen = list(modules), set(modules)
    for name in queue:
        yield name
        for value in list(vars(sys.modules[name]).values()) if name in sys.modules else ():
            if not isinstance(value, (types.ModuleType, types.FunctionType, type)):
                continue
            found: str | None = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
            if found and found not in seen and found.partition(".")[0] not in _WITHOUT_CODECS:
                seen.add(found)
                queue.append(found)


def _returned(decode: Any) -> Any:
    """The return annotation of a function or of a class that is called; Any if it is not known."""
    if isinstance(decode, type):
        return decode
    try:
        return typing.get_type_hints(decode).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any


def _inner(one: Specialised) -> Any:
    return one.codec if isinstance(one, Adapted) else one


def _key(one: Specialised) -> object:
    inner = _inner(one)
    if isinstance(inner, _Functions):
        return inner.key, one.media_types
    return type(inner).__module__, type(inner).__qualname__, one.media_types


def _checked_types(given: str | tuple[str, ...]) -> tuple[str, ...]:
    media_types = (given,) if isinstance(given, str) else given
    if not media_types:
        raise ValueError("a codec needs a media type: @codec('text/csv')")
    found = []
    for text in media_types:
        try:
            found.append(parse(text).essence)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a media type ({error}); write one like 'text/csv'") from None
        if found[-1] == "*/*":
            raise ValueError("a codec cannot have every media type: name those it reads, or a family like 'image/*'")
    return tuple(found)


def _checked(result: Any, wanted: MediaType) -> Message[bytes]:
    """Bytes or a message, in the media type that was negotiated (R-098)."""
    if isinstance(result, (bytes, bytearray, memoryview)):
        return Message(bytes(result), EMPTY, wanted.essence)
    if not isinstance(result, Message) or not isinstance(result.payload, (bytes, bytearray, memoryview)):
        given = type(result).__name__
        raise EncodeError(f"the codec for {wanted.essence} returned {given}; it must return bytes or Message[bytes]")
    if not result.media_type:
        return Message(bytes(result.payload), EMPTY, wanted.essence)
    said = parse(result.media_type)
    if said.essence != wanted.essence or said.param("q") is not None:
        raise EncodeError(f"the codec for {wanted.essence} returned a message of type {result.media_type!r}")
    return Message(bytes(result.payload), EMPTY, result.media_type)
