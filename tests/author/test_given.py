"""Options that were given are passed; the others keep their defaults (R-164, R-167)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest

from invoker.author.lift import Function
from invoker.author.prepare import prepare_function
from invoker.context import Context
from invoker.errors import ProtocolViolation


def scale(x: int, factor: int = 2, *, shift: int = 0) -> int:
    return x * factor + shift


def greet(name: str = "world", mark: str = "!") -> str:
    return f"hello {name}{mark}"


def gen(words: Iterator[str], sep: str = ",", most: int = 9) -> Iterator[str]:
    yield f"{sep}{most}"
    yield from words


def source(first: str = "a", second: str = "b") -> Iterator[str]:
    yield first + second


def positional(x: int, y: int = 1, z: int = 2, /) -> tuple[int, int, int]:
    return x, y, z


def stream(xs: Iterator[int] = (), start: int = 0) -> Iterator[int]:  # type: ignore[assignment]
    yield start + sum(xs)


def seen(x: int, k: int = 1, n: int = 2, *, ctx: Context) -> Iterator[str]:
    yield f"{len(ctx.inputs)} {list(ctx.inputs['n'])}"


def lifted(function: Any, *names: str) -> Function:
    return prepare_function(function).function.with_options(names)


def run(function: Any, *inputs: Iterable[Any], names: tuple[str, ...] = ()) -> list[Any]:
    (values,) = lifted(function, *names).open([iter(one) for one in inputs], Context(input_names=names))
    return list(values)


async def arun(function: Any, *inputs: Iterable[Any], names: tuple[str, ...] = ()) -> list[Any]:
    async def each(values: Iterable[Any]) -> AsyncIterator[Any]:
        for value in values:
            yield value

    (values,) = await lifted(function, *names).open_async([each(one) for one in inputs], Context(input_names=names))
    return [value async for value in values]


def test_R164_only_what_was_given_is_passed():
    """Each of the other options keeps its default."""
    assert run(scale, [1, 2], [], []) == [2, 4]
    assert run(scale, [1, 2], [10], []) == [10, 20]
    assert run(scale, [1, 2], [], [5]) == [7, 9]
    assert run(scale, [1], [3], [4]) == [7]


def test_R165_an_announced_option_is_the_input_of_its_name():
    """In the order of the names, whatever that of the signature is."""
    assert run(scale, [1, 2], [5], names=("in", "shift")) == [7, 9]
    assert run(scale, [1, 2], [5], [3], names=("in", "shift", "factor")) == [8, 11]


def test_R167_the_first_of_parameters_that_all_have_defaults_is_mapped():
    """The rest is the same for each call; nothing means one call, with the options that were given."""
    assert run(greet, ["Bob", "Ann"], ["?"]) == ["hello Bob?", "hello Ann?"]
    assert run(greet, [], []) == ["hello world!"]
    assert run(greet, [], ["?"]) == ["hello world?"]
    assert run(source, [], ["x"]) == ["ax"]


def test_R167_options_of_a_stream_are_values():
    """A generator is handed its stream as it is."""
    assert run(gen, ["a", "b"], ["+"], []) == ["+9", "a", "b"]
    assert run(gen, [], [], [3]) == [",3"]


def test_R167_a_stream_may_have_a_default():
    """It is an input all the same, and an empty one if nothing came."""
    assert run(stream, [1, 2], [10]) == [13]
    assert run(stream, [], []) == [0]


def test_R164_what_cannot_be_passed_alone_is_refused():
    """A positional-only parameter cannot be given without the one before it."""
    assert run(positional, [1], [5], [6]) == [(1, 5, 6)]
    with pytest.raises(ProtocolViolation, match="'positional' cannot be given its input 'z' without 'y'"):
        run(positional, [1], [], [6])


def test_R164_a_context_knows_the_inputs_that_were_given():
    """By the names that the caller sent."""
    assert run(seen, [1], [], [7], names=("in", "k", "n")) == ["2 []"]


async def test_R164_async_functions_are_given_their_options_too():
    """Mapped, streaming, and with defaults alone."""

    async def ascale(x: int, factor: int = 2, *, shift: int = 0) -> int:
        return x * factor + shift

    async def agreet(name: str = "world", mark: str = "!") -> str:
        return f"hello {name}{mark}"

    async def agen(words: AsyncIterator[str], sep: str = ",") -> AsyncIterator[str]:
        yield sep
        async for word in words:
            yield word

    assert await arun(ascale, [1, 2], [10], []) == [10, 20]
    assert await arun(ascale, [1, 2], [], [5]) == [7, 9]
    assert await arun(agreet, ["Bob", "Ann"], ["?"]) == ["hello Bob?", "hello Ann?"]
    assert await arun(agreet, [], ["?"]) == ["hello world?"]
    assert await arun(agen, ["a"], ["+"]) == ["+", "a"]


def test_a_function_whose_options_were_not_given_runs_as_it_is():
    """No iterator stands between it and its input."""
    function = prepare_function(scale).function
    assert function.with_options(("anything",)) is function
    bound = function.with_options(())
    assert bound.binding(("x",)) is not bound


def cat(*parts: Iterator[str], sep: str = ",", end: str = "") -> Iterator[str]:
    yield sep.join("".join(part) for part in parts) + end


def test_R165_a_function_of_any_number_of_inputs_has_its_options_by_name():
    """Every other name is a label; without an option nothing changes."""
    assert run(cat, ["a"], ["b"], ["c"], ["+"], names=("x", "y", "z", "sep")) == ["a+b+c"]
    assert run(cat, ["a"], ["!"], ["b"], names=("x", "end", "x")) == ["a,b!"]
    assert run(cat, ["a"], [], names=("x", "sep")) == ["a"]
    assert run(cat, ["a"], ["b"], names=("sep", "y")) == ["a,b"]
    function = prepare_function(cat).function
    assert function.with_options(("x", "y")) is function
    with pytest.raises(ProtocolViolation, match="is given its input 'sep' twice"):
        function.with_options(("x", "sep", "sep"))


def test_E075_binding_a_function_of_any_number_passes_its_options_by_keyword():
    """Every other name is one of ``*args``, in their order."""
    function = prepare_function(cat).function.binding(("b", "sep", "a"))
    (values,) = function.open([iter(one) for one in (["1"], ["+"], ["2"])], Context())
    assert list(values) == ["1+2"]


async def test_R011_options_leave_no_async_generator_behind():
    """The loop would make a task to close each one that is dropped before its end."""

    async def ascale(x: int, factor: int = 2) -> int:
        return x * factor

    async def agreet(name: str = "world", mark: str = "!") -> str:
        return f"hello {name}{mark}"

    met: list[Any] = []
    hooks = sys.get_asyncgen_hooks()
    assert hooks.firstiter is not None
    sys.set_asyncgen_hooks(lambda one: met.append(one.__qualname__))
    try:
        assert await arun(ascale, [1, 2], [10]) == [10, 20]
        assert await arun(agreet, ["Bob"], ["?"]) == ["hello Bob?"]
    finally:
        sys.set_asyncgen_hooks(*hooks)
    assert [name for name in met if "_each_async" not in name and "_zip_async" not in name and "arun" not in name] == []
