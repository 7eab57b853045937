"""What a tool is told to callers, and which functions can be tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

import pytest

from invoker import Context, Field, Output, function
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.author.reader import read
from invoker.author.spec import FunctionSpec
from invoker.codecs.anyvalue import pack, unpack
from invoker.errors import SpecError
from invoker.protocols import toolbridge
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.tools import Tool, Tools


def told(target: Callable[..., Any], name: str = "") -> pb.ToolSpec:
    """What callers are told of a function."""
    return Tool(read(target, entrypoint=f"mod:{name or target.__name__}")).spec()


def sample(a: int, b: "List[str]" = None, *, mode: Literal["x", "y"] = "x") -> float | None:  # type: ignore[name-defined] # noqa: F821, UP037
    """Do something.

    With more to read.

    Args:
        a: How often.
        mode: Which way.

    Returns:
        The outcome.

    >>> sample(1)
    0.5
    """


def test_T021_a_tool_is_found_by_id_and_by_name() -> None:
    """The id is module:qualname and the name the function's; an id wins over a name (scenario 14)."""

    @function(name="other")
    def one(a: int) -> int:
        return a

    tools = Tools([read(sample, entrypoint="mod:sample"), read(one, entrypoint="mod:one")])
    assert [tools.find(key) is not None for key in ("mod:sample", "sample", "mod:one", "other", "one")] == [
        True
    ] * 4 + [False]
    spec = tools.find("mod:one").spec()
    assert (spec.tool_id, spec.name) == ("mod:one", "other")
    odd = Tools([read(sample, entrypoint="x"), FunctionSpec("x", entrypoint="mod:x")])
    assert odd.find("x").name == "sample"


@pytest.mark.parametrize("name", ["-x", "a b", "é", "a" * 65, "a/b", ""])
def test_T022_a_bad_name_is_refused(name: str) -> None:
    """The error names the function and says what a name may be."""
    with pytest.raises(SpecError, match=r"cannot be the name of a tool: it must be 1 to 64"):
        Tools([FunctionSpec(name)])


def test_T022_a_duplicate_name_is_refused() -> None:
    """Two functions with one name, or with one id, are refused (scenario 13)."""
    with pytest.raises(SpecError, match="two tools are named 'a'"):
        Tools([FunctionSpec("a", entrypoint="m:a"), FunctionSpec("a", entrypoint="m:b")])
    with pytest.raises(SpecError, match="two tools have the id 'm:a'"):
        Tools([FunctionSpec("a", entrypoint="m:a"), FunctionSpec("b", entrypoint="m:a")])
    assert len(Tools([FunctionSpec("a" * 64), FunctionSpec("A.b_c-9")])) == 2


def test_T023_arguments_are_those_of_the_signature() -> None:
    """In order, without the context, *args and **kwargs (scenario 10)."""

    def many(first: int, context: Context, *rest: int, second: str = "", **others: Any) -> int:
        return first

    assert [one.name for one in told(many).arguments] == ["first", "second"]
    assert [one.name for one in told(sample).arguments] == ["a", "b", "mode"]

    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a

    assert [one.name for one in told(Adder(), "Adder").arguments] == ["a"]


def test_T024_defaults_are_told() -> None:
    """A default of None is a packed null, and differs from no default by `required` and by being there."""
    a, b, mode = told(sample).arguments
    assert (a.required, b.required, mode.required) == (True, False, False)
    assert (a.HasField("default_value"), b.HasField("default_value")) == (False, True)
    assert b.default_value.SerializeToString() == pack(None)
    assert unpack(mode.default_value.SerializeToString()) == "x"

    def odd(a: Any = object()) -> int:  # noqa: B008 - that is the point
        return 1

    assert not told(odd).arguments[0].HasField("default_value")


def test_T025_types_are_spelled() -> None:
    """Also those that are written as strings (scenario 10)."""
    spec = told(sample)
    assert [one.python_type for one in spec.arguments] == ["int", "List[str]", "Literal['x', 'y']"]
    assert [one.elixir_type for one in spec.arguments] == ["integer", "[binary]", "binary"]
    assert (spec.return_type.name, spec.return_type.python_type, spec.return_type.elixir_type) == (
        "return",
        "Optional[float]",
        "float | nil",
    )


def test_T027_allowed_values_are_told() -> None:
    """In the order of the declaration."""
    assert list(told(sample).arguments[2].allowed_values) == ["x", "y"]


def test_T028_words_come_from_the_docstring() -> None:
    """The description is the first paragraph; a Field's own words win for its argument."""
    spec = told(sample)
    assert spec.description == "Do something."
    assert [one.description for one in spec.arguments] == ["How often.", "", "Which way."]
    assert spec.return_type.description == "The outcome."

    def worded(a: Annotated[int, Field(description="Mine.")]) -> int:
        """Sum.

        Args:
            a: Not mine.
        """
        return a

    def silent(a: int) -> int:
        return a

    assert told(worded).arguments[0].description == "Mine."
    assert (told(silent).description, told(silent).arguments[0].description) == ("", "")


def items() -> Iterator[int]:
    """Give many."""
    yield 1


async def later(a: int) -> AsyncIterator[str]:
    """Give many, later."""
    yield str(a)


async def once(a: int) -> str:
    """Give one, later."""
    return str(a)


@function(options=[toolbridge.ToolInfo(batch=True)])
def whole(values: list[int]) -> list[int]:
    """Work through many."""
    return values


@function(options=[toolbridge.ToolInfo(tools=("items", "elixir_tool"))])
def calling(context: Context) -> int:
    """Call others."""
    return 1


def test_T029_the_kinds_of_tools() -> None:
    """Generators are STREAMING, flagged ones BATCH, those that name tools COMPOSITE (scenario 12)."""
    kinds = [told(one).type for one in (items, later, once, whole, calling, sample)]
    assert kinds == [pb.STREAMING, pb.STREAMING, pb.STANDARD, pb.BATCH, pb.COMPOSITE, pb.STANDARD]
    assert dict(told(calling).metadata) == {"tools": "items,elixir_tool"}


def test_T030_the_type_of_what_a_generator_gives() -> None:
    """It is that of one element (scenario 12)."""
    assert [told(one).return_type.python_type for one in (items, later, once)] == ["int", "str", "str"]


def test_T031_examples() -> None:
    """They come from the docstring and from the decorator."""

    @function(examples=("twice(2)", "twice(3)"), options=[toolbridge.ToolInfo(cacheable=True)])
    def twice(a: int) -> int:
        """Double.

        >>> twice(2)
        4
        >>> twice(5)
        10
        """
        return 2 * a

    assert list(told(twice).examples) == ["twice(2)", "twice(5)", "twice(3)"]
    assert dict(told(twice).metadata) == {"cacheable": "true"}


@pytest.mark.parametrize("least", [0, 5])
def test_T032_what_is_told_is_what_is_enforced(least: int) -> None:
    """Rules and limits come from one place: a changed decorator changes both."""

    @function(timeout_s=0.5 + least, max_calls=1 + least, calls_per_minute=2 + least, memory_bytes=3 + least)
    def bounded(a: Annotated[int, Field(ge=least)]) -> Annotated[int, Field(le=10 * least)]:
        return max(a, least)

    spec = read(bounded)
    tool = Tool(spec)
    made = tool.spec()
    rules = made.arguments[0].validation
    assert (rules.HasField("min_value"), rules.min_value, rules.HasField("max_value")) == (True, least, False)
    assert (made.limits.timeout_ms, made.limits.max_concurrent_calls) == (500 + 1000 * least, spec.bounds.max_calls)
    assert (made.limits.rate_limit_per_minute, made.limits.max_memory_bytes) == (2 + least, 3 + least)
    tool.bind([pack(least)], {})
    with pytest.raises(BridgeError, match=f"must be at least {least}"):
        tool.bind([pack(least - 1)], {})


def test_T045_a_bound_of_zero_is_there() -> None:
    """An absent bound differs from a bound of 0; exclusive ones are the next number of the type."""

    def zero(
        a: Annotated[int, Field(ge=0)], b: Annotated[int, Field(gt=0)], c: Annotated[str, Field(min_length=0)], d: int
    ) -> int:
        return a

    a, b, c, d = (one.validation for one in told(zero).arguments)
    assert (a.HasField("min_value"), a.min_value, b.min_value) == (True, 0, 1)
    assert (c.HasField("min_length"), c.HasField("max_length")) == (True, False)
    assert d == pb.ValidationRules()
    tool = Tool(read(zero))
    for value, is_right in ((-1, False), (0, True)):
        args = [pack(value), pack(1), pack(""), pack(-1)]
        if is_right:
            tool.bind(args, {})
            continue
        with pytest.raises(BridgeError, match="at least 0"):
            tool.bind(args, {})


def test_T033_tools_are_sorted_by_name() -> None:
    """Whatever the order in the catalogue was."""
    names = ["b", "A", "c", "_a"[1:] + "1"]
    assert [one.name for one in Tools(FunctionSpec(name) for name in names).specs] == sorted(names)


def test_T035_streams_and_several_outputs() -> None:
    """Each stream is an argument that takes a list; several outputs are told as Any."""

    def joined(left: Iterator[int], right: Iterator[str], scale: float = 1) -> Iterator[str]:
        yield ""

    @function(outputs=("even", "odd"))
    def split(numbers: Iterator[int]) -> Iterator[Output]:
        yield Output("even", 2)

    spec = told(joined)
    assert [(one.name, one.python_type) for one in spec.arguments] == [
        ("left", "List[int]"),
        ("right", "List[str]"),
        ("scale", "float"),
    ]
    tool = Tool(read(split))
    assert (tool.outputs, len(tool.accepts), tool.is_stream, tool.spec().return_type.python_type) == (2, 2, True, "Any")


def test_T049_rules_of_the_result() -> None:
    """They are told as the tool's, and a result that breaks them is our error."""

    def ratio(a: int) -> Annotated[float, Field(ge=0, le=1)]:
        return a / 2

    tool = Tool(read(ratio))
    assert (tool.spec().validation.min_value, tool.spec().validation.max_value) == (0, 1)
    assert tool.check is not None
    tool.check(pack(0.5))
    with pytest.raises(BridgeError, match=r"the result of 'ratio' must be 0 to 1, and is 1\.5") as caught:
        tool.check(pack(1.5))
    assert (caught.value.kind, caught.value.details["code"]) == (Kind.INTERNAL, "result_invalid")
    assert Tool(read(sample)).check is None
