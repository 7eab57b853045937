"""`protocols.evergreen.action_engine.box`: the values of MessagePack, read in every form and written in theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.evergreen.action_engine.box import NIL, Box, WireError, boxed, listed, mapped, number, text

INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)


@given(INTEGERS | st.sampled_from([-32, -33, 31, 32, 127, 128, -127, -128, 32767, 32768, 2**31 - 1, 2**31, -(2**31)]))
def test_integers_are_read_as_they_were_written(value: int) -> None:
    """By us and by a MessagePack reader."""
    assert Box(number(value)).number() == value
    assert msgspec.msgpack.decode(number(value)) == value


@given(INTEGERS)
def test_integers_in_unsigned_forms_are_read_too(value: int) -> None:
    """Other writers choose the shortest form, be it unsigned."""
    assert Box(msgspec.msgpack.encode(value)).number() == value


def test_integers_beyond_64_bits_with_a_sign_are_refused() -> None:
    """Nothing on this wire is so large, and it could not be written again."""
    with pytest.raises(WireError, match="the integer 9223372036854775808 was met at 0"):
        Box(b"\xcf\x80" + bytes(7)).number()


@given(st.integers(0, 2**31))
def test_integers_leave_in_signed_forms_only(value: int) -> None:
    """The peers' readers take 0xcc to 0xcf for something else."""
    assert number(value)[0] not in range(0xCC, 0xD0)


@given(st.binary(max_size=300) | st.sampled_from([bytes(size) for size in (254, 255, 256, 65534, 65535, 65536)]))
def test_bytes_are_read_as_they_were_written(value: bytes) -> None:
    """By us and by a MessagePack reader, with lengths of every width."""
    assert bytes(Box(boxed(value)).binary()) == value
    assert msgspec.msgpack.decode(boxed(value)) == value


@given(st.text(max_size=300) | st.sampled_from(["x" * size for size in (31, 32, 254, 255, 256, 65535, 65536)]))
def test_text_is_read_as_it_was_written(value: str) -> None:
    """By us and by a MessagePack reader."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    assert Box(text(value)).text() == value
    assert msgspec.msgpack.decode(text(value)) == value


def test_text_that_is_no_utf8_comes_and_goes() -> None:
    """As surrogates."""
    assert Box(b"\xa2v\xff").text() == "v\udcff"
    assert text("v\udcff") == b"\xa2v\xff"


@pytest.mark.parametrize("size", [0, 1, 15, 16, 300])
def test_lists_of_boxes_have_any_length(size: int) -> None:
    """The count is one, three or five bytes."""
    box = Box(listed([boxed(number(index)) for index in range(size)]))
    assert [one.number() for one in box.boxes()] == list(range(size))
    assert box.is_empty


def test_maps_are_a_count_and_pairs() -> None:
    """In their order."""
    box = Box(mapped({"a": "1", "b": "2"}))
    assert list(box.pairs()) == [("a", "1"), ("b", "2")]
    assert mapped({}) == b"\x00"


def test_what_may_be_nil_is_nil_or_there() -> None:
    """Numbers and structures."""
    assert Box(NIL).number_or_nil() is None
    assert Box(b"\x05").number_or_nil() == 5
    assert Box(NIL).box_or_nil() is None
    found = Box(boxed(b"\x07")).box_or_nil()
    assert found is not None
    assert found.number() == 7


READERS: list[Callable[[Box], Any]] = [
    Box.number,
    Box.text,
    Box.binary,
    Box.flag,
    Box.box,
    lambda box: list(box.boxes()),
    lambda box: list(box.pairs()),
]


@pytest.mark.parametrize("read", READERS)
def test_nothing_is_read_from_an_empty_box(read: Callable[[Box], Any]) -> None:
    """It says that more was expected."""
    with pytest.raises(WireError, match="another field was expected"):
        read(Box(b""))


@pytest.mark.parametrize(
    ("read", "data", "complaint"),
    [
        (Box.number, b"\xc0", "0xc0 was met at 0; integer was expected"),
        (Box.text, b"\xc4\x00", "0xc4 was met at 0; str was expected"),
        (Box.binary, b"\xa0", "0xa0 was met at 0; bin was expected"),
        (Box.flag, b"\x01", "0x01 was met at 0; bool was expected"),
        (Box.binary, b"\xc6\xff\xff\xff\xffx", "4294967295 bytes were announced at 5; the box has 1 more"),
        (Box.text, b"\xbfabc", "31 bytes were announced at 1; the box has 3 more"),
        (Box.number, b"\xd3\x00", "8 bytes were announced at 1; the box has 1 more"),
        (lambda box: list(box.boxes()), b"\x80", "0x80 was met at 0; array was expected"),
        (lambda box: list(box.boxes()), b"\xdd\xff\xff\xff\xff", "more than 20000 items"),
        (lambda box: list(box.boxes()), b"\xdd\x00\x00\x4e\x20", "another field was expected"),
        (lambda box: list(box.pairs()), b"\xce\xff\xff\xff\xff", "more than 20000 items"),
    ],
)
def test_what_is_something_else_is_refused(read: Callable[[Box], Any], data: bytes, complaint: str) -> None:
    """Saying what was met and expected, and where; a great count costs nothing."""
    with pytest.raises(WireError, match=complaint):
        read(Box(data))


def test_a_message_of_very_many_items_is_refused() -> None:
    """Structures and pairs count together, in whatever boxes they lie; the first one too many is not read."""
    pairs = boxed(number(10_001) + b"\xa0\xa0" * 10_001)
    outer = Box(pairs * 2)
    assert len(list(outer.box().pairs())) == 10_001
    second = outer.box()
    with pytest.raises(WireError, match="more than 20000 items"):
        list(second.pairs())
    assert len(list(Box(listed([boxed(b"")] * 20_000)).boxes())) == 20_000
    with pytest.raises(WireError, match="more than 20000 items"):
        list(Box(listed([boxed(b"")] * 20_001)).boxes())
