"""`invoker.codecs.multipart`: forms with files, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import Part, Registry
from invoker.errors import DecodeError, EncodeError
from tests.codecs.wire import PATIENT, Colour, Point, decode, encode, survives

TYPE = "multipart/form-data"
BOUND = f"{TYPE};boundary=b"


@dataclass
class Upload:
    """Fields of all kinds."""

    title: str
    size: int = 0
    data: bytes = b""
    files: list[Part] = field(default_factory=list)
    where: Point | None = None
    tags: list[str] = field(default_factory=list)


def body(*parts: tuple[str, bytes]) -> bytes:
    """Parts by what stands behind `form-data; `."""
    made = b"".join(
        b"--b\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % (head.encode(), data) for head, data in parts
    )
    return made + b"--b--\r\n"


def test_a_body_is_a_dict() -> None:
    """Text, JSON, files; lists where names come again."""
    payload = body(
        ('name="a"', b"1"), ('name="b"; filename="f"\r\nContent-Type: image/png', b"\xff"), ('name="a"', "€".encode()),
        ('name="j"\r\nContent-Type: application/json', b'{"x":1}'), ('name="c"\r\nContent-Type: image/png', b"p"),
        ('name="l"\r\nContent-Type: text/plain;charset=latin1', b"\xe9"),
    )  # fmt: skip
    assert decode(BOUND, payload) == {
        "a": ["1", "€"], "b": Part("b", b"\xff", "image/png", "f"), "j": {"x": 1}, "c": Part("c", b"p", "image/png"),
        "l": "é"
    }  # fmt: skip


def test_an_annotation_decides_for_each_field() -> None:
    """bytes, str, Part, lists, objects."""
    payload = body(
        ('name="title"; filename="t"', b"x"), ('name="size"', b"3"), ('name="data"; filename="f"', b"\xff"),
        ('name="tags"', b"t"),
        ('name="files"; filename="g"', b"g"), ('name="where"\r\nContent-Type: application/json', b'{"x":1}'),
        ('name="no"', b""),
    )  # fmt: skip
    found = decode(BOUND, payload, Upload)
    assert found == Upload("x", 3, b"\xff", [Part("files", b"g", "", "g")], Point(1), ["t"])
    assert decode(BOUND, body(('name="a"', b"1")), dict[str, int]) == {"a": 1}
    assert decode(BOUND, body(('name="a"', b"1")), dict[str, bytes]) == {"a": b"1"}
    assert decode(BOUND, body(('name="a"', b"1")), dict[str, list[Part]]) == {"a": [Part("a", b"1")]}


def test_parts_themselves_may_be_wanted() -> None:
    """All of them, or the only one, or the raw body."""
    payload = body(('name="a"', b"1"))
    assert decode(BOUND, payload, list[Part]) == [Part("a", b"1")]
    assert decode(BOUND, payload, Part) == Part("a", b"1")
    assert decode(BOUND, payload, bytes) == payload
    assert decode(BOUND, payload, bytearray) == bytearray(payload)
    with pytest.raises(DecodeError, match="expected one part, got 2"):
        decode(BOUND, body(('name="a"', b""), ('name="a"', b"")), Part)


@pytest.mark.parametrize(
    ("media_type", "payload", "type_"),
    [(TYPE, b"", Any), (BOUND, b"x", Any), (BOUND, body(('name="a"', b"\xff")), Any),
     (BOUND, body(('name="a"', b"x")), Upload),
     (BOUND, body(('name="title"', b"x"), ('name="size"', b"y")), Upload), (BOUND, body(), int),
     (BOUND, body(), list[int]),
     (BOUND, body(('name="j"\r\nContent-Type: application/json', b"NaN")), Any), (BOUND, b"", Upload),
     (BOUND, body(('name="j"\r\nContent-Type: nonsense', b"")), Any), (BOUND, body(*[('name="a"', b"")] * 1001), Any)],
)  # fmt: skip
def test_R068_a_bad_body_is_a_decode_error(media_type: str, payload: bytes, type_: Any) -> None:
    """It names the input."""
    with pytest.raises(DecodeError, match="input #0: "):
        decode(media_type, payload, type_)


def test_a_wildcard_never_means_multipart() -> None:
    """By name it can be had."""
    registry = Registry()
    for accept in ("*/*", "multipart/*, */*"):
        assert TYPE not in [offer.media_type.essence for offer in registry.offers(accept)]
    assert [offer.media_type.essence for offer in registry.offers(TYPE)] == [TYPE]


def test_R098_objects_are_written_with_a_boundary() -> None:
    """Which is told; each value has its own."""
    media_type, payload = encode(
        TYPE, {"a": 1, "b": [b"\xff", True], "j": {"x": 1}, "f": Part("?", b"p", "image/png", "f.png")}
    )
    assert media_type.startswith(f"{TYPE};boundary=")
    assert decode(media_type, payload) == {
        "a": "1", "b": [Part("b", b"\xff", "application/octet-stream"), "true"], "j": {"x": 1},
        "f": Part("f", b"p", "image/png", "f.png"),
    }  # fmt: skip
    assert encode(TYPE, {})[0] != encode(TYPE, {})[0]
    upload = Upload("x", 3, b"\xff", [Part("files", b"g", "", "g")], Point(1), ["t"])
    assert decode(*encode(TYPE, upload), Upload) == upload


class Line(msgspec.Struct, rename="camel", tag=True):
    is_thin: bool


class Alias(pydantic.BaseModel):
    size: int = pydantic.Field(alias="Size")


@pytest.mark.parametrize(
    ("value", "type_"),
    [(Line(True), Line), (Alias(Size=1), Alias), ({Colour.RED: 1}, dict[Colour, int])],
    ids=["a Struct", "a model", "names of an enum"],
)
def test_what_is_written_is_read_back(value: Any, type_: Any) -> None:
    """By the names that JSON has, with the tag of a class."""
    media_type, payload = encode(TYPE, value)
    assert decode(media_type, payload, type_) == value


def test_an_array_is_no_form() -> None:
    """A Struct may be one in JSON."""

    class Row(msgspec.Struct, array_like=True):
        a: int

    with pytest.raises(EncodeError, match="only objects with fields can be a multipart body"):
        encode(TYPE, Row(1))


def test_what_cannot_stand_in_a_head_is_refused() -> None:
    """So nobody injects a header; nor is anything but an object written."""
    for value in (
        {"a\\b": 1},
        {"a\0": 1},
        {"f": Part("f", b"", "x/y\r\nX: y")},
        {"f": Part("f", b"", "", "a%22")},
        *({f"a{written}b": 1} for written in ("%22", "%0D", "%0A")),
        {"a": object()},
    ):
        with pytest.raises(EncodeError, match="output #0: dict cannot be multipart/form-data"):
            encode(TYPE, value)
    with pytest.raises(EncodeError, match="no acceptable"):
        encode(TYPE, [1])


def test_H232_names_are_escaped_so_that_they_are_read_back() -> None:
    """As a browser does it; nobody injects a header."""
    media_type, payload = encode(TYPE, {'a"b\r\nX: y': Part("?", b"1", "", 'f"\n')})
    assert b'name="a%22b%0D%0AX: y"; filename="f%22%0A"\r\n\r\n1' in payload
    assert decode(media_type, payload, list[Part]) == [Part('a"b\r\nX: y', b"1", "", 'f"\n')]


_SIGNS = st.characters(exclude_characters="\\\0", exclude_categories=["Cs", "Cc"]) | st.sampled_from('"\r\n%02AD')
_NAMES = st.text(_SIGNS, max_size=8).filter(lambda one: not any(bad in one for bad in ("%22", "%0D", "%0A")))


@PATIENT
@given(
    st.dictionaries(
        _NAMES, st.text(st.characters(exclude_categories=["Cs"])).filter(lambda one: not one.startswith("\ufeff"))
    )
)
def test_fields_round_trip(value: dict[str, str]) -> None:
    """Whatever their texts are, line ends and hyphens included."""
    assert decode(*encode(TYPE, value)) == value


@PATIENT
@given(st.binary(max_size=80), st.sampled_from([Any, Upload, dict[str, int], list[Part], Part, dict, str, int]))
def test_any_bytes_decode_or_raise_decode_error(noise: bytes, type_: Any) -> None:
    """Whatever is wanted."""
    survives(lambda: decode(BOUND, noise, type_))
    survives(lambda: decode(BOUND, body(('name="title"', noise), ('name="data"; filename="x"', noise)), type_))
