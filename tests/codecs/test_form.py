"""`invoker.codecs.form`: forms both ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker.codecs.form import MAX_FIELDS, gather
from invoker.errors import DecodeError, EncodeError, NotAcceptable
from tests.codecs.wire import FORM, PATIENT, Circle, Colour, Point, Shape, decode, encode, survives


@dataclass
class Query:
    """An object whose fields have many types."""

    name: str
    size: int = 0
    tags: list[int] = field(default_factory=list)
    is_new: bool = False
    raw: bytes = b""
    colour: Colour | None = None


class Search(pydantic.BaseModel):
    """The same for pydantic."""

    size: int
    tags: list[str] = []


def test_R091_a_form_is_a_dict_of_texts() -> None:
    """Repeated keys give lists; percent and plus are undone."""
    assert decode(FORM, b"a=1&b=x+y%21") == {"a": "1", "b": "x y!"}
    assert decode(FORM, b"a=1&a=2&b=3&a=4") == {"a": ["1", "2", "4"], "b": "3"}
    assert decode(FORM, b"a&b=&=c&&d=%E2%82%AC") == {"a": "", "b": "", "": "c", "d": "€"}
    assert decode(FORM, b"") == {}
    assert decode(f"{FORM};charset=iso-8859-1", b"a=%E9&b=\xe9") == {"a": "é", "b": "é"}


def test_R091_a_form_fills_what_is_annotated() -> None:
    """Texts become numbers; a list takes one value or several; bytes are the text's."""
    assert decode(FORM, b"name=a&size=2&tags=1&is_new=true&raw=AA&colour=red&more=1", Query) == Query(
        "a", 2, [1], True, b"AA", Colour.RED
    )
    assert decode(FORM, b"name=a&tags=1&tags=2", Query).tags == [1, 2]
    assert decode(FORM, b"a=1&b=2", dict[str, int]) == {"a": 1, "b": 2}
    assert decode(FORM, b"a=1&b=2&b=3", dict[str, list[int]]) == {"a": [1], "b": [2, 3]}
    assert decode(FORM, b"x=1", Point | None) == Point(1)
    assert decode(FORM, b"radius=2", Circle) == Circle(2.0)
    assert decode(FORM, b"size=2&tags=x", Search) == Search(size=2, tags=["x"])


def test_what_is_no_object_gets_the_body() -> None:
    """`curl -d hello` says form and means text."""
    assert decode(FORM, b"hello world", str) == "hello world"
    assert decode(FORM, b"a=1", bytes) == b"a=1"
    assert decode(FORM, b"a=1", bytearray) == bytearray(b"a=1")
    assert decode(FORM, b"5", int) == 5


@pytest.mark.parametrize(
    ("media_type", "payload", "type_"),
    [(FORM, b"\xff", Any), (FORM, b"a=%FF", Any), (FORM, b"size=x&name=a", Query), (FORM, b"size=1", Query),
     (FORM, b"x", int),
     (f"{FORM};charset=nope", b"a=1", Any), (f"{FORM};charset=utf-16", b"a=1", Any), (FORM, b"a=1", list[int]),
     (FORM, b"&".join([b"a="] * (MAX_FIELDS + 1)), Any), (FORM, b"x=1&x=2", Point), (FORM, b"size=0x", Search)],
)  # fmt: skip
def test_R068_a_bad_form_is_a_decode_error(media_type: str, payload: bytes, type_: Any) -> None:
    """Broken text, misfits, too many fields, odd charsets."""
    with pytest.raises(DecodeError, match=r"input #0: application/x-www-form-urlencoded"):
        decode(media_type, payload, type_)


def test_R091_objects_are_written_as_forms() -> None:
    """Lists as repeated keys; scalars as text/plain spells them."""
    assert encode(FORM, {"a": "1", "b": "x y&"}) == (FORM, b"a=1&b=x+y%26")
    assert encode(FORM, {"a": [1, True, None], "b": 0.5}) == (FORM, b"a=1&a=true&a=&b=0.5")
    assert encode(FORM, Point(1, 2)) == (FORM, b"x=1&y=2")
    assert encode(FORM, Search(size=1)) == (FORM, b"size=1")
    assert encode(f"{FORM};charset=iso-8859-1", {"a": "é"}) == (f"{FORM};charset=iso-8859-1", b"a=%E9")


def test_R099_what_is_no_flat_object_is_no_form() -> None:
    """Nested ones fail when they are written; others are not taken at all."""
    for value in ({"a": {"b": 1}}, Shape("a", [Point(1)]), {"a": "\ud800"}, {"a": object()}):
        with pytest.raises(EncodeError, match=r"output #0: \w+ cannot be application/x-www-form-urlencoded"):
            encode(FORM, value)
    for value in ([1], 1, "x", b"x"):
        with pytest.raises(EncodeError, match="no acceptable media type takes"):
            encode(FORM, value)
    for charset in ("utf-16", "nope"):
        with pytest.raises(NotAcceptable):
            encode(f"{FORM};charset={charset}", {})


@pytest.mark.parametrize(
    "type_", [list[float], list[int] | None, set[int], NDArray[np.float32], NDArray[np.int8] | None]
)
def test_lists_are_sent_as_json(type_: Any) -> None:
    """`curl -d '[[1]]'` says form and means JSON, which the error tells those who want lists, and nobody else."""
    with pytest.raises(DecodeError, match=r"; for lists send JSON, with Content-Type: application/json$"):
        decode(FORM, b'[["a"]]', type_)
    with pytest.raises(DecodeError) as caught:
        decode(FORM, b"[[1]]", float)
    assert "JSON" not in caught.value.detail


def test_pairs_are_gathered() -> None:
    """Lists where they are wanted."""
    pairs = [("a", 1), ("b", 2), ("a", [3])]
    assert gather(pairs) == {"a": [1, [3]], "b": 2}
    assert gather(pairs, frozenset("b")) == {"a": [1, [3]], "b": [2]}
    assert gather(pairs, None) == {"a": [1, [3]], "b": [2]}


@PATIENT
@given(st.dictionaries(st.text(), st.text() | st.lists(st.text(), min_size=2, max_size=3), max_size=5))
def test_forms_round_trip(value: dict[str, Any]) -> None:
    """Whatever the texts are."""
    assert decode(*encode(FORM, value)) == value


@PATIENT
@given(
    st.binary(max_size=80),
    st.sampled_from([Any, str, int, dict, dict[str, int], Query, Search, Point | None, list, bytes]),
)
def test_any_bytes_decode_or_raise_decode_error(payload: bytes, type_: Any) -> None:
    """Whatever is wanted."""
    survives(lambda: decode(FORM, payload, type_))
