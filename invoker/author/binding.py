"""Maps the values that a caller gives to the parameters of a function; all protocols use this code.

Theory. A caller gives values by position, by keyword as a call in Python does (`Binder.call`), or by the names of the
inputs (`Binder.named`). The result is an `Assignment`: for each value the name of its input, as in ``Open.bound``, and
its parameter; or all faults, each with a code, a place and a sentence. Protocols translate their frames into these
calls, and the faults into their errors; values stay encoded.

Two kinds of names belong to no parameter. An element of ``*args`` that is given by position is ``#INDEX``. A name that
``**kwargs`` takes has the prefix `KEYWORD` where the name alone would mean another input.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from invoker.author.spec import FunctionSpec, Parameter, StreamSpec
from invoker.errors.wording import Fault, known_as, missing, nearest, twice, unknown

KEYWORD: Final = "**"
"""Prefix for the name of a ``**kwargs`` input that would be the name of another input without it."""

MOST_INPUTS: Final = 1000
"""The most inputs of one request; each takes memory before its value is decoded."""

_MOST_KEPT: Final = 64
"""The most assignments that a binder caches; callers choose the names if there is ``**kwargs``."""

_MOST_NAMES: Final = 4096
"""The most characters in all names of a cached assignment."""

_MOST_FAULTS: Final = 100
"""The most wrong names that an error lists."""

_MOST_HINTS: Final = 8
"""A similar name is searched only for this many wrong names, since each search takes up to a millisecond."""


class Assignment(NamedTuple):
    """The parameters that take the values of a call, in the order in which the values were given.

    Attributes:
        names: The names of the inputs, for ``Open.bound``; a value that no parameter takes has the name that the caller
            gave.
        parameters: The parameters; None for a value that no parameter takes.
        faults: The faults; an error that reports only one reports the first.
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter | None, ...]
    faults: tuple[Fault, ...] = ()

    @property
    def inputs(self) -> tuple[StreamSpec, ...]:
        """The specs of the inputs that take the values; only valid if the call has no fault."""
        return tuple(
            replace(one.stream or StreamSpec(name), name=name)
            for name, one in zip(self.names, self.parameters, strict=True)
            if one is not None
        )


class _Making:
    """The unfinished assignment of one call.

    Attributes:
        given: For each value the name of its input, and the parameter that takes it.
        takers: The parameter that takes an input, by the input's name.
        faults: The faults that were found so far.
        meant: Inputs that the caller has probably misspelt, so that they are not reported as missing.
    """

    def __init__(self) -> None:
        self.given: list[tuple[str, Parameter | None]] = []
        self.takers: dict[str, Parameter] = {}
        self.faults: list[Fault] = []
        self.meant: set[str] = set()

    def give(self, name: str, one: Parameter) -> None:
        self.given.append((name, one))
        self.takers[name] = one


class Binder:
    """Binds the values of calls to the parameters of one function; made once for each function.

    Args:
        spec: The spec that was read from the signature.
        most: The most values of one call; 0: any number.
        is_ordered: Whether values by position may also go to keyword-only parameters, in the order of the inputs.
        has_labels: Whether a name that is not a parameter's is an element of ``*args``, if the function has it.

    Attributes:
        spec: The spec.
        kept: Earlier assignments, by the number of positional values and the names; those with faults are not kept.
    """

    def __init__(self, spec: FunctionSpec, *, most: int = 0, is_ordered: bool = False, has_labels: bool = True) -> None:
        self.kept: dict[tuple[Any, ...], Assignment] = {}
        self.spec = spec
        self._most = most
        each = spec.call.parameters
        self._own = tuple(one for one in each if one.stream is not None and not _is_pattern(spec, one))
        self._inputs = {one.stream.name: one for one in self._own if one.stream is not None}
        self._by_position = tuple(
            one for one in self._own if one.by_position and not (one.is_variadic and one.is_optional)
        )
        # The decorator may name the elements of ``*args``; then they are given by these names, too.
        self._by_keyword = {one.name: one for one in self._own if one.by_keyword}
        self._by_keyword |= {name: one for name, one in self._inputs.items() if one.by_keyword or _is_element(one)}
        self._reserved = {one.name for one in each if one.by_keyword and not one.is_variadic}
        self._rest = next((one for one in each if one.is_variadic and one.by_position and one.is_optional), None)
        self._others = each[-1] if spec.open_names else None  # ``**kwargs`` is the last parameter of any signature
        self._has_labels = has_labels and spec.open_inputs
        fixed = spec.inputs if spec.open_inputs else (*spec.inputs, *spec.optional)
        ordered = dict.fromkeys(one.name for one in fixed if one.name in self._inputs)
        self._places = {name: place for place, name in enumerate(ordered)}
        if is_ordered:
            self._by_position = tuple([self._inputs[name] for name in ordered])

    def call(self, count: int, keywords: Collection[str] = ()) -> Assignment:
        """Bind as Python does: values by position, then others by the names of their parameters.

        Args:
            count: How many values are given by position.
            keywords: The names of the values that are given by keyword.
        """
        key = (count, *keywords)
        return self.kept.get(key) or self._keep(key, self._called(count, keywords))

    def named(self, names: Sequence[str]) -> Assignment:
        """Bind by the names of inputs, which positional-only parameters have too."""
        key = tuple(names)
        return self.kept.get(key) or self._keep(key, self._named(names))

    def order(self, names: Sequence[str]) -> list[int]:
        """The indexes of the names in the order of the parameters; other names follow, sorted with numbers by size."""
        last = len(self._places)
        return sorted(range(len(names)), key=lambda at: (self._places.get(names[at], last), _natural(names[at])))

    def _keep(self, key: tuple[Any, ...], found: Assignment) -> Assignment:
        if not found.faults and sum(map(len, found.names)) <= _MOST_NAMES:
            if len(self.kept) >= _MOST_KEPT:
                self.kept.clear()
            self.kept[key] = found
        return found

    def _called(self, count: int, keywords: Collection[str]) -> Assignment:
        if self._most and count + len(keywords) > self._most:
            return Assignment((), (), (far_too_many(self.spec.name, count + len(keywords), self._most),))
        made = _Making()
        for name, one in self._positions(count):
            made.give(name, one)
        if len(made.given) < count:
            made.faults.append(self._too_many(count))
            made.given += [("", None)] * (count - len(made.given))
        for keyword in keywords:
            self._take(made, keyword, *self._of_keyword(keyword))
        return self._assigned(made)

    def _named(self, names: Sequence[str]) -> Assignment:
        if self._most and len(names) > self._most:
            return Assignment((), (), (far_too_many(self.spec.name, len(names), self._most),))
        made = _Making()
        for said in names:
            name = said if said.isascii() else known_as(said, self._inputs)
            one = self._inputs.get(name)
            self._take(made, said, *((name, one) if one is not None else self._further(name)))
        made.faults += self._unreachable(made)
        return self._assigned(made)

    def _take(self, made: _Making, said: str, name: str, one: Parameter | None) -> None:
        """Let a parameter take a value, unless there is no parameter, or it has a value already."""
        if one is not None and name not in made.takers:
            made.give(name, one)
            return
        made.given.append((name, None))
        if len(made.faults) < _MOST_FAULTS:
            made.faults.append(self._unknown(said, made) if one is None else twice(self.spec.name, name))

    def _assigned(self, made: _Making) -> Assignment:
        required = (name for name, one in self._inputs.items() if not one.is_optional)
        lacking = [name for name in required if name not in made.takers and name not in made.meant]
        made.faults += (missing(self.spec.name, name) for name in lacking)
        names, takers = zip(*made.given, strict=True) if made.given else ((), ())
        return Assignment(names, takers, tuple(made.faults))

    def _positions(self, count: int) -> Iterable[tuple[str, Parameter]]:
        """The names and parameters of values by position; values that no parameter takes are left out."""
        for one in self._by_position[:count]:
            yield _name_of(one), one
        if self._rest is not None:
            for index in range(len(self._by_position), count):
                yield f"#{index}", self._rest

    def _of_keyword(self, keyword: str) -> tuple[str, Parameter | None]:
        one = self._by_keyword.get(keyword if keyword.isascii() else known_as(keyword, self._by_keyword))
        if one is not None:
            return _name_of(one), one
        if self._others is None or keyword in self._reserved:
            return keyword, None
        is_clear = self._rest is None and keyword not in self._inputs and not keyword.startswith(KEYWORD)
        return keyword if is_clear else KEYWORD + keyword, self._others

    def _further(self, name: str) -> tuple[str, Parameter | None]:
        """The name of an input that is not a parameter's name, and the variadic parameter that takes this input."""
        if self._rest is not None and (self._has_labels or name.startswith("#")) and not name.startswith(KEYWORD):
            return name, self._rest
        if self._others is None or name.removeprefix(KEYWORD) in self._reserved:
            return name, None
        is_clear = self._rest is None or name.startswith(KEYWORD)
        return name if is_clear else KEYWORD + name, self._others

    def _unreachable(self, made: _Making) -> Iterable[Fault]:
        """Positional-only parameters that follow one that keeps its default, so they cannot be given."""
        skipped = ""
        for name, one in self._inputs.items():
            if name not in made.takers:
                skipped = skipped or (name if one.by_position and one.is_optional else "")
            elif skipped and one.by_position and not one.by_keyword:
                words = f"cannot be given its input '{name}' without '{skipped}'"
                yield Fault("missing_arg", skipped, self.spec.name, words)

    def _unknown(self, name: str, made: _Making) -> Fault:
        if name in self._inputs:
            made.meant.add(name)
            words = f"takes its input '{name}' by position only"
            return Fault("unknown_arg", name, self.spec.name, words)
        meant = nearest(name, self._inputs) if len(made.faults) < _MOST_HINTS else ""
        made.meant.add(meant)
        more = [f"*{self._rest.name}"] if self._rest is not None and self.spec.open_inputs else []
        return unknown(self.spec.name, name, [*self._inputs, *more], meant=meant)

    def _too_many(self, count: int) -> Fault:
        most = len(self._by_position)
        takes = f"{most or 'no'} input{'s' if most > 1 else ''}"
        words = f"takes {takes} by position, and {count} are given"
        return Fault("too_many_args", "", self.spec.name, words, {"expected": str(most), "actual": str(count)})


def far_too_many(function: str, count: int, most: int) -> Fault:
    """The fault of a call with more values than any call may have."""
    words = f"is given {count} inputs, which exceeds the limit of {most}"
    return Fault("too_many_args", "", function, words, {"expected": str(most), "actual": str(count)})


def _is_pattern(spec: FunctionSpec, one: Parameter) -> bool:
    """Whether a parameter takes any number of inputs; ``*args`` after a default is one input."""
    return one.is_variadic and one.is_optional and (one.by_keyword or spec.open_inputs)


def _is_element(one: Parameter) -> bool:
    return one.is_variadic and not one.is_optional


def _name_of(one: Parameter) -> str:
    return one.name if one.stream is None else one.stream.name


def _natural(name: str) -> list[tuple[int, str, str]]:
    """A key that sorts names by their numbers: ``args10`` comes after ``args9``."""
    pieces = ((digits.lstrip("0"), rest) for digits, rest in re.findall(r"(\d*)(\D*)", name))
    return [(len(number), number, rest) for number, rest in pieces]
