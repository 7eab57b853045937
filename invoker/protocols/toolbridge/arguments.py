"""`Arguments`: binds the arguments of a tool to parameters as Python does, and decodes, converts and checks them.

All errors of a call are reported together (T-050), and the call uses up no limit before all arguments are right
(T-051). The decoded value is kept with the payload, so that the input of the function does not decode it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import IGNORED, FunctionSpec, Parameter, StreamSpec, Style
from invoker.codecs.anyvalue import ANY, BadAny, known, pack, unpack
from invoker.codecs.anyvalue.codec import converting
from invoker.codecs.refusal import reason
from invoker.codecs.standins import is_odd
from invoker.codecs.typed import members
from invoker.errors.wording import Fault
from invoker.message import EMPTY, Message
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.typenames import allowed_values, python_type, spelled

_SCALARS: Final = (str, int, float, bool, bytes)
_MOST_TOLD: Final = 100

Feed: TypeAlias = tuple[int, Message[bytes]]
"""The index of an input, and a message to feed to this input."""


class Binding(NamedTuple):
    """Arguments that were checked.

    Attributes:
        names: The names of the parameters that get values, for ``Open.bound``.
        feeds: The messages to feed, each with the index of its input; a stream may have any number.
    """

    names: tuple[str, ...]
    feeds: Sequence[Feed]


@dataclass(frozen=True, slots=True)
class Violation:
    """One error in the arguments of a call.

    Attributes:
        code: The kind of error; see T-037 to T-053.
        field: The name of the argument; empty if the error is about none.
        text: The text: what was met, and what was expected.
        details: Further facts by name, such as ``expected`` and ``actual``.
    """

    code: str
    field: str
    text: str
    details: Mapping[str, str] | None = None

    def told(self) -> dict[str, str]:
        """The violation as a dict, for the JSON of ``details["violations"]``."""
        return {"code": self.code, "field": self.field, "message": self.text, **(self.details or {})}


def refusal(violations: Sequence[Violation]) -> BridgeError:
    """The error that reports all violations: the first one is its text, the others are JSON in its details (T-050)."""
    first = violations[0]
    details = {"code": first.code, "field": first.field, **(first.details or {})}
    if len(violations) > 1:
        details["violations"] = json.dumps([one.told() for one in violations[1:_MOST_TOLD]])
    return BridgeError(Kind.VALIDATION, first.text, **{name: text for name, text in details.items() if text})


class Argument:
    """One parameter of a tool.

    Attributes:
        name: The name that callers use.
        type: The annotation of one value.
        is_stream: Whether it takes any number of values, as a list.
        is_required: Whether it has no default.
        default: The default, if there is one.
        allowed: The values that it may have, as text; empty: any.
        constraints: The constraints in its annotation.
    """

    __slots__ = (
        "_check",
        "_convert",
        "_exact",
        "allowed",
        "constraints",
        "default",
        "is_required",
        "is_stream",
        "name",
        "type",
    )

    def __init__(self, parameter: Parameter, stream: StreamSpec, spec: FunctionSpec) -> None:
        self.name = stream.name
        self.type = stream.type
        self.is_stream = parameter.streams or (spec.style is Style.STREAMING and not stream.single)
        self.is_required = not parameter.is_optional
        self.default = parameter.default
        self.constraints = stream.constraints
        self.allowed = allowed_values(stream.type)
        self._check = self.constraints.checker()
        is_free = not self.allowed and self._check is None and stream.type in _SCALARS
        self._exact = stream.type if is_free else None  # values of exactly this class need neither conversion nor check
        self._convert: Callable[[Any], Any] | None = None if stream.type is IGNORED else _converting(stream.type)

    def take(self, data: bytes, name: str, index: int, feeds: list[Feed], wrong: list[Violation]) -> None:
        """Decode and check one argument.

        Args:
            data: A serialised ``Any``.
            name: The caller's name of the argument.
            index: The index of its input.
            feeds: The list to which the messages are added.
            wrong: The list to which violations are added.
        """
        if self._convert is None:
            feeds.append((index, Message(data, EMPTY, ANY)))
            return
        try:
            value = unpack(data)
        except BadAny as error:
            text = f"argument '{name}': {error.detail}"
            wrong.append(Violation(error.code, name, text, {"type_url": error.type_url} if error.type_url else {}))
            return
        if type(value) is self._exact:
            feeds.append((index, Message(known(data, value, self.type), EMPTY, ANY)))
            return
        if not self.is_stream or not isinstance(value, list):
            feeds.append((index, Message(known(data, self._made(value, name, wrong), self.type), EMPTY, ANY)))
            return
        for number, one in enumerate(value):
            if len(wrong) >= _MOST_TOLD:
                return  # only the first violation is reported, since there may be a million
            made = self._made(one, f"{name}[{number}]", wrong)
            feeds.append((index, Message(known(pack(one), made, self.type), EMPTY, ANY)))

    def _made(self, value: Any, name: str, wrong: list[Violation]) -> Any:
        """Convert a value to the type of the parameter."""
        if self.allowed and value is not None and spelled(value) not in self.allowed and not self._is_named(value):
            known = ", ".join(self.allowed)
            text = f"argument '{name}' must be one of {known}, and is {_shown(value)}"
            wrong.append(
                Violation("allowed_values", name, text, {"allowed": json.dumps(self.allowed), "actual": _shown(value)})
            )
            return None
        assert self._convert is not None, "`take` has asked"
        try:
            made = self._convert(value)
        except Exception as error:  # noqa: BLE001 - a class of the author may raise any exception
            wrong.append(self._mistyped(value, name, error))
            return None
        if self._check is not None:
            found = self._check(made)
            wrong += [Violation(one.code, name, f"argument '{name}' {one.text}", one.details) for one in found]
        return made

    def _is_named(self, value: Any) -> bool:
        """Whether the converter of an Enum accepts the value; the value may also be the name of a member."""
        return any(is_odd(one) and (isinstance(value, list) or value in one.__members__) for one in members(self.type))

    def _mistyped(self, value: Any, name: str, error: Exception) -> Violation:
        expected, actual = python_type(self.type), _kind(value)
        why = reason(error).text
        text = f"argument '{name}' must be {expected}, and is {actual}: {why}"
        return Violation("type", name, text, {"expected": expected, "actual": actual})


class Arguments:
    """All arguments that a tool accepts.

    Args:
        spec: The spec of the function.

    Attributes:
        each: The arguments in the order of the signature, without ``*args`` and ``**kwargs``.

    Raises:
        SpecError: A rule does not exist, or a pattern is invalid.
    """

    def __init__(self, spec: FunctionSpec) -> None:
        self._binder = Binder(spec, most=MOST_INPUTS)
        self._kept = self._binder.kept
        each = [one for one in spec.call.parameters if one.stream is not None or (one.is_variadic and one.by_keyword)]
        made = [(one, Argument(one, one.stream or StreamSpec(one.name), spec)) for one in each]
        self.each = tuple(argument for one, argument in made if not (one.is_variadic and one.is_optional))
        self._takers = {one.name: argument for one, argument in made}

    def bind(self, args: Sequence[bytes], kwargs: Mapping[str, bytes]) -> Binding:
        """Bind, decode, convert and check.

        Args:
            args: Serialised ``Any``, by position.
            kwargs: Serialised ``Any``, by name.

        Raises:
            BridgeError: An argument is wrong; the error lists all of them.
        """
        names, takers, faults = self._kept.get((len(args), *kwargs)) or self._binder.call(len(args), kwargs)
        wrong: list[Violation] = []
        feeds: list[Feed] = []
        said = (*names[: len(args)], *kwargs) if kwargs else names
        given = (*args, *kwargs.values()) if kwargs else args
        for index, (name, taker, data) in enumerate(zip(said, takers, given, strict=False)):
            if taker is not None:
                self._takers[taker.name].take(data, name, index, feeds, wrong)
        if faults or wrong:
            raise refusal([*map(self._told, faults), *self._in_order(wrong)])
        return Binding(names, feeds)

    def _told(self, fault: Fault) -> Violation:
        if fault.code != "missing_arg":
            return Violation(fault.code, fault.name, str(fault), fault.details)
        missing = next(one for one in self.each if one.name == fault.name)
        return Violation(fault.code, fault.name, str(fault), {"expected": python_type(missing.type)})

    def _in_order(self, wrong: list[Violation]) -> list[Violation]:
        """Sort violations: keyword arguments come in any order, and callers should get the same error each time."""
        order = {argument.name: number for number, argument in enumerate(self.each)}
        return sorted(wrong, key=lambda one: order.get(one.field.partition("[")[0], len(order)))


def _converting(type_: Any) -> Callable[[Any], Any]:
    """Return the converter to a type.

    A type without a converter is no error at the start; each value is refused, so an optional parameter keeps its
    default.
    """
    try:
        return converting(type_)
    except (TypeError, RuntimeError) as error:
        problem = ValueError(f"values that callers send cannot be converted to it ({error})")

        def refuse(_: Any) -> Any:
            raise problem

        return refuse


def _kind(value: Any) -> str:
    """The name of a value's type in Python."""
    return "None" if value is None else type(value).__name__


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
