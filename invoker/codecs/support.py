"""Which annotations some codec can decode; asked at start-up, so that a wrong one never meets a message."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from invoker.codecs import custom
from invoker.codecs.checkpoint import checkpoint_wanted
from invoker.codecs.parts import Part
from invoker.codecs.refusal import spell
from invoker.codecs.standins import StandIn, understood
from invoker.codecs.typed import (
    BYTES_LIKE,
    adapter,
    bytes_like,
    dec_hook,
    holds_pydantic,
    is_any,
    is_frame,
    members,
    narrowed,
)

__all__ = ["decodable", "wants_arrays"]


def decodable(type_: Any, modules: tuple[str, ...] | None = None) -> str | None:
    """Say in one sentence why no codec can decode to this annotation; None if one can.

    A codec that the author registered decides itself which types it decodes.

    Args:
        type_: The annotation.
        modules: The modules of the function, whose codecs count; None: all of this process do.
    """
    for one in custom.registered(modules):
        try:
            if isinstance(one, custom.Adapted) and one.claims(type_):
                return None
        except Exception:  # noqa: BLE001, S112 - a broken can_decode shows when it is used
            continue
    if is_any(type_) or (bytes_like(type_) is not None and narrowed(type_, BYTES_LIKE) is type_):
        return None
    if wants_arrays([type_]) or checkpoint_wanted(type_) is not None:
        return None
    if any(is_frame(one) for one in members(type_)):  # the codec of the tool bridge makes it, no other one does
        others = (one for one in members(type_) if not is_frame(one))
        return next((found for one in others if (found := _msgspec(one)) is not None), None)
    if holds_pydantic(type_):
        return _pydantic(type_)
    wanted = narrowed(type_, BYTES_LIKE)
    problem = _msgspec(wanted)
    if problem is None or len(members(wanted)) == 1:
        return problem
    # A union whose members msgspec cannot distinguish is tried member by member.
    return next((found for one in members(wanted) if (found := _msgspec(one)) is not None), None)


def wants_arrays(types: Iterable[Any]) -> bool:
    """Whether one of these annotations is an array of numpy's, alone or in a union."""
    if "numpy" not in sys.modules:
        return False  # an annotation with an array would have imported numpy
    from invoker.tensors import array_type

    return any(array_type(one) is not None for type_ in types for one in members(type_))


def _pydantic(type_: Any) -> str | None:
    try:
        _ = adapter(type_).validator.title  # a wrong forward reference shows only when the validator is used
    except TypeError as error:
        return f"pydantic cannot validate {spell(type_)}: {error}"
    return None


def _msgspec(type_: Any) -> str | None:
    import msgspec.inspect  # 5 ms, at start-up only

    try:
        made = understood(type_)
        msgspec.json.Decoder(made, dec_hook=dec_hook)
        strange = _strange(msgspec.inspect.type_info(made), set())
    except Exception as error:  # noqa: BLE001 - msgspec passes on what a class with odd annotations raises
        return f"{spell(type_)} is not understood ({str(error).partition(' - ')[0].rstrip('.')})"
    if strange is None:
        return None
    inside = "" if strange is type_ else f" within {spell(type_)}"
    return (
        f"no codec makes {spell(strange)}{inside} of a payload; "
        "use a dataclass, TypedDict or msgspec.Struct, or register a codec for it with @codec(...)"
    )


def _strange(node: Any, seen: set[int]) -> Any:
    """The first class within a type that nothing knows how to make; None when all are known."""
    import msgspec.inspect as info

    if id(node) in seen:
        return None
    seen.add(id(node))
    if isinstance(node, info.CustomType) and issubclass(node.cls, StandIn):
        if id(node.cls) in seen:
            return None
        seen.add(id(node.cls))
        return next((found for one in node.cls.inner() if (found := _strange(info.type_info(one), seen))), None)
    if isinstance(node, info.CustomType):
        return None if node.cls is Part or node.cls is object or holds_pydantic(node.cls) else node.cls
    found = None
    if isinstance(node, info.Metadata):
        return _strange(node.type, seen)
    for name in getattr(node, "__struct_fields__", ()):
        content = getattr(node, name)
        for one in content if isinstance(content, tuple) else (content,):
            if isinstance(one, (info.Type, info.Field)):
                found = found or _strange(one, seen)
    return found
