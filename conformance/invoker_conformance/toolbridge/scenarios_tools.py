"""Descriptions of tools: docs/reference/tool-bridge.md 2.2."""

from __future__ import annotations

import re

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import Failure, scenario
from invoker_conformance.toolbridge.host import Host, names_of
from invoker_conformance.toolbridge.values import value_in

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _is(host: Host, what: str, met: object, expected: object) -> None:
    if met != expected:
        raise host.failure(f"{what} {met!r}", f"{expected!r}")


@scenario("T-033", "T-022", "T-021", function="add")
async def tools_are_listed(host: Host) -> None:
    """The bridge's tools come sorted by name, with names that follow the pattern and different ids."""
    async with host.session() as session:
        tools = await session.tools()
    names = names_of([tool for tool in tools if not tool.name.startswith("callback:")])
    _is(host, "the names", names, sorted(names))
    if bad := [name for name in names if not _NAME.fullmatch(name)]:
        raise host.failure(f"the names {bad}", f"names that match {_NAME.pattern} (T-022)")
    for what in (names, [tool.tool_id for tool in tools]):
        if len(set(what)) != len(what):
            raise host.failure("a tool twice", "each tool once")


@scenario("TT-14", "T-021", function="add")
async def by_id_and_by_name(host: Host) -> None:
    """A tool can be called by its id and by its name."""
    async with host.session() as session:
        tool = await session.tool("add")
        for name in (tool.tool_id, tool.name):
            await session.gives(5, name, 2, 3)
        if not tool.tool_id.endswith(":add"):
            raise host.failure(f"the tool_id {tool.tool_id!r}", "module:qualname")


@scenario("TT-10", "T-023", "T-024", "T-025", "T-026", "T-027", "T-030", function="described")
async def arguments_of_a_tool(host: Host) -> None:
    """A specification has each argument's name, types, default and allowed values, in the signature's order."""
    async with host.session() as session:
        tool = await session.tool("described")
    _is(host, "the arguments", [one.name for one in tool.arguments], ["a", "b", "mode"])
    a, b, mode = tool.arguments
    _is(host, "python_type of a", a.python_type, "int")
    _is(host, "elixir_type of a", a.elixir_type, "integer")
    _is(host, "python_type of b", b.python_type, "Optional[List[str]]")
    _is(host, "elixir_type of b", b.elixir_type, "[binary] | nil")
    _is(host, "allowed_values of mode", list(mode.allowed_values), ["x", "y"])
    _is(host, "required", [one.required for one in tool.arguments], [True, False, False])
    _is(
        host,
        "whether defaults are sent",
        [one.HasField("default_value") for one in tool.arguments],
        [False, True, True],
    )
    _is(host, "the default of b", value_in(b.default_value), None)
    _is(host, "the default of mode", value_in(mode.default_value), "x")
    back = tool.return_type
    told = (back.name, back.python_type, back.elixir_type)
    _is(host, "the return type", told, ("return", "Optional[float]", "float | nil"))


@scenario("TT-11", "T-028", "T-031", function=("described", "add"))
async def texts_of_a_tool(host: Host) -> None:
    """A specification has the docstring's first paragraph, the text of each argument, and the examples."""
    async with host.session() as session:
        tool, other = await session.tool("described"), await session.tool("add")
    _is(host, "the description", tool.description, "What a specification tells of.")
    told = [" ".join(one.description.split()) for one in tool.arguments]
    _is(host, "the texts", told, ["The first of all.", "A list that goes on in a second line.", "One of two."])
    if not any("add(1)" in example for example in other.examples):
        raise host.failure(f"the examples {list(other.examples)}", "the line >>> add(1)")


@scenario("TT-12", "T-029", "T-030", function=("add", "counted", "counted_async"))
async def types_of_tools(host: Host) -> None:
    """Generators are STREAMING, and their return type is the type of their items."""
    async with host.session() as session:
        for name, kind in (("add", pb.STANDARD), ("counted", pb.STREAMING), ("counted_async", pb.STREAMING)):
            tool = await session.tool(name)
            _is(host, f"the type of {name}", tool.type, kind)
            _is(host, f"the return type of {name}", tool.return_type.python_type, "int")


@scenario("T-032", "T-047", function=("ruled", "brief"))
async def told_limits_are_kept(host: Host) -> None:
    """The rules and limits in a specification apply to calls."""
    async with host.session() as session:
        rules = {one.name: one.validation for one in (await session.tool("ruled")).arguments}
        if not rules["number"].HasField("min_value") or rules["number"].min_value != 0:
            raise Failure(str(rules["number"]), "min_value=0 in the description (T-045)")
        _is(host, "max_value", rules["number"].max_value, 10)
        _is(host, "the pattern", rules["text"].pattern, "^a+$")
        _is(host, "the lengths", (rules["word"].min_length, rules["word"].max_length), (2, 3))
        _is(host, "timeout_ms of brief", (await session.tool("brief")).limits.timeout_ms, 500)
