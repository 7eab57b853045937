"""Checks whether a value fits a schema, with the keywords that matter for defaults.

Authors write ``name: str = None``. A default that its own schema forbids would make the document invalid, and no caller
could send it, so it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_LIMITS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minimum": lambda value, limit: value >= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
}
_SIZES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
}


def fits(schema: Any, value: Any, definition: Callable[[str], Any]) -> bool:
    """Whether a plain value fits a schema; keywords that are not known here allow every value.

    Args:
        schema: A JSON Schema.
        value: The value in its JSON form.
        definition: Returns the schema to which a reference points.
    """
    if not isinstance(schema, Mapping):
        return True
    if "$ref" in schema and not fits(definition(schema["$ref"]), value, definition):
        return False
    if "anyOf" in schema and not any(fits(one, value, definition) for one in schema["anyOf"]):
        return False
    if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
        return False
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        return False
    return _is_within(schema, value) and all(_parts(schema, value, definition))


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def _is_within(schema: Mapping[str, Any], value: Any) -> bool:
    words = _LIMITS if isinstance(value, int | float) else _SIZES if isinstance(value, str | list) else {}
    if not all(holds(value, schema[word]) for word, holds in words.items() if word in schema):
        return False
    return not isinstance(value, str) or "pattern" not in schema or re.search(schema["pattern"], value) is not None


def _parts(schema: Mapping[str, Any], value: Any, definition: Callable[[str], Any]) -> list[bool]:
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        rest = [schema.get("items", {})] * max(0, len(value) - len(first))
        return [fits(one, each, definition) for one, each in zip((*first, *rest), value, strict=False)]
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        missing = [name for name in schema.get("required", ()) if name not in value]
        return [not missing, *(fits(known.get(name, more), one, definition) for name, one in value.items())]
    return []
