"""How arguments are bound and checked: docs/reference/tool-bridge.md 2.3."""

from __future__ import annotations

import json

from invoker_conformance.scenario import scenario
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.values import packed

_NESTED_TOO_DEEPLY = 65
_TOO_MANY = 1_000_001
_LIST = "google.protobuf.ListValue"


@scenario("T-036", function="add")
async def unknown_tool(host: Host) -> None:
    """A call of an unknown tool, in each form of a call, gets ToolNotFound, which names the tool."""
    async with host.session() as session:
        error = await session.fails("ToolNotFound", "", "nothing_like_this")
        host.details(error, tool_id="nothing_like_this")
        session.is_error((await session.chunks("nothing_like_this"))[-1].error, "ToolNotFound")
        [result] = (await session.batch(("nothing_like_this",))).results
        session.failed(result, "ToolNotFound")


@scenario("TT-17", "T-037", "T-051", function=("add", "marks"))
async def binding(host: Host) -> None:
    """Too many, unknown, repeated and missing arguments each have a code, and the function is not called."""
    watch = await host.watch("add.calls")
    async with host.session() as session:
        await session.fails("ValidationError", "too_many_args", "add", 1, 2, 3)
        await session.fails("ValidationError", "unknown_arg", "add", 1, c=2, field="c")
        await session.fails("ValidationError", "duplicate_arg", "add", 1, a=2, field="a")
        await session.fails("ValidationError", "missing_arg", "add", b=2, field="a")
        await watch.stays("add.calls")
        await session.gives(3, "add", 1)
        await session.gives(4, "add", b=3, a=1)


@scenario("TT-17", "T-038", function="placed")
async def where_arguments_may_stand(host: Host) -> None:
    """A positional-only argument cannot be named, and a keyword-only one cannot be given by position."""
    async with host.session() as session:
        await session.gives([1, 2, 3], "placed", 1, b=2, c=3)
        await session.fails("ValidationError", "", "placed", b=2, a=1)
        await session.fails("ValidationError", "", "placed", 1, 2, 3)


@scenario("TT-15", "TT-16", "T-040", "T-041", "T-105", function="typed")
async def types_are_checked(host: Host) -> None:
    """Arguments are not cast; only a number that keeps its value may change its type."""
    async with host.session() as session:
        await session.gives([1, 2, True, "x", [3]], "typed", 1, 2, True, "x", [3])
        await session.gives([3, 0, False, "", [3]], "typed", number=3.0, items=[3.0])
        wrong = [("number", "1"), ("number", True), ("number", 1.5), ("number", float("nan")), ("number", 2.0**54)]
        wrong += [("number", None), ("flag", 1), ("flag", "true"), ("text", 1), ("text", b"x"), ("ratio", "1")]
        wrong += [("ratio", True), ("items", [3.5]), ("items", ["a"]), ("items", [True]), ("items", 3)]
        for field, value in wrong:
            error = await session.fails("ValidationError", "type", "typed", field=field, **{field: value})
            if not error.details.get("expected") or not error.details.get("actual"):
                raise host.failure(str(dict(error.details)), "details expected and actual")


@scenario("T-050", "T-051", function=("typed", "marks"))
async def all_violations_at_once(host: Host) -> None:
    """The first is the error itself, the others are in its detail violations; the function is not called."""
    watch = await host.watch("typed.calls")
    async with host.session() as session:
        error = await session.fails("ValidationError", "", "typed", number="1", flag=1)
        others = json.loads(error.details.get("violations", "[]"))
        if {error.details.get("field"), *(one.get("field") for one in others)} != {"number", "flag"}:
            raise host.failure(str(dict(error.details)), "one violation of number and one of flag")
    await watch.stays("typed.calls")


@scenario("T-052", function="echo")
async def values_that_cannot_be_read(host: Host) -> None:
    """An unknown type and broken bytes fail only that call, and the error names the argument and the type."""
    number = "google.protobuf.Int64Value"
    async with host.session() as session:
        for bad in (packed("some.Thing", b""), packed(number, b"\xff"), packed("google.protobuf.Struct", b"\x0a\x7f")):
            error = await session.fails("ValidationError", "decode", "echo", value=bad, field="value")
            host.details(error, type_url=bad.type_url)
        await session.gives(1, "echo", 1)


@scenario("TT-23", "T-053", function="echo")
async def values_that_are_too_much(host: Host) -> None:
    """An argument of more than 64 levels, or of more than a million elements, is refused."""
    # An element has 4 bytes; a parser that first makes objects would need some hundred megabytes.
    many = packed(_LIST, b"\x0a\x02\x08\x00" * _TOO_MANY)
    async with host.session() as session:
        for value in (packed(_LIST, _nested(_NESTED_TOO_DEEPLY)), many):
            await session.fails("ValidationError", "too_complex", "echo", value)
        await session.gives([[1]], "echo", [[1]])


@scenario("TT-19", "TT-20", "T-042", "T-044", "T-045", "T-046", "T-047", function="ruled")
async def rules_of_arguments(host: Host) -> None:
    """Patterns, ranges and lengths are checked; the bounds themselves are allowed."""
    async with host.session() as session:
        for fine in ({"number": 0}, {"number": 10}, {"ratio": -1.5}, {"text": "aa"}, {"word": "éé"}, {"part": "xaby"}):
            await session.value("ruled", **fine)
        for code, bad in (
            ("range", {"number": -1}),
            ("range", {"number": 11}),
            ("range", {"ratio": float("nan")}),
            ("pattern", {"text": "b"}),
            ("pattern", {"part": "ba"}),
            ("length", {"word": "a"}),
            ("length", {"word": "abcd"}),
        ):
            [field] = bad
            await session.fails("ValidationError", code, "ruled", field=field, **bad)


@scenario("TT-22", "T-047", "T-027", function="described")
async def allowed_values(host: Host) -> None:
    """A value that is not among the allowed ones is refused, with their list."""
    async with host.session() as session:
        await session.gives(None, "described", 1, mode="y")
        error = await session.fails("ValidationError", "allowed_values", "described", 1, mode="z", field="mode")
        if "x" not in error.details.get("allowed", ""):
            raise host.failure(str(dict(error.details)), "details allowed, with x and y")


@scenario("TT-18", "T-043", function="ruled")
async def long_inputs_of_patterns(host: Host) -> None:
    """A text of up to 65,536 characters is checked against a pattern; a longer one is refused."""
    async with host.session() as session:
        await session.value("ruled", text="a" * 65_536)
        await session.fails("ValidationError", "pattern_input_too_long", "ruled", text="a" * 65_537)


@scenario("TT-21", "T-048", function="ruled")
async def custom_rules(host: Host) -> None:
    """An argument that breaks a custom rule is refused, and the error names the rule."""
    async with host.session() as session:
        await session.value("ruled", items=[1, 2])
        error = await session.fails("ValidationError", "custom_rule", "ruled", items=[1, 1], field="items")
        host.details(error, rule="unique_items")


def _nested(levels: int) -> bytes:
    """Make a ListValue nested to this depth; it is assembled here, since protobuf writes at most 50 levels."""
    within = b""
    for _ in range(levels):
        value = b"\x32" + _varint(len(within)) + within  # Value.list_value
        within = b"\x0a" + _varint(len(value)) + value  # ListValue.values
    return within


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)
