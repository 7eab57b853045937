"""`understood`: replaces the parts of an annotation that msgspec cannot make by classes of our own.

Theory. msgspec calls ``dec_hook`` for classes that it does not support. So each type that msgspec refuses is replaced
by a class of ours, a stand-in, and the hook lets the stand-in make the value from plain values. msgspec refuses unions
of several classes with fields, and other unions whose members it cannot distinguish; Enums whose values are neither all
text nor all integers; recursive type aliases (``type Json = ...``); and classes whose fields have such types. Other
type aliases are replaced by their values. All other annotations stay unchanged.

In a union, an object becomes the class whose tag, a ``Literal`` field, it has. Without a tag, it becomes the class,
among those whose required fields it has, that has most of its keys as fields, or the first of several. All other values
become the first member that accepts them. A member of an Enum is given by its name, or by its value.
"""

from __future__ import annotations

import enum
import functools
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from invoker.codecs.members import Members, members_of
from invoker.fields.aliases import UNIONS, bare, is_typed_dict, stood_for, unaliased

Convert: TypeAlias = Callable[[Any, Any], Any]
"""Converts a plain value to a type that msgspec supports."""

_MOST_LEVELS: Final = 100


class _Whatever(type):
    """Makes every value an instance, since msgspec checks `isinstance` for the result of `StandIn.make`."""

    def __instancecheck__(cls, value: object) -> bool:
        return True


class StandIn(metaclass=_Whatever):
    """Stands for a type that msgspec cannot make.

    Each stand-in is a class of its own, since msgspec takes only classes.

    Attributes:
        stood_for: The annotation that the author wrote.
    """

    stood_for: ClassVar[Any]

    @classmethod
    def make(cls, value: Any, convert: Convert) -> Any:
        """Make the value that the stand-in stands for from a plain one.

        Raises:
            msgspec.ValidationError: ``value`` does not fit.
        """
        raise NotImplementedError

    @classmethod
    def inner(cls) -> tuple[Any, ...]:
        """The types inside the original annotation that msgspec has to make."""
        return ()


def understood(type_: Any) -> Any:
    """The annotation, with stand-ins where necessary; a type that cannot be made stays, and msgspec reports the reason.

    Raises:
        Exception: The annotations of a class cannot be evaluated.
    """
    return _replaced(type_, 0) if _needs(type_, []) else type_


def _needs(type_: Any, seen: list[Any]) -> bool:
    """Whether a part of an annotation must be replaced."""
    if isinstance(type_, str) or type_ in seen:
        return False
    seen.append(type_)
    if isinstance(type_, typing.TypeVar):
        return bool(type_.__constraints__)
    if (plain := unaliased(type_)) is not type_ and not isinstance(type_, typing.NewType):
        return True
    if is_odd(plain) or any(_needs(one, seen) for one in _arguments(plain)):
        return True
    if typing.get_origin(plain) in UNIONS:
        return _is_refused(plain)
    found = _members(plain)
    return found is not None and any(_needs(one.annotation, seen) for one in found.properties)


def _replaced(type_: Any, level: int) -> Any:
    if level > _MOST_LEVELS or not _needs(type_, []):
        return type_
    if isinstance(type_, typing.TypeVar):
        return _replaced(stood_for(type_), level + 1)
    plain = unaliased(type_)
    if plain is not type_:
        return _named(type_) if is_recursive(type_) else _replaced(plain, level + 1)
    if is_odd(plain):
        return _chosen_by_name(plain)
    if _members(plain) is not None:
        return _record(plain)
    return _rebuilt(plain, [_replaced(one, level + 1) for one in _arguments(plain)])


def _arguments(type_: Any) -> tuple[Any, ...]:
    if typing.get_origin(type_) is typing.Annotated:
        return (type_.__origin__,)
    return () if typing.get_origin(type_) is typing.Literal else typing.get_args(type_)


def _rebuilt(type_: Any, arguments: list[Any]) -> Any:
    origin = typing.get_origin(type_)
    if origin is typing.Annotated:
        return typing.Annotated[(arguments[0], *type_.__metadata__)]
    if origin in UNIONS:
        made: Any = typing.Union[tuple(arguments)]  # noqa: UP007 - made at run time
        return _union(type_) if _is_refused(made) else made
    return origin[tuple(arguments)] if origin is not None else type_


def is_recursive(type_: Any) -> bool:
    """Whether an annotation is a type alias that refers to itself."""
    plain = unaliased(type_)
    return plain is not type_ and _holds(plain, type_, [])


def _holds(type_: Any, name: Any, seen: list[Any]) -> bool:
    if type_ == name:
        return True
    if type_ in seen or len(seen) > _MOST_LEVELS:
        return False
    seen.append(type_)
    plain = unaliased(type_)
    inside = (plain,) if plain is not type_ else _arguments(plain)
    return any(_holds(one, name, seen) for one in inside)


def is_odd(type_: Any) -> bool:
    """Whether a type is an Enum that msgspec refuses."""
    if not (isinstance(type_, type) and issubclass(type_, enum.Enum)) or not len(type_):
        return False
    kinds = {type(one.value) for one in type_}
    return kinds not in ({str}, {int}) and not issubclass(type_, int | str)


def _is_refused(type_: Any) -> bool:
    try:
        msgspec.json.Decoder(type_, dec_hook=_never)
    except TypeError:
        return True
    return False


def _never(type_: type, value: Any) -> Any:
    raise NotImplementedError


def _members(type_: Any) -> Members | None:
    """The fields of a class; None if it has none."""
    cls = typing.get_origin(type_) or type_
    if not isinstance(cls, type) or hasattr(cls, "__pydantic_core_schema__"):
        return None
    return members_of(cls, typing.get_args(type_))


def _stand(name: str, stands_for: Any, make: Callable[[Any, Convert], Any], inner: tuple[Any, ...]) -> type[StandIn]:
    body = {"stood_for": stands_for, "make": staticmethod(make), "inner": staticmethod(lambda: inner)}
    return type(name, (StandIn,), body)


@functools.lru_cache(maxsize=1000)
def _named(alias: Any) -> type[StandIn]:
    """A stand-in for a recursive type alias, whose definition is read when the first value comes."""

    def make(value: Any, convert: Convert) -> Any:
        return convert(value, _expanded(alias))

    return _stand(str(alias), alias, make, ())


@functools.lru_cache(maxsize=1000)
def _expanded(alias: Any) -> Any:
    return _replaced(unaliased(alias), 0)


@functools.lru_cache(maxsize=1000)
def _chosen_by_name(cls: type[enum.Enum]) -> type[StandIn]:
    def make(value: Any, _: Convert) -> Any:
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value in cls.__members__:
            return cls[value]
        for one in cls:
            if one.value == value or (isinstance(one.value, tuple) and list(one.value) == value):
                return one
        names = ", ".join(map(repr, cls.__members__))
        raise msgspec.ValidationError(f"{value!a:.100} is not a member of {cls.__name__}; expected one of {names}")

    return _stand(cls.__name__, cls, make, ())


def _union(type_: Any) -> type[StandIn]:
    several = tuple((one, _replaced(one, 0), _members(bare(one))) for one in typing.get_args(type_))
    for _, made, _ in several:
        msgspec.json.Decoder(made, dec_hook=_never)  # raises for a type that cannot be made

    def make(value: Any, convert: Convert) -> Any:
        problem: Exception | None = None
        for made in _in_order(several, value):
            try:
                return convert(value, made)
            except (msgspec.ValidationError, ValueError, TypeError) as error:
                problem = problem or error
        if problem is None:
            raise msgspec.ValidationError(f"Expected one of {_names(type_)}, got `{type(value).__name__}`")
        try:
            raise problem
        finally:
            del problem  # the error refers to this frame, which must not refer to it

    return _stand("Union", type_, make, tuple(made for _, made, _ in several))


def _names(type_: Any) -> str:
    return ", ".join(f"`{getattr(bare(one), '__name__', one)}`" for one in typing.get_args(type_))


def _in_order(several: tuple[tuple[Any, Any, Members | None], ...], value: Any) -> Iterator[Any]:
    """The members that a value may be, the likeliest first."""
    if value is None:
        several = tuple(one for one in several if one[0] is type(None)) or several
    if not isinstance(value, Mapping):
        yield from (made for _, made, found in several if found is None or found.is_array)
        return
    keys = set(value)
    ranked = []
    for place, (_, made, found) in enumerate(several):
        if found is None:
            ranked.append((2, 0, place, made))
        elif not found.is_array and (tag := _tagged(found, value)) >= 0:
            needed = {one.name for one in found.properties if one.is_required}
            unknown = len(keys - {one.name for one in found.properties})
            ranked.append((tag if needed <= keys else 3, unknown, place, made))
    # a worse match would ignore members that were meant for the best match
    best = min((one[:2] for one in ranked), default=None)
    yield from (made for tag, unknown, _, made in sorted(ranked, key=lambda one: one[2]) if (tag, unknown) == best)


def _tagged(found: Members, value: Mapping[Any, Any]) -> int:
    """0 if the value has the member's tag, 1 if the member has no tag, -1 if the value has another tag."""
    for one in found.properties:
        annotation = bare(one.annotation)
        if typing.get_origin(annotation) is typing.Literal and one.name in value:
            return 0 if value[one.name] in typing.get_args(annotation) else -1
    if found.tag is not None and found.tag[0] in value:
        return 0 if value[found.tag[0]] == found.tag[1] else -1
    return 1


@functools.lru_cache(maxsize=1000)
def _record(type_: Any) -> type[StandIn]:
    """A stand-in for a class with fields that msgspec refuses.

    The class may refer to itself, so its fields are read when they are needed.
    """
    cls = typing.get_origin(type_) or type_

    @functools.cache
    def fields() -> list[tuple[str, str, Any, bool]]:
        found = _members(type_)
        assert found is not None, "it was asked before"
        return [(one.name, one.parameter, _replaced(one.annotation, 0), one.is_required) for one in found.properties]

    def make(value: Any, convert: Convert) -> Any:
        # a dict is no instance, and `isinstance` fails for a TypedDict
        if not isinstance(value, dict) and isinstance(value, cls):
            return value
        if isinstance(value, list | tuple) and hasattr(cls, "_fields"):
            value = dict(zip(cls._fields, value, strict=False))
        if not isinstance(value, Mapping):
            raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")
        given = {}
        for name, own, made, is_required in fields():
            if name in value:
                given[own] = _within(name, value[name], made, convert)
            elif is_required:
                raise msgspec.ValidationError(f"Object missing required field `{name}`")
        return dict(given) if is_typed_dict(cls) else cls(**given)

    def inner() -> tuple[Any, ...]:
        return tuple(one[2] for one in fields())

    made = _stand(cls.__name__, type_, make, ())
    made.inner = staticmethod(inner)  # type: ignore[method-assign]  # one of its own
    return made


def _within(name: str, value: Any, made: Any, convert: Convert) -> Any:
    try:
        return convert(value, made)
    except msgspec.ValidationError as error:
        text = str(error)
        path = text.rpartition(" - at `$")[2].removesuffix("`") if " - at `$" in text else ""
        raise msgspec.ValidationError(f"{text.partition(' - at `$')[0]} - at `$.{name}{path}`") from None
