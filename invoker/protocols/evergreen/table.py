"""`Table`: finds the functions for actions, and binds the parameters of actions (E-071 to E-088)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import FunctionSpec, StreamSpec, Style
from invoker.core.cache import Cache
from invoker.core.naming import Names, Words, bind_outputs, listed
from invoker.errors.wording import quoted
from invoker.protocols.evergreen.errors import bad_action, limit, not_found, target_not_found
from invoker.protocols.evergreen.settings import EvergreenSettings

_MOST: Final = 256
_MOST_BYTES: Final = 1 << 20
_PLAN_BYTES: Final = 1024
"""The memory of a cached binding, and of each of its parameters, in addition to the names, in bytes."""

Port: TypeAlias = tuple[str, str]
"""A parameter of an action: its name, and the id of its node."""


class Binding(msgspec.Struct, frozen=True):
    """An action that is bound to its function.

    Attributes:
        spec: The function.
        inputs: The bound inputs, in the order of the invocation's inputs: the parameter and the id of its root.
        outputs: The listed outputs: index of the invocation's output, its description, and the id of its node.
        unwanted: Indexes of outputs that are not listed.
        bound: The names of the inputs, for `Open`.
        output_names: The names of the outputs, if the caller chooses their number.
        takes_context: Whether the function takes a `Context`.
    """

    spec: FunctionSpec
    inputs: tuple[tuple[StreamSpec, str], ...]
    outputs: tuple[tuple[int, StreamSpec, str], ...]
    unwanted: tuple[int, ...]
    bound: tuple[str, ...]
    output_names: tuple[str, ...] = ()
    takes_context: bool = False

    @property
    def is_streaming(self) -> bool:
        """Whether the function takes its inputs as streams."""
        return self.spec.style is Style.STREAMING


class Table:
    """The actions of one process.

    Args:
        specs: Functions of the catalogue.
        settings: The names of actions, the aliases of inputs, and the targets.
        tells: Whether clients may list the actions, and errors may name similar ones.
    """

    def __init__(self, specs: Iterable[FunctionSpec], settings: EvergreenSettings, *, tells: bool = True) -> None:
        self.settings = settings
        own = tuple(specs)
        self._names = Names(own, settings.actions, tells=tells)
        self._binders = {one.name: Binder(one, most=MOST_INPUTS) for one in own}
        # A cache of bindings for actions with the same names; instead of node ids they have indexes of the ports.
        self._kept: Cache[Hashable, Binding] = Cache(_MOST, _MOST_BYTES)

    @property
    def names(self) -> Mapping[str, FunctionSpec]:
        """The names of all actions: first the configured ones, then the functions' own names."""
        return self._names.offered

    def spec(self, action: pb.Action) -> FunctionSpec:
        """The function that an action names.

        Raises:
            EvergreenError: There is no such function, or its target is not served here.
        """
        self._check_length(action.name, "an action's name")
        found = self._names.get(action.name)
        if found is None:
            raise not_found(f"no action is named {quoted(action.name)}{self._names.hint(action.name)}")
        target = action.target_spec.id if action.HasField("target_spec") else ""
        if target and target not in self.settings.targets:
            known = ", ".join(self.settings.targets) or "only the default one"
            raise target_not_found(f"action {quoted(action.name)} asks for target {quoted(target)}; there is {known}")
        return found

    def bind(self, action: pb.Action, where: str) -> Binding:
        """Bind the parameters of an action.

        Args:
            action: The action as it came.
            where: A description of the action for error texts.

        Raises:
            EvergreenError: A name is unknown, missing, empty or given twice.
        """
        inputs = [(one.name, one.id) for one in action.inputs]
        outputs = [(one.name, one.id) for one in action.outputs]
        target = action.target_spec.id if action.HasField("target_spec") else ""
        key = (action.name, target, tuple([name for name, _ in inputs]), tuple([name for name, _ in outputs]))
        known = self._kept.find(key)
        if known is not None and self._are_short(inputs) and self._are_short(outputs):
            return _filled(known, inputs, outputs)
        spec = self.spec(action)
        found = self._bind(spec, inputs, outputs, where)
        if known is None:
            size = sum(_PLAN_BYTES + 8 * len(name) for name, _ in (*inputs, *outputs))
            places = self._bind(spec, _placed(inputs), _placed(outputs), where)
            self._kept.keep(key, places, _PLAN_BYTES + 8 * len(target) + size)
        return found

    def _bind(self, spec: FunctionSpec, inputs: Sequence[Port], outputs: Sequence[Port], where: str) -> Binding:
        words = Words(quoted, lambda text: bad_action(f"{where} {text}"))
        binder = self._binders[spec.name]
        found = binder.named([self._alias(spec, name) for name, _ in self._checked(inputs, where, "input")])
        if found.faults:
            raise bad_action(found.faults[0].said_of(where))
        order, streams = binder.order(found.names), found.inputs
        ports = listed(self._checked(outputs, where, "output"), "output", words)
        bound_outputs, unwanted = bind_outputs(spec, ports, words)
        return Binding(
            spec,
            tuple([(streams[place], inputs[place][1]) for place in order]),
            bound_outputs,
            unwanted,
            tuple([found.names[place] for place in order]),
            output_names=tuple(one.name for _, one, _ in bound_outputs) if spec.open_outputs else (),
            takes_context=spec.takes_context,
        )

    def _alias(self, spec: FunctionSpec, name: str) -> str:
        """The name of a parameter that a client's name stands for; an exact name comes before an alias (E-075)."""
        known = self.settings.inputs.get(name, "")
        own = [one.name for one in (*spec.inputs, *spec.optional)] if known else ()
        return known if known in own and name not in own else name

    def _are_short(self, ports: Sequence[Port]) -> bool:
        """Whether all ids are non-empty, and so short that they need no further check."""
        most = self.settings.name_bytes
        for _, id in ports:  # noqa: SIM110 - a generator would take twice as long
            if not id or len(id) * 4 > most:
                return False
        return True

    def _checked(self, ports: Sequence[Port], where: str, kind: str) -> Iterator[Port]:
        for one in ports:
            self.check_parameter(*one, where, kind)
            yield one

    def check_parameter(self, name: str, id: str, where: str, kind: str) -> None:
        """Check that an input or output has a name and a node id, and that neither is too long (E-080).

        Raises:
            EvergreenError: The parameter has no name or id, or one of these is too long.
        """
        if not name or not id:
            what = "name" if not name else "node id"
            raise bad_action(f"{where} has an {kind} {quoted(name or id)} with an empty {what}")
        self._check_length(name, f"the name of an {kind} of {where}")
        self._check_length(id, f"the node id of an {kind} of {where}")

    def _check_length(self, text: str, what: str) -> None:
        most = self.settings.name_bytes
        if len(text) * 4 > most and len(text.encode()) > most:
            raise limit(
                f"{what}, {quoted(text)}, has {len(text.encode())} bytes, which exceeds the limit of {most} bytes"
            )


def _placed(ports: Sequence[Port]) -> list[Port]:
    """The same ports, each with its index instead of the node id."""
    return [(name, str(place)) for place, (name, _) in enumerate(ports)]


def _filled(places: Binding, inputs: Sequence[Port], outputs: Sequence[Port]) -> Binding:
    """A cached binding, filled with the node ids of an action."""
    return Binding(
        places.spec,
        tuple([(one, inputs[int(place)][1]) for one, place in places.inputs]),
        tuple([(index, one, outputs[int(place)][1]) for index, one, place in places.outputs]),
        places.unwanted,
        places.bound,
        places.output_names,
        places.takes_context,
    )
