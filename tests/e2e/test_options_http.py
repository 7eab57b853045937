"""Options by HTTP, in the bytes that curl sends (R-169), and what is told of requests that do not fit (R-145)."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.conftest import SLOW
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(20)

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
OCTETS = "application/octet-stream"


@pytest.fixture(scope="module", params=["tests.e2e.option_functions", "tests.e2e.option_functions_async"])
def either(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Sync functions, and async ones."""
    with serving(request.param) as served:
        yield served


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """All the functions."""
    with serving("tests.e2e.option_functions") as served:
        yield served


def ask(served: Served, function: str, body: bytes | None = None, type: str = "", query: str = "") -> tuple[int, str]:
    """What `curl -H "Invoker-Function: FUNCTION" "http://.../?QUERY"` prints, with the status."""
    connection = http.client.HTTPConnection(served.http, timeout=10 * SLOW)
    headers = {"Invoker-Function": function, "Accept": "text/plain"} | ({"Content-Type": type} if type else {})
    connection.request("POST", f"/?{query}" if query else "/", body, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def form(**parts: str | tuple[str, str, str]) -> tuple[bytes, str]:
    """What `curl -F name=value -F name=@file` sends."""
    lines = []
    for name, value in parts.items():
        file, media_type, content = ("", "", value) if isinstance(value, str) else value
        head = f'Content-Disposition: form-data; name="{name}"' + (f'; filename="{file}"' if file else "")
        lines.append(f"--xyz\r\n{head}\r\n" + (f"Content-Type: {media_type}\r\n" if media_type else "") + "\r\n")
        lines.append(f"{content}\r\n")
    return ("".join(lines) + "--xyz--\r\n").encode(), "multipart/form-data; boundary=xyz"


@pytest.mark.parametrize(
    ("body", "type", "query"),
    [
        (b"Bob", FORM, ""),  # curl -d Bob
        (b"name=Bob", FORM, ""),
        (*form(name="Bob"), ""),
        (b'{"name": "Bob"}', JSON, ""),
        (b'"Bob"', JSON, ""),
        (b"Bob", "text/plain", ""),
        (b"Bob", "", ""),
        (None, "", "name=Bob"),
        (None, "", "name=Bob&utm_source=mail"),
    ],
)
def test_R164_R169_whatever_way_a_name_is_given_it_is_used(either, body, type, query):
    """`greet(name="world")` greets Bob."""
    assert ask(either, "greet", body, type, query) == (200, "hello Bob")


def test_R169_no_body_and_no_content_type_are_no_value(either):
    """A function of defaults is called with them; what is required is asked for; a stream is empty."""
    assert ask(either, "greet") == (200, "hello world")
    assert ask(either, "greet", None, "", "other=1") == (200, "hello world")
    status, text = ask(either, "scale")
    assert (status, "needs its input 'x', which is not given" in text) == (400, True)
    assert ask(either, "spell", None, "", "third=z") == (200, "abz")


def test_R169_options_are_given_beside_the_body(either):
    """By the query, whatever the body is."""
    assert ask(either, "scale", b"2", "text/plain", "factor=10&shift=1") == (200, "21.0")
    assert ask(either, "scale", b"2", JSON, "shift=1") == (200, "5.0")
    assert ask(either, "scale", b"x=2&factor=10", FORM) == (200, "20.0")
    assert ask(either, "scale", b'{"x": 2, "shift": 1}', JSON) == (200, "5.0")
    assert ask(either, "scale", *form(x="2", factor="3")) == (200, "6.0")


def test_R169_lists_are_given_item_by_item_or_as_json(server):
    """In a query, a form, or a JSON object."""
    said = "t ['a', 'b'] [1, 2]"
    assert ask(server, "stops", b"t", "text/plain", "stops=a&stops=b&counts=1&counts=2") == (200, said)
    assert ask(server, "stops", b"t", "text/plain", 'stops=["a","b"]&counts=[1,2]'.replace('"', "%22")) == (200, said)
    assert ask(server, "stops", b"text=t&stops=a&stops=b&counts=1&counts=2", FORM) == (200, said)
    body = {"text": "t", "stops": ["a", "b"], "counts": [1, 2]}
    assert ask(server, "stops", json.dumps(body).encode(), JSON) == (200, said)
    assert ask(server, "stops", json.dumps(body).encode("utf-16"), f"{JSON}; charset=utf-16") == (200, said)
    assert ask(server, "stops", b"t", "text/plain", "stops=a") == (200, "t ['a'] []")


def test_R169_an_object_spreads_only_if_the_first_parameter_takes_none(server):
    """And only if each of its keys is a parameter."""
    assert ask(server, "row", b'{"data": 1, "scale": 3}', JSON) == (200, "4")
    assert ask(server, "row", b'{"a": 1, "b": 3}', JSON, "scale=2") == (200, "8")
    assert ask(server, "row", b"data=1&scale=3", FORM) == (200, "4")
    assert ask(server, "picture", b'{"image": 1}', JSON) == (200, "12 ")
    assert ask(server, "picture", b"a=1", FORM) == (200, "3 ")
    status, text = ask(server, "scale", b'{"x": 1, "factr": 2}', JSON)
    assert (status, "has no input 'factr'; did you mean 'factor'?" in text) == (400, True)


def test_R164_R169_an_option_beside_a_class_is_used_or_refused(server):
    """By its name beside the parameter's, or in the query; among the fields of the class it would be lost."""
    assert ask(server, "conf", b'{"p": {"x": 3}, "n": 2}', JSON) == (200, "3 2")
    assert ask(server, "conf", b'{"x": 3, "other": 4}', JSON, "n=2") == (200, "3 2")
    assert ask(server, "conf", *form(p='{"x": 3}', n="2")) == (200, "3 2")
    assert ask(server, "conf", *form(x="3"), "n=2") == (200, "3 2")
    for body, type_ in ((b'{"x": 3, "n": 2}', JSON), (b"x=3&n=2", FORM), form(x="3", n="2")):
        status, text = ask(server, "conf", body, type_)
        assert (status, "'n' is not a field of parameter 'p'" in text) == (400, True), text


@pytest.mark.parametrize(
    ("body", "type", "query"),
    [
        (b'{"a": 1, "b": 2}', JSON, ""),
        (b"a=1&b=2", FORM, ""),
        (*form(a="1", b="2"), ""),
        (None, "", "a=1&b=2"),
        (b'{"b": 2}', JSON, "a=1"),
    ],
)
def test_R164_R169_keyword_arguments_come_by_any_name(server, body, type, query):
    """``**numbers``; by the query, a form or an object."""
    assert ask(server, "total", body, type, query) == (200, "a=1 b=2")


def test_R164_R169_keyword_arguments_come_beside_parameters(server):
    """What has no name is the first parameter's, or refused where there is none."""
    assert ask(server, "total") == (200, "")
    assert ask(server, "total", b"{}", JSON) == (200, "")
    assert ask(server, "tagged", b"t", "text/plain", "mark=.&x=1&x=2") == (200, "t. {'x': ['1', '2']}")
    assert ask(server, "tagged", b'{"text": "t", "x": ["1"]}', JSON) == (200, "t! {'x': ['1']}")
    assert ask(server, "tagged", b"t", FORM) == (200, "t! {}")
    for body, type_ in ((b"3", FORM), (b"3", JSON), (b"3", ""), (b"3", "text/plain")):
        status, text = ask(server, "total", body, type_)
        assert (status, "takes each value by a name, and the body gives none" in text) == (400, True), text
    status, text = ask(server, "total", b'{"a": "x"}', JSON)
    assert (status, "parameter 'a': application/json cannot become int" in text) == (400, True)
    status, text = ask(server, "total", None, "", "&".join(f"a{index}=1" for index in range(1001)))
    assert (status, "exceeds the limit of 1000" in text) == (400, True)


def test_R164_R169_a_source_takes_an_empty_body_only(server):
    """Whatever its type is said to be; a value is the caller's fault."""
    for type_ in ("", FORM, JSON):
        assert ask(server, "source", b"", type_) == (200, "one")
    for body, type_ in ((b"3", FORM), (b"{}", FORM), (b"{}", JSON), form(x="1")):
        status, text = ask(server, "source", body, type_)
        assert (status, f"the function takes no input, but the body has {len(body)} bytes" in text) == (400, True), text


def test_R164_further_inputs_may_be_none_or_are_the_parts_of_a_form(server):
    """``many(a, *rest)``, or come by a query or an object; what is missing is told with the ways that work."""
    assert ask(server, "many", b"3", "text/plain") == (200, "3")
    assert ask(server, "many", b"3", JSON) == (200, "3")
    assert ask(server, "many", *form(a="3")) == (200, "3")
    assert ask(server, "many", *form(a="3", rest="4")) == (200, "7")
    assert ask(server, "many", *form(a="3", x="4", y="5")) == (200, "12")
    assert ask(server, "many", None, "", "a=1&rest=3&rest=5") == (200, "9")
    assert ask(server, "many", b"1", JSON, "rest=3") == (200, "4")
    assert ask(server, "many", b'{"a": 1, "rest": [3, 5]}', JSON) == (200, "9")
    for body, type_, query in ((None, "", ""), (None, "", "rest=3"), (*form(x="4"), "")):
        status, text = ask(server, "many", body, type_, query)
        assert (status, "needs its input 'a', which is not given; give it as the body, a" in text) == (400, True), text
    status, text = ask(server, "many", b'{"b": 1}', JSON)
    assert (status, "has no input 'b'; it has a, *rest" in text) == (400, True), text


def test_R169_several_inputs_come_by_form_by_object_or_by_query(server):
    """With their options; one that is missing is named."""
    assert ask(server, "add", *form(a="1", b="2", c="3")) == (200, "6")
    assert ask(server, "add", b'{"a": 1, "b": 2}', JSON) == (200, "3")
    assert ask(server, "add", b"a=1&b=2&c=4", FORM) == (200, "7")
    assert ask(server, "add", b"1", "text/plain", "b=2") == (200, "3")
    assert ask(server, "add", None, "", "a=1&b=2") == (200, "3")
    status, text = ask(server, "add", b"1", "text/plain")
    assert (status, "needs its input 'b', which is not given" in text) == (400, True)


def test_R169_any_number_of_inputs_has_options_too(server):
    """By the query or by a field of the form."""
    assert ask(server, "cat", b"a", "text/plain", "sep=+") == (200, "a")
    assert ask(server, "cat", *form(parts="a", more="b"), "sep=%2B") == (200, "a+b")
    assert ask(server, "cat", *form(parts="a", more="b", sep="-")) == (200, "a-b")
    assert ask(server, "cat", *form(x="a", sep="-", y="b")) == (200, "a-b")


def test_R169_a_file_of_a_form_fills_one_input(server):
    """As `curl -F text=@p.csv` sends it; bytes and options too."""
    assert ask(server, "length", *form(text=("p.csv", OCTETS, "a,b\n"))) == (200, "4")
    assert ask(server, "length", *form(text=("p.csv", "text/csv", "a,b\n"))) == (200, "4")
    assert ask(server, "picture", *form(image=("p.png", "image/png", "123"), text="x")) == (200, "3 x")
    assert ask(server, "length", *form(text=("p.png", "image/png", "123")))[0] == 415
    assert ask(server, "picture", *form(image=("p.png", OCTETS, "123"), text="x")) == (200, "3 x")
    status, text = ask(server, "length", *form(file=("p.csv", OCTETS, "a,b\n")))
    assert (status, "has no input 'file'; it has text" in text) == (400, True)


def test_R168_R169_what_is_given_twice_is_refused(server):
    """With the count."""
    status, text = ask(server, "scale", b"1", "text/plain", "factor=1&factor=2")
    assert (status, "is given its input 'factor' twice" in text) == (400, True)
    status, text = ask(server, "gen", b"one", "text/plain", "prompt=two")
    assert (status, "is given its input 'prompt' twice" in text) == (400, True)
    status, text = ask(server, "greet", b"Bob", "text/plain", "name=Ann")
    assert (status, "is given its input 'name' twice" in text) == (400, True)


@pytest.mark.parametrize(
    ("function", "body", "type", "query", "text"),
    [
        ("scale", b"abc", "text/plain", "", "parameter 'x': text/plain cannot become float"),
        ("scale", b"{", JSON, "", "parameter 'x': application/json cannot become float"),
        ("scale", b"1", "text/plain", "factor=abc", "parameter 'factor': text/plain cannot become float"),
        ("scale", b"1", "text/plain", "factor=%FF", "the query is not UTF-8"),
        ("stops", b'{"text": "t", "counts": [1, "x"]}', JSON, "", "parameter 'counts': application/json cannot become"),
        ("length", b"\xff", "text/plain", "", "parameter 'text': text/plain cannot become str"),
        ("length", b"garbage", "multipart/form-data; boundary=xyz", "", "is not multipart/form-data"),
        ("row", b'{"a": "b"}', JSON, "", "parameter 'data': application/json cannot become dict[str, int]"),
    ],
)
def test_R145_bad_input_is_400_and_names_the_parameter(server, function, body, type, query, text):
    """With what was met and what was expected, in today's shapes."""
    status, told = ask(server, function, body, type, query)
    assert (status, text in told) == (400, True), told
    assert told.startswith("Invoker: Bad Input Signal: ")


def test_R145_the_json_body_of_an_error_has_one_member(server):
    """``{"error": text}``."""
    connection = http.client.HTTPConnection(server.http, timeout=10 * SLOW)
    headers = {"Invoker-Function": "scale", "Content-Type": "text/plain", "Accept": JSON}
    connection.request("POST", "/", b"abc", headers)
    response = connection.getresponse()
    told: Any = json.loads(response.read())
    connection.close()
    assert (response.status, list(told)) == (400, ["error"])


def test_R154_413_names_the_flag(server):
    """So that an operator knows what to raise."""
    status, text = ask(server, "length", bytes(5 << 20), OCTETS)
    assert (status, "--max-message-bytes" in text) == (413, True)


@pytest.mark.parametrize(("function", "said", "other"), [("length", "4", 415), ("picture", "4 ", 200)])
def test_R093_csv_is_taken_by_text_and_bytes(server, function, said, other):
    """Other text without a codec is refused as ever, but for bytes (H-019), and so is csv for a number."""
    assert ask(server, function, b"a,b\n", "text/csv") == (200, said)
    assert ask(server, function, b"a,b\n", "text/csv; charset=utf-8") == (200, said)
    assert ask(server, function, b"a,b\n", "text/zglorbf")[0] == other
    assert ask(server, "scale", b"1", "text/csv")[0] == 415


ARRAYS = """
from typing import Annotated
import numpy as np
from numpy.typing import NDArray

def total(x: Annotated[NDArray[np.float32], ("n", 2)], k: int = 1) -> float:
    return float(x.sum()) * k
"""


def test_R145_R169_arrays_that_do_not_fit_are_400(tmp_path):
    """Ragged lists, another dtype or shape, and a broken file; what fits is taken by name, too."""
    (tmp_path / "arrays.py").write_text(ARRAYS)
    halves, wide = io.BytesIO(), io.BytesIO()
    np.save(halves, np.float32([[1, 2]]))
    np.save(wide, np.float64([[1, 2]]))
    npy = "application/x-npy"
    with serving(f"{tmp_path}/arrays.py:total") as served:
        assert ask(served, "total", halves.getvalue(), npy, "k=2") == (200, "6.0")
        assert ask(served, "total", b'{"x": [[1, 2]], "k": 3}', JSON) == (200, "9.0")
        assert ask(served, "total", b"x=[[1,2]]", FORM) == (200, "3.0")
        for body, type_, text in (
            (b"[[1, 2], [3]]", JSON, "application/json cannot become NDArray[float32]"),
            (b"[[1, 2, 3]]", JSON, "it has the shape [1, 3], and [n, 2] is declared"),
            (b'[["a", "b"]]', JSON, "cannot become float32"),
            (b"garbage", npy, "application/x-npy cannot become NDArray[float32]"),
            (wide.getvalue(), npy, "it is Float64, not float32"),
        ):
            status, told = ask(served, "total", body, type_)
            assert (status, text in told, "parameter 'x': " in told) == (400, True, True), told


def test_H231_buttons_and_tokens_of_html_forms_can_be_ignored():
    """By a setting of the process, for each kind of body."""
    with serving("tests.e2e.option_functions", "--http-ignore-unknown") as lenient:
        for body, type_ in (
            (b"name=Bob&submit=Go&_token=1", FORM),
            form(name="Bob", submit="Go"),
            (b'{"name": "Bob", "submit": "Go"}', JSON),
        ):
            assert ask(lenient, "greet", body, type_) == (200, "hello Bob")
        status, text = ask(lenient, "scale", b"x=1&fcator=2", FORM)
        assert (status, "did you mean 'factor'" in text) == (400, True), text
