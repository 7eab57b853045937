"""Describes a function as an action for ``invoker inspect``, with the names and types that Evergreen clients use."""

from __future__ import annotations

from typing import Any

from invoker.author.spec import FunctionSpec
from invoker.protocols.evergreen.listing import describe
from invoker.protocols.evergreen.options import nodes_of


def described(spec: FunctionSpec) -> dict[str, Any]:
    """The description of the action, and how values of outputs are stored; all values can be encoded as JSON."""
    nodes = nodes_of(spec)
    outputs = [{"sequence": nodes.is_sequence(one.name), "retain": nodes.is_retained(one.name)} for one in spec.outputs]
    return {"action": describe(spec.name, spec), "outputs": outputs}


def rows(spec: FunctionSpec) -> list[tuple[str, str]]:
    """The action in one line of text; a question mark follows the name of an optional input."""
    action = describe(spec.name, spec)
    takes = [f"{one['name']}{'?' if one.get('optional') else ''}: {one['type']}" for one in action["inputs"]]
    takes += ["..."] if spec.open_inputs or spec.open_names else []
    gives = [f"{one['name']}: {one['type']}" for one in action["outputs"]] + (["..."] if spec.open_outputs else [])
    return [("action", f"{action['name']}({', '.join(takes)}) -> {', '.join(gives) or 'nothing'}")]
