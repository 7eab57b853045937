"""The arguments of a tool: what callers may give, bound to parameters as Python does, decoded, converted and checked.

All errors of a call are reported together (T-050), and nothing runs before all arguments are right (T-051). What was
decoded is remembered on the payload, so that the function's own input does not decode it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeAlias

from invoker.author.binding import KEYWORD
from invoker.author.spec import IGNORED, FunctionSpec, Parameter, StreamSpec, Style
from invoker.codecs.anyvalue import ANY, BadAny, known, pack, unpack
from invoker.codecs.anyvalue.codec import converting
from invoker.codecs.refusal import reason
from invoker.codecs.standins import is_odd
from invoker.codecs.typed import members
from invoker.errors.wording import known_as
from invoker.message import EMPTY, Message
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.typenames import allowed_values, python_type, spelled

__all__ = ["Argument", "Arguments", "Binding", "Violation", "refusal"]

_SCALARS: Final = (str, int, float, bool, bytes)
_MOST_TOLD: Final = 100
_MOST_ARGUMENTS: Final = 1000
"""The most arguments of one call; each is an input of its own, which costs some 30 microseconds."""

_MOST_KEPT: Final = 64
"""Bindings of a tool that are remembered, one for each set of given names; callers choose names if it has
``**kwargs``."""

_MOST_NAMES: Final = 4096
"""Characters in all names of a binding that is remembered."""

_NAME: Final = 256
"""Characters of a name that errors quote, and for which a similar name is looked for."""


Feed: TypeAlias = tuple[int, Message[bytes]]
"""The index of an input, and a message for it."""


class Binding(NamedTuple):
    """Arguments that were found right.

    Attributes:
        names: The names of the parameters that get them, for ``Open.bound``.
        feeds: The index of an input, and a message for it; an argument that is a stream has any number of them.
    """

    names: tuple[str, ...]
    feeds: Sequence[Feed]


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with a call.

    Attributes:
        code: The kind of error; see T-037 to T-053.
        field: The name of the argument; empty where there is none.
        text: What was met, and what was expected.
        details: Further facts by name, such as ``expected`` and ``actual``.
    """

    code: str
    field: str
    text: str
    details: Mapping[str, str] | None = None

    def told(self) -> dict[str, str]:
        """The violation, as the JSON in ``details["violations"]`` has it."""
        return {"code": self.code, "field": self.field, "message": self.text, **(self.details or {})}


def refusal(violations: Sequence[Violation]) -> BridgeError:
    """The error that reports all of them: the first one as its text, the others as JSON (T-050)."""
    first = violations[0]
    details = {"code": first.code, "field": first.field, **(first.details or {})}
    if len(violations) > 1:
        details["violations"] = json.dumps([one.told() for one in violations[1:_MOST_TOLD]])
    return BridgeError(Kind.VALIDATION, first.text, **{name: text for name, text in details.items() if text})


class Argument:
    """One parameter, as callers of the tool give it.

    Attributes:
        name: The name by which callers know it.
        type: The annotation of one value.
        is_stream: It takes any number of values, as a list.
        is_required: There is no default.
        default: The default, if there is one.
        allowed: All values that it may have, as text; empty: any.
        constraints: What else its annotation says.
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
        self._exact = stream.type if is_free else None  # values of this very class are right as they are
        self._convert: Callable[[Any], Any] | None = None if stream.type is IGNORED else _converting(stream.type)

    def take(self, data: bytes, name: str, index: int, feeds: list[Feed], wrong: list[Violation]) -> None:
        """Take one argument.

        Args:
            data: A serialised ``Any``.
            name: What the caller calls it.
            index: The index of the input that it is for.
            feeds: The list to which its messages are added.
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
                return  # no more are reported, and there may be a million more
            made = self._made(one, f"{name}[{number}]", wrong)
            feeds.append((index, Message(known(pack(one), made, self.type), EMPTY, ANY)))

    def _made(self, value: Any, name: str, wrong: list[Violation]) -> Any:
        """The value as the function gets it."""
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
        except Exception as error:  # noqa: BLE001 - classes of the author may raise anything
            wrong.append(self._mistyped(value, name, error))
            return None
        if self._check is not None:
            found = self._check(made)
            wrong += [Violation(one.code, name, f"argument '{name}' {one.text}", one.details) for one in found]
        return made

    def _is_named(self, value: Any) -> bool:
        """Whether an Enum, which also takes the names of its members, takes the value; its converter decides."""
        return any(is_odd(one) and (isinstance(value, list) or value in one.__members__) for one in members(self.type))

    def _mistyped(self, value: Any, name: str, error: Exception) -> Violation:
        expected, actual = python_type(self.type), _kind(value)
        why = reason(error).text
        text = f"argument '{name}' must be {expected}, and is {actual}: {why}"
        return Violation("type", name, text, {"expected": expected, "actual": actual})


class Arguments:
    """All that a tool may be given.

    Args:
        spec: The spec of the function.

    Attributes:
        each: The arguments in the order of the signature, without ``*args`` and ``**kwargs``.

    Raises:
        SpecError: A rule does not exist, or a pattern is invalid.
    """

    def __init__(self, spec: FunctionSpec) -> None:
        self._function = spec.name
        self._kept: dict[tuple[Any, ...], tuple[tuple[str, ...], tuple[tuple[Argument, str], ...]]] = {}
        own = [(one, one.stream) for one in spec.call.parameters if one.stream is not None and not one.is_variadic]
        made = [(one, Argument(one, stream, spec)) for one, stream in own if not stream.is_ignored]
        self.each = tuple(argument for _, argument in made)
        self._by_position = tuple(argument for one, argument in made if one.by_position)
        self._by_keyword = {one.name: argument for one, argument in made if one.by_keyword}
        self._by_keyword |= {argument.name: argument for one, argument in made if one.by_keyword}
        self._required = tuple(argument for argument in self.each if argument.is_required)
        self._reserved = {one.name for one in spec.call.parameters if one.by_keyword and not one.is_variadic}
        self._marks_extras = spec.open_inputs
        variadic = [one for one in spec.call.parameters if one.is_variadic and one.stream is not None]
        extra = {one.by_keyword: Argument(one, one.stream, spec) for one in variadic if one.stream is not None}
        self._rest = extra.get(False) if spec.open_inputs else None
        self._others = extra.get(True) if spec.open_names else None

    def bind(self, args: Sequence[bytes], kwargs: Mapping[str, bytes]) -> Binding:
        """Bind, decode, convert and check.

        Args:
            args: Serialised ``Any``, by position.
            kwargs: Serialised ``Any``, by name.

        Raises:
            BridgeError: An argument is wrong; the error lists everything that is.
        """
        wrong: list[Violation] = []
        feeds: list[Feed] = []
        key = (len(args), *kwargs)
        kept = self._kept.get(key)
        if kept is None:
            return self._bind_anew(key, args, kwargs)
        known_names, takers = kept
        for index, data in enumerate((*args, *kwargs.values()) if kwargs else args):
            argument, said = takers[index]
            argument.take(data, said, index, feeds, wrong)
        if wrong:
            raise refusal(self._in_order(wrong))
        return Binding(known_names, feeds)

    def _bind_anew(self, key: tuple[Any, ...], args: Sequence[bytes], kwargs: Mapping[str, bytes]) -> Binding:
        """Find which parameter takes which argument, and keep that for later calls with arguments like these."""
        if len(key) - 1 + len(args) > _MOST_ARGUMENTS:
            raise refusal([self._far_too_many(len(key) - 1 + len(args))])
        wrong: list[Violation] = []
        names: dict[str, None] = {}  # the names are in order, and each is found at once
        feeds: list[Feed] = []
        takers: list[tuple[Argument, str]] = []
        for index, data in enumerate(args):
            if index < len(self._by_position):
                argument = self._by_position[index]
                name = argument.name
            elif self._rest is not None:
                argument, name = self._rest, f"#{index}"
            else:
                wrong.append(self._too_many(len(args)))
                break
            argument.take(data, name, len(names), feeds, wrong)
            takers.append((argument, name))
            names[name] = None
        for keyword, data in kwargs.items():
            found, name = self._called(keyword)
            if found is None:
                wrong.append(self._unknown(keyword))
            elif name in names:
                text = f"argument '{keyword}' of '{self._function}' is given twice, by position and by name"
                wrong.append(Violation("duplicate_arg", keyword, text))
            else:
                found.take(data, keyword, len(names), feeds, wrong)
                takers.append((found, keyword))
                names[name] = None
        wrong += [self._missing(one) for one in self._required if one.name not in names]
        if wrong:
            raise refusal(self._in_order(wrong))
        if len(self._kept) < _MOST_KEPT and sum(map(len, names)) <= _MOST_NAMES:
            self._kept[key] = (tuple(names), tuple(takers))
        return Binding(tuple(names), feeds)

    def _in_order(self, wrong: list[Violation]) -> list[Violation]:
        """A map comes in any order, and callers should get the same error each time."""
        order = {argument.name: number for number, argument in enumerate(self.each)}
        return sorted(wrong, key=lambda one: order.get(one.field.partition("[")[0], len(order)))

    def _called(self, keyword: str) -> tuple[Argument | None, str]:
        """The parameter that takes an argument given by name, and its name as an input."""
        found = self._by_keyword.get(known_as(keyword, self._by_keyword))
        if found is not None:
            return found, found.name
        if self._others is None or keyword in self._reserved:
            return None, ""
        is_clear = not self._marks_extras and keyword not in self._by_position_names()
        return self._others, keyword if is_clear else KEYWORD + keyword

    def _by_position_names(self) -> set[str]:
        return {one.name for one in self._by_position}

    def _too_many(self, count: int) -> Violation:
        most = len(self._by_position)
        text = f"'{self._function}' takes {most} argument{'s' if most != 1 else ''} by position, and {count} are given"
        return Violation("too_many_args", "", text, {"expected": str(most), "actual": str(count)})

    def _far_too_many(self, count: int) -> Violation:
        text = f"'{self._function}' is given {count} arguments, which exceeds the limit of {_MOST_ARGUMENTS}"
        return Violation("too_many_args", "", text, {"expected": str(_MOST_ARGUMENTS), "actual": str(count)})

    def _missing(self, argument: Argument) -> Violation:
        text = f"'{self._function}' needs its argument '{argument.name}', which is not given"
        return Violation("missing_arg", argument.name, text, {"expected": python_type(argument.type)})

    def _unknown(self, keyword: str) -> Violation:
        if keyword in self._by_position_names():
            text = f"argument '{keyword}' of '{self._function}' can be given by position only"
            return Violation("unknown_arg", keyword, text)
        known = list(dict.fromkeys(one.name for one in self._by_keyword.values()))
        near = get_close_matches(keyword, known, n=1) if len(keyword) <= _NAME else ()
        there = f"it has {', '.join(known)}" if known else "it takes none by name"
        hint = f"did you mean '{near[0]}'?" if near else there
        text = f"'{self._function}' has no argument {_shown(keyword)}; {hint}"
        return Violation("unknown_arg", keyword[:_NAME], text)


def _converting(type_: Any) -> Callable[[Any], Any]:
    """The converter to a type. An option that nothing can make is accepted at start, and keeps its default."""
    try:
        return converting(type_)
    except (TypeError, RuntimeError) as error:
        problem = ValueError(f"nothing makes it of what callers send ({error})")

        def refuse(_: Any) -> Any:
            raise problem

        return refuse


def _kind(value: Any) -> str:
    """The type of a value, as Python writes it."""
    return "None" if value is None else type(value).__name__


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
