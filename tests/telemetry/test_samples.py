"""A call to copy: values that fit the annotations."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import shlex
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray

from invoker.author.prepare import prepare, prepare_function
from invoker.codecs.typed import converter
from invoker.telemetry.samples import call_command, chat_command, near, sample_arguments


class Person(TypedDict):
    """An input with fields."""

    name: str
    age: NotRequired[int]


class Place(NamedTuple):
    """An input with fields that is a tuple."""

    x: int


class Colour(enum.Enum):
    """A choice."""

    RED = "red"


@dataclasses.dataclass
class Order:
    """What cannot be left out."""

    when: dt.datetime
    colour: Colour
    count: Annotated[int, msgspec.Meta(ge=10, le=20)]
    people: list[Person]
    note: str = ""


class Tree(msgspec.Struct, tag="tree"):
    """Holds itself."""

    kids: list[Tree]
    label: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]


class Model(pydantic.BaseModel):
    """Another library's."""

    name: str
    age: int = pydantic.Field(ge=18)
    when: dt.datetime
    colour: Colour


@dataclasses.dataclass
class Picky:
    """Refuses what its annotation allows."""

    n: int

    def __post_init__(self) -> None:
        if self.n != 99:
            raise ValueError("99, please")


@pytest.mark.parametrize(
    "type_",
    [
        Order, Tree, Model, Person, Place, Colour, enum.IntEnum("Level", {"LOW": 3}), dt.datetime, dt.date,
        dt.time, dt.timedelta, uuid.UUID, decimal.Decimal, Literal["a"], tuple[int, str],
        set[dt.date], dict[str, Order], Order | None, pydantic.PositiveInt,
        Annotated[float, msgspec.Meta(gt=0, lt=1)],
        Annotated[int, msgspec.Meta(multiple_of=5)], Annotated[str, msgspec.Meta(min_length=9)],
        Annotated[dt.datetime, msgspec.Meta(tz=False)],
    ],
)  # fmt: skip
def test_R005_every_type_gets_a_value_that_it_takes(type_: Any) -> None:
    """Required fields, choices, times and limits among them."""

    def fn(x: Any) -> Any:
        return x

    fn.__annotations__["x"] = type_
    spec = prepare_function(fn).function.spec
    arguments = sample_arguments(spec)
    assert arguments is not None
    text = shlex.split(arguments)[-1]
    value = json.loads(text) if "--json" in arguments else text
    converter(spec.inputs[0].type, is_lax="--json" not in arguments)(value)


def test_R005_what_takes_no_known_value_gets_no_sample() -> None:
    """A command that fails would be worse."""

    def fn(x: Picky) -> int:
        return x.n

    spec = prepare_function(fn).function.spec
    assert sample_arguments(spec) is None
    assert call_command(spec, "localhost:1", is_one=True) == ""


def test_R005_the_address_is_one_that_leads_there() -> None:
    """localhost where that is listened on, else the address; one of several functions is named."""
    for host, address, shown in (("0.0.0.0", "0.0.0.0:1", "localhost:1"), ("192.0.2.1", "192.0.2.1:1", "192.0.2.1:1")):
        assert near(host, address) == shown
    assert near("::1", "[::1]:1") == "localhost:1"
    spec = prepare("functions.square:square")[0].function.spec
    assert call_command(spec, "h:1", is_one=True) == "call h:1 --data 7"
    assert call_command(spec, "h:1", is_one=False) == "call h:1 --function square --data 7"
    assert chat_command(spec, "h:1") == ""
    chat = prepare("functions.generate:generate")[0].function.spec
    assert chat_command(chat, "h:1") == "chat h:1 --action generate"
    assert call_command(chat, "h:1", is_one=True) == "call h:1 --data 7"


@pytest.mark.parametrize(
    ("type_", "arguments"),
    [
        (int, "--data 7"), (float, "--data 7"), (int | None, "--data 7"),
        (Any, "--json --data 7"), (object, "--json --data 7"), (Iterator[Any], "--json --data 7"),
        (str, "--data hello"), (bytes, "--data hello"), (str | int, "--data hello"), (bool, "--data true"),
        (dict[str, int], """--json --data '{"key": 7}'"""),
        (Person, """--json --data '{"name": "hello"}'"""),
        (list[int], "--json --data '[7]'"),
        (tuple[int, ...], "--json --data '[7]'"), (Iterator[int], "--data 7"), (Iterator[str], "--data hello"),
    ],
)  # fmt: skip
def test_R005_the_value_fits_the_input(type_: Any, arguments: str) -> None:
    """By its annotation."""

    def fn(x: Any) -> Any:
        return x

    fn.__annotations__["x"] = type_
    assert sample_arguments(prepare_function(fn).function.spec) == arguments


@pytest.mark.parametrize(
    ("entrypoint", "arguments"),
    [
        ("functions.ticks:ticks", "--no-input"),
        ("functions.add:add", "--data 7 --arg 1=7"),
        ("functions.repeat:repeat", "--data hello --arg 1=7"),
        ("functions.split:split", "--data 7 --outputs even,odd"),
        ("functions.store:store", """--json --data '{"id": 7, "name": "hello"}' --outputs ''"""),
    ],
)
def test_R005_every_input_and_output_is_asked_for(entrypoint: str, arguments: str) -> None:
    """None, one or several of each."""
    assert sample_arguments(prepare(entrypoint)[0].function.spec) == arguments


def test_R005_a_function_that_needs_a_trigger_is_sent_one() -> None:
    """``--no-input`` would call it not once; without it, ``call`` sends an empty value."""

    def one() -> str:
        return "one"

    spec = prepare_function(one).function.spec
    assert sample_arguments(spec) == ""
    assert call_command(spec, "h:1", is_one=True) == "call h:1"


def test_R005_a_string_beside_a_list_is_json() -> None:
    """One media type serves all inputs."""

    def fn(names: list[str], suffix: str) -> list[str]:
        return [name + suffix for name in names]

    assert sample_arguments(prepare_function(fn).function.spec) == """--json --data '["hello"]' --arg '1="hello"'"""


@pytest.mark.parametrize(
    ("type_", "arguments"),
    [
        (NDArray[np.float32], "[0]"),
        (Annotated[NDArray[np.float32], ("n", None, 2)], "[[[0, 0]]]"),
        (Annotated[NDArray[np.float32], ()], "0"),
        (Annotated[NDArray[np.float32], (28, 28)], "[]"),
        (Annotated[NDArray[np.float32], (0, 2)], "[]"),
        (Annotated[NDArray[np.str_], (2,)], '["hello", "hello"]'),
        (np.ndarray, "[0]"),
    ],
)
def test_R005_arrays_are_lists_of_their_shape(type_: Any, arguments: str) -> None:
    """A small one, where any size is taken."""

    def fn(x: Any) -> Any:
        return x

    fn.__annotations__["x"] = type_
    assert shlex.split(sample_arguments(prepare_function(fn).function.spec))[-1] == arguments
