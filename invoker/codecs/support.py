"""Checks at the start whether some codec can decode each annotation, so that no message fails for that later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from invoker.codecs import custom
from invoker.codecs.annotations import is_array
from invoker.codecs.checkpoint import checkpoint_wanted
from invoker.codecs.leftout import reached
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


def decodable(type_: Any, modules: tuple[str, ...] | None = None) -> str | None:
    """A sentence that explains why no codec can decode to this annotation; None if a codec can.

    A codec that the author registered decides itself which types it decodes.

    Args:
        type_: The annotation.
        modules: The modules of the function, whose codecs count; None: all codecs of this process count.
    """
    for one in custom.registered(modules):
        try:
            if isinstance(one, custom.Adapted) and one.claims(type_):
                return None
        except Exception:  # noqa: BLE001, S112 - a broken can_decode raises again when it is used
            continue
    if is_any(type_) or (bytes_like(type_) is not None and narrowed(type_, BYTES_LIKE) is type_):
        return None
    if wants_arrays([type_]) or checkpoint_wanted(type_) is not None:
        return None
    if any(is_frame(one) for one in members(type_)):  # only the codec of the tool bridge makes it
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
    """Whether one of these annotations is a numpy array, alone or in a union."""
    return any(map(is_array, types))


def _pydantic(type_: Any) -> str | None:
    try:
        _ = adapter(type_).validator.title  # a wrong forward reference shows only when the validator is used
    except TypeError as error:
        return f"pydantic cannot validate {spell(type_)}: {error}"
    return None


def _msgspec(type_: Any) -> str | None:
    try:
        made = understood(type_)
        msgspec.json.Decoder(made, dec_hook=dec_hook)
        strange = _strange(made, set())
    except Exception as error:  # noqa: BLE001 - msgspec passes on what a class with odd annotations raises
        return f"{spell(type_)} is not understood ({str(error).partition(' - ')[0].rstrip('.')})"
    if strange is None:
        return None
    inside = "" if strange is type_ else f" within {spell(type_)}"
    return (
        f"no codec decodes a payload to {spell(strange)}{inside}; "
        "use a dataclass, TypedDict or msgspec.Struct, or register a codec for it with @codec(...)"
    )


def _strange(type_: Any, seen: set[Any]) -> Any:
    """The first class within a type that no codec can make; None if all can be made."""
    import msgspec.inspect as info  # 5 ms, at start-up only

    for node in reached(info.type_info(type_)):
        if not isinstance(node, info.CustomType) or node.cls in seen:
            continue
        seen.add(node.cls)
        if not issubclass(node.cls, StandIn):
            if not (node.cls is Part or node.cls is object or holds_pydantic(node.cls)):
                return node.cls
        elif found := next(filter(None, (_strange(one, seen) for one in node.cls.inner())), None):
            return found
    return None
