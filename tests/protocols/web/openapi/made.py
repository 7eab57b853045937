"""The document of some functions, for the tests of its parts."""

from __future__ import annotations

from functools import cache
from typing import Any

from invoker.author.described import Described, described
from invoker.author.lift import lift
from invoker.author.prepare import prepare
from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.protocols.web.service.functions import openapi_of

CATALOGUE = "tests.e2e.described_functions"


def told(function: Any) -> Described:
    """What callers are told of a function."""
    return described(read(function))


def document(*functions: Any) -> dict[str, Any]:
    """The document of these functions."""
    return openapi_of(Engine(Catalog([lift(one, read(one)) for one in functions]), builtin(arrays=True)))


def post(function: Any) -> dict[str, Any]:
    """The operation that calls a function."""
    made = document(function)
    operation: dict[str, Any] = next(iter(made["paths"].values()))["post"]
    return operation


@cache
def catalogue() -> dict[str, Any]:
    """The document of `tests.e2e.described_functions`."""
    return openapi_of(Engine(Catalog([one.function for one in prepare(CATALOGUE)]), builtin(arrays=True)))
