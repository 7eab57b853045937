"""Arguments by position and by keyword bind to the parameters of a function as Python binds them."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.author.calling import BindError, bound_names
from invoker.author.reader import read
from invoker.author.spec import FunctionSpec
from invoker.context import Context


def spec_of(function: Any) -> FunctionSpec:
    return read(function)


def two(a: int, b: int = 2, *, c: int = 3) -> int:
    return a + b + c


def with_context(a: int, ctx: Context, b: int = 2) -> int:
    return a + b


def many(a: int, *rest: int) -> int:
    return a + sum(rest)


def open_names(a: int, **more: int) -> int:
    return a + sum(more.values())


def first_only(a: int, /, b: int = 1) -> int:
    return a + b


def none() -> int:
    return 1


@pytest.mark.parametrize(
    ("function", "count", "keywords", "names"),
    [
        (two, 1, (), ("a",)),
        (two, 2, ("c",), ("a", "b", "c")),
        (two, 0, ("c", "a"), ("c", "a")),
        (with_context, 2, (), ("a", "b")),
        (many, 3, (), ("a", "#1", "#2")),
        (open_names, 1, ("x",), ("a", "x")),
        (none, 0, (), ()),
    ],
)
def test_arguments_bind(function: Any, count: int, keywords: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert bound_names(spec_of(function), count, keywords) == names


@pytest.mark.parametrize(
    ("function", "count", "keywords", "code", "field"),
    [
        (two, 3, (), "too_many_args", ""),
        (two, 1, ("d",), "unknown_arg", "d"),
        (two, 1, ("a",), "duplicate_arg", "a"),
        (two, 0, ("b",), "missing_arg", "a"),
        (first_only, 0, ("a",), "unknown_arg", "a"),
        (none, 1, (), "too_many_args", ""),
    ],
)
def test_what_python_would_refuse_is_refused(
    function: Any, count: int, keywords: tuple[str, ...], code: str, field: str
) -> None:
    with pytest.raises(BindError) as caught:
        bound_names(spec_of(function), count, keywords)
    assert (caught.value.code, caught.value.field) == (code, field)
