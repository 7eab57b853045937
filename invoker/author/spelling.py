"""Annotations as an author would write them, and which of them are arrays."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from typing import Any, Final

from invoker.author.spec import IGNORED
from invoker.fields.aliases import unaliased

__all__ = ["UNIONS", "is_array", "render"]

UNIONS: Final = (typing.Union, types.UnionType)
"""The origins of a union."""


def is_array(annotation: Any) -> bool:
    """Whether it is an array of numpy's, alone or in a union; numpy is not imported to know that."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return False
    while typing.get_origin(annotation := unaliased(annotation)) is typing.Annotated:
        annotation = annotation.__origin__
    if typing.get_origin(annotation) in UNIONS:
        return any(is_array(arg) for arg in typing.get_args(annotation))
    return (typing.get_origin(annotation) or annotation) is numpy.ndarray


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
