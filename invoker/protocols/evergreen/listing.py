"""`describe`: an action's description for clients: its name, its inputs and outputs with their types (E-123, E-125)."""

from __future__ import annotations

from typing import Any

from invoker.author.spec import FunctionSpec, StreamSpec, Take
from invoker.author.spelling import render
from invoker.codecs.annotations import is_array


def type_name(stream: StreamSpec) -> str:
    """A stream's declared media types, or the name of its Python type."""
    if stream.media_types:
        return ", ".join(stream.media_types)
    kind = stream.type
    if kind is Any or kind is object or stream.take is Take.HEADERS:
        return "any"
    if kind is str:
        return "text/plain"
    if kind in (bytes, bytearray, memoryview):
        return "application/octet-stream"
    if is_array(kind):
        return render(kind)
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def describe(name: str, spec: FunctionSpec) -> dict[str, Any]:
    """Describe one action.

    Args:
        name: The name by which it is offered.
        spec: The function that runs.
    """
    spare = {one.name for one in spec.optional}
    takes = [one for one in spec.inputs if not one.is_ignored and one.name not in spare]
    return {
        "name": name,
        "description": spec.doc,
        "inputs": [
            *({"name": one.name, "type": type_name(one)} for one in takes),
            *({"name": one.name, "type": type_name(one), "optional": True} for one in spec.optional),
        ],
        "outputs": [{"name": one.name, "type": type_name(one)} for one in spec.outputs],
    }
