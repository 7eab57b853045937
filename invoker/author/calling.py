"""Binds the arguments of a call to parameters as Python does; for calls that come with positions and keywords.

Callers on a wire name streams; a function, or a tool's caller, gives ``(1, b=2)``. `bound_names` says which parameter
takes each of them, in the words of ``Open.bound``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from invoker.author.spec import FunctionSpec, Parameter
from invoker.errors.wording import known_as

__all__ = ["BindError", "bound_names"]


class BindError(ValueError):
    """The arguments do not fit the parameters.

    Attributes:
        code: ``too_many_args``, ``unknown_arg``, ``duplicate_arg`` or ``missing_arg``.
        field: The name of the parameter; empty where there is none.
    """

    def __init__(self, text: str, code: str, field: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.field = field


def bound_names(spec: FunctionSpec, count: int, keywords: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of the parameters that take the arguments: those by position first, then those by keyword.

    Args:
        spec: The spec as it was read.
        count: How many arguments are given by position.
        keywords: The names of the others.

    Raises:
        BindError: Python would not call the function with these.
    """
    own = [one for one in spec.call.parameters if one.stream is not None and not one.is_variadic]
    names = [one.stream.name for one in own if one.by_position and one.stream is not None]
    if spec.inputs and spec.inputs[0].is_ignored:
        names = []
    positional = names[:count]
    if count > len(names):
        if not spec.open_inputs:
            takes = "no argument" if not names else f"{len(names)} argument{'s' if len(names) > 1 else ''}"
            raise BindError(f"'{spec.name}' takes {takes} by position, and {count} are given", "too_many_args")
        positional += [f"#{index}" for index in range(len(names), count)]
    by_keyword = _by_keyword(spec, own, set(positional), keywords)
    given = {*positional, *by_keyword}
    for one in own:
        name = one.stream.name if one.stream is not None else ""
        if not one.is_optional and name not in given:
            raise BindError(f"'{spec.name}' needs its argument '{name}', which is not given", "missing_arg", name)
    return (*positional, *by_keyword)


def _by_keyword(spec: FunctionSpec, own: list[Parameter], taken: set[str], keywords: Iterable[str]) -> list[str]:
    """The names of the inputs that are given by keyword."""
    known = {one.name: one.stream.name for one in own if one.by_keyword and one.stream is not None}
    known |= {name: name for name in known.values()}
    found: list[str] = []
    for keyword in keywords:
        name = known.get(known_as(keyword, known))
        if name is None and spec.open_names:
            name = keyword
        if name is None:
            near = get_close_matches(keyword, known, n=1)
            there = f"it has {', '.join(known)}" if known else "it takes none by keyword"
            hint = f"did you mean '{near[0]}'?" if near else there
            raise BindError(f"'{spec.name}' has no argument {keyword!a}; {hint}", "unknown_arg", keyword)
        if name in taken or name in found:
            raise BindError(f"argument '{name}' of '{spec.name}' is given twice", "duplicate_arg", name)
        found.append(name)
    return found
