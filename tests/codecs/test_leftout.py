"""`invoker.codecs.leftout`: every form of class, decoded by every codec, has the fields that were not sent."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from invoker.codecs.anyvalue import ANY
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.leftout import complete, completed, completing, is_incomplete
from invoker.codecs.typed import converter
from invoker.errors import EncodeError
from tests.codecs.wire import FORM, JSON, MSGPACK, decode, encode
from tests.conftest import case_name

T = TypeVar("T")


@dataclass
class Plain:
    """The class of the fault."""

    name: str
    retries: int = 3


@dataclass(frozen=True)
class Frozen:
    """Nothing can be set from outside."""

    name: str
    retries: int = 3


@dataclass
class Inherited(Plain):
    """The default stands in the base."""

    more: str = "m"


@dataclass
class Overridden(Inherited):
    """The default of the base is another one here."""

    retries: int = 4


@dataclass(kw_only=True, order=True)
class Keyword:
    """Fields with defaults stand before the others."""

    retries: int = 3
    name: str


@dataclass
class Counting:
    """What runs behind the constructor may set a field."""

    name: str
    retries: int = 3

    def __post_init__(self) -> None:
        self.retries += 1


@dataclass
class Unasked:
    """A field that nobody can send."""

    name: str
    retries: int = field(default=3, init=False)
    made: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    """A slot has the value itself."""

    name: str
    retries: int = 3


@dataclass
class Behind(Slotted):
    """A field of a slot, and one of the dictionary."""

    more: str = "m"


@dataclass
class Boxed(Generic[T]):
    """A generic class."""

    name: str
    retries: int = 3
    item: T | None = None


@dataclass
class Nested:
    """Classes within a class."""

    name: str
    retries: int = 3
    first: Plain = field(default_factory=lambda: Plain("f"))
    rest: list[Frozen] = field(default_factory=list)
    by_name: dict[str, Plain] = field(default_factory=dict)
    pair: tuple[Plain, int] | None = None
    again: Nested | None = None


class Struct(msgspec.Struct):
    """A class of msgspec's."""

    name: str
    retries: int = 3
    inner: Plain | None = None


class Keys(TypedDict):
    """A dict with an instance in it."""

    name: str
    inner: Plain


class Row(NamedTuple):
    """A tuple with an instance in it."""

    name: str
    inner: Plain


@attrs.define(slots=False)
class Attrs:
    """A class of attrs."""

    name: str
    retries: int = 3
    inner: Plain | None = None


@pydantic.dataclasses.dataclass
class PydanticDataclass:
    """A dataclass that pydantic makes."""

    name: str
    retries: int = 3


class Model(pydantic.BaseModel):
    """A model with a dataclass in it."""

    name: str
    retries: int = 3
    inner: Plain | None = None


FORMS: list[Any] = [
    Plain, Frozen, Inherited, Overridden, Keyword, Counting, Unasked, Slotted, Behind, Boxed, Boxed[Plain], Nested,
    PydanticDataclass,
]  # fmt: skip
"""Dataclasses, which are made of a name."""

INNER = {"name": "b"}
WITHIN: list[tuple[Any, Any, Callable[[Any], Any]]] = [
    (list[Plain], [INNER], lambda made: made[0]),
    (tuple[Plain, ...], [INNER], lambda made: made[0]),
    (set[Frozen], [INNER], lambda made: next(iter(made))),
    (frozenset[Frozen], [INNER], lambda made: next(iter(made))),
    (dict[str, list[Plain]], {"k": [INNER]}, lambda made: made["k"][0]),
    (Plain | None, INNER, lambda made: made),
    (Plain | Inherited, INNER, lambda made: made),
    (list[Plain] | int, [INNER], lambda made: made[0]),
    (Annotated[Plain, "words"], INNER, lambda made: made),
    (Struct, {"name": "a", "inner": INNER}, lambda made: made.inner),
    (Attrs, {"name": "a", "inner": INNER}, lambda made: made.inner),
    (Keys, {"name": "a", "inner": INNER}, lambda made: made["inner"]),
    (Row, ["a", INNER], lambda made: made.inner),
    (Model, {"name": "a", "inner": INNER}, lambda made: made.inner),
    (list[Model], [{"name": "a", "inner": INNER}], lambda made: made[0].inner),
    (Boxed[Plain], {"name": "a", "item": INNER}, lambda made: made.item),
    (Boxed[list[Plain]], {"name": "a", "item": [INNER]}, lambda made: made.item[0]),
    (Nested, {"name": "a", "first": INNER}, lambda made: made.first),
    (Nested, {"name": "a", "rest": [INNER]}, lambda made: made.rest[0]),
    (Nested, {"name": "a", "by_name": {"k": INNER}}, lambda made: made.by_name["k"]),
    (Nested, {"name": "a", "pair": [INNER, 1]}, lambda made: made.pair[0]),
    (Nested, {"name": "a", "again": {"name": "c", "first": INNER}}, lambda made: made.again.first),
]  # fmt: skip

WIRES: dict[str, Callable[[Any, Any], Any]] = {
    "json": lambda type_, value: decode(JSON, json.dumps(value).encode(), type_),
    "json in UTF-16": lambda type_, value: decode(f"{JSON}; charset=utf-16", json.dumps(value).encode("utf-16"), type_),
    "large json": lambda type_, value: decode(JSON, json.dumps(value).encode() + b" " * 20_000, type_),
    "marked json": lambda type_, value: decode(JSON, b"\xef\xbb\xbf" + json.dumps(value).encode(), type_),
    "+json": lambda type_, value: decode("application/vnd.x+json", json.dumps(value).encode(), type_),
    "msgpack": lambda type_, value: decode(MSGPACK, msgspec.msgpack.encode(value), type_),
    "any": lambda type_, value: decode(ANY, pack(value), type_),
    "plain values": lambda type_, value: converter(type_)(value),
    "lax values": lambda type_, value: converter(type_, is_lax=True)(value),
}


def whole(made: Any) -> None:
    """Every field is in the instance, whoever looks."""
    names = {one.name for one in dataclasses.fields(made)}
    expected = dataclasses.asdict(made)
    assert set(expected) == names
    if hasattr(made, "__dict__") and not isinstance(made, Slotted):
        assert vars(made).keys() >= names
    plain = msgspec.to_builtins(expected)
    for accept in (JSON, MSGPACK, ANY):
        media_type, payload = encode(accept, made)
        assert decode(media_type, payload) == plain, accept
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("form", FORMS, ids=case_name)
def test_fields_that_are_not_sent_are_there(form: Any, wire: str) -> None:
    """The instance is the one that the constructor makes, in all that copies, pickles or encodes it."""
    made = WIRES[wire](form, {"name": "a"})
    assert made == form(name="a")
    if not isinstance(made, Slotted):
        shown = vars(form(name="a"))
        shown.pop("__orig_class__", None)
        assert vars(made) == shown | ({"retries": 3} if form is Unasked else {})
    whole(made)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("type_", "value", "find"), WITHIN, ids=case_name)
def test_fields_are_there_wherever_the_instance_is(type_: Any, value: Any, find: Any, wire: str) -> None:
    """In lists, dicts, tuples, sets, unions and classes of every library."""
    found = find(WIRES[wire](type_, value))
    assert vars(found)["retries"] == 3
    whole(found)


def test_a_form_that_leaves_out_a_field() -> None:
    """Forms of HTML become dataclasses, too."""
    made = decode(FORM, b"name=a", Plain)
    assert vars(made) == {"name": "a", "retries": 3}


def test_what_was_sent_stays() -> None:
    """A default replaces nothing."""
    made = decode(JSON, b'{"name": "a", "retries": 9, "more": "n"}', Inherited)
    assert vars(made) == {"name": "a", "retries": 9, "more": "n"}


def test_fields_of_no_constructor_leave_with_the_others() -> None:
    """Python leaves them in the class, where msgspec does not look."""
    given: list[Any] = []
    for value, types in ((Unasked("a"), [Any, Unasked]), ([Unasked("a")], [list[Unasked]])):
        for one in types:
            completing(given.append, one, type(value))(value)
    assert [msgspec.to_builtins(one) for one in given] == [
        {"name": "a", "retries": 3, "made": []},
        {"name": "a", "retries": 3, "made": []},
        [{"name": "a", "retries": 3, "made": []}],
    ]


@dataclass
class Ring:
    """It can contain itself in every way that a value can."""

    made: int = field(init=False, default=1)
    next: Ring | None = None
    more: list[Ring] = field(default_factory=list)
    named: dict[str, Ring] = field(default_factory=dict)


@pytest.mark.parametrize("wire", [JSON, MSGPACK])
@pytest.mark.parametrize("close", ["next", "more", "named"])
def test_R086_a_value_that_contains_itself_is_an_error_of_its_codec(close: str, wire: str) -> None:
    """And does not hold the process for ever."""
    one, two = Ring(), Ring()
    one.next = two
    if close == "next":
        two.next = one
    elif close == "more":
        two.more.append(one)
    else:
        two.named["x"] = one
    with pytest.raises(EncodeError):
        completing(partial(encode, wire), Ring)(one)
    assert vars(two)["made"] == 1


@pytest.mark.parametrize("type_", [int, Any, list[float], dict[str, int], Slotted, list[Slotted], Model, object])
def test_other_types_cost_nothing(type_: Any) -> None:
    """The decoder is the one that was given."""
    assert completed(len, type_) is len
    assert completing(len, type_, list) is len
    assert not is_incomplete(type_)


def test_numbers_in_a_field_are_not_walked() -> None:
    """Only fields that may have an instance in them are looked into."""

    class Watched(list[float]):
        def __iter__(self) -> Any:
            raise AssertionError("it was walked")

    made = Inside(Watched([1.0]), [Plain.__new__(Plain)])
    complete(made)
    assert vars(made.jobs[0]) == {"retries": 3}


@dataclass
class Inside:
    """Numbers beside instances."""

    numbers: list[float]
    jobs: list[Plain]
