"""`invoker.protocols.web.items`: how bodies are read, and where items begin and end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.author.reader import read
from invoker.codecs import builtin, custom, registered
from invoker.errors import DecodeError, LimitExceeded
from invoker.message import EMPTY
from invoker.protocols.web.fields import Field, Signature, signature_of
from invoker.protocols.web.items import Reading, reading_of, reads
from tests.protocols.web.signed import signed

FORM = "multipart/form-data; boundary=x"
NDJSON = "application/x-ndjson"
MOST = 64
_NONE = Signature(())


@pytest.fixture(autouse=True)
def _no_other_codecs() -> Iterator[None]:
    """What other tests have registered is not here."""
    before = registered()
    custom._replace(())
    yield
    custom._replace(before)


def numbers(xs: Iterator[float]) -> Iterator[float]:
    yield from xs


def texts(xs: Iterator[str]) -> Iterator[str]:
    yield from xs


def pieces(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


def objects(xs: Iterator[dict[str, int]]) -> Iterator[int]:
    yield from (len(x) for x in xs)


def prompted(prompt: str) -> Iterator[str]:
    yield prompt


def square(x: int) -> int:
    return x


def add(a: int, b: int) -> int:
    return a + b


def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    yield from words


def many(*xs: Iterator[str]) -> Iterator[str]:
    yield from xs[0]


def anything(**more: int) -> int:
    return len(more)


def source() -> Iterator[int]:
    yield 1


def signature(function: Any) -> Signature:
    spec = read(function)
    return signature_of(spec, builtin())


@pytest.mark.parametrize(
    ("function", "content_type", "has_length", "is_stream", "how"),
    [
        (numbers, NDJSON, True, False, Reading.LINES),
        (numbers, "application/jsonl", False, True, Reading.LINES),
        (add, NDJSON, True, False, Reading.LINES),
        (numbers, "", False, True, Reading.TEXTS),
        (numbers, "text/plain; charset=utf-8", False, True, Reading.TEXTS),
        (square, "", False, True, Reading.TEXTS),
        (objects, "", False, True, Reading.LINES),
        (pieces, "", False, True, Reading.PIECES),
        (pieces, "application/octet-stream", False, True, Reading.PIECES),
        (repeat, FORM, True, True, Reading.PARTS),
        (texts, FORM, True, True, Reading.PARTS),
        # One value, or all of it is needed before anything is known.
        (numbers, "", False, False, Reading.WHOLE),
        (numbers, "", True, True, Reading.WHOLE),
        (numbers, "application/json", False, True, Reading.WHOLE),
        (repeat, "", False, True, Reading.WHOLE),
        (repeat, FORM, True, False, Reading.WHOLE),
        (objects, FORM, True, True, Reading.WHOLE),
        (prompted, "", False, True, Reading.WHOLE),
        (many, NDJSON, True, True, Reading.WHOLE),
        (anything, NDJSON, True, True, Reading.WHOLE),
        (source, NDJSON, True, True, Reading.WHOLE),
    ],
)
def test_H009_how_a_body_is_read(
    function: Any, content_type: str, has_length: bool, is_stream: bool, how: Reading
) -> None:
    """By its media type, its length, and what the function takes."""
    assert reading_of(signature(function), content_type, has_length=has_length, is_stream=is_stream) is how


def test_who_has_a_codec_for_lines_gets_them_as_one_value() -> None:
    """An author's own codec of NDJSON is asked first."""
    own = Signature(("x",), fields=(Field("x"),), own_lines=True)
    assert reading_of(own, NDJSON, has_length=True, is_stream=True) is Reading.WHOLE


def taken(
    how: Reading, parts: Sequence[bytes], *fields: Field, content_type: str = "", signature: Signature = _NONE
) -> list[tuple[str, bytes, str]]:
    one = reads(how, content_type, EMPTY, fields or (Field("x"),), MOST, signature)
    items = [item for part in parts for item in one.feed(part)]
    items += one.close()
    return [(name, message.payload, message.media_type) for name, message in items]


@given(st.binary(max_size=40).map(lambda data: data.replace(b"\r", b"r")), st.data())
def test_H009_lines_are_the_same_however_they_come(body: bytes, data: st.DataObject) -> None:
    """In one piece or in many; the last needs no end."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    lines = body.split(b"\n")
    if not lines[-1]:
        lines.pop()
    got = [payload for _, payload, _ in taken(Reading.TEXTS, parts, Field("x", is_text=True))]
    assert got == lines


def test_H009_ends_of_lines_and_blank_lines() -> None:
    """CR LF ends a line, too. A blank line is a text, and is no number and no JSON."""
    body = [b"a\r\n\n", b" \nb"]
    assert [one[1] for one in taken(Reading.TEXTS, body, Field("x", is_text=True))] == [b"a", b"", b" ", b"b"]
    assert [one[1] for one in taken(Reading.TEXTS, body)] == [b"a", b"b"]
    assert [one[1:] for one in taken(Reading.LINES, [b"1\n\n2"])] == [
        (b"1", "application/json"),
        (b"2", "application/json"),
    ]


def test_H009_a_charset_is_kept() -> None:
    """Each line has the media type of the body."""
    assert taken(Reading.TEXTS, [b"\xe9\n"], content_type="text/plain; charset=latin-1") == [
        ("", b"\xe9", "text/plain; charset=latin-1")
    ]


def test_H009_pieces_are_what_came() -> None:
    """Nothing is put together, and nothing is cut."""
    assert [one[1] for one in taken(Reading.PIECES, [b"a\n", b"b"])] == [b"a\n", b"b"]


def test_H009_lines_for_several_inputs_are_objects() -> None:
    """Of one value or several; each has the name of its input."""
    two = (Field("words"), Field("counts"))
    own = signed(("words", "counts"), fields=(*two, Field("k", is_option=True)))
    got = taken(Reading.LINES, [b'{"words":"a"}\n{"counts": 3, "words": {"b":1}}'], *two)
    assert got == [
        ("words", b'"a"', "application/json"),
        ("counts", b"3", "application/json"),
        ("words", b'{"b":1}', "application/json"),
    ]
    with pytest.raises(DecodeError, match=r"has no input 'other'; it has words, counts, k \(line 2\)"):
        taken(Reading.LINES, [b'{"words":1}\n{"other":1}\n'], *two, signature=own)
    with pytest.raises(DecodeError, match=r"is given its input 'k' twice \(line 1\)"):  # the query gives it, too
        taken(Reading.LINES, [b'{"k":1}\n'], *two, signature=own)
    for bad in (b"3", b"[1]", b"{", b"[" * 100_000):
        with pytest.raises(DecodeError, match=r'line 1 is not a JSON object.*\{"words": \.\.\.\}'):
            reads(Reading.LINES, NDJSON, EMPTY, two, 1 << 20).feed(bad + b"\n")


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("name", ["p", "größe"])
def test_R169_a_line_for_an_input_of_a_class_may_have_its_name(name: str, drops: bool) -> None:
    """As a JSON object may, unless the class has such a field; escapes and marks are read as there."""
    only = Field(name, is_json=True, keys=frozenset({"x", "k"}))
    known = Signature((name,), fields=(only, Field("k", is_option=True), Field("n", is_option=True)), drops=drops)

    def got(line: str, field: Field = only) -> bytes:
        one = reads(Reading.LINES, NDJSON, EMPTY, (field,), 1 << 20, known)
        ((_, message),) = one.feed(line.encode() + b"\n")
        return message.payload

    for text in (name, json.dumps(name)[1:-1]):
        assert got(f'{{"{text}": {{"x":1}}}}') == b'{"x":1}'
        assert got(f'\ufeff{{"{text}": {{"x":1}}}}') == b'{"x":1}'
    for whole in ('{"x":1}', '{"x":1,"k":2}', '{"x":"p n"}', f'["{name}"]', f'{{"{name}"', f'{{"y":{{"{name}":1}}}}'):
        assert got(whole) == whole.encode()
    own = msgspec.structs.replace(only, keys=frozenset({name, "n"}))
    assert got(f'{{"{name}":{{}}}}', own) == f'{{"{name}":{{}}}}'.encode()
    for lost, member in ((f'{{"x":1,"{name}":{{}}}}', "x"), (f'{{"{name}":{{}},"n":1}}', "n"), ('{"n":1}', "n")):
        with pytest.raises(DecodeError, match=f"line 1 has the member '{member}'"):
            got(lost)
    other = f'{{"{name}":{{}},"other":1}}'
    if drops:
        assert got(other) == b"{}"
    else:
        with pytest.raises(DecodeError, match="line 1 has the member 'other'"):
            got(other)


def test_H011_a_line_has_a_limit() -> None:
    """Whether its end came or not; the number of lines has none."""
    for body in ([bytes(MOST + 1) + b"\n"], [b"x" * MOST, b"y"]):
        with pytest.raises(LimitExceeded, match="line 1 exceeds the limit of 64 bytes"):
            taken(Reading.TEXTS, body)
    assert len(taken(Reading.TEXTS, [b"1\n" * 10_000])) == 10_000


def part(name: str, content: bytes) -> bytes:
    return b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), content)


def test_H009_parts_come_one_by_one() -> None:
    """Each is for the input of its name, as soon as its end is here."""
    one = reads(Reading.PARTS, FORM, EMPTY, (Field("a"), Field("b")), MOST)
    assert one.feed(part("a", b"1")) == []
    assert [(name, message.payload) for name, message in one.feed(part("b", b"2"))] == [("a", b"1")]
    assert [(name, message.payload) for name, message in one.feed(b"--x--\r\n")] == [("b", b"2")]
    assert one.close() == ()


def test_H011_parts_are_checked() -> None:
    """A name that is no input's, a part that is too long, and a body without its last delimiter are refused."""
    own = signed(("a",), fields=(Field("a"),))
    with pytest.raises(DecodeError, match=r"has no input 'c'; it has a$"):
        taken(Reading.PARTS, [part("c", b"1"), b"--x--\r\n"], Field("a"), content_type=FORM, signature=own)
    with pytest.raises(LimitExceeded, match="part 1 exceeds the limit of 64 bytes"):
        taken(Reading.PARTS, [part("a", bytes(MOST + 1))], Field("a"), content_type=FORM)
    with pytest.raises(DecodeError, match="closing"):
        taken(Reading.PARTS, [part("a", b"1")], Field("a"), content_type=FORM)
    many = [part("a", b"1")] * 1500
    assert len(taken(Reading.PARTS, [*many, b"--x--\r\n"], Field("a"), content_type=FORM)) == 1500


def test_errors_count_blank_lines() -> None:
    """So that the number is the one that an editor shows."""
    with pytest.raises(DecodeError, match="line 4"):
        taken(Reading.LINES, [b'\n{"a": 1}\n\n[]\n'], Field("a"), Field("b"))


@pytest.mark.parametrize("how", [Reading.LINES, Reading.TEXTS, Reading.PARTS])
def test_H162_what_is_held_is_told(how: Reading) -> None:
    """It is the item that is not complete, and nothing once it is."""
    one = reads(how, FORM if how is Reading.PARTS else "", EMPTY, [Field("xs", is_text=True)], MOST)
    begin, end = (part("xs", b"12")[:-2], b"\r\n--x--\r\n") if how is Reading.PARTS else (b"\n12", b"\n")
    assert one.held == 0
    one.feed(begin)
    one.feed(b"345")
    assert one.held == 5
    items = one.feed(end)
    assert (items[-1][1].payload, one.held) == (b"12345", 0)


def test_pieces_are_not_held() -> None:
    """They are fed as they come."""
    one = reads(Reading.PIECES, "", EMPTY, [Field("xs")], MOST)
    assert (len(one.feed(b"x")), one.held) == (1, 0)
