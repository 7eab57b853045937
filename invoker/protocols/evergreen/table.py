"""`Table`: which functions an action may name, and how its parameters are bound (E-071 to E-088)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.spec import FunctionSpec, StreamSpec, Style
from invoker.core.naming import Names, Words, bind_outputs, in_order, listed, meant
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
        self._names = Names(specs, settings.actions)

    @property
    def names(self) -> Mapping[str, FunctionSpec]:
        """What may be offered: configured names first, then functions' own."""
        return self._names.offered

    def spec(self, action: pb.Action) -> FunctionSpec:
        """The function that an action names.

        Raises:
            EvergreenError: There is none, or its target is not here.
        """
        self._check_length(action.name, "an action's name")
        found = self._names.get(action.name)
        if found is None:
            raise not_found(f"no action is named {quoted(action.name)}; {self._names.hint(action.name)}")
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
        words = Words(quoted, lambda text: bad_action(f"{where} {text}"))
        own = {one.name for one in (*spec.inputs, *spec.optional)}

        def alias(name: str) -> str:
            known = self.settings.inputs.get(name, "")
            return known if known in own and name not in own else name

        given = listed(self._ports(action.inputs, where, "input"), "input", words, alias)
        inputs, bound = _bound(spec, given, where)
        ports = self._ports(action.outputs, where, "output")
        outputs, unwanted = bind_outputs(spec, listed(ports, "output", words), words)
        return Binding(
            spec,
            inputs,
            outputs,
            unwanted,
            bound,
            names=() if bound is not None else tuple(one.name for one, _ in inputs),
            output_names=tuple(one.name for _, one, _ in outputs) if spec.open_outputs else (),
        )

    def _ports(self, several: Iterable[pb.NamedParameter], where: str, kind: str) -> Iterator[tuple[str, str]]:
        for one in several:
            self.check_parameter(one, where, kind)
            yield one.name, one.id

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
        names = in_order(spec, given)
        by_name = {one.name: one for one in (*spec.inputs[:-1], *spec.options)}
        last = spec.inputs[-1]
        inputs = tuple((by_name.get(name) or replace(last, name=name), given[name]) for name in names)
        return inputs, names if any(one.name in names for one in spec.options) else None
    takes = {one.name: one for one in (*spec.inputs, *spec.optional) if not one.is_ignored}
    for name in given:
        if name not in takes and not spec.open_names:
            hint = meant(name, takes, f"it has {', '.join(takes) or 'none'}")
            raise bad_action(f"{where} has no input {quoted(name)}; {hint}")
    missing = [one.name for one in spec.required if one.name not in given]
    if missing:
        raise bad_action(
            f"{where} needs the input {quoted(missing[0])}, which has no default; given: {', '.join(given) or 'none'}"
        )
    ordered = in_order(spec, given)
    inputs = tuple(
        (takes.get(name) or StreamSpec(name, single=spec.style is Style.STREAMING), given[name]) for name in ordered
    )
    return inputs, ordered
