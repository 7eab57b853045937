"""Functions that give each other values of every kind; `tests.e2e.test_nested_values` serves them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

from invoker import Context, NestedError, function
from invoker.codecs.anyvalue import Opaque

SPAN = dt.timedelta(seconds=1, microseconds=5)
FOREIGN = Opaque("<W>", "W")

PLAIN: dict[str, Any] = {
    "none": None,
    "true": True,
    "zero": 0,
    "small": 7,
    "double": 2**53 + 1,
    "int64": -(2**63),
    "uint64": 2**64 - 1,
    "huge": 2**70,
    "low": -(2**70),
    "float": 1.5,
    "whole": 2.0,
    "nan": math.nan,
    "minus": -0.0,
    "inf": math.inf,
    "empty": "",
    "text": "gr\u00fc\u00dfe \U0001f680",
    "bytes": b"\0\xff",
    "no_bytes": b"",
    "list": [],
    "dict": {},
    "nested": {"a": [1, 2.5, True, None, "x", b"y", 2**53 + 1], "b": {"c": [[]]}},
    "many": [2**70, -1, 2**63],
    "tag": {"@type": "type.googleapis.com/google.protobuf.Int64Value", "value": "7"},
    "moment": dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    "span": SPAN,
    "back": -SPAN,
    "foreign": FOREIGN,
}
"""Kinds of values that every nested call keeps."""

BRIDGED: dict[str, Any] = {
    "spans": [SPAN, {"a": SPAN}],
    "foreigners": [FOREIGN, {"a": FOREIGN}],
    "moments": [dt.datetime(2026, 1, 2, tzinfo=dt.UTC)],
}
"""Those that calls in a session of the tool bridge keep as well; elsewhere MessagePack makes text of what is within."""

VALUES = PLAIN | BRIDGED

BROKEN: dict[str, Any] = {"half": "\ud800", "object": object(), "within": ["x", {"y": object()}]}
"""What no wire has a form for."""


def given(x: Any, is_told: bool = False) -> Any:
    """The value, as a callee has got it, or how Python writes that."""
    return repr(x) if is_told else x


@function
def to_sync(x: Any, is_told: bool = False) -> Any:
    return given(x, is_told)


@function
async def to_async(x: Any, is_told: bool = False) -> Any:
    return given(x, is_told)


@function(isolation="process")
def to_isolated(x: Any, is_told: bool = False) -> Any:
    return given(x, is_told)


@function(isolation="process")
async def to_isolated_async(x: Any, is_told: bool = False) -> Any:
    return given(x, is_told)


@function
def to_stream(xs: Iterator[Any], is_told: bool = False) -> Iterator[Any]:
    for x in xs:
        yield given(x, is_told)


@function
async def to_async_stream(xs: AsyncIterator[Any], is_told: bool = False) -> AsyncIterator[Any]:
    async for x in xs:
        yield given(x, is_told)


def called(callee: str, key: str, how: str, ctx: Context) -> str:
    """What the callee saw, and what came back of it; or why nothing did."""
    x = (VALUES | BROKEN)[key]
    try:
        if how == "stream":
            return f"{next(ctx.stream(callee, iter([x]), True))} {next(ctx.stream(callee, iter([x])))!r}"
        if how == "keyword":
            return f"{ctx.call(callee, x=x, is_told=True)} {ctx.call(callee, x=x)!r}"
        return f"{ctx.call(callee, x, True)} {ctx.call(callee, x)!r}"
    except NestedError as error:
        return f"{error.status.name}: {error.detail}"


async def acalled(callee: str, key: str, how: str, ctx: Context) -> str:
    """The same in an async function."""
    x = (VALUES | BROKEN)[key]
    try:
        if how == "stream":
            seen = [one async for one in ctx.stream(callee, iter([x]), True)]
            back = [one async for one in ctx.stream(callee, iter([x]))]
            return f"{seen[0]} {back[0]!r}"
        if how == "keyword":
            return f"{await ctx.call(callee, x=x, is_told=True)} {await ctx.call(callee, x=x)!r}"
        return f"{await ctx.call(callee, x, True)} {await ctx.call(callee, x)!r}"
    except NestedError as error:
        return f"{error.status.name}: {error.detail}"


@function
def by_sync(callee: str, keys: list[str], how: str, ctx: Context) -> list[str]:
    return [called(callee, key, how, ctx) for key in keys]


@function
async def by_async(callee: str, keys: list[str], how: str, ctx: Context) -> list[str]:
    return [await acalled(callee, key, how, ctx) for key in keys]


@function(isolation="process")
def by_isolated(callee: str, keys: list[str], how: str, ctx: Context) -> list[str]:
    return [called(callee, key, how, ctx) for key in keys]


@function(isolation="process")
async def by_isolated_async(callee: str, keys: list[str], how: str, ctx: Context) -> list[str]:
    return [await acalled(callee, key, how, ctx) for key in keys]
