"""Taking callables apart."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pytest

from invoker.author.signature import examine, layers, name_of
from invoker.errors import SpecError


def plain(a: int, b: str = "x") -> bool:
    """Say it."""
    return True


class Called:
    """Called."""

    def __call__(self, x: int) -> int:
        return x


class Static:
    @staticmethod
    def __call__(x: int) -> int:
        return x


def test_layers_lead_to_the_authors_own_function() -> None:
    """Through partials, methods, wrappers and instances."""

    @functools.wraps(plain)
    def wrapper(*args: Any) -> Any:
        return plain(*args)

    assert list(layers(functools.partial(wrapper)))[-1] is plain
    for fn in (Called, Called(), Called().__call__, functools.partial(Called())):
        assert list(layers(fn))[-1] is Called.__call__
    assert list(layers(functools.lru_cache(plain)))[-1] is plain
    assert list(layers(contextlib.contextmanager(plain)))[-1] is plain  # type: ignore[arg-type]


@pytest.mark.parametrize("fn", [Static, Static(), Called, Called()])
def test_self_is_no_parameter(fn: Any) -> None:
    """Nor is it missing where there is none."""
    assert [one.name for one in examine(fn).parameters] == ["x"]


def test_names_and_docs_are_the_authors() -> None:
    """Not those of `functools.partial`."""
    assert name_of(functools.partial(plain)) == "plain"
    assert (name_of(Called()), name_of(Called)) == ("Called", "Called")
    assert examine(functools.partial(plain)).doc == "Say it."
    assert examine(Called()).doc == "Called."


def test_annotations_of_local_names_are_resolved() -> None:
    """Through the closure, where the function mentions them."""

    class Row: ...

    def fn(x: Row) -> Row:
        return Row() if x else x

    assert examine(fn).parameters[0].annotation is Row


def test_what_is_no_type_is_told() -> None:
    """An annotation is any expression."""

    def fn(x: 1 / 0) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(SpecError, match=r"annotation '1 / 0' of parameter 'x' of 'fn' is not a type: division by zero"):
        examine(fn)


def test_what_cannot_be_called_is_told() -> None:
    """With its type."""
    with pytest.raises(SpecError, match="is of type int, which cannot be called"):
        examine(5)


def test_an_abstract_class_is_told_with_what_is_missing() -> None:
    """It could not be instantiated at start."""
    import abc

    class Base(abc.ABC):
        @abc.abstractmethod
        def __call__(self, x: int) -> int: ...

    with pytest.raises(SpecError, match=r"abstract class.*implement __call__"):
        examine(Base)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (any, "has any, which is a function and not a type; write Any, from typing"),
        ("any", "has any, which is a function"),
        (list[any], "has any, which is a function"),
        (iter, "write Iterator"),
        (aiter, "write AsyncIterator"),
        (callable, "write Callable"),
    ],
)
def test_builtin_functions_are_no_types(annotation: Any, text: str) -> None:
    """Neither of a parameter nor of the result; the type that was meant is named."""

    def body(value):  # type: ignore[no-untyped-def]
        return value

    for name, where in (("value", "parameter 'value'"), ("return", "the result")):
        body.__annotations__ = {name: annotation}
        with pytest.raises(SpecError, match=text) as caught:
            examine(body)
        assert caught.value.detail.startswith(f"the annotation of {where} of 'body' has")


def test_what_python_says_of_every_class_is_no_doc() -> None:
    """The class's own words are, and those of its ``__call__``."""

    class Bare:
        def __call__(self, x: int) -> int:
            return x

    class StoreChanged(Bare):
        def __call__(self, x: int) -> int:
            """Say it."""
            return x

    assert [examine(one).doc for one in (Bare, Bare(), StoreChanged())] == ["", "", "Say it."]
