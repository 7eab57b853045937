"""`invoker.protocols.web.stream`: requests whose query gives inputs, with a body or without."""

from __future__ import annotations

import pytest

from invoker.core.http import ResponseHead
from invoker.core.steps import ALL, Close, EndInput, Open
from tests.protocols.web.test_stream import OPTION, TWO, begun, chunk, emitted, fed, lined, sent


def test_H007_head_tells_the_headers_and_calls_nothing() -> None:
    """Of a stream; the length of one value is only known when it is there."""
    _, steps = begun(method="HEAD")
    (head,) = sent(steps)
    assert isinstance(head, ResponseHead)
    assert steps[-1] == Close()


def test_H007_a_get_is_filled_by_its_query() -> None:
    """The function opens at once with the end of the request."""
    one, steps = begun(method="GET", query="xs=1&xs=2")
    assert steps == []
    opening, *feeds, end = one.half_close()
    assert isinstance(opening, Open)
    assert fed(feeds) == [(0, b"1"), (0, b"2")]
    assert end == EndInput("http", ALL)


def test_H014_the_query_fills_options_and_inputs() -> None:
    """What is left is filled by the body; with one input left, its items are values."""
    _, (opening, *feeds) = lined(OPTION, query="temperature=0.5")
    assert opening.input_names == ("in", "temperature")
    assert fed(feeds) == [(1, b"0.5")]
    one, (opening, *feeds) = lined(TWO, query="counts=3&sep=-")
    assert opening.input_names == ("words", "counts", "sep")
    assert fed(feeds) == [(1, b"3"), (2, b"-")]
    assert fed(chunk(one, b'"a"\n')) == [(0, b'"a"')]
    _, steps = lined(TWO, query="sep=a&sep=b")
    (response,) = sent(steps)
    assert (response.status, "is given its input 'sep' twice" in response.body.decode()) == (400, True)


@pytest.mark.parametrize("body", [b"", b"\n \n"])
def test_H200_a_query_that_gives_all_needs_an_empty_body(body: bytes) -> None:
    """The function opens with its end, and nothing is lost."""
    one, steps = lined(TWO, query="words=a&counts=1")
    assert list(steps) == chunk(one, body) == []
    opening, *feeds, end = one.half_close()
    assert opening.input_names == ("words", "counts")
    assert fed(feeds) == [(0, b"a"), (1, b"1")]
    assert end == EndInput("http", ALL)


def test_H200_a_query_that_gives_all_leaves_nothing_for_a_body() -> None:
    """Not even options by lines; parts may give those."""
    one, _ = lined(TWO, query="words=a&counts=1")
    (response,) = sent(chunk(one, b'{"sep":"-"}\n'))
    assert (response.status, "nothing in the body" in response.body.decode()) == (400, True)
    one, _ = begun(TWO, content_type="multipart/form-data; boundary=x", query="words=a&counts=1")
    assert chunk(one, b'--x\r\nContent-Disposition: form-data; name="sep"\r\n\r\n-\r\n--x--\r\n') == []
    opening, *feeds, _ = one.half_close()
    assert opening.input_names == ("words", "counts", "sep")
    assert fed(feeds) == [(0, b"a"), (1, b"1"), (2, b"-")]


def test_H007_an_answer_to_get_is_no_page_of_ours() -> None:
    """A link of somebody else may open it in a tab; its scripts must not run there."""
    one, _ = begun(method="GET", query="xs=1")
    one.half_close()
    head, _ = sent(emitted(one, b"1"))
    assert ("Content-Security-Policy", "sandbox") in head.headers
    one, _ = lined()
    head, _ = sent(emitted(one, b"1"))
    assert "Content-Security-Policy" not in dict(head.headers)
