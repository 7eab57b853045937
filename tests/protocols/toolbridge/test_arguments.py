"""Arguments of tools: bound as Python binds them, decoded, converted, checked; all that is wrong is told together."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest

from invoker import Context, Field, Message
from invoker.author.reader import read
from invoker.codecs.anyvalue import ANY, Known, pack
from invoker.protocols.toolbridge.arguments import Arguments, Binding
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from tests.protocols.toolbridge.calling import called


class Colour(enum.Enum):
    """An enum of ints."""

    RED = 1
    BLUE = 2


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: Annotated[int, Field(ge=0)] = 0


def bind(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Binding:
    """Bind values to a function."""
    packed = {name: pack(value) for name, value in kwargs.items()}
    return Arguments(read(function)).bind([pack(one) for one in args], packed)


def refused(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Mapping[str, str]:
    """The details of the error that refuses the arguments."""
    with pytest.raises(BridgeError) as caught:
        bind(function, *args, **kwargs)
    assert caught.value.kind is Kind.VALIDATION
    return {**caught.value.details, "message": caught.value.detail}


def plain(a: int, b: str = "x") -> str:
    """One that is required, one with a default."""
    return b * a


def strict(a: int, /, b: int = 0, *, c: int = 0) -> list[int]:
    """Each kind of parameter."""
    return [a, b, c]


def rest(a: int, *more: int) -> list[int]:
    """Any number by position."""
    return [a, *more]


def others(a: int = 0, **more: int) -> dict[str, int]:
    """Any name."""
    return {"a": a, **more}


def both(a: int, /, *more: int, **names: int) -> list[Any]:
    """Any number and any name, also that of the parameter."""
    return [a, list(more), names]


def injected(context: Context, a: int, **more: int) -> list[Any]:
    """The context is no argument."""
    return [context is not None, a, more]


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "result"),
    [
        (plain, (2,), {}, "xx"),
        (plain, (2, "y"), {}, "yy"),
        (plain, (2,), {"b": "y"}, "yy"),
        (plain, (), {"b": "y", "a": 2}, "yy"),
        (strict, (1, 2), {"c": 3}, [1, 2, 3]),
        (strict, (1,), {"c": 3, "b": 2}, [1, 2, 3]),
        (rest, (1,), {}, [1]),
        (rest, (1, 2, 3), {}, [1, 2, 3]),
        (others, (), {}, {"a": 0}),
        (others, (5,), {"b": 6}, {"a": 5, "b": 6}),
        (both, (1, 2), {"a": 3, "z": 4}, [1, [2], {"a": 3, "z": 4}]),
        (both, (1,), {"z": 4}, [1, [], {"z": 4}]),
        (injected, (1,), {"b": 2}, [True, 1, {"b": 2}]),
    ],
)
def test_T037_arguments_bind_like_a_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> None:
    """The function gets what Python would give it."""
    assert called(function, *args, **kwargs) == result


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "code", "field", "words"),
    [
        (plain, (1, "a", 2), {}, "too_many_args", None, "takes 2 inputs by position, and 3 are given"),
        (plain, (1,), {"c": 2}, "unknown_arg", "c", "'plain' has no input 'c'; it has a, b"),
        (plain, (1,), {"a": 2}, "duplicate_arg", "a", "'plain' is given its input 'a' twice"),
        (plain, (), {"b": "x"}, "missing_arg", "a", "needs its input 'a'"),
        (plain, (1,), {"bb": "y"}, "unknown_arg", "bb", "did you mean 'b'?"),
        (injected, (1,), {"context": 2}, "unknown_arg", "context", "no input 'context'"),
    ],
)
def test_T037_what_does_not_bind(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    code: str,
    field: str | None,
    words: str,
) -> None:
    """Too many, unknown, twice and missing have a code and the name of the argument (scenario 17)."""
    details = refused(function, *args, **kwargs)
    assert (details["code"], details.get("field")) == (code, field)
    assert words in details["message"]


def test_T038_kinds_of_parameters_are_kept() -> None:
    """A positional-only parameter is not given by name, a keyword-only one not by position."""
    details = refused(strict, a=1)
    assert (details["code"], details["field"]) == ("unknown_arg", "a")
    assert "by position only" in details["message"]
    assert refused(strict, 1, 2, 3)["code"] == "too_many_args"


def test_T039_further_names_only_where_the_function_takes_them() -> None:
    """`**kwargs` takes any name, with the type of its annotation."""
    assert called(others, b=1) == {"a": 0, "b": 1}
    assert refused(others, b="x")["code"] == "type"
    assert refused(plain, 1, z=1)["code"] == "unknown_arg"


def typed(
    number: int = 0,
    real: float = 0,
    flag: bool = False,
    text: str = "",
    maybe: int | None = None,
    many: list[int] | None = None,
    point: Point | None = None,
) -> list[Any]:
    """One of each type."""
    return [number, real, flag, text, maybe, many, point]


@pytest.mark.parametrize(
    ("name", "value", "actual"),
    [
        ("number", True, "bool"), ("number", "3", "str"), ("number", 3.5, "float"), ("number", None, "None"),
        ("number", float("nan"), "float"), ("number", 2.0**53 + 2, "float"), ("number", [1], "list"),
        ("real", "1", "str"), ("real", True, "bool"), ("flag", 1, "int"), ("flag", "true", "str"), ("text", 1, "int"),
        ("text", b"x", "bytes"), ("maybe", 1.5, "float"), ("many", [1, 3.5], "list"), ("many", [True], "list"),
        ("point", {"y": 1}, "dict"), ("point", {"x": 1, "y": -1}, "dict"),
    ],
)  # fmt: skip
def test_T041_nothing_is_cast(name: str, value: Any, actual: str) -> None:
    """The error names what was expected and what came (scenarios 15, 16)."""
    details = refused(typed, **{name: value})
    assert (details["code"], details["field"], details["actual"]) == ("type", name, actual)
    assert details["expected"]


def test_T040_lossless_numbers_pass() -> None:
    """An int is a float, and an integral double is an int, also within a list."""
    assert called(typed, number=3.0, real=2, maybe=4.0, many=[3.0, 4], point={"x": 1.0, "y": 2}) == [
        *(3, 2.0, False, "", 4, [3, 4]),
        {"x": 1, "y": 2},
    ]


def limited(
    number: Annotated[int, Field(ge=0, le=9)] = 5,
    name: Annotated[str, Field(pattern="b+", min_length=2, max_length=4)] = "abc",
    data: Annotated[bytes, Field(max_length=3)] = b"",
    items: Annotated[list[int], Field(min_length=1, rules="unique_items")] = [1],  # noqa: B006 - never changed
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    mode: Literal["fast", 7, True] = "fast",
    colour: Colour = Colour.RED,
    maybe: Annotated[int | None, Field(ge=1)] = None,
) -> str:
    """One of each rule."""
    return f"{number} {name} {data!r} {items} {ratio} {mode} {colour} {maybe}"


@pytest.mark.parametrize(
    ("kwargs", "code", "words"),
    [
        ({"number": -1}, "range", "must be 0 to 9, and is -1"),
        ({"number": 10}, "range", "0 to 9"),
        ({"maybe": 0}, "range", "at least 1"),
        ({"ratio": 0.0}, "range", "and is 0.0"),
        ({"ratio": 1.0}, "range", "and is 1.0"),
        ({"ratio": float("nan")}, "range", "and is nan"),
        ({"name": "b"}, "length", "must have 2 to 4 characters, and has 1"),
        ({"name": "\U0001f600bbbb"}, "length", "and has 5"),
        ({"name": "aaa"}, "pattern", "must match the pattern 'b+'"),
        ({"data": b"1234"}, "length", "at most 3 bytes"),
        ({"items": []}, "length", "at least 1 items"),
        ({"items": [1, 1]}, "custom_rule", "breaks the rule 'unique_items'"),
        ({"mode": "slow"}, "allowed_values", "must be one of fast, 7, true"),
        ({"colour": 3}, "allowed_values", "must be one of 1, 2"),
        ({"mode": "7"}, "type", "must be Literal"),
    ],
)
def test_T044_rules_of_the_annotations(kwargs: dict[str, Any], code: str, words: str) -> None:
    """T-042 to T-048: each rule has its code, and its text says what was expected and met (scenarios 19, 20)."""
    details = refused(limited, **kwargs)
    assert (details["code"], details["field"]) == (code, next(iter(kwargs)))
    assert words in details["message"]


@pytest.mark.parametrize(
    "kwargs",
    [
        {"number": 0}, {"number": 9}, {"name": "abbc"}, {"name": "bb"}, {"data": b"123"}, {"items": [1, 2]},
        {"ratio": 0.999}, {"mode": 7}, {"mode": True}, {"colour": 2}, {"maybe": None}, {"maybe": 1},
    ],
)  # fmt: skip
def test_T044_what_the_rules_allow(kwargs: dict[str, Any]) -> None:
    """Bounds are inclusive, a pattern matches anywhere, and None of an Optional breaks no rule."""
    assert called(limited, **kwargs)


def test_T043_the_input_of_a_pattern_is_bounded() -> None:
    """65 536 characters are matched and 65 537 are refused without a match (scenario 18)."""

    def slow(text: Annotated[str, Field(pattern="^a+$")]) -> int:
        return len(text)

    assert called(slow, "a" * 65_536) == 65_536
    assert refused(slow, "a" * 65_536 + "b")["code"] == "pattern_input_too_long"


class Named(TypedDict):
    name: Annotated[str, Field(pattern="a+$")]


@pytest.mark.parametrize(
    ("type_", "put"),
    [
        (list[Annotated[str, Field(pattern="a+$")]], lambda text: [text]),
        (dict[str, list[Annotated[str, Field(pattern="a+$", max_length=100_000)]]], lambda text: {"x": [text]}),
        (Named, lambda text: {"name": text}),
    ],
)
def test_T043_so_is_that_of_a_pattern_deeper_within_an_annotation(type_: Any, put: Any) -> None:
    """It would be matched for longer than anybody waits; the first level has the bounds that its author gave."""

    def slow(value: Any) -> int:
        return len(value)

    slow.__annotations__["value"] = type_
    assert called(slow, put("a" * 20)) == 1
    details = refused(slow, put("a" * 65_536 + "b"))
    assert details["code"] == "type"


@pytest.mark.parametrize(
    ("right", "wrong", "unit"),
    [
        ("\U0001f600\u00e4", "e\u0301\u0301", "characters"),
        (b"\xc3\xa4", b"\xc3\xa4\xc3", "bytes"),
        ([1, 2], [1, 2, 3], "items"),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, "items"),
    ],
)
def test_T046_what_a_length_counts(right: Any, wrong: Any, unit: str) -> None:
    """Code points of text, bytes, and items of lists and dicts."""

    def two(value: Annotated[str | bytes | list[int] | dict[str, int], Field(min_length=2, max_length=2)]) -> int:
        return len(value)

    assert called(two, right) == 2
    details = refused(two, wrong)
    assert (details["code"], details["expected"], details["actual"]) == ("length", f"2 {unit}", "3")


def test_T047_allowed_values_are_told() -> None:
    """The details list them in the order of the declaration, bools as true and false (scenario 22)."""
    assert json.loads(refused(limited, mode="slow")["allowed"]) == ["fast", "7", "true"]
    assert called(limited, colour=2).endswith("Colour.BLUE None")


def test_T048_a_rule_that_raises_is_a_failure_of_the_rule() -> None:
    """The text names the class of the exception, and other rules are still checked (scenario 21)."""
    from invoker import rule

    @rule("test_divides")
    def divides(value: int) -> bool:
        return 12 % value == 0

    def share(number: Annotated[int, Field(rules=("test_divides", "non_negative"))]) -> int:
        return 12 // number

    assert called(share, 4) == 3
    details = refused(share, 0)
    assert (details["code"], details["rule"]) == ("custom_rule", "test_divides")
    assert "(ZeroDivisionError)" in details["message"]
    details = refused(share, -5)
    assert json.loads(details["violations"])[0]["rule"] == "non_negative"


def test_T050_all_violations_are_told_together() -> None:
    """The first is the message, the others are JSON; nothing is lost and nothing comes twice."""
    details = refused(limited, -1, "aaaaa", b"", z=1, mode="slow")
    assert (details["code"], details["field"]) == ("unknown_arg", "z")
    told = [(one["code"], one["field"]) for one in json.loads(details["violations"])]
    assert told == [("range", "number"), ("length", "name"), ("pattern", "name"), ("allowed_values", "mode")]


def test_T052_an_argument_that_cannot_be_decoded() -> None:
    """The error has the field and the type URL, and other arguments are still checked."""
    broken = b"\n\x07x/Thing"
    with pytest.raises(BridgeError) as caught:
        Arguments(read(plain)).bind([broken], {"b": pack(1)})
    details = caught.value.details
    assert (details["code"], details["field"], details["type_url"]) == ("decode", "a", "x/Thing")
    assert json.loads(details["violations"])[0]["code"] == "type"


def test_T053_an_argument_that_is_too_complex() -> None:
    """The code tells it from one that is broken."""
    value: Any = []
    for _ in range(63):
        value = [value]

    def take(value: Any) -> int:
        return len(value)

    assert called(take, value) == 1
    deep = _deeper(pack(value))
    with pytest.raises(BridgeError) as caught:
        Arguments(read(take)).bind([deep], {})
    assert (caught.value.details["code"], caught.value.details["field"]) == ("too_complex", "value")


def _deeper(data: bytes) -> bytes:
    """The Any of a list with one list more around it."""
    from google.protobuf import any_pb2

    def sized(content: bytes) -> bytes:
        size, made = len(content), bytearray()
        while size > 127:
            made.append(size & 127 | 128)
            size >>= 7
        return bytes((*made, size)) + content

    found = any_pb2.Any.FromString(data)
    found.value = b"\n" + sized(b"\x32" + sized(found.value))
    return found.SerializeToString()


def test_D10_a_list_becomes_the_items_of_a_stream() -> None:
    """A parameter that is a stream takes a list, item by item, or one value (T-035)."""

    def total(numbers: Iterator[int], scale: int = 1) -> Iterator[int]:
        yield sum(numbers) * scale

    assert called(total, [1, 2, 3]) == [6]
    assert called(total, 5, scale=2) == [10]
    assert called(total, []) == [0]
    details = refused(total, [1, "x"])
    assert (details["code"], details["field"]) == ("type", "numbers[1]")


def test_what_was_decoded_is_known_to_the_input() -> None:
    """The payload carries the value, so the codec of the function gives that object and decodes nothing."""
    bound = bind(typed, point={"x": 1})
    payload = bound.feeds[0][1].payload
    assert isinstance(payload, Known)
    assert (bound.names, bound.feeds[0][1].media_type) == (("point",), ANY)
    assert payload.value == Point(1)


def test_functions_that_take_messages_or_nothing() -> None:
    """A Message is validated by its payload's type; a function without parameters takes no argument."""

    def about(one: Message[int]) -> str:
        return f"{one.payload} {one.media_type}"

    def nothing() -> int:
        return 7

    assert called(about, 5) == f"5 {ANY}"
    assert refused(about, "x")["code"] == "type"
    assert called(nothing) == 7
    assert refused(nothing, 1)["message"] == "'nothing' takes no input by position, and 1 are given"
