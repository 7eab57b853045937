"""`invoker.transports.http.heads`: what a head means, and which heads are refused."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.transports.http.heads import MOST_BYTES, MOST_FIELDS, Head, RefusedError, head_of_fields, read_head

HOST = b"Host: localhost\r\n"


def head(*lines: str | bytes, first: str = "POST / HTTP/1.1") -> Head:
    """Read one with a Host."""
    rest = [one.encode() if isinstance(one, str) else one for one in lines]
    return read_head(b"\r\n".join([first.encode(), b"Host: localhost", *rest, b"", b""]))


def test_a_head_in_full() -> None:
    """Names in lower case, values without blanks around them, in the order in which they came."""
    one = head("X-A: 1 2\t", "x-a:3", "Content-Length: 12", "Empty:", first="PUT /a%20b/c?d=%20&e HTTP/1.1")
    request = one.request
    assert (request.method, request.path, request.query, request.http_version) == ("PUT", "/a b/c", "d=%20&e", "1.1")
    fields = [("host", "localhost"), ("x-a", "1 2"), ("x-a", "3"), ("content-length", "12"), ("empty", "")]
    assert request.headers == fields
    assert (one.length, one.is_kept, one.waits, one.is_socket, one.host) == (12, True, False, False, "")


def test_texts_are_utf_8_or_latin_1() -> None:
    """Each value by itself."""
    values = dict(head("a: ä", b"b: \xe4", "c: c").request.headers)
    assert (values["a"], values["b"], values["c"]) == ("ä", "ä", "c")


@pytest.mark.parametrize(
    ("target", "path", "host"),
    [
        ("http://Example.org:80/a?b", "/a", "example.org:80"),
        ("https://e", "/", "e"),
        ("http://e?x", "/", "e"),
        ("*", "*", ""),
        ("foo:80", "foo:80", ""),
        ("//x/y", "//x/y", ""),
    ],
)
def test_targets(target: str, path: str, host: str) -> None:
    """A whole URI has a host of its own."""
    one = head(first=f"GET {target} HTTP/1.1")
    assert (one.request.path, one.host) == (path, host)


def test_bodies_and_connections() -> None:
    """Lengths, chunks, and whether another request may follow."""
    assert head().length == 0
    assert head("Transfer-Encoding: Chunked").length is None
    assert head("Connection: keep-alive, Close").is_kept is False
    assert head(first="GET / HTTP/1.0").is_kept is False
    assert read_head(b"GET / HTTP/1.0\r\n\r\n").request.http_version == "1.0"


def test_who_waits_for_the_word() -> None:
    """HTTP/1.0 knows of no such word (RFC 9110, 10.1.1)."""
    assert head("Expect: 100-Continue").waits
    assert not head("Expect: rain").waits
    assert not head("Expect: 100-continue", first="POST / HTTP/1.0").waits


@pytest.mark.parametrize(
    ("lines", "first", "is_socket"),
    [
        (("Connection: keep-alive, Upgrade", "Upgrade: WebSocket"), "GET / HTTP/1.1", True),
        (("Upgrade: websocket",), "GET / HTTP/1.1", False),
        (("Connection: upgrade",), "GET / HTTP/1.1", False),
        (("Connection: upgrade", "Upgrade: h2c"), "GET / HTTP/1.1", False),
        (("Connection: upgrade", "Upgrade: websocket"), "POST / HTTP/1.1", False),
        (("Connection: upgrade", "Upgrade: websocket"), "GET / HTTP/1.0", False),
    ],
)
def test_handshakes(lines: tuple[str, ...], first: str, is_socket: bool) -> None:
    """Whoever asks for another protocol is just not given it."""
    assert head(*lines, first=first).is_socket == is_socket


@pytest.mark.parametrize("method", ["PROPFIND", "QUERY", "M-SEARCH", "FOO", "X!"])
def test_methods_are_whatever_a_client_wants(method: str) -> None:
    """Fronts refuse those that they do not know."""
    assert head(first=f"{method} / HTTP/1.1").request.method == method


REFUSED: dict[str, bytes] = {
    "nothing": b"\r\n",
    "empty line first": b"\r\nPOST / HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"POST /\r\n" + HOST + b"\r\n",
    "two blanks": b"POST  / HTTP/1.1\r\n" + HOST + b"\r\n",
    "blank at the end": b"POST / HTTP/1.1 \r\n" + HOST + b"\r\n",
    "blank first": b" POST / HTTP/1.1\r\n" + HOST + b"\r\n",
    "blank in target": b"POST /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    "bytes in target": b"POST /\xe4 HTTP/1.1\r\n" + HOST + b"\r\n",
    "tab for blank": b"POST\t/\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "version in lower case": b"POST / http/1.1\r\n" + HOST + b"\r\n",
    "version with more digits": b"POST / HTTP/1.10\r\n" + HOST + b"\r\n",
    "method of other signs": b"PO(ST / HTTP/1.1\r\n" + HOST + b"\r\n",
    "method in lower case": b"post / HTTP/1.1\r\n" + HOST + b"\r\n",
    "method in mixed case": b"PoST / HTTP/1.1\r\n" + HOST + b"\r\n",
    "preface": b"PRI * HTTP/2.0\r\n\r\n",
    "preface of 1.1": b"PRI * HTTP/1.1\r\n" + HOST + b"\r\n",
    "no host": b"POST / HTTP/1.1\r\nA: b\r\n\r\n",
    "two hosts": b"POST / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "two hosts of 1.0": b"POST / HTTP/1.0\r\n" + HOST + HOST + b"\r\n",
    "bare LF behind the line": b"POST / HTTP/1.1\n" + HOST + b"\r\n",
    "bare LF behind a field": b"POST / HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n",
    "bare LF in front of the end": b"POST / HTTP/1.1\r\nHost: localhost\n\r\n",
    "bare CR in a value": b"POST / HTTP/1.1\r\n" + HOST + b"A: b\rc\r\n\r\n",
    "CR CR LF": b"POST / HTTP/1.1\r\n" + HOST + b"A: b\r\r\n\r\n",
    "NUL in a value": b"POST / HTTP/1.1\r\n" + HOST + b"A: b\0\r\n\r\n",
    "NUL in a name": b"POST / HTTP/1.1\r\n" + HOST + b"A\0: b\r\n\r\n",
    "control in a value": b"POST / HTTP/1.1\r\n" + HOST + b"A: \x0b\r\n\r\n",
    "DEL in a value": b"POST / HTTP/1.1\r\n" + HOST + b"A: \x7f\r\n\r\n",
    "folded": b"POST / HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n",
    "folded by a tab": b"POST / HTTP/1.1\r\n" + HOST + b"A: b\r\n\tc\r\n\r\n",
    "folded first": b"POST / HTTP/1.1\r\n " + HOST + b"\r\n",
    "blank before the colon": b"POST / HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n",
    "tab before the colon": b"POST / HTTP/1.1\r\n" + HOST + b"A\t: b\r\n\r\n",
    "blank in a name": b"POST / HTTP/1.1\r\n" + HOST + b"A b: c\r\n\r\n",
    "no colon": b"POST / HTTP/1.1\r\n" + HOST + b"A\r\n\r\n",
    "no name": b"POST / HTTP/1.1\r\n" + HOST + b": b\r\n\r\n",
    "name in UTF-8": "POST / HTTP/1.1\r\nHost: a\r\nä: b\r\n\r\n".encode(),
    "two lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "the same length twice": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "listed lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1, 1\r\n\r\n",
    "signed length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +1\r\n\r\n",
    "negative length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "hexadecimal length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0x1\r\n\r\n",
    "underscored length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1_0\r\n\r\n",
    "empty length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length:\r\n\r\n",
    "length in other digits": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: \xd9\xa1\r\n\r\n",
    "endless length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 999999999999999999999\r\n\r\n",
    "length and chunks": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "chunks and length": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
    "length and a coding": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: x\r\n\r\n",
    "chunks of 1.0": b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n",
}
OTHERWISE: dict[str, tuple[int, bytes]] = {
    "other coding": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    "chunks twice": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n"),
    "spelled coding": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n"),
    "identity": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: identity\r\n\r\n"),
    "empty coding": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding:\r\n\r\n"),
    "HTTP/2.0": (505, b"POST / HTTP/2.0\r\n" + HOST + b"\r\n"),
    "HTTP/1.2": (505, b"POST / HTTP/1.2\r\n" + HOST + b"\r\n"),
    "too long": (431, b"POST / HTTP/1.1\r\n" + HOST + b"a: " + bytes(MOST_BYTES) + b"\r\n\r\n"),
    "too many fields": (431, b"POST / HTTP/1.1\r\n" + HOST + b"a:\r\n" * MOST_FIELDS + b"\r\n"),
}


@pytest.mark.parametrize("data", list(REFUSED.values()), ids=list(REFUSED))
def test_what_leaves_a_choice_is_refused(data: bytes) -> None:
    """Nothing is mended."""
    with pytest.raises(RefusedError) as caught:
        read_head(data)
    assert caught.value.status == 400


@pytest.mark.parametrize(("status", "data"), list(OTHERWISE.values()), ids=list(OTHERWISE))
def test_what_is_not_served_has_a_status_of_its_own(status: int, data: bytes) -> None:
    """Not 400."""
    with pytest.raises(RefusedError) as caught:
        read_head(data)
    assert caught.value.status == status


FIELDS = st.lists(
    st.sampled_from(
        [
            b"Host: a", b"Host : a", b"Content-Length: 3", b"Content-Length: 4", b"Content-Length:  3 ", b"A: b\xe4",
            b"Transfer-Encoding: chunked", b"Transfer-Encoding: x", b"Connection: close", b"Expect: 100-continue",
            b" folded", b"A:\tb ", b"a: \0", b"a: \x01", b"A", b"", b"\xff: a",
        ]
    ),
    max_size=5,
)  # fmt: skip
LINES = st.sampled_from(
    [b"POST / HTTP/1.1", b"GET /x?y HTTP/1.0", b"get / HTTP/1.1", b"A B", b"POST /\x7f HTTP/1.1", b"POST  / HTTP/1.1"]
)
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"])


@given(LINES, FIELDS, st.data())
def test_nothing_is_taken_that_h11_refuses(line: bytes, fields: list[bytes], draw: st.DataObject) -> None:
    """What both take means the same to both; h11 takes some more."""
    data = b"".join(one + draw.draw(ENDS) for one in (line, b"Host: x", *fields)) + b"\r\n"
    try:
        ours = read_head(data[: data.find(b"\r\n\r\n") + 4] if b"\r\n\r\n" in data else data)
    except RefusedError:
        return
    other = h11.Connection(h11.SERVER)
    other.receive_data(data)
    event = other.next_event()
    assert isinstance(event, h11.Request)
    assert (event.method.decode(), event.target.decode()) == (
        ours.request.method,
        f"{ours.request.path}{'?y' * ('y' in ours.request.query)}",
    )
    assert [(name.decode(), value.decode("latin-1")) for name, value in event.headers] == list(ours.request.headers)
    assert other.they_are_waiting_for_100_continue == ours.waits


FIELDS = [(b":method", b"PUT"), (b":path", b"/a%20b/c?d=%20&e"), (b":scheme", b"http"), (b":authority", b"localhost:1")]


def test_a_head_of_http_2_says_the_same() -> None:
    """`:authority` is the Host, and wins over it; the other fields keep their order."""
    more = [(b"x-a", b"1"), (b"host", b"elsewhere"), (b"x-a", b"\xc3\xa4"), (b"expect", b"100-Continue")]
    one = head_of_fields([*FIELDS, *more])
    request = one.request
    assert (request.method, request.path, request.query, request.http_version) == ("PUT", "/a b/c", "d=%20&e", "2")
    assert request.headers == [("host", "localhost:1"), ("x-a", "1"), ("x-a", "ä"), ("expect", "100-Continue")]
    assert (one.length, one.waits, one.is_socket, one.host) == (None, True, False, "")


def test_a_head_of_http_2_says_the_length() -> None:
    """By which a body that breaks off is known."""
    assert head_of_fields([*FIELDS, (b"content-length", b"12")]).length == 12
    assert head_of_fields([*FIELDS, (b"content-length", b"0")]).length == 0


def test_cookies_of_http_2_are_one_field() -> None:
    """Browsers send each in a field of its own, which joined by a comma would be others (RFC 9113, 8.2.3)."""
    request = head_of_fields([*FIELDS, (b"cookie", b"a=1"), (b"x-a", b"1"), (b"cookie", b"b=2; c=3")]).request
    assert request.value("cookie") == "a=1; b=2; c=3"
    assert [name for name, _ in request.headers] == ["host", "x-a", "cookie"]


def test_a_head_of_http_2_without_authority_has_the_host() -> None:
    """As a proxy from HTTP/1.1 sends it; and the host of a whole URI counts."""
    one = head_of_fields([*FIELDS[:1], (b":path", b"http://Other/a?b"), (b":scheme", b"http"), (b"host", b"localhost")])
    assert (one.request.headers, one.request.path, one.host) == ([("host", "localhost")], "/a", "other")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b":method", b"post"), (b":method", b"CONNECT"), (b":method", b""), (b":method", b"P ST"),
        (b":method", b"\xff"),
        (b"x-a", b"a\x01b"), (b"x-a", b"\x7f"), (b"x(a)", b"1"),
        (b":path", b""), (b":path", b"/a b"), (b":path", b"/\xe9"), (b":path", b"/\x7f"),
    ],
)  # fmt: skip
def test_a_head_of_http_2_that_http_1_would_not_have_is_refused(name: bytes, value: bytes) -> None:
    """By the same grammar."""
    with pytest.raises(RefusedError):
        head_of_fields([*(one for one in FIELDS if one[0] != name), (name, value)])
