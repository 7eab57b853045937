"""`Table`: which functions an action may name, and how its parameters are bound (E-071 to E-088)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.spec import FunctionSpec, StreamSpec, Style
from invoker.protocols.evergreen.errors import bad_action, limit, not_found, target_not_found
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.wording import quoted

__all__ = ["Binding", "Table"]


@dataclass(frozen=True, slots=True)
class Binding:
    """An action as its function will be run.

    Attributes:
        spec: The function.
        inputs: What is bound, in the order of the invocation's inputs: the parameter and the id of its root.
        outputs: What is listed: index of the invocation's output, its description, and the id of its node.
        unwanted: Indexes of outputs that are not listed.
        bound: For `Open`; None where the number of inputs is the caller's choice.
        names: Names of inputs, where their number is.
        output_names: Names of outputs, where their number is the caller's choice.
    """

    spec: FunctionSpec
    inputs: tuple[tuple[StreamSpec, str], ...]
    outputs: tuple[tuple[int, StreamSpec, str], ...]
    unwanted: tuple[int, ...]
    bound: tuple[str, ...] | None
    names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()

    @property
    def is_streaming(self) -> bool:
        """Whether the function takes its inputs as streams."""
        return self.spec.style is Style.STREAMING


class Table:
    """The actions of one process.

    Args:
        specs: Functions of the catalogue.
        settings: Names, aliases and targets.
    """

    def __init__(self, specs: Iterable[FunctionSpec], settings: EvergreenSettings) -> None:
        self.settings = settings
        self.specs = tuple(specs)
        by_name = {spec.entrypoint: spec for spec in self.specs if spec.entrypoint}
        by_name.update((spec.name, spec) for spec in self.specs)
        own = dict(by_name)
        by_name.update((name, own[function]) for name, function in settings.actions.items() if function in own)
        self._by_name = by_name

    @property
    def names(self) -> dict[str, FunctionSpec]:
        """What may be offered: configured names first, then functions' own."""
        found = {name: self._by_name[name] for name in self.settings.actions if name in self._by_name}
        found.update((spec.name, spec) for spec in self.specs)
        return found

    def spec(self, action: pb.Action) -> FunctionSpec:
        """The function that an action names.

        Raises:
            EvergreenError: There is none, or its target is not here.
        """
        self._check_length(action.name, "an action's name")
        found = self._by_name.get(action.name)
        if found is None:
            known = ", ".join(self.names)
            near = get_close_matches(action.name, list(self._by_name), n=1)
            hint = f"did you mean {quoted(near[0])}?" if near else f"there are {known}"
            raise not_found(f"no action is named {quoted(action.name)}; {hint}")
        target = action.target_spec.id if action.HasField("target_spec") else ""
        if target and target not in self.settings.targets:
            known = ", ".join(self.settings.targets) or "only the default one"
            raise target_not_found(f"action {quoted(action.name)} asks for target {quoted(target)}; there is {known}")
        return found

    def bind(self, action: pb.Action, where: str) -> Binding:
        """Bind the parameters of an action.

        Args:
            action: As it came.
            where: The action, for texts of errors.

        Raises:
            EvergreenError: A name is unknown, missing, empty or there twice.
        """
        spec = self.spec(action)
        given = self._inputs(spec, action, where)
        inputs, bound = _bound(spec, given, where)
        outputs, unwanted = self._outputs(spec, action, where)
        return Binding(
            spec,
            inputs,
            outputs,
            unwanted,
            bound,
            names=() if bound is not None else tuple(one.name for one, _ in inputs),
            output_names=tuple(one.name for _, one, _ in outputs) if spec.open_outputs else (),
        )

    def _inputs(self, spec: FunctionSpec, action: pb.Action, where: str) -> dict[str, str]:
        own = {one.name for one in (*spec.inputs, *spec.optional)}
        given: dict[str, str] = {}
        for one in action.inputs:
            self.check_parameter(one, where, "input")
            alias = self.settings.inputs.get(one.name, "")
            name = alias if alias in own and one.name not in own else one.name
            if name in given:
                raise bad_action(f"{where} has the input {quoted(one.name)} twice")
            given[name] = one.id
        return given

    def _outputs(
        self, spec: FunctionSpec, action: pb.Action, where: str
    ) -> tuple[tuple[tuple[int, StreamSpec, str], ...], tuple[int, ...]]:
        listed: dict[str, str] = {}
        for one in action.outputs:
            self.check_parameter(one, where, "output")
            if one.name in listed:
                raise bad_action(f"{where} has the output {quoted(one.name)} twice")
            listed[one.name] = one.id
        if spec.open_outputs:
            return tuple(
                (index, replace(spec.any_output, name=name), node) for index, (name, node) in enumerate(listed.items())
            ), ()
        if len(spec.outputs) == 1 and len(listed) == 1:
            ((name, node),) = listed.items()
            return ((0, replace(spec.outputs[0], name=name), node),), ()
        known = {one.name: (index, one) for index, one in enumerate(spec.outputs)}
        for name in listed:
            if name not in known:
                raise bad_action(f"{where} has no output {quoted(name)}; it has {', '.join(known) or 'none'}")
        found = tuple((*known[name], node) for name, node in listed.items())
        unwanted = tuple(index for name, (index, _) in known.items() if name not in listed)
        return found, unwanted

    def check_parameter(self, one: pb.NamedParameter, where: str, kind: str) -> None:
        """An input or output has a name and a node id, neither too long (E-080).

        Raises:
            EvergreenError: It has not.
        """
        if not one.name or not one.id:
            what = "name" if not one.name else "node id"
            raise bad_action(f"{where} has an {kind} {quoted(one.name or one.id)} with an empty {what}")
        self._check_length(one.name, f"the name of an {kind} of {where}")
        self._check_length(one.id, f"the node id of an {kind} of {where}")

    def _check_length(self, text: str, what: str) -> None:
        most = self.settings.name_bytes
        if len(text) * 4 > most and len(text.encode()) > most:
            raise limit(f"{what}, {quoted(text)}, has {len(text.encode())} bytes, and at most {most} are allowed")


def _bound(
    spec: FunctionSpec, given: dict[str, str], where: str
) -> tuple[tuple[tuple[StreamSpec, str], ...], tuple[str, ...] | None]:
    """The inputs in the order of the function's parameters."""
    if spec.open_inputs:
        inputs = _variadic(spec, given)
        names = tuple(one.name for one, _ in inputs)
        return inputs, names if any(one.name in names for one in spec.options) else None
    takes = {one.name: one for one in (*spec.inputs, *spec.optional) if not one.is_ignored}
    for name in given:
        if name not in takes and not spec.open_names:
            near = get_close_matches(name, list(takes), n=1)
            hint = f"did you mean {quoted(near[0])}?" if near else f"it has {', '.join(takes) or 'none'}"
            raise bad_action(f"{where} has no input {quoted(name)}; {hint}")
    missing = [one.name for one in spec.required if one.name not in given]
    if missing:
        raise bad_action(
            f"{where} needs the input {quoted(missing[0])}, which has no default; given: {', '.join(given) or 'none'}"
        )
    ordered = [name for name in takes if name in given] + sorted(name for name in given if name not in takes)
    inputs = tuple(
        (takes.get(name) or StreamSpec(name, single=spec.style is Style.STREAMING), given[name]) for name in ordered
    )
    return inputs, tuple(ordered)


def _variadic(spec: FunctionSpec, given: dict[str, str]) -> tuple[tuple[StreamSpec, str], ...]:
    """A function of any number of inputs: named ones first, then as the names sort."""
    named = [one.name for one in spec.inputs[:-1] if one.name in given]
    last = spec.inputs[-1]
    rest = sorted(name for name in given if name not in named)
    by_name = {one.name: one for one in (*spec.inputs[:-1], *spec.options)}
    return tuple((by_name.get(name) or replace(last, name=name), given[name]) for name in (*named, *rest))
