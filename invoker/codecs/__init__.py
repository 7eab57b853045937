"""Codecs: payloads to values and back, chosen by media type and by the types of the function.

Import stays cheap: pydantic, python-multipart and pickle are imported when something needs them.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from invoker.codecs.base import Codec, as_bytes_type, is_pydantic, type_name
from invoker.codecs.form import FormCodec
from invoker.codecs.json import JsonCodec
from invoker.codecs.msgpack import MsgpackCodec
from invoker.codecs.multipart import MultipartCodec, Part, PartReader
from invoker.codecs.octets import OctetsCodec, RawCodec
from invoker.codecs.registry import Offer, Registry
from invoker.codecs.text import TextCodec

__all__ = [
    "Codec",
    "Offer",
    "Part",
    "PartReader",
    "RawCodec",
    "Registry",
    "builtin",
    "codec",
    "decodable",
    "registered",
]

C = TypeVar("C")

ENTRY_POINTS = "invoker.codecs"
"""The group of entry points whose objects are codecs, or classes of them."""

_registered: list[Codec] = []


def codec(*media_types: str) -> Callable[[C], C]:
    """Register a codec for the functions of this process; decorates a class or an instance.

    Args:
        media_types: Essences it serves; may be left out when it has ``media_types`` itself.

    Raises:
        TypeError: It has no ``decode``, ``encode`` and ``can_encode``, or no media type.
    """

    def register(target: C) -> C:
        made: Any = target() if isinstance(target, type) else target
        if media_types:
            made.media_types = media_types
        _registered.append(_checked(made))
        return target

    return register


def registered() -> tuple[Codec, ...]:
    """What was registered with `codec`, in order."""
    return tuple(_registered)


def builtin(*, pickle: bool = False, entry_points: bool = True) -> Registry:
    """A registry of all built-in codecs, those of installed packages, and those registered with `codec`.

    Args:
        pickle: Whether pickles may be decoded, which lets every caller run code here.
        entry_points: Whether to look for codecs of installed packages.
    """
    made = Registry((JsonCodec(), TextCodec(), OctetsCodec(), FormCodec(), MultipartCodec(), MsgpackCodec()))
    if pickle:
        from invoker.codecs.pickle import PickleCodec

        made.register(PickleCodec())
    if entry_points:
        for one in importlib.metadata.entry_points(group=ENTRY_POINTS):
            found = one.load()
            made.register(_checked(found() if isinstance(found, type) else found))
    for own in _registered:
        made.register(own)
    return made


def decodable(type_: Any) -> str | None:
    """Why no codec can make a value of this type; None when one can.

    With codecs of the author's own, any type may be theirs.
    """
    if type_ is Any or as_bytes_type(type_) is not None or is_pydantic(type_) or _registered:
        return None
    try:
        info = msgspec.inspect.type_info(type_)
    except (TypeError, NameError) as error:
        return f"{type_name(type_)} is not a type that a payload can become ({error}); use builtins, a dataclass or a model"
    custom = _custom(info, set())
    if custom is None:
        return None
    return (
        f"{type_name(custom)} is a class without fields that a payload could fill; make it a dataclass, "
        "or register a codec for it with @invoker.codec"
    )


def _custom(info: Any, seen: set[int]) -> Any:
    """The first class within a type of which nothing is known."""
    if id(info) in seen:
        return None
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        return None if is_pydantic(info.cls) or info.cls is Part else info.cls
    inner: list[Any] = []
    for name in ("item_type", "key_type", "value_type"):
        inner.append(getattr(info, name, None))
    inner.extend(getattr(info, "types", ()))
    inner.extend(getattr(info, "item_types", ()))
    inner.extend(field.type for field in getattr(info, "fields", ()))
    for one in inner:
        if one is not None and (found := _custom(one, seen)) is not None:
            return found
    return None


def _checked(made: Any) -> Codec:
    missing = [name for name in ("decode", "encode", "can_encode") if not callable(getattr(made, name, None))]
    if missing:
        raise TypeError(f"{type(made).__name__} is no codec: it has no {', '.join(missing)}")
    if not getattr(made, "media_types", None):
        raise TypeError(f"{type(made).__name__} names no media types; write @codec('text/csv')")
    return made  # type: ignore[no-any-return]
