"""What a function's parameters take of an HTTP request, by their types."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from invoker import Message
from invoker.author.prepare import prepare_function
from invoker.codecs import Part, TextCodec, builtin, custom
from invoker.protocols.web.fields import Field, Signature, signature_of


@dataclass
class Row:
    x: int


@pytest.fixture(autouse=True)
def _ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codecs of our own alone, whatever a test before this one has registered for the process."""
    monkeypatch.setattr(custom, "_registered", ())


def signature(function: Any) -> Signature:
    return signature_of(prepare_function(function).spec, builtin(entry_points=False))


def of(type_: Any) -> Field:
    """The field of a parameter of this type."""

    def fn(x: Any) -> str: ...

    fn.__annotations__["x"] = type_
    return signature(fn).fields[0]


@pytest.mark.parametrize(
    ("type_", "takes_object", "takes_form", "takes_parts", "is_scalar"),
    [
        (str, False, False, False, True),
        (int | None, False, False, False, True),
        (float, False, False, False, True),
        (bytes, True, False, False, False),
        (dict[str, int], True, True, True, False),
        (Row, True, True, True, False),
        (Any, True, True, True, False),
        (Part, False, False, True, False),
        (list[Part], False, False, True, False),
        (list[int], False, False, False, False),
        (Message[str], False, False, False, True),
        (Message[Row], True, True, True, False),
    ],
)
def test_R169_the_type_decides_whether_a_body_is_one_value(type_, takes_object, takes_form, takes_parts, is_scalar):
    """Of an object, a form and a multipart body."""
    one = of(type_)
    assert (one.takes_object, one.takes_form, one.takes_parts, one.is_scalar) == (
        takes_object,
        takes_form,
        takes_parts,
        is_scalar,
    )


@pytest.mark.parametrize(
    ("type_", "is_list", "is_json"),
    [
        (str, False, False),
        (list[str], True, False),
        (list[str] | None, True, False),
        (list, True, False),
        (tuple[int, ...], True, True),
        (list[Row], True, True),
        (Row, False, True),
        (Any, False, False),
    ],
)
def test_R169_the_type_decides_what_a_text_is(type_, is_list, is_json):
    """The value itself, an item of a list, or JSON."""
    one = of(type_)
    assert (one.is_list, one.is_json) == (is_list, is_json)


def test_R169_required_parameters_come_first_then_the_options():
    """With what each needs, in each style."""

    def mapped(x: int, k: int = 1) -> int: ...

    def streaming(xs: Iterator[int], k: int, n: int = 1) -> Iterator[int]:
        yield from xs

    def facts(function: Any) -> list[tuple[str, bool, bool, bool]]:
        return [(one.name, one.is_option, one.is_value, one.needs_value) for one in signature(function).fields]

    assert facts(mapped) == [("x", False, True, True), ("k", True, True, False)]
    assert facts(streaming) == [("xs", False, False, False), ("k", False, True, True), ("n", True, True, False)]
    assert signature(streaming).inputs == ("xs", "k")


def test_functions_without_parameters_or_with_any_number_have_no_fields():
    """A request is one message to them, as ever."""

    def nothing() -> str: ...

    def several(*xs: Iterator[str]) -> Iterator[str]:
        yield from xs[0]

    found = [signature(one) for one in (nothing, several)]
    assert all(one.gives_ahead for one in found)  # both run in threads
    own = Signature(()).binder
    found = [msgspec.structs.replace(one, offers=None, can_give=None, gives_ahead=False, binder=own) for one in found]
    assert found == [
        Signature(("in",), pieces="text/plain", is_text=True, name="nothing"),
        Signature(
            ("xs",),
            is_open=True,
            opens_fields=True,
            is_streaming=True,
            gives_many=True,
            pieces="text/plain",
            is_text=True,
            name="several",
            streams=frozenset({"xs"}),
        ),
    ]


@pytest.mark.parametrize(
    ("type_", "is_text"),
    [(str, True), (Message[str], True), (bytes, False), (Message[bytes], False),
     (str | bytes, None), (Message, None), (Any, None), (int, None), (None, None)],
)  # fmt: skip
def test_H213_the_annotation_tells_what_is_text(type_: Any, is_text: bool | None) -> None:
    """Where it tells that."""

    def fn() -> Any: ...

    fn.__annotations__["return"] = type_
    assert signature(fn).is_text is is_text


def test_H210_what_any_number_of_inputs_are() -> None:
    """Values, where the function is called with them or says so; a JSON object names them if none can be one."""

    def total(*xs: int) -> int: ...
    def count(*xs: int) -> Iterator[int]:
        yield len(xs)

    def rows(*xs: Row) -> int: ...
    def after(row: Row, *xs: int) -> int: ...

    told = [(one.opens_values, one.opens_fields) for one in map(signature, (total, count, rows, after))]
    assert told == [(True, True), (True, True), (True, False), (True, False)]

    def anything(*xs: Any) -> int: ...
    def files(row: Row, *xs: bytes) -> int: ...

    keys = [signature(one).own_keys for one in (total, rows, after, anything, files)]
    assert keys == [None, {"x"}, {"x"}, None, None]


def test_R169_a_function_of_any_number_of_inputs_keeps_its_options_apart():
    """They are given by name."""

    def several(*xs: Iterator[str], sep: str = "") -> Iterator[str]:
        yield from xs[0]

    found = signature(several)
    assert (found.inputs, found.is_open, found.fields) == (("xs",), True, ())
    assert [(one.name, one.is_option, one.is_value) for one in found.options] == [("sep", True, True)]


@pytest.mark.parametrize("type_", [typing.List, typing.Tuple[()], typing.Set, typing.FrozenSet, list])  # noqa: UP006
def test_a_list_that_does_not_say_of_what_is_one_of_anything(type_):
    """It has no arguments to look into."""
    assert of(type_).is_list


def test_R093_text_that_has_a_codec_is_left_to_it():
    """Other types are text to a parameter that is text or bytes."""
    assert "text/csv" in of(str).texts
    assert "text/csv" in of(bytes).texts
    assert of(int).texts == frozenset()
    with_csv = builtin(entry_points=False)
    with_csv.register(TextCodec(("text/csv",)))

    def fn(x: str) -> str: ...

    assert "text/csv" not in signature_of(prepare_function(fn).spec, with_csv).fields[0].texts


class Renamed(msgspec.Struct, rename="camel"):
    """Has other names in JSON."""

    first_name: str


class Lax(pydantic.BaseModel, extra="allow"):
    """Keeps whatever it is given."""

    x: int


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        (Row, {"x"}),
        (Row | None, {"x"}),
        (Renamed, {"first_name", "firstName"}),
        (Lax, None),
        (dict[str, int], None),
        (Row | dict[str, int], None),
        (Any, None),
        (bytes, None),
        (str, None),
    ],
)
def test_R169_the_fields_of_a_class_are_known(type_, keys):
    """None where objects may have any key, or are not taken."""
    assert of(type_).keys == keys


def test_H208_what_a_message_is_when_it_says_no_type() -> None:
    """Of text and bytes; other values have codecs that say what they are."""

    def picture() -> Message[bytes]: ...
    def page() -> Message[str]: ...
    def pages() -> Iterator[Message[str]]:
        yield Message("")

    def row() -> Message[Row]: ...
    def octets() -> bytes: ...

    types = [signature(one).plain_type for one in (picture, page, pages, row, octets)]
    assert types == ["application/octet-stream", "text/plain", "text/plain", "", ""]
