"""Requests over a plain connection, each buffer behind its length."""

from __future__ import annotations

import ssl
import struct

import pytest
import trustme

from invoker.errors import Status
from invoker.protocols.graphpipe.client.addresses import parse
from invoker.protocols.graphpipe.client.failure import GraphPipeError, NotReached
from invoker.protocols.graphpipe.client.raw import RawLink
from invoker.tensors import Code, Written
from tests.protocols.graphpipe.client.peer import Answer, frame, nobody, refusing, serving

REQUEST = Written([bytearray(b"abc"), memoryview(b"defg")], 7)


@pytest.fixture
def linked():
    """Connects to a server."""
    links = []

    def make(url, **settings):
        links.append(RawLink(parse(url), timeout_s=10, **settings))
        return links[-1]

    yield make
    for link in links:
        link.close()


@pytest.mark.parametrize("is_unix", [False, True])
def test_G016_each_buffer_goes_behind_its_length(linked, tmp_path, is_unix: bool) -> None:
    """Both ways, over TCP and over a Unix socket; several on one connection."""
    path = tmp_path / "m.sock" if is_unix else None
    with serving(frame(b"first"), frame(b"second"), is_raw=True, path=path) as peer:
        link = linked(f"unix://{path}" if path else f"tcp://{peer.address}")
        replies = [link.ask(REQUEST), link.ask(REQUEST)]
        assert link.is_usable
    assert [bytes(reply.body) for reply in replies] == [b"first", b"second"]
    assert replies[0].status is None
    assert [seen.body for seen in peer.seen] == [b"abcdefg"] * 2
    assert peer.connections == 1


@pytest.mark.parametrize("raw", [b"", b"\5\0", struct.pack("<I", 5), struct.pack("<I", 5) + b"four"])
def test_GT50_an_end_in_the_middle_is_no_answer(linked, raw: bytes) -> None:
    """Wherever it comes."""
    with serving(Answer(raw, "closed"), is_raw=True) as peer:
        link = linked(f"tcp://{peer.address}")
        with pytest.raises(GraphPipeError, match=r"bytes of \d are missing") as lost:
            link.ask(REQUEST)
        assert not link.is_usable
    assert (lost.value.code, lost.value.status, lost.value.is_retryable) == (None, Status.UNAVAILABLE, False)


@pytest.mark.parametrize(("length", "code"), [(0, Code.MALFORMED), (101, Code.TOO_LARGE), (2**32 - 1, Code.TOO_LARGE)])
def test_GT50_lengths_that_cannot_be_are_refused(linked, length: int, code: Code) -> None:
    """Before anything is allocated for them."""
    with serving(Answer(struct.pack("<I", length)), is_raw=True) as peer:
        link = linked(f"tcp://{peer.address}", limit_bytes=100)
        with pytest.raises(GraphPipeError) as refused:
            link.ask(REQUEST)
        assert not link.is_usable
    assert (refused.value.code, refused.value.http_status) == (code, None)


def test_a_plain_connection_may_be_secured(linked) -> None:
    """With a context that trusts the server, and with no other."""
    authority = trustme.CA()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    ours = ssl.create_default_context()
    with serving(frame(b"secret"), is_raw=True, tls=theirs) as peer:
        url = f"tcp://{peer.address}"
        with pytest.raises(NotReached, match="certificate"):
            linked(url, tls=ours).ask(REQUEST)
        authority.configure_trust(ours)
        link = linked(url, tls=ours)
        assert link.ask(REQUEST).body == b"secret"
        link.close()


def test_G112_a_reset_is_an_error_without_a_code(linked) -> None:
    """The function may have run."""
    with serving(Answer(ending="reset"), is_raw=True) as peer, pytest.raises(GraphPipeError) as lost:
        linked(f"tcp://{peer.address}").ask(REQUEST)
    assert (lost.value.code, lost.value.is_retryable) == (None, False)


def test_nobody_there_may_be_tried_again(linked, tmp_path) -> None:
    """Over TCP and over a socket."""
    for url in (f"tcp://{nobody()}", f"unix://{tmp_path}/none.sock"):
        with pytest.raises(NotReached, match="cannot be reached"):
            linked(url).ask(REQUEST)


def test_a_server_that_refuses_before_it_has_read_is_heard(linked) -> None:
    """What it said is in our hands, and the connection is of no more use."""
    large = Written([memoryview(bytes(8 << 20))], 8 << 20)
    with refusing(frame(b"too large").raw) as address:
        link = linked(f"tcp://{address}")
        assert bytes(link.ask(large).body) == b"too large"
        assert not link.is_usable


def test_a_silent_server_is_given_up() -> None:
    """After the time that each wait has."""
    with serving(Answer(ending="silent"), is_raw=True) as peer:
        link = RawLink(parse(f"tcp://{peer.address}"), timeout_s=0.05)
        with pytest.raises(GraphPipeError, match="the time is up") as late:
            link.ask(REQUEST)
    assert late.value.status is Status.DEADLINE_EXCEEDED


def test_what_was_cut_before_it_was_connected_is_not_sent(linked) -> None:
    """The connection is closed as soon as there is one."""
    with serving(frame(b"x"), is_raw=True) as peer:
        link = linked(f"tcp://{peer.address}")
        link.abort()
        with pytest.raises(NotReached, match="was given up"):
            link.ask(REQUEST)
    assert peer.seen == []
