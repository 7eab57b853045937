"""One table of calls over every protocol: served with what Python gives, or refused with the same sentence."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

import pytest

from invoker import Context, function
from tests.protocols.binding.clients import CLIENTS
from tests.protocols.binding.wires import WIRES
from tests.protocols.binding.world import CannotSay, Given, Refused, World

ALL = WIRES | CLIENTS


def said(*values: Any, **more: Any) -> str:
    return " ".join([*map(str, values), *(f"{name}={more[name]}" for name in sorted(more))])


def plain(text: int, count: int) -> str:
    return said(text, count)


def default(text: int, count: int = 2) -> str:
    return said(text, count)


def defaults(text: int = 1, count: int = 2) -> str:
    return said(text, count)


def nothing() -> str:
    return said()


def keyword(text: int, *, count: int = 2) -> str:
    return said(text, count)


def position(text: int, /, count: int = 2) -> str:
    return said(text, count)


def positions(text: int, count: int = 2, scale: int = 3, /) -> str:
    return said(text, count, scale)


def rest(text: int, *more: int) -> str:
    return said(text, *more)


def others(text: int, **names: int) -> str:
    return said(text, **names)


def every(text: int, /, *more: int, **names: int) -> str:
    return said(text, *more, **names)


def beyond(text: int, *more: int, count: int = 2) -> str:
    return said(text, *more, count)


def names(**names: int) -> str:
    return said(**names)


def counted(count: int, items: Iterator[int]) -> str:
    return said(count, *items)


def maybe(text: int | None, count: int | None = 5) -> str:
    return said(text, count)


def context(text: int, ctx: Context, count: int = 2) -> str:
    return said(text, count)


@function(inputs=("word", "number"))
def renamed(text: int, count: int) -> str:
    return said(text, count)


def beside(items: Iterator[int], count: int) -> str:
    return said(*items, count)


def optional(items: Iterator[int], count: int = 2) -> str:
    return said(*items, count)


def streams(items: Iterator[int], words: Iterator[int]) -> str:
    return said(*items, *words)


@function(inputs=("left", "right"))
def fixed(*numbers: int) -> str:
    return said(*numbers)


def behind(text: int = 1, *more: int) -> str:
    return said(text, *more)


def greek(größe: int, µ: int = 2) -> str:  # noqa: PLC2401 - it is what the case is about
    return said(größe, µ)


FUNCTIONS = (
    plain, default, defaults, nothing, keyword, position, positions, rest, others, every, beyond, names,
    counted, maybe, context, renamed,
    beside, optional, streams, fixed, behind, greek,
)  # fmt: skip


def as_async(of: Callable[..., str]) -> Callable[..., Any]:
    """The same as an async function, whose streams are async iterators."""

    async def run(*args: Any, **names: Any) -> str:
        lists = [[value async for value in one] if isinstance(one, AsyncIterator) else one for one in args]
        for name, one in names.items():
            names[name] = [value async for value in one] if isinstance(one, AsyncIterator) else one
        return of(*lists, **names)

    functools.update_wrapper(run, of)
    del run.__dict__["__wrapped__"]
    whole = inspect.signature(of, eval_str=True)
    kinds = {Iterator[int]: AsyncIterator[int]}
    each = [one.replace(annotation=kinds.get(one.annotation, one.annotation)) for one in whole.parameters.values()]
    run.__signature__ = whole.replace(parameters=each)  # type: ignore[attr-defined]
    return run


def two_words(word: int, number: int) -> str:
    return said(word, number)


def two_sides(left: int, right: int) -> str:
    return said(left, right)


TWINS: dict[str, Callable[..., str]] = {
    "context": lambda text, count=2: said(text, count),
    "renamed": two_words,
    "fixed": two_sides,
}
"""What Python makes of a call of a function that is given a context, or whose decorator names its inputs."""

STREAMS = {"items", "words"}

OF_CALLS = ("nested", "toolbridge", "toolbridge client")
"""Wires that give values by position and by keyword, as a call does; on the others each has the name of its input."""

WITH_LABELS = ("evergreen", "evergreen client", "action-engine")
"""Wires on which each name that is no parameter's is an element of ``*args``, if there is one."""

DIFFERENT = {
    ("websocket", "positions: count is misspelt"): "the query is complete before a frame comes, and lacks 'count'",
}
"""What a wire says otherwise, and why."""


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        function: The name of the function.
        what: What the caller did.
        given: What the caller gives.
        sentence: How it is refused, if Python refuses it.
    """

    function: str
    what: str
    given: Given
    sentence: str = ""

    def __str__(self) -> str:
        return f"{self.function}: {self.what}"


def value_of(place: int, name: str) -> Any:
    return [10 + place, 20 + place] if name in STREAMS else 10 + place


def misspelt(name: str) -> str:
    return name[1] + name[0] + name[2:]


def cases_of(of: Callable[..., str]) -> Iterator[Case]:
    """The calls of one function: right ones, and each fault by itself."""
    parameters = inspect.signature(TWINS.get(of.__name__, of)).parameters.values()
    takes_names = any(one.kind is one.VAR_KEYWORD for one in parameters)
    each = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    values = {one.name: value_of(place, one.name) for place, one in enumerate(each)}
    required = [one.name for one in each if one.default is one.empty]
    by_position = [one.name for one in each if one.kind is not one.KEYWORD_ONLY]
    who, rest_of = f"'{of.__name__}'", [one.name for one in parameters if one.kind is one.VAR_POSITIONAL]
    rest_of = [f"*{name}" if required else name for name in rest_of]  # behind a default `*args` is one input
    there = ", ".join([*values, *rest_of]) or "none"

    def called(what: str, positions: Any, names: Any, sentence: str = "", *more: tuple[str, Any]) -> Case:
        named = tuple((name, values[name]) for name in names)
        return Case(of.__name__, what, Given(tuple(values[name] for name in positions), named + more), sentence)

    yield called("all by position", by_position, [name for name in values if name not in by_position])
    yield called("all by name", (), values)
    yield called("all by name, the last first", (), reversed(values))
    yield called("what is required, by position", required, ())
    yield called("what is required, by name", (), required)
    most, extra = len(by_position), [99] if STREAMS & {*values} else 99
    too_many = f"{who} takes {most or 'no'} input{'s'[: most > 1]} by position, and {most + 1} are given"
    yield Case(of.__name__, "one too many", Given((*(values[name] for name in by_position), extra)), too_many)
    unknown = f"{who} has no input 'zzz'; it has {there}"
    yield called("an unknown name", (), values, unknown, ("zzz", 99))
    yield called("an unknown name beside positions", by_position, (), unknown, ("zzz", 99))
    for name, value in values.items():
        rest = [other for other in values if other != name]
        missing = f"{who} needs its input '{name}', which is not given"
        if name in required:
            yield called(f"{name} is missing", (), rest, missing)
        else:
            yield called(f"only {name} is given beside what is required", (), [*required, name])
            yield called(f"{name} beside positions", required, [name])
        yield called(f"{name} twice by name", (), values, f"{who} is given its input '{name}' twice", (name, value))
        if len(name) > 3:
            near = f"{who} has no input '{misspelt(name)}'; did you mean '{name}'?"
            yield called(f"{name} is misspelt", (), rest, missing if takes_names else near, (misspelt(name), 99))
    if by_position:
        first = by_position[0]
        twice = f"{who} is given its input '{first}' twice"
        yield called("the first by position and by name", by_position[:1], values, twice)


EXTRA = (
    Case("maybe", "None for both", Given((), (("text", None), ("count", None)))),
    Case("maybe", "None by position", Given((None,))),
    Case("others", "two more names", Given((1,), (("b", 3), ("a", 2)))),
    Case("rest", "three more", Given((1, 2, 3, 4))),
    Case(
        "every",
        "more and names",
        Given((1, 2), (("text", 3), ("a", 4))),
        "'every' is given its input 'text' twice",
    ),
    Case(
        "greek",
        "one name in two spellings",
        Given((), (("gr\u00f6ße", 1), ("gro\u0308ße", 3))),
        "'greek' is given its input 'größe' twice",
    ),
    Case("greek", "names as they are typed", Given((), (("gro\u0308ße", 1), ("\u00b5", 3)))),
    Case(
        "context",
        "something for the context",
        Given((1,), (("ctx", 1),)),
        "'context' has no input 'ctx'; it has text, count",
    ),
    Case("plain", "nothing", Given(), "'plain' needs its input 'text', which is not given"),
)

CASES = [*(case for one in FUNCTIONS for case in cases_of(one)), *EXTRA]


@pytest.fixture(scope="module", params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> World:
    made = World(FUNCTIONS if request.param == "sync" else [as_async(one) for one in FUNCTIONS])
    assert {one.spec.is_async for one in made.functions.values()} == {request.param == "async"}
    return made


_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def as_called(of: inspect.Signature, args: Sequence[Any], names: Mapping[str, Any]) -> inspect.BoundArguments:
    """What `inspect.Signature.bind` gives; Python 3.13.0 lets it pass some calls that a function refuses.

    Raises:
        TypeError: A function of this signature cannot be called so.
    """
    each = of.parameters.values()
    by_position = {one.name for one in each if one.kind is one.POSITIONAL_ONLY}
    if by_position & {*names} and not any(one.kind is one.VAR_KEYWORD for one in each):
        raise TypeError("a parameter that is by position only is named")
    bound = of.bind(*args, **names)
    if any(one.name not in bound.arguments for one in each if one.default is one.empty and one.kind not in _REST):
        raise TypeError("a parameter is not given")
    return bound


def expected(case: Case, wire: str) -> str:
    """What Python makes of it: a result, or the sentence of a refusal; any may be named where values have names."""
    is_call = wire in OF_CALLS
    of = TWINS.get(case.function) or next(one for one in FUNCTIONS if one.__name__ == case.function)
    whole = inspect.signature(of)
    each = whole.parameters.values()
    names = {normalize("NFKC", name): value for name, value in case.given.named}
    # behind a default ``*args`` is one input
    is_open = all(one.default is one.empty for one in each if one.kind is not one.KEYWORD_ONLY)
    rest = next((one.name for one in each if is_open and one.kind is one.VAR_POSITIONAL), "")
    elements = (
        {}
        if wire not in WITH_LABELS or not rest
        else {name: names.pop(name) for name in {*names} - {*whole.parameters}}
    )
    bare = whole
    if not is_call:
        kinds = {one.POSITIONAL_ONLY: one.POSITIONAL_OR_KEYWORD for one in each}
        bare = whole.replace(parameters=[one.replace(kind=kinds.get(one.kind, one.kind)) for one in each])
    try:
        if len(names) + len(elements) < len(case.given.named):
            raise TypeError("a name comes twice")
        bound = as_called(bare, case.given.args, names)
    except TypeError:
        if elements:
            return f"refused: '{case.function}' needs its input '{next(iter(whole.parameters))}', which is not given"
        return f"refused: {(is_call and barred(case, whole)) or case.sentence}"
    if skips := skipped(bound, whole):
        return f"refused: '{case.function}' cannot be given its input '{skips[1]}' without '{skips[0]}'"
    if elements:
        bound.arguments[rest] = tuple(elements.values())
    made = inspect.BoundArguments(whole, bound.arguments)
    streams = [iter(one) if isinstance(one, list) else one for one in made.args]
    return f"served: {of(*streams, **made.kwargs)}"


def barred(case: Case, signature: inspect.Signature) -> str:
    """The refusal of a name of a parameter that Python takes by position only; empty if there is none."""
    each = signature.parameters.values()
    names = [
        name for name, _ in case.given.named if name in [one.name for one in each if one.kind is one.POSITIONAL_ONLY]
    ]
    if not names:
        return ""
    if any(one.kind is one.VAR_KEYWORD for one in each):
        return f"'{case.function}' needs its input '{names[0]}', which is not given"
    return f"'{case.function}' takes its input '{names[0]}' by position only"


def skipped(bound: inspect.BoundArguments, signature: inspect.Signature) -> tuple[str, str] | None:
    """A parameter that is left out, and a later one that is given, where Python takes both by position only."""
    only = [one.name for one in signature.parameters.values() if one.kind is one.POSITIONAL_ONLY]
    out = next((name for name in only if name not in bound.arguments), None)
    later = [
        name for name in only if name in bound.arguments and out is not None and only.index(name) > only.index(out)
    ]
    return (out, later[0]) if out is not None and later else None


def heard(world: World, wire: str, case: Case) -> str | None:
    """What a peer hears; None if it cannot write such a call."""
    try:
        return f"served: {ALL[wire](world, case.function, case.given)}"
    except Refused as error:
        return f"refused: {error}"
    except CannotSay:
        return None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_T037_E076_E077_a_call_is_served_or_refused_alike(world: World, case: Case) -> None:
    """With the result that Python gives, or in one sentence."""
    found = {wire: said for wire in ALL if (said := heard(world, wire, case)) is not None}
    same = {wire: expected(case, wire) for wire in found}
    differ = {wire for wire, said in found.items() if said != same[wire]}
    listed = {wire for wire, what in DIFFERENT if what == str(case)}
    assert {wire: said for wire, said in found.items() if wire not in listed} == {
        wire: said for wire, said in same.items() if wire not in listed
    }
    assert listed <= differ, "it does not differ any more"
