"""`Table`: finds the functions for actions, binds their ports to inputs and outputs, and describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import FunctionSpec, StreamSpec
from invoker.core.naming import Names, Words, bind_outputs, listed
from invoker.errors import Status, StatusError
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.wire import BYTES, Action

LIST_ACTIONS = "__list_actions"

_BYTES: tuple[Any, ...] = (bytes, bytearray, memoryview)


def node_id(action_id: str, name: str) -> str:
    """The default id of a port's node."""
    return f"{action_id}#{name}"


@dataclass(frozen=True, slots=True)
class Binding:
    """An action that is bound to its function.

    Attributes:
        function: The name of the function in the catalogue.
        inputs: Ids of nodes, in the order of the invocation's inputs.
        outputs: The ids of the outputs' nodes, by index of the output.
        unwanted: Indexes of outputs that have no port.
        bound: The names of the inputs, for `Open`.
        output_names: The names of the outputs, if the caller chooses their number.
    """

    function: str
    inputs: tuple[str, ...]
    outputs: dict[int, str]
    unwanted: tuple[int, ...] = ()
    bound: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()


class Table:
    """The actions of one process.

    Args:
        specs: Functions of the catalogue.
        settings: Further names of actions and inputs.
        tells: Whether peers may list the actions, and errors may name similar ones.
    """

    def __init__(self, specs: Iterable[FunctionSpec], settings: ActionEngineSettings, *, tells: bool = True) -> None:
        self._settings = settings
        own = tuple(specs)
        self._names = Names(own, settings.actions, tells=tells)
        self._binders = {one.name: Binder(one, most=MOST_INPUTS) for one in own}

    def lists(self, name: str) -> bool:
        """Whether this is the name of the action that lists the actions."""
        return name == LIST_ACTIONS and name not in self._names

    def listing(self) -> list[bytes]:
        """The descriptions of all actions, each as a JSON object."""
        return [
            json.dumps(_described(name, spec), ensure_ascii=False).encode()
            for name, spec in self._names.offered.items()
        ]

    def bind(self, action: Action) -> Binding:
        """Bind the ports of an action to the inputs and outputs of its function.

        Raises:
            StatusError: There is no such function, or it has no such input or output.
        """
        spec = self._names.get(action.name)
        if spec is None:
            text = f"no action is named {action.name!a}{self._names.hint(action.name)}"
            raise StatusError(Status.NOT_FOUND, f"Action Not Found: {text}")
        words = Words(ascii, partial(_bad, action))
        aliases = self._settings.inputs
        given = [(aliases.get(name, name), id) for name, id in action.inputs]
        if not given:
            given = [(one.name, node_id(action.id, one.name)) for one in spec.required]
        binder = self._binders[spec.name]
        found = binder.named([name for name, _ in given])
        if found.faults:
            raise StatusError(Status.INVALID_ARGUMENT, f"Invalid Action: {found.faults[0]}")
        order = binder.order(found.names)
        ports = listed(action.outputs, "output", words)
        if len(set(ports.values())) < len(ports):
            raise words.refuse("gives the same node to two outputs")
        if not ports and not spec.open_outputs:
            ports = {one.name: node_id(action.id, one.name) for one in spec.outputs}
        several, unwanted = bind_outputs(spec, ports, words)
        return Binding(
            spec.name,
            tuple([given[place][1] for place in order]),
            {index: id for index, _, id in sorted(several, key=itemgetter(0))},
            unwanted,
            bound=tuple([found.names[place] for place in order]),
            output_names=tuple(ports) if spec.open_outputs else (),
        )


def _bad(action: Action, text: str) -> StatusError:
    return StatusError(Status.INVALID_ARGUMENT, f"Invalid Action: {action.name!a} {text}")


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
