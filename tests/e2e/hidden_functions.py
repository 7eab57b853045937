"""Functions whose names must not be told; `tests.e2e.test_hidden` serves them."""

from __future__ import annotations

from collections.abc import Iterator

from invoker import function


@function
def quince_alpha(x: int) -> int:
    return x


@function
def quince_beta(name: str, times: int = 1) -> str:
    return name * times


@function
def quince_gamma(xs: Iterator[int]) -> Iterator[int]:
    yield from xs
