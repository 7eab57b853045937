"""The options of `@function` that only Evergreen understands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from invoker.author.protocoloptions import ProtocolOption
from invoker.author.spec import FunctionSpec
from invoker.errors import SpecError
from invoker.errors.wording import suggestion


@dataclass(frozen=True, slots=True)
class Nodes(ProtocolOption):
    """How the values of a function's outputs are stored as nodes.

    Attributes:
        sequence: True: each value of an output is an item of its own, and never a piece of one text. Or the names of
            the outputs to which this applies.
        retain: False: the values of outputs are not kept for later actions; endless outputs need this. Or the names of
            the outputs whose values are kept.

    Raises:
        SpecError: A value is neither True, nor False, nor names.
    """

    protocol: ClassVar[str] = "evergreen"
    sequence: bool | Iterable[str] = False
    retain: bool | Iterable[str] = True

    def __post_init__(self) -> None:
        for field in ("sequence", "retain"):
            object.__setattr__(self, field, _some(field, getattr(self, field)))

    def applied(self, spec: FunctionSpec) -> FunctionSpec:
        """Check that all names are names of outputs.

        Raises:
            SpecError: A name is not that of an output.
        """
        names = [one.name for one in spec.outputs]
        made = {}
        for field in ("sequence", "retain"):
            said = getattr(self, field)
            if isinstance(said, bool):
                continue
            for name in said:
                if name not in names:
                    hint = suggestion(name, names)
                    raise SpecError(
                        f"evergreen.Nodes({field}=...) of '{spec.name}' names '{name}', which it does not have; {hint}"
                    )
            if len(names) == 1:  # the option then applies to the parts of the only output
                made[field] = bool(said)
        return replace(spec, options={**spec.options, Nodes: replace(self, **made)}) if made else spec

    def is_sequence(self, output: str) -> bool:
        """Whether each value of an output is an item of its own."""
        return self.sequence if isinstance(self.sequence, bool) else output in self.sequence

    def is_retained(self, output: str) -> bool:
        """Whether the values of an output are kept for later actions."""
        return self.retain if isinstance(self.retain, bool) else output in self.retain


def nodes_of(spec: FunctionSpec) -> Nodes:
    """The `Nodes` option of a function, or the defaults."""
    found: Nodes = spec.options.get(Nodes, _DEFAULT)
    return found


def _some(field: str, value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, Iterable):
        raise SpecError(f"evergreen.Nodes({field}={value!r}) must be True, False, or names of outputs")
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise SpecError(f"evergreen.Nodes({field}=...) takes names; {name!r} is a {type(name).__name__}")
    return names


_DEFAULT: Final = Nodes()
