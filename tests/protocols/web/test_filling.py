"""Which parameter gets what of a request, as lists in and lists out."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import Part
from invoker.errors import DecodeError
from invoker.message import Headers
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.filling import fill, fill_parts, is_plain, straight
from tests.protocols.web.signed import signed

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PLAIN: dict[str, Any] = {"takes_object": False, "takes_form": False, "takes_parts": False}

SCALE = signed(
    ("x",),
    fields=(
        Field("x", is_value=True, needs_value=True, is_scalar=True, **PLAIN),
        Field("factor", is_option=True, is_value=True, **PLAIN),
        Field("stops", is_option=True, is_value=True, is_list=True, **PLAIN),
    ),
)
GREET = signed((), fields=(Field("name", is_option=True, is_value=True, is_scalar=True, **PLAIN),))
ROW = signed(("row",), fields=(Field("row", needs_value=True), Field("k", is_option=True, is_value=True)))


def filled(signature: Signature, body: bytes = b"", type_: str = "", query: str = "") -> tuple[Any, list[Any]]:
    names, messages, _ = fill(signature, query, type_, body, Headers({}))
    return names, [(index, message.media_type, message.payload) for index, message in messages]


def test_R169_each_name_is_the_input_behind_the_labels():
    """Only the options that were given are announced."""
    assert filled(SCALE, b"1", "text/plain") == (("in",), [(0, "text/plain", b"1")])
    names, messages = filled(SCALE, b"1", "text/plain", "stops=a&factor=2")
    assert names == ("in", "factor", "stops")
    assert messages == [(1, "text/plain", b"2"), (2, JSON, b'["a"]'), (0, "text/plain", b"1")]
    assert filled(GREET) == (("in",), [])


def test_R169_members_of_an_object_keep_their_bytes():
    """Nothing is decoded twice."""
    names, messages = filled(SCALE, b'{"stops" : [ 1 ], "x":1.50}', JSON)
    assert (names, messages) == (("in", "stops"), [(1, JSON, b"[ 1 ]"), (0, JSON, b"1.50")])


def test_R169_an_object_that_the_first_parameter_takes_is_its_value():
    """Whatever its keys are."""
    assert filled(ROW, b'{"row": 1, "k": 2}', JSON) == (("in",), [(0, JSON, b'{"row": 1, "k": 2}')])
    assert filled(ROW, b"row=1&k=2", FORM) == (("in",), [(0, FORM, b"row=1&k=2")])


@pytest.mark.parametrize("body", [b"[1]", b"1", b'"x"', b"{", b"", b"\xff"])
def test_R169_other_json_is_one_value(body):
    """Its codec tells what is wrong with it."""
    assert filled(SCALE, body, JSON) == (("in",), [(0, JSON, body)])


def test_R169_a_form_without_an_equals_sign_is_text():
    """Also where the first parameter takes forms."""
    assert filled(GREET, b"Bob", f"{FORM}; charset=utf-8")[1] == [(0, "text/plain; charset=utf-8", b"Bob")]
    assert filled(ROW, b"Bob", FORM)[1] == [(0, "text/plain", b"Bob")]


def test_R169_parts_fill_parameters():
    """Texts of a list are its items."""
    parts = [Part("stops", b"a"), Part("x", b"1", "application/octet-stream", "f"), Part("stops", b"b")]
    names, messages, _ = fill_parts(SCALE, "factor=3", parts, Headers({}))
    assert names == ("in", "factor", "stops")
    assert [(index, one.payload) for index, one in messages] == [(1, b"3"), (0, b"1"), (2, b'["a","b"]')]


def test_R169_a_function_of_any_number_of_inputs_has_options_by_the_query():
    """Behind the names of its inputs."""
    several = signed(("xs",), is_open=True, options=(Field("sep", is_option=True, is_value=True, **PLAIN),))
    assert filled(several, b"1", "text/plain", "sep=x&other=1") == (
        ("xs", "sep"),
        [(0, "text/plain", b"1"), (1, "text/plain", b"x")],
    )
    names, messages, _ = fill_parts(several, "sep=x", [Part("a", b"1"), Part("b", b"2")], Headers({}))
    assert (names, [index for index, _ in messages]) == (("a", "b", "sep"), [0, 1, 2])
    names, messages, _ = fill_parts(several, "", [Part("sep", b"x")], Headers({}))
    assert (names, [index for index, _ in messages]) == (("sep",), [0])
    with pytest.raises(DecodeError, match="is given its input 'sep' twice"):
        filled(several, b"1", "text/plain", "sep=x&sep=y")


@pytest.mark.parametrize(
    ("body", "type_", "query", "text"),
    [
        (b"", "", "", "needs its input 'x', which is not given"),
        (b"1", "text/plain", "x=2", "is given its input 'x' twice"),
        (b'{"x": 1, "y": 2}', JSON, "", "has no input 'y'; it has x, factor, stops"),
        (b"1", "text/plain", "factor=%ff", "the query is not UTF-8"),
    ],
)
def test_R145_what_does_not_fit_is_told(body, type_, query, text):
    """Before the function is looked at."""
    with pytest.raises(DecodeError, match=text):
        filled(SCALE, body, type_, query)


ADD = signed(
    ("a", "b"),
    fields=tuple(Field(name, is_value=True, needs_value=True, is_scalar=True, **PLAIN) for name in "ab"),
)


@pytest.mark.parametrize(
    ("body", "type_", "text"),
    [
        (b'{"a": 1, "b": 2}', FORM, f"was taken for 'a', because its Content-Type is '{FORM}'; .*: application/json$"),
        (b'{"a": 1, "b": 2}', "", "was taken for 'a', because its Content-Type is 'application/octet-stream'; "),
        (b'{"a": 1, "b": 2', JSON, "was taken for 'a', because it is not a JSON object: Input data was truncated$"),
        (b"[1, 2]", JSON, "the body was taken for 'a'$"),
        (b'{"a": 1}', JSON, "a member of a JSON object$"),
        (b"a=1", FORM, "a member of a JSON object$"),
    ],
)
def test_R145_a_body_that_was_meant_for_several_parameters_says_what_became_of_it(body, type_, text):
    """The parameter that is missing was in the body, as its sender sees it."""
    with pytest.raises(DecodeError, match=f"needs its input 'b', which is not given.*{text}"):
        filled(ADD, body, type_)


def test_R169_an_empty_form_gives_nothing_beside_a_query_that_gives_the_first_parameter():
    """``curl -d '' '...?a=1&b=2'`` is a POST without a body to its sender."""
    assert [payload for _, _, payload in filled(ADD, b"", FORM, "a=1&b=2")[1]] == [b"1", b"2"]
    assert filled(GREET, b"", FORM)[1] == [(0, "text/plain", b"")]


def test_R169_a_part_that_is_no_parameter_is_refused_where_no_form_is_taken_whole():
    """A function of bytes would get the delimiters of the form as if they were the file."""
    upload = signed(
        ("table",),
        fields=(Field("table", is_value=True, needs_value=True, takes_parts=False), Field("k", is_option=True)),
    )
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="t"\r\n\r\n1\r\n--x--\r\n'
    with pytest.raises(DecodeError, match="has no input 'file'; it has table, k"):
        filled(upload, body, "multipart/form-data; boundary=x")
    assert filled(upload, body.replace(b"file", b"table", 1), "multipart/form-data; boundary=x")[1][0][2] == b"1"


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(st.sampled_from(["x", "factor", "stops"]), _TEXTS, min_size=1), st.sampled_from(["query", FORM]))
def test_R164_every_value_of_a_query_or_form_is_fed_or_the_request_refused(values, way):
    """Once, to the input of its name."""
    from urllib.parse import urlencode

    text = urlencode(values)
    try:
        names, messages = filled(SCALE, query=text) if way == "query" else filled(SCALE, text.encode(), FORM)
    except DecodeError:
        assert "x" not in values
        return
    called = ("x", *names[1:])
    assert sorted(called[index] for index, *_ in messages) == sorted(values)
    assert all(payload == values[called[index]].encode() for index, kind, payload in messages if kind == "text/plain")


def test_R169_an_object_by_name_spreads_and_a_lost_option_is_refused():
    """A parameter ``p`` with the field ``x`` beside the option ``n``; both in a form and in JSON."""
    whole = Field("p", is_value=True, needs_value=True, is_json=True, keys=frozenset({"x"}))
    conf = signed(("p",), fields=(whole, Field("n", is_option=True, is_value=True, **PLAIN)))
    by_name = (("in", "n"), [(0, JSON, b'{"x": 3}'), (1, JSON, b"2")])
    assert filled(conf, b'{"p": {"x": 3}, "n": 2}', JSON) == by_name
    assert filled(conf, b'p={"x": 3}&n=2', FORM)[1] == [(0, JSON, b'{"x": 3}'), (1, "text/plain", b"2")]
    assert filled(conf, b'{"x": 3, "other": 2}', JSON) == (("in",), [(0, JSON, b'{"x": 3, "other": 2}')])
    for body, type_ in ((b'{"x": 3, "n": 2}', JSON), (b"x=3&n=2", FORM), (b'{"n": 2}', JSON)):
        with pytest.raises(DecodeError, match=r"'n' is not a field of parameter 'p'.*\?n=.*by their names \(p, n\)"):
            filled(conf, body, type_)
    with pytest.raises(DecodeError, match="has no input 'other'; it has p, n"):
        filled(conf, b'{"p": {"x": 3}, "other": 2}', JSON)


@pytest.mark.parametrize("is_option", [False, True])
@pytest.mark.parametrize("name", ["p", "größe"])
def test_R169_a_class_that_is_the_only_parameter_is_given_by_its_name_too(name, is_option):
    """As it is beside an option; where each of its fields has a default, the whole object gave none of them."""
    only = Field(name, is_value=True, needs_value=not is_option, is_json=True, keys=frozenset({"x"}))
    conf = signed(() if is_option else (name,), fields=(only,))
    value = [(0, JSON, b'{"x":3}')]
    for text in (name, json.dumps(name)[1:-1]):
        assert filled(conf, f'{{"{text}":{{"x":3}}}}'.encode(), JSON)[1] == value
    assert filled(conf, f'{quote(name)}={{"x":3}}'.encode(), FORM)[1] == value
    part = f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{{"x":3}}\r\n--b--\r\n'
    assert filled(conf, part.encode(), "multipart/form-data; boundary=b")[1] == value
    assert filled(conf, b'{"x":3}', JSON)[1] == value
    other = b'{"x": 3, "other": "p"}'
    assert filled(conf, other, JSON)[1] == [(0, JSON, other)]
    with pytest.raises(DecodeError, match="has no input 'x'; it has"):
        filled(conf, f'{{"{name}": {{"x": 3}}, "x": 4}}'.encode(), JSON)
    its_own = msgspec.structs.replace(only, keys=frozenset({name}))
    body = f'{{"{name}": 3}}'.encode()
    assert filled(msgspec.structs.replace(conf, fields=(its_own,)), body, JSON)[1] == [(0, JSON, body)]


TWO = signed(("a", "b"), fields=(Field("a", needs_value=True), Field("b", needs_value=True)))
CSV = signed(("text",), fields=(Field("text", texts=frozenset({"text/csv"}), **PLAIN),))
OPEN = signed(("xs",), is_open=True)
NAMED = signed((), fields=(Field("a", needs_value=True),), more=Field(""))
KINDS = [
    JSON,
    f"{JSON}; charset=utf-16",
    "Application/JSON",
    "text/plain",
    "text/csv;header=present",
    FORM,
    "image/png",
]


@given(
    st.sampled_from([SCALE, GREET, ROW, TWO, CSV, OPEN, NAMED]),
    st.sampled_from([*KINDS, "multipart/form-data", ""]),
    st.sampled_from(["", "factor=2", "x=1"]),
    st.binary(max_size=4) | st.sampled_from([b"", b"1", b" {}", b'{"x": 1, "factor": 2}', b'{"y":1}', b'"{"', b"[{}]"]),
)
def test_R169_what_is_plain_is_filled_in_the_same_way(signature, type_, query, body):
    """Names, media type and payload do not depend on whether the head was read before."""
    found = straight(signature, query, type_)
    if found is not None and is_plain(found[1], body):
        assert (found[0], [(0, found[1], body)]) == filled(signature, body, type_, query)


@pytest.mark.parametrize("type_", [JSON, "text/plain", "image/png"])
def test_R169_one_value_is_plain_by_its_head(type_):
    """As long as nothing but the body gives values, and an object is looked into."""
    assert straight(SCALE, "", type_) == (("in",), type_)
    assert straight(SCALE, "factor=1", type_) is None
    assert straight(TWO, "", type_) is None
    assert is_plain(type_, b"1")
    assert is_plain(type_, b'{"x":1}') is (type_ != JSON)


@pytest.mark.parametrize(
    ("query", "near"),
    [("facter=2", "factor"), ("Factor=2", "factor"), ("x=1&sotps=3", "stops"), ("stop=1", "stops")],
)
def test_H201_a_slip_of_the_pen_in_a_query_is_refused(query, near):
    """And the text names the parameter, of which the default would be taken otherwise."""
    with pytest.raises(DecodeError, match=f"has no input '.*'; did you mean '{near}'"):
        filled(SCALE, b"", query=query)


@pytest.mark.parametrize("query", ["utm_source=a&_=17&fbclid=b", "factor=2&facter=3", "inputs=a", f"{'f' * 70}=1"])
def test_H201_other_keys_are_ignored(query):
    """Those of others in a link, and one that is like a parameter that is given."""
    _, messages = filled(SCALE, b"1", "text/plain", query)
    assert [payload for _, _, payload in messages if payload != b"2"] == [b"1"]


@pytest.mark.parametrize("query", ["nmae=Bob", "mane=Bob", "naem=Bob", "Nmae=Bob"])
def test_H201_a_slip_in_a_short_name_is_refused_too(query):
    """Of which the default would be taken otherwise."""
    if query.startswith("mane"):  # two letters that do not stand side by side
        assert filled(GREET, b"", query=query) == (("in",), [])
    else:
        with pytest.raises(DecodeError, match="did you mean 'name'"):
            filled(GREET, b"", query=query)


def test_H201_few_keys_are_looked_at_closely():
    """A query of thousands costs no time."""
    many = "&".join(f"{n}zzzz=1" for n in range(8))
    assert filled(SCALE, b"1", "text/plain", f"{many}&facter=2")[0] == (("in"),)


OF_NAMES = signed(
    ("a",),
    fields=(
        Field("a", is_value=True, needs_value=True, is_scalar=True, **PLAIN),
        Field("count", is_option=True, is_value=True, **PLAIN),
    ),
    more=Field("", is_option=True, is_value=True, is_scalar=True, **PLAIN),
    drops=True,
)


@pytest.mark.parametrize("more", ["conut", "b"])
def test_R164_a_name_that_keyword_arguments_take_is_never_dropped_or_misspelt(more):
    """Though other names are ignored where the operator says so."""
    parts = [Part("a", b"1"), Part(more, b"2")]
    for names in (
        filled(OF_NAMES, json.dumps({"a": 1, more: 2}).encode(), JSON)[0],
        filled(OF_NAMES, f"a=1&{more}=2".encode(), FORM)[0],
        filled(OF_NAMES, b"1", "text/plain", f"{more}=2")[0],
        fill_parts(OF_NAMES, "", parts, Headers({})).names,
    ):
        assert names == ("a", more)


def test_R164_an_empty_name_is_no_keyword_argument():
    """It is refused in a body, and ignored in a query."""
    with pytest.raises(DecodeError, match="has no input ''; it has a, count"):
        filled(OF_NAMES, b'{"a": 1, "": 2}', JSON)
    assert filled(OF_NAMES, query="a=1&=2")[0] == ("a",)


def test_R169_a_member_that_a_class_would_lose_is_refused_beside_keyword_arguments():
    """It is not a field of the first parameter, and might be one of those."""
    row = Field("row", is_value=True, needs_value=True, is_json=True, keys=frozenset({"x"}))
    both = signed(("row",), fields=(row,), more=Field("", is_option=True, **PLAIN))
    assert filled(both, b'{"x": 1}', JSON)[0] == ("row",)
    assert filled(both, b'{"row": {"x": 1}, "y": 2}', JSON)[0] == ("row", "y")
    with pytest.raises(DecodeError, match="the member 'y' is not a field of parameter 'row'"):
        filled(both, b'{"x": 1, "y": 2}', JSON)


def test_R164_too_many_members_are_refused_before_a_message_is_made_of_each(monkeypatch):
    """A body of a few megabytes may have half a million."""
    monkeypatch.setattr("invoker.protocols.web.filling.Message", None)
    with pytest.raises(DecodeError, match="is given 1001 inputs, which exceeds the limit of 1000"):
        filled(OF_NAMES, json.dumps({f"k{index}": 1 for index in range(1001)}).encode(), JSON)
