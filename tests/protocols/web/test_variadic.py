"""`invoker.protocols.web.variadic`: what a request gives to ``*args``."""

from __future__ import annotations

import msgspec
import pytest

from invoker.author.binding import MOST_INPUTS
from invoker.errors import DecodeError
from invoker.message import Headers
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.filling import fill
from invoker.protocols.web.variadic import parts_of
from tests.protocols.web.signed import signed

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
VALUES = signed(
    ("sep", "xs"),
    is_open=True,
    opens_values=True,
    opens_fields=True,
    options=(Field("k", is_option=True, is_value=True),),
)
PARTS = (
    b'--x\r\nContent-Disposition: form-data; name="sep"\r\n\r\n-\r\n'
    b'--x\r\nContent-Disposition: form-data; name="xs"\r\n\r\n1\r\n--x--'
)
STREAMS = signed(("xs",), is_open=True, opens_fields=True)
XS = signed(("xs",), is_open=True, opens_values=True, opens_fields=True, options=VALUES.options)


def filled(signature: Signature, body: bytes = b"", type_: str = "", query: str = "") -> tuple[object, list[object]]:
    names, messages, _ = fill(signature, query, type_, body, Headers({}))
    return names, [(index, message.media_type, message.payload) for index, message in messages]


TEXT, MIXED = "text/plain", "multipart/form-data; boundary="


@pytest.mark.parametrize(
    ("body", "type_", "query", "media_type"),
    [
        (b"", "", "sep=-&xs=1&xs=2&k=3", TEXT),
        (b"sep=-&xs=1&xs=2&k=3", FORM, "", TEXT),
        (b"xs=1&xs=2", FORM, "sep=-&k=3", TEXT),
        (b'{"sep": "-", "xs": [1, 2], "k": 3}', JSON, "", JSON),
        (PARTS, "multipart/form-data; boundary=x", "xs=2&k=3", TEXT),
    ],
)
def test_H210_values_of_one_name_are_inputs_each(body: bytes, type_: str, query: str, media_type: str) -> None:
    """Of a query, of either form, and of a list in a JSON object; options have their names beside them."""
    names, messages = filled(VALUES, body, type_, query)
    assert names == ("sep", "xs", "xs1", "k")
    values = [payload for _, _, payload in sorted(messages)]  # type: ignore[misc]
    assert values == ([b'"-"', b"1", b"2", b"3"] if media_type == JSON else [b"-", b"1", b"2", b"3"])


def test_H210_items_of_one_name_are_of_one_stream() -> None:
    """Where ``*args`` takes streams; other names are further ones."""
    assert filled(STREAMS, query="xs=1&xs=2") == (("xs",), [(0, TEXT, b"1"), (0, TEXT, b"2")])


def test_H210_a_body_beside_a_query_is_for_the_first_input_that_is_left() -> None:
    """As it is with parameters."""
    assert filled(VALUES, b"1", TEXT, "sep=-") == (("sep", "xs"), [(1, TEXT, b"1"), (0, TEXT, b"-")])
    assert filled(VALUES, b"1", TEXT, "sep=-&xs=2")[0] == ("sep", "xs", "xs1")


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (b"[1]", JSON),
        (b'{"xs": ', JSON),
        (b"a", FORM),
        (b"\xff", FORM),
        (b"1", TEXT),
    ],
)
def test_H210_any_other_body_is_the_first_input(body: bytes, type_: str) -> None:
    """Whose codec tells what is wrong with it."""
    assert parts_of(STREAMS, type_, body) is None
    assert filled(STREAMS, body, type_) == (("xs",), [(0, type_, body)])


@pytest.mark.parametrize(("body", "type_"), [(b'{"ys": [1]}', JSON), (b"ys=1", FORM)])
def test_H231_a_strange_name_is_refused(body: bytes, type_: str) -> None:
    """It is named; or dropped, with its value."""
    with pytest.raises(DecodeError, match=r"'' has no input 'ys'; it has \*xs"):
        parts_of(STREAMS, type_, body)
    assert parts_of(msgspec.structs.replace(STREAMS, drops=True), type_, body) == []


@pytest.mark.parametrize("signature", [STREAMS, XS])
@pytest.mark.parametrize(
    ("body", "type_"), [(b"", ""), (b"{}", JSON), (b'{"xs": []}', JSON), (b"--x--", "multipart/form-data; boundary=x")]
)
def test_H236_no_value_is_no_argument(signature: Signature, body: bytes, type_: str) -> None:
    """The function is bound to nothing, and called once; options stay."""
    if signature is not STREAMS or b"[" not in body:
        assert fill(signature, "", type_, body, Headers({})) == ((), [], ())
    if signature.options:
        assert filled(signature, body, type_, "k=3") == (("k",), [(0, TEXT, b"3")])
        assert fill(signature, "k=3", type_, body, Headers({})).bound == ("k",)
    with pytest.raises(DecodeError, match="needs its input 'sep', which is not given"):
        filled(VALUES, body, type_)


def test_H210_an_object_is_a_value_where_one_may_be() -> None:
    """Nobody knows whether its keys are names, then."""
    assert parts_of(signed(("xs",), is_open=True, opens_values=True), JSON, b'{"xs": [1]}') is None


@pytest.mark.parametrize("drops", [False, True])
def test_H210_objects_of_known_fields_are_told_from_names(drops: bool) -> None:
    """For ``*rows: Row`` with the field ``x``: by the name of the parameter, or one object that is a row."""
    rows = signed(
        ("rows",),
        is_open=True,
        opens_values=True,
        own_keys=frozenset({"x"}),
        options=(Field("k", is_option=True, is_value=True),),
        drops=drops,
    )
    two = [(0, JSON, b'{"x":1}'), (1, JSON, b"{}")]
    assert filled(rows, b'{"rows":[{"x":1},{}]}', JSON) == (("rows", "rows1"), two)
    assert filled(rows, b'{"rows":{"x":1},"k":2}', JSON)[1] == [(0, JSON, b'{"x":1}'), (1, JSON, b"2")]
    assert filled(rows, b'{"rows":[]}', JSON) == ((), [])
    for body in (b'{"x":1}', b"{}", b'{"k":2}', b'{"x":1,"rows":[]}', b'{"rows":[],"other":1}'):
        assert parts_of(rows, JSON, body) is None
    its_own = msgspec.structs.replace(rows, own_keys=frozenset({"rows"}))
    assert parts_of(its_own, JSON, b'{"rows":[]}') is None


def test_what_is_missing_is_told() -> None:
    """And a query that is no text."""
    with pytest.raises(DecodeError, match="needs its input 'sep', which is not given; give it as the body, a query"):
        filled(VALUES, query="xs=1")
    assert filled(VALUES, b"-", TEXT) == (("sep",), [(0, TEXT, b"-")])
    with pytest.raises(DecodeError, match="not UTF-8"):
        filled(VALUES, query="xs=%ff")


def test_H210_the_number_of_inputs_is_bounded() -> None:
    """However they are given; a list that is much longer is not even cut."""
    most = b"[%b]" % b",".join([b"1"] * MOST_INPUTS)
    names, _ = filled(VALUES, b'{"sep": 1, "xs": %b}' % most.replace(b"[1,", b"["), JSON)
    assert len(names) == MOST_INPUTS  # type: ignore[arg-type]
    for body, type_, query in (
        (b'{"sep": 1, "xs": %b}' % most, JSON, ""),
        (b'{"sep": 1, "xs": [%b1]}' % (b"1," * 200_000), JSON, ""),
        (b"", "", "sep=-" + "&xs=1" * MOST_INPUTS),
    ):
        with pytest.raises(DecodeError, match=f"the limit of {MOST_INPUTS}|exceeds the limit of"):
            filled(VALUES, body, type_, query)
    (_, values), _ = filled(VALUES, b'{"sep": 1, "xs": [[%b1]]}' % (b"1," * 200_000), JSON)  # one value is few
    assert values == "xs"


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize(
    ("body", "type_", "query"),
    [
        (b"", "", "sep=-&xs=1&b=2"),
        (b"sep=-&xs=1&b=2", FORM, ""),
        (b'{"sep": "-", "xs": [1], "b": 2}', JSON, ""),
        (PARTS, "multipart/form-data; boundary=x", "b=2"),
        (PARTS.replace(b"x--", b'x\r\nContent-Disposition: form-data; name="b"\r\n\r\n2\r\n--x--'), f"{MIXED}x", ""),
    ],
)
def test_H210_other_names_are_keyword_arguments(body: bytes, type_: str, query: str, drops: bool) -> None:
    """Where the function takes any; they are no names to be ignored."""
    every = signed(("sep", "xs"), is_open=True, opens_values=True, opens_fields=True, more=Field(""), drops=drops)
    found = fill(every, query, type_, body, Headers({}))
    assert (found.names, found.bound) == (("sep", "xs", "b"), ("sep", "#0", "**b"))
