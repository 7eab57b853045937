"""Writes annotations as an author would write them."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from invoker.author.spec import IGNORED
from invoker.codecs.annotations import is_array
from invoker.fields.aliases import UNIONS


def render(annotation: Any) -> str:
    """Write an annotation as an author would."""
    if annotation is inspect.Parameter.empty or annotation is Any:
        return "Any"
    if annotation is IGNORED:
        return "ignored"
    if annotation in (None, type(None)):
        return "None"
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__qualname__
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin not in UNIONS and is_array(annotation):
        from invoker.tensors import array_spelled  # numpy is there already

        if text := array_spelled(annotation):
            return text
    if origin is typing.Annotated:
        return render(annotation.__origin__)
    if origin in UNIONS:
        return " | ".join(render(arg) for arg in args)
    if origin is not None and args and origin is not typing.Literal and isinstance(origin, type):
        inside = ", ".join("..." if arg is ... else render(arg) for arg in args if not isinstance(arg, list))
        return f"{origin.__name__}[{inside}]"
    text = str(annotation)
    for prefix in ("collections.abc.", "typing.", "builtins."):
        text = text.replace(prefix, "")
    return text
