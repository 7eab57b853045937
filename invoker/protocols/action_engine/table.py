"""`Table`: which functions actions may name, how their ports are bound, and what is told of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from invoker.author.spec import FunctionSpec, StreamSpec
from invoker.errors import Status, StatusError
from invoker.protocols.action_engine.settings import ActionEngineSettings
from invoker.protocols.action_engine.wire import BYTES, Action

__all__ = ["LIST_ACTIONS", "Binding", "Table", "node_id"]

LIST_ACTIONS = "__list_actions"

_BYTES: tuple[Any, ...] = (bytes, bytearray, memoryview)


def node_id(action_id: str, name: str) -> str:
    """The id of a port's node unless the action says another one."""
    return f"{action_id}#{name}"


@dataclass(frozen=True, slots=True)
class Binding:
    """An action as its function will be run.

    Attributes:
        function: Name in the catalogue.
        inputs: Ids of nodes, in the order of the invocation's inputs.
        outputs: Index of an output -> id of its node.
        unwanted: Indexes of outputs that have no port.
        bound: Names of the parameters, for `Open`; None where the number of inputs is the caller's choice.
        input_names: Where it is.
        output_names: Where the number of outputs is the caller's choice.
    """

    function: str
    inputs: tuple[str, ...]
    outputs: dict[int, str]
    unwanted: tuple[int, ...] = ()
    bound: tuple[str, ...] | None = None
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()


class Table:
    """The actions of one process.

    Args:
        specs: Functions of the catalogue.
        settings: Further names.
    """

    def __init__(self, specs: Iterable[FunctionSpec], settings: ActionEngineSettings) -> None:
        self._settings = settings
        own = tuple(specs)
        self._by_name = {spec.entrypoint: spec for spec in own if spec.entrypoint}
        self._by_name |= {spec.name: spec for spec in own}
        configured = {name: self._by_name[one] for name, one in settings.actions.items() if one in self._by_name}
        self._by_name |= configured
        self._offered = configured | {spec.name: spec for spec in own}

    def lists(self, name: str) -> bool:
        """Whether an action of this name asks what there is."""
        return name == LIST_ACTIONS and name not in self._by_name

    def listing(self) -> list[bytes]:
        """Each action as a JSON object."""
        return [json.dumps(_described(name, spec), ensure_ascii=False).encode() for name, spec in self._offered.items()]

    def bind(self, action: Action) -> Binding:
        """Bind the ports of an action to the inputs and outputs of its function.

        Raises:
            StatusError: There is no such function, or it has no such input or output.
        """
        spec = self._by_name.get(action.name)
        if spec is None:
            near = get_close_matches(action.name, list(self._by_name), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self._offered)}"
            raise StatusError(Status.NOT_FOUND, f"Action Not Found: no action is named {action.name!a}; {hint}")
        given = self._given_inputs(spec, action)
        outputs, unwanted, output_names = _outputs(spec, action)
        if spec.open_inputs:
            fixed = [one.name for one in spec.inputs[:-1] if one.name in given]
            names = (*fixed, *sorted((name for name in given if name not in fixed), key=_natural))
            ids = tuple(given[name] for name in names)
            return Binding(spec.name, ids, outputs, unwanted, None, names, output_names)
        known = {one.name: None for one in (*spec.inputs, *spec.optional)}
        bound = (*(name for name in known if name in given), *sorted(name for name in given if name not in known))
        ids = tuple(given[name] for name in bound)
        return Binding(spec.name, ids, outputs, unwanted, bound, (), output_names)

    def _given_inputs(self, spec: FunctionSpec, action: Action) -> dict[str, str]:
        """Node ids by the names of parameters; without ports each required one has the node that bears its name."""
        if not action.inputs:
            return {one.name: node_id(action.id, one.name) for one in spec.required}
        aliases = self._settings.inputs
        given: dict[str, str] = {}
        for name, id in action.inputs:
            known = aliases.get(name, name)
            if known in given:
                raise _bad(action, f"has the input {name!a} twice")
            given[known] = id
        return given


def _outputs(spec: FunctionSpec, action: Action) -> tuple[dict[int, str], tuple[int, ...], tuple[str, ...]]:
    """Node ids by index, indexes without a port, and names where their number is the caller's choice."""
    listed: dict[str, str] = {}
    for name, id in action.outputs:
        if name in listed:
            raise _bad(action, f"has the output {name!a} twice")
        listed[name] = id
    if len(set(listed.values())) < len(listed):
        raise _bad(action, "gives two outputs one node")
    if spec.open_outputs:
        return dict(enumerate(listed.values())), (), tuple(listed)
    if not listed:
        return {index: node_id(action.id, one.name) for index, one in enumerate(spec.outputs)}, (), ()
    if len(spec.outputs) == 1 and len(listed) == 1:
        return dict(enumerate(listed.values())), (), ()
    names = [one.name for one in spec.outputs]
    for name in listed:
        if name not in names:
            raise _bad(action, f"has no output {name!a}; it has {', '.join(names) or 'none'}")
    found = {index: listed[name] for index, name in enumerate(names) if name in listed}
    return found, tuple(index for index in range(len(names)) if index not in found), ()


def _bad(action: Action, text: str) -> StatusError:
    return StatusError(Status.INVALID_ARGUMENT, f"Invalid Action: {action.name!a} {text}")


def _natural(name: str) -> list[tuple[int, str]]:
    """``args10`` comes after ``args9``."""
    return [(int(digits or -1), rest) for digits, rest in re.findall(r"(\d*)(\D*)", name)]


def _described(name: str, spec: FunctionSpec) -> dict[str, Any]:
    inputs = [one for one in dict.fromkeys((*spec.inputs, *spec.optional)) if not one.is_ignored]
    return {
        "name": name,
        "inputs": [{"name": one.name, "type": _media_type(one)} for one in inputs],
        "outputs": [{"name": one.name, "type": _media_type(one)} for one in spec.outputs],
        "description": spec.doc,
    }


def _media_type(stream: StreamSpec) -> str:
    if stream.media_types:
        return stream.media_types[0]
    if stream.type is str:
        return "text/plain"
    return BYTES if stream.type in _BYTES else "application/json"
