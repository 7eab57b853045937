"""`invoker.codecs.misspelt`: every form of class, by every codec: a misspelt field is refused, not ignored."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import FrameType
from typing import Annotated, Any, Generic, NotRequired, TypedDict, TypeVar
from unittest.mock import patch

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from invoker.codecs import Registry, typed
from invoker.codecs import json as json_codec
from invoker.codecs import msgpack as msgpack_codec
from invoker.codecs.anyvalue import ANY
from invoker.codecs.anyvalue import codec as any_codec
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.misspelt import spelling_of
from invoker.errors import DecodeError
from invoker.message import EMPTY, Message
from tests.codecs.wire import FORM, JSON, MSGPACK, decode
from tests.conftest import case_name

T = TypeVar("T")


@dataclasses.dataclass
class Plain:
    name: str = "n"
    retries: int = 3


@dataclasses.dataclass(slots=True, frozen=True)
class Slotted:
    name: str = "n"
    retries: int = 3


@dataclasses.dataclass
class Inherited(Plain):
    more: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Boxed(Generic[T]):
    name: str = "n"
    retries: T | None = None


class Struct(msgspec.Struct):
    name: str = "n"
    retries: int = 3


class Tagged(msgspec.Struct, tag="t", tag_field="kind", omit_defaults=True):
    name: str = "n"
    retries: int = 3


class Keys(TypedDict, total=False):
    name: str
    retries: int


class SomeKeys(TypedDict):
    name: NotRequired[str]
    retries: NotRequired[int]


@attrs.define
class Attrs:
    name: str = "n"
    retries: int = 3


@pydantic.dataclasses.dataclass
class PydanticDataclass:
    name: str = "n"
    retries: int = 3


class Model(pydantic.BaseModel):
    name: str = "n"
    retries: int = 3


class Aliased(pydantic.BaseModel):
    own: str = pydantic.Field("n", alias="name")
    retries: int = pydantic.Field(
        3, validation_alias=pydantic.AliasChoices("retries", "tries", pydantic.AliasPath("a", 0))
    )


FORMS: list[Any] = [
    Plain, Slotted, Inherited, Boxed[int], Struct, Keys, SomeKeys, Attrs, PydanticDataclass, Model, Aliased,
    Plain | None, list[int] | Plain, Annotated[Plain, "words"], Model | None,
]  # fmt: skip


class Renamed(msgspec.Struct, rename="camel"):
    user_name: str = "n"
    retries: int = 3


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    name: str = "n"
    retries: int = 3


class StrictModel(pydantic.BaseModel, extra="forbid"):
    name: str = "n"
    retries: int = 3


class OpenModel(pydantic.BaseModel, extra="allow"):
    name: str = "n"
    retries: int = 3


class Looking(pydantic.BaseModel):
    name: str = "n"
    retries: int = 3

    @pydantic.model_validator(mode="before")
    @classmethod
    def look(cls, given: Any) -> Any:
        """Take what it likes."""
        return {"name": given.get("nmae", "n")}


class Listed(msgspec.Struct, array_like=True):
    name: str = "n"
    retries: int = 3


@dataclasses.dataclass
class Needing:
    name: str
    retries: int = 3


def as_form(given: Mapping[str, Any]) -> bytes:
    return "&".join(f"{key}={value}" for key, value in given.items()).encode()


WIRES: dict[str, tuple[str, Callable[[Mapping[str, Any]], bytes]]] = {
    "json": (JSON, lambda given: json.dumps(given).encode()),
    "json with a mark": (JSON, lambda given: b"\xef\xbb\xbf" + json.dumps(given).encode()),
    "json in utf-16": (f"{JSON};charset=utf-16", lambda given: json.dumps(given).encode("utf-16")),
    "large json": (JSON, lambda given: json.dumps({**given, "zzz": "z" * 20_000}).encode()),
    "json with many strings": (JSON, lambda given: json.dumps({**given, "zzz": ["z" * 90] * 100}).encode()),
    "json with long gaps": (JSON, lambda given: json.dumps(given, separators=(",", " " * 9000 + ":")).encode()),
    "json with escapes": (JSON, lambda given: json.dumps({**given, "zzz": "\n" * 20_000}).encode()),
    "a +json": ("application/x+json", lambda given: json.dumps(given).encode()),
    "msgpack": (MSGPACK, msgspec.msgpack.encode),
    "large msgpack": (MSGPACK, lambda given: msgspec.msgpack.encode({**given, "zzz": "z" * 20_000})),
    "any": (ANY, pack),
    "form": (FORM, as_form),
}


REGISTRY = Registry()


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def read(request: pytest.FixtureRequest) -> Callable[[Any, Mapping[str, Any]], Any]:
    media_type, write = request.param

    def read(type_: Any, given: Mapping[str, Any]) -> Any:
        return decode(media_type, write(given), type_, REGISTRY)

    return read


def value(made: Any, name: str) -> Any:
    return made.get(name) if isinstance(made, dict) else getattr(made, name)


SLIPS: list[dict[str, Any]] = [
    {"nmae": "a"}, {"nane": "a", "retries": 4}, {"Name": "a"}, {"retires": 4}, {"name": "a", "retrie": 4},
    {"utm_source": "x", "retreis": 4},
]  # fmt: skip


@pytest.mark.parametrize("type_", FORMS, ids=case_name)
def test_R171_a_misspelt_field_is_refused(read: Any, type_: Any) -> None:
    """Where the field itself is not given; the text says both."""
    for given in SLIPS:
        key = next(one for one in given if one not in ("name", "retries", "utm_source"))
        near = "retries" if key.startswith("ret") else "name"
        with pytest.raises(DecodeError, match=rf"it has '{key}', which is not a field; did you mean '{near}'\?"):
            read(type_, given)


TAKEN: list[dict[str, Any]] = [
    {"name": "a"}, {"retries": 4}, {"name": "a", "retries": 4}, {"name": "a", "utm_source": "x"},
    {"name": "a", "nmae": "b"},
    {"name": "a", "colour": "x", "": "y", "q": "z", "n" * 65: "x"},
]  # fmt: skip


@pytest.mark.parametrize("type_", FORMS, ids=case_name)
def test_R171_other_keys_are_ignored(read: Any, type_: Any) -> None:
    """A key that is like no field, and one that is like a field which is given."""
    for given in TAKEN:
        made = read(type_, given)
        field = "own" if type_ is Aliased else "name"
        assert value(made, field) == given.get("name", None if isinstance(made, dict) else "n")


@pytest.mark.parametrize("type_", [Strict, StrictModel], ids=case_name)
def test_R171_a_class_that_forbids_other_keys_says_what_was_meant(read: Any, type_: Any) -> None:
    """What is like no field it refuses in the words of its library."""
    with pytest.raises(DecodeError, match="did you mean 'name'"):
        read(type_, {"nmae": "a"})
    with pytest.raises(DecodeError, match=r"unknown field `zebra`|zebra: Extra inputs") as failed:
        read(type_, {"zebra": "a"})
    assert "did you mean" not in str(failed.value)


def test_R171_a_class_that_takes_any_key_decides(read: Any) -> None:
    """By its configuration, or by what sees the object first."""
    assert read(OpenModel, {"nmae": "a"}).model_extra["nmae"] == "a"
    assert read(Looking, {"nmae": "a"}).name == "a"
    assert read(dict[str, Any], {"nmae": "a"})["nmae"] == "a"
    assert read(dict[str, Any] | Plain, {"nmae": "a"})


def test_R171_a_required_field_that_is_misspelt(read: Any) -> None:
    """The error names the cause; without one it is as before."""
    with pytest.raises(DecodeError, match="it has 'nmae', which is not a field; did you mean 'name'"):
        read(Needing, {"nmae": "a"})
    with pytest.raises(DecodeError, match="missing required field `name`"):
        read(Needing, {"zebra": "a"})


@pytest.mark.parametrize("wire", ["json", "msgpack", "any"])
def test_R171_names_on_the_wire_count(wire: str) -> None:
    """Of a class that renames them, and of one with a tag."""
    media_type, write = WIRES[wire]
    assert decode(media_type, write({"userName": "a"}), Renamed).user_name == "a"
    with pytest.raises(DecodeError, match="did you mean 'userName'"):
        decode(media_type, write({"usrName": "a"}), Renamed)
    with pytest.raises(DecodeError, match="did you mean 'userName'"):
        decode(media_type, write({"user_name": "a"}), Renamed)
    assert decode(media_type, write({"kind": "t"}), Tagged).name == "n"
    with pytest.raises(DecodeError, match="did you mean 'name'"):
        decode(media_type, write({"kind": "t", "nmae": "a"}), Tagged)


def test_objects_within_are_not_looked_at() -> None:
    """Nor is what is no object."""
    assert decode(JSON, b'[{"nmae": "a"}]', list[Plain])[0].name == "n"
    assert decode(JSON, b'["a"]', Listed).name == "a"
    assert decode(JSON, b"null", Plain | None) is None
    assert decode(JSON, b"[1]", Plain | list[int]) == [1]
    assert spelling_of(int) is spelling_of(list[Plain]) is spelling_of(Listed) is spelling_of(Any) is None


@pytest.mark.parametrize("payload", [b'{"nmae":', b'{"nmae": "a"} x', b"[" * 5000, b'"nmae"', b"", b'{"nmae": NaN}'])
def test_what_is_no_object_keeps_its_error(payload: bytes) -> None:
    """The spelling is no cause of it."""
    with pytest.raises(DecodeError) as failed:
        decode(JSON, payload, Plain)
    assert "did you mean" not in str(failed.value)


def test_where_several_classes_fit_the_one_that_was_made_counts() -> None:
    """A name of the other is a stranger to it."""

    @dataclasses.dataclass
    class Other:
        nmae: str
        zebra: int = 1

    assert decode(JSON, b'{"nmae": "a"}', Plain | Other) == Other("a")
    with pytest.raises(DecodeError, match="did you mean 'zebra'"):
        decode(JSON, b'{"nmae": "a", "zebar": 2}', Plain | Other)


def calls(decoder: Callable[[Message[bytes]], Any], message: Message[bytes]) -> int:
    """The calls of Python that decoding takes, once all is warm."""
    decoder(message)
    count = 0

    def see(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        decoder(message)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("wire", ["json", "msgpack", "any", "form"])
@pytest.mark.parametrize("type_", [Plain, Slotted, Inherited, Struct, Keys, Attrs, Plain | None], ids=case_name)
def test_known_keys_cost_no_call(wire: str, type_: Any) -> None:
    """As many calls of Python as without the check."""
    media_type, write = WIRES[wire]
    message, counts = Message(write({"name": "a"}), EMPTY, media_type), []
    for look in (spelling_of, lambda _: None):
        with ExitStack() as stack:
            for module in (json_codec, msgpack_codec, typed):
                stack.enter_context(patch.object(module, "spelling_of", look))
            for kept in (json_codec._cached_parser, any_codec._cached):
                kept.cache_clear()
                stack.callback(kept.cache_clear)
            counts.append(calls(Registry().decoder(media_type, type_), message))
    assert counts[0] == counts[1]
