"""Translates the examples in a docstring, which are Python calls, into the values of requests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from invoker.author.described import Described
from invoker.codecs.schema import NOTHING, plain_value


class Example(NamedTuple):
    """An example call, from a docstring.

    Attributes:
        text: The text as the author wrote it.
        values: The values by the names of inputs; each can be encoded as JSON.
    """

    text: str
    values: Mapping[str, Any]


def examples_of(function: Described) -> Iterator[Example]:
    """The examples that call the function with constants; all other examples are skipped."""
    for text in function.examples:
        values = _values(function, text)
        if values:
            yield Example(text, values)


def _values(function: Described, text: str) -> dict[str, Any] | None:
    call = _call(text)
    if call is None or _name(call.func) != function.name or function.spec.open_inputs:
        return None
    names = [one.name for one in function.inputs if not one.is_trigger]
    if len(call.args) > len(names):
        return None
    given = [*zip(names, call.args, strict=False), *((one.arg or "", one.value) for one in call.keywords)]
    made: dict[str, Any] = {}
    for name, node in given:
        try:
            value = plain_value(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        if value is NOTHING or name not in names:
            return None
        made[name] = value
    return made


def _call(text: str) -> ast.Call | None:
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    while isinstance(tree, ast.Call) and _name(tree.func) in ("list", "next", "print", "tuple", "sorted") and tree.args:
        tree = tree.args[0]  # authors wrap the call of a generator function, such as in `list`, to show its values
    return tree if isinstance(tree, ast.Call) else None


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
