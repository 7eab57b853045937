"""Functions of tests as schemas, and what their messages look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from invoker.author.reader import read
from invoker.author.spec import FunctionSpec
from invoker.protocols.typed.schema import Schema, schemas_of
from invoker.protocols.typed.text import proto_text


def spec_of(function: Callable[..., Any], name: str = "") -> FunctionSpec:
    """A function as it is served from the module `shop`."""
    return read(function, entrypoint=f"shop:{getattr(function, '__name__', 'function')}", name=name)


def schema_of(*functions: Callable[..., Any]) -> Schema:
    """The schema of the module `shop`."""
    (schema,) = schemas_of(spec_of(one) for one in functions)
    return schema


def message_of(schema: Schema, name: str) -> str:
    """The fields of a message, one after the other, without comments and indents."""
    text = proto_text(schema)
    body = text.partition(f"\nmessage {name} {{")[2].partition("\n}")[0]
    return " ".join(line.strip() for line in body.splitlines() if line.strip() and "//" not in line)
