"""Makes JSON Schemas of numpy's arrays, which are nested lists in JSON, and of its numbers."""

from __future__ import annotations

import sys
from typing import Any, Final

from invoker.tensors.declared import ANY_SIZE

_KINDS: Final = {"f": "number", "i": "integer", "u": "integer", "b": "boolean", "S": "string", "U": "string"}
_ABSTRACT: Final = (
    ("bool", "boolean"),
    ("integer", "integer"),
    ("floating", "number"),
    ("number", "number"),
    ("character", "string"),
)


def array_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of an array, with the declared sizes; None if the annotation is not an array."""
    if "numpy" not in sys.modules:
        return None
    from invoker.tensors import array_spelled, array_type, described, shape_of

    wanted = array_type(annotation)
    if wanted is None:
        return None
    items = {} if wanted.scalar is None else number_schema(wanted.scalar)
    if getattr(wanted.scalar, "__name__", "") == "object_":
        items = {"type": "string"}
    shape = shape_of(annotation, "it")
    if shape is None:
        made: dict[str, Any] = {"anyOf": [{"type": "array", "items": {}}, items]} if items else {}
    else:
        made = items
        for size in reversed(shape):
            made = {"type": "array", "items": made}
            if isinstance(size, int) and size != ANY_SIZE:
                made |= {"minItems": size, "maxItems": size}
        made["x-shape"] = list(shape)
    words = described(annotation)
    return {**made, "x-array": array_spelled(annotation)} | ({"description": words} if words else {})


def number_schema(scalar: type) -> dict[str, Any]:
    """The schema of a numpy scalar type; empty if JSON cannot represent it."""
    numpy = sys.modules["numpy"]
    name = next((kind for cls, kind in _ABSTRACT if issubclass(scalar, getattr(numpy, cls))), "")
    if not name:
        return {}
    made: dict[str, Any] = {"type": name}
    if name == "integer" and scalar not in (numpy.integer, numpy.signedinteger, numpy.unsignedinteger):
        limits = numpy.iinfo(scalar)
        made |= {"minimum": int(limits.min), "maximum": int(limits.max)}
    return {} if issubclass(scalar, numpy.complexfloating) else made
