"""Requests by HTTP, and the many ways in which an answer ends."""

from __future__ import annotations

import ssl
import threading

import pytest
import trustme

from invoker.errors import Status
from invoker.protocols.graphpipe.client.addresses import parse
from invoker.protocols.graphpipe.client.failure import GraphPipeError, NotReached
from invoker.protocols.graphpipe.client.http import HttpLink
from invoker.tensors import Written
from tests.protocols.graphpipe.client.peer import Answer, nobody, page, refusing, serving

REQUEST = Written([bytearray(b"abc"), memoryview(b"defg")], 7)


@pytest.fixture
def asked():
    """Asks a server once or more over one connection."""
    links = []

    def make(url, **settings):
        links.append(HttpLink(parse(url), timeout_s=10, **settings))
        return links[-1]

    yield make
    for link in links:
        link.close()


def test_a_request_is_posted_in_one_body(asked) -> None:
    """Its pieces one after the other, with their length and what we take back."""
    with serving(page(b"answer")) as peer:
        reply = asked(f"{peer.http}/graphpipe?x=1", headers={"X-Trace": "7"}).ask(REQUEST)
    (seen,) = peer.seen
    assert seen.body == b"abcdefg"
    assert seen.head.startswith("POST /graphpipe?x=1 HTTP/1.1\r\n")
    assert [seen.header(name) for name in ("content-length", "x-trace", "host")] == ["7", "7", peer.address]
    assert seen.header("content-type") == "application/octet-stream"
    assert "accept-encoding" not in seen.head.lower()
    assert (bytes(reply.body), reply.status, reply.reason, reply.is_error) == (b"answer", 200, "OK", False)


def test_headers_of_the_caller_win(asked) -> None:
    """Whatever their case."""
    with serving(page(b"")) as peer:
        asked(peer.http, headers={"Content-Type": "x/y", "HOST": "model"}).ask(REQUEST)
    assert peer.seen[0].head.lower().count("content-type") == 1
    assert (peer.seen[0].header("content-type"), peer.seen[0].header("host")) == ("x/y", "model")


def test_a_connection_carries_several_requests(asked) -> None:
    """And is usable between them; a refusal does not end it."""
    with serving(page(b"1"), page(b"no", "400 Bad Request"), page(b"3")) as peer:
        link = asked(peer.http)
        assert not link.is_usable
        replies = []
        for _ in range(3):
            replies.append(link.ask(REQUEST))
            assert link.is_usable
    assert [(reply.status, bytes(reply.body)) for reply in replies] == [(200, b"1"), (400, b"no"), (200, b"3")]
    assert peer.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"HTTP/1.0 200 OK\r\n\r\nanswer", "closed"),
        Answer(b"HTTP/1.1 200 OK\r\n\r\nanswer", "closed"),
        Answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nanswer"),
        Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nans\r\n3\r\nwer\r\n0\r\n\r\n"),
        Answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"),
    ],
    ids=["1.0", "until it closes", "connection: close", "chunked", "after a 100"],
)
def test_G111_a_body_ends_in_many_ways(asked, answer: Answer) -> None:
    """By the end of the connection, by its last chunk, by its length."""
    with serving(answer) as peer:
        link = asked(peer.http)
        reply = link.ask(REQUEST)
        assert (bytes(reply.body), reply.status) == (b"answer", 200)
        is_kept = b"chunked" in answer.raw or b"100" in answer.raw
        assert link.is_usable is is_kept
        assert bytes(link.ask(REQUEST).body) == b"answer"
        assert peer.connections == (1 if is_kept else 2)


def test_GT57_an_answer_that_is_cut_short_is_no_answer(asked) -> None:
    """Neither by its length, nor in a chunk."""
    for raw in (
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nansw",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nansw",
        b"HTTP/1.1 2",
        b"nonsense\r\n\r\n",
        b"",
    ):
        with serving(Answer(raw, "closed")) as peer, pytest.raises(GraphPipeError) as lost:
            asked(peer.http).ask(REQUEST)
        assert (lost.value.code, lost.value.status, lost.value.is_retryable) == (None, Status.UNAVAILABLE, False)


def test_G112_a_reset_connection_is_an_error_without_a_code(asked) -> None:
    """As a panic of the Go server resets it; the function may have run."""
    with serving(Answer(ending="reset")) as peer:
        link = asked(peer.http)
        with pytest.raises(GraphPipeError, match="gave no answer") as lost:
            link.ask(REQUEST)
        assert not link.is_usable
    assert (lost.value.code, lost.value.http_status, lost.value.is_retryable) == (None, None, False)


def test_nobody_there_may_be_tried_again(asked, tmp_path) -> None:
    """Over TCP and over a socket."""
    for url in (f"http://{nobody()}", f"unix+http://{tmp_path}/none.sock"):
        with pytest.raises(NotReached, match="cannot be reached") as unreached:
            asked(url).ask(REQUEST)
        assert unreached.value.is_retryable


def test_a_server_that_refuses_before_it_has_read_is_heard(asked) -> None:
    """It closes while we still send; what it said is in our hands."""
    large = Written([memoryview(bytes(8 << 20))], 8 << 20)
    said = b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large"
    with refusing(said) as address:
        link = asked(f"http://{address}")
        reply = link.ask(large)
        assert not link.is_usable
    assert (reply.status, bytes(reply.body)) == (413, b"too large")


def test_G096_larger_answers_are_refused(asked) -> None:
    """By the length they say, or while they are read."""
    for answer in (
        page(bytes(101)),
        Answer(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(101), "closed"),
        Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + bytes(101) + b"\r\n0\r\n\r\n"),
        Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "silent"),
    ):
        with serving(answer) as peer, pytest.raises(GraphPipeError, match="limit of 100") as refused:
            asked(peer.http, limit_bytes=100).ask(REQUEST)
        assert (refused.value.code, refused.value.http_status) == (13, 200)
    with serving(page(bytes(100))) as peer:
        assert len(asked(peer.http, limit_bytes=100).ask(REQUEST).body) == 100


def test_a_packed_answer_is_refused(asked) -> None:
    """We ask for none; identity is none."""
    with serving(page(b"x", "200 OK", "Content-Encoding: gzip")) as peer, pytest.raises(GraphPipeError, match="gzip"):
        asked(peer.http).ask(REQUEST)
    with serving(page(b"x", "200 OK", "Content-Encoding: identity")) as peer:
        assert asked(peer.http).ask(REQUEST).body == b"x"


def test_an_error_header_is_noticed(asked) -> None:
    """As our own servers send it."""
    with serving(page(b"x", "200 OK", "X-GraphPipe-Error: 4")) as peer:
        assert asked(peer.http).ask(REQUEST).is_error


def test_a_silent_server_is_given_up() -> None:
    """After the time that each wait has."""
    with serving(Answer(ending="silent")) as peer:
        link = HttpLink(parse(peer.http), timeout_s=0.05)
        with pytest.raises(GraphPipeError, match="the time is up") as late:
            link.ask(REQUEST)
    assert (late.value.code, late.value.status) == (None, Status.DEADLINE_EXCEEDED)


@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart", b"HTTP/1.0 200 OK\r\n\r\npart"]
)
def test_another_thread_may_cut_a_request(asked, begun: bytes) -> None:
    """Whoever waits gets an error at once, and the server sees the end; a part is no answer."""
    with serving(Answer(begun, "silent")) as peer:
        link = asked(peer.http)
        found = []

        def ask() -> None:
            with pytest.raises(GraphPipeError) as cut:
                link.ask(REQUEST)
            found.append(cut.value)

        thread = threading.Thread(target=ask, name="asking")
        thread.start()
        assert peer.asked.wait(10)
        link.abort()
        thread.join(10)
        assert peer.gone.wait(10)
    assert (found[0].code, found[0].status) == (None, Status.UNAVAILABLE)


def test_what_was_cut_before_it_was_connected_is_not_sent(asked) -> None:
    """The connection is closed as soon as there is one."""
    with serving(page(b"x")) as peer:
        link = asked(peer.http)
        link.abort()
        with pytest.raises(NotReached, match="was given up"):
            link.ask(REQUEST)
    assert peer.seen == []


@pytest.mark.parametrize("form", ["unix+http://{path}", "unix+http://{quoted}/graphpipe"])
def test_G097_http_goes_over_a_unix_socket(asked, tmp_path, form: str) -> None:
    """With a path of its own, or without."""
    path = tmp_path / "m.sock"
    url = form.format(path=path, quoted=str(path).replace("/", "%2F"))
    with serving(page(b"x"), path=path) as peer:
        assert asked(url).ask(REQUEST).body == b"x"
    assert peer.seen[0].head.startswith(f"POST {'/graphpipe' if 'graphpipe' in form else '/'} HTTP")
    assert peer.seen[0].header("host") == "localhost"


def test_G097_https_is_checked(asked) -> None:
    """A certificate of nobody we trust is no connection."""
    authority = trustme.CA()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    with serving(page(b"secret"), tls=theirs) as peer:
        with pytest.raises(NotReached, match="certificate"):
            asked(peer.http).ask(REQUEST)
        link = asked(peer.http, tls=ours)
        assert link.ask(REQUEST).body == b"secret"
        link.close()
