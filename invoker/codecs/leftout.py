"""`completed`: gives an instance of a dataclass the defaults of the fields that a payload leaves out.

msgspec sets a default only if the instance has no such attribute. A plain default of a dataclass is an attribute of its
class, so the field is not set in the instance: ``vars()`` and an encoder miss it. The same is true of
``field(init=False, default=...)`` in every instance that Python itself makes, so such values are completed before they
are encoded. Whether a type has such fields is determined once, when its codec is made; other types cost nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

_SEQUENCES = (list, tuple, set, frozenset)


class _Plan(NamedTuple):
    """The instructions for completing the instances of one class.

    Attributes:
        defaults: The defaults of fields that may be missing in it.
        inside: Fields whose values may contain further instances that must be completed.
    """

    defaults: tuple[tuple[str, Any], ...]
    inside: tuple[str, ...]


def completed(decode: Callable[[Any], Any], type_: Any) -> Callable[[Any], Any]:
    """Wrap a function that makes values of a type with msgspec.

    Unchanged if the type has no field that can be left out.
    """
    if not is_incomplete(type_):
        return decode

    def decode_and_complete(payload: Any) -> Any:
        value = decode(payload)
        complete(value)
        return value

    return decode_and_complete


def completing(encode: Callable[[Any], Any], *types: Any) -> Callable[[Any], Any]:
    """Wrap a function that encodes values of these types or their subclasses; unchanged if no field can be missing."""
    if not any(is_incomplete(one, is_made=True) for one in types):
        return encode

    def complete_and_encode(value: Any) -> Any:
        complete(value)
        return encode(value)

    return complete_and_encode


def is_incomplete(type_: Any, *, is_made: bool = False) -> bool:
    """Whether msgspec's values of a type may lack fields.

    Args:
        type_: The annotation.
        is_made: Whether the class itself has made the instances; then only ``init=False`` fields may be missing.
    """
    return any(_of_node(node, is_made=is_made) for node in reached(_known(type_)))


def complete(value: Any) -> None:
    """Set missing fields in all dataclasses within a value, which may contain itself."""
    left, seen = [value], set()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, _SEQUENCES):
            left.extend(one)
        elif isinstance(one, dict):
            left.extend(one)
            left.extend(one.values())
        elif (plan := _plan(type(one))) is not None:  # type: ignore[arg-type]  # mypy: a type is no Hashable
            own = vars(one) if plan.defaults else {}
            for name, default in plan.defaults:
                if name not in own:
                    own[name] = default  # not by setattr, which a frozen class refuses
            left.extend(getattr(one, name) for name in plan.inside)


@lru_cache(maxsize=1024)
def _plan(cls: type) -> _Plan | None:
    import msgspec.inspect as info  # the import takes 5 ms, and happens only when a codec is made

    is_generic = bool(getattr(cls, "__parameters__", ()))  # a type variable counts as any type here
    inside = tuple(
        one.name
        for one in getattr(_known(cls), "fields", ())
        for node in reached(one.type)
        if _of_node(node) or (is_generic and isinstance(node, info.AnyType))
    )
    defaults = _defaults(cls)
    return _Plan(defaults, tuple(dict.fromkeys(inside))) if defaults or inside else None


def _defaults(cls: type, *, is_made: bool = False) -> tuple[tuple[str, Any], ...]:
    """The fields with plain defaults, which are attributes of the class.

    A slot or another data descriptor is not a default, since it holds the value.
    """
    if not dataclasses.is_dataclass(cls) or not getattr(cls, "__dictoffset__", 0):
        return ()
    return tuple(
        (one.name, one.default)
        for one in dataclasses.fields(cls)
        if one.default is not dataclasses.MISSING
        and not (is_made and one.init)
        and not hasattr(type(inspect.getattr_static(cls, one.name, None)), "__set__")
    )


def _of_node(node: Any, *, is_made: bool = False) -> tuple[tuple[str, Any], ...]:
    cls: Any = getattr(node, "cls", None)
    return _defaults(typing.get_origin(cls) or cls, is_made=is_made)


def _known(type_: Any) -> Any:
    """The description that msgspec makes of a type; None if msgspec cannot make the type."""
    import msgspec.inspect as info

    try:
        return info.type_info(type_)
    except Exception:  # noqa: BLE001 - msgspec passes on what a class with odd annotations raises
        return None


def reached(root: Any) -> Iterator[Any]:
    """A type of msgspec and all types inside it, in order. They may be recursive."""
    import msgspec.inspect as info

    left, seen = [root], set()
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        for name in reversed(getattr(node, "__struct_fields__", ())):
            held = getattr(node, name)
            each = reversed(held) if isinstance(held, tuple) else (held,)
            left += [one for one in each if isinstance(one, info.Type | info.Field)]
