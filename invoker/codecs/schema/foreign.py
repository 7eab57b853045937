"""Gets the JSON Schemas of pydantic's classes, which pydantic makes itself."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from invoker.codecs.typed import adapter
from invoker.fields.marks import pattern_text

REF: Final = "#/$defs/"


def pydantic_schema(type_: Any, *, gives: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of an annotation, and the definitions to which it refers by ``#/$defs/NAME``.

    Args:
        type_: The annotation.
        gives: Whether the schema is for a result of a function; otherwise it is for a parameter.

    Raises:
        Exception: Pydantic has no schema for the type. Pydantic raises errors of many classes here, some of which are
            undocumented.
    """
    made = adapter(type_)
    taken = made.json_schema(mode="validation", schema_generator=_generator())
    if gives and _loosely(given := made.json_schema(mode="serialization", schema_generator=_generator())) != _loosely(
        taken
    ):
        taken = given  # otherwise they differ only in required members, and one definition serves both
    definitions = taken.pop("$defs", {})
    return taken, definitions


@cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Writes ``x-pattern`` for a compiled pattern with flags, which JSON Schema lacks and pydantic drops."""

        def str_schema(self, schema: Any) -> Any:
            made = super().str_schema(schema)
            found = schema.get("pattern")
            if isinstance(found, re.Pattern) and (text := pattern_text(found)) != found.pattern:
                made.pop("pattern", None)
                made["x-pattern"] = text
            return made

    return Generator


def reached(schema: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions to which a schema refers, directly or through other definitions."""
    found: dict[str, Any] = {}
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            left += one.values()
            name = one["$ref"].removeprefix(REF) if isinstance(one.get("$ref"), str) else ""
            if name in definitions and name not in found:
                found[name] = definitions[name]
                left.append(definitions[name])
    return found


def _loosely(schema: Any) -> Any:
    """The schema without its lists of required members."""
    if isinstance(schema, list):
        return [_loosely(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _loosely(one) for name, one in schema.items() if not (name == "required" and isinstance(one, list))}
