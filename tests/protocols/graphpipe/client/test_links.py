"""Connections are kept, bounded, and never used when the server has closed them."""

from __future__ import annotations

import socket

import pytest

from invoker.errors import Status
from invoker.protocols.graphpipe.client.addresses import parse
from invoker.protocols.graphpipe.client.links import Links, Reply, connected, is_quiet, too_large
from invoker.tensors import Code, Written
from tests.protocols.graphpipe.client.peer import Answer, serving


class Scripted:
    """A link of which a test says how it is."""

    def __init__(self) -> None:
        self.is_usable = True
        self.is_closed = False

    def ask(self, written: Written) -> Reply:
        raise AssertionError("nothing is asked here")

    def abort(self) -> None:
        raise AssertionError("nothing is cut here")

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made() -> list[Scripted]:
    """All that were made."""
    return []


@pytest.fixture
def links(made: list[Scripted]) -> Links:
    """Connections that a test scripts."""

    def make() -> Scripted:
        made.append(Scripted())
        return made[-1]

    return Links(make)


def test_an_idle_connection_is_used_again(links: Links, made: list[Scripted]) -> None:
    """The one that was given back last."""
    first, second = links.take(), links.take()
    assert first is not second
    links.give(first)
    links.give(second)
    assert links.take() is second
    assert links.take() is first
    assert len(made) == 2


def test_one_that_the_server_closed_is_not(links: Links, made: list[Scripted]) -> None:
    """Neither if that is known when it is given back, nor if later."""
    first = links.take()
    made[0].is_usable = False
    links.give(first)
    assert made[0].is_closed
    second = links.take()
    links.give(second)
    made[1].is_usable = False
    assert links.take() is made[2]
    assert made[1].is_closed


def test_no_more_are_kept_than_eight(links: Links, made: list[Scripted]) -> None:
    """The rest is closed after its request."""
    taken = [links.take() for _ in range(10)]
    for link in taken:
        links.give(link)
    assert sum(link.is_closed for link in made) == 2


def test_closing_spares_those_in_use(links: Links, made: list[Scripted]) -> None:
    """They are closed when they are given back."""
    idle, used = links.take(), links.take()
    links.give(idle)
    links.close()
    links.close()
    assert [link.is_closed for link in made] == [True, False]
    links.give(used)
    assert made[1].is_closed
    with pytest.raises(RuntimeError, match="closed"):
        links.take()


def test_a_connection_is_quiet_until_something_comes() -> None:
    """Its end, too, is something."""
    with serving(Answer(b"x"), is_raw=True) as peer, connected(parse(f"tcp://{peer.address}"), 5) as sock:
        assert sock.gettimeout() == 5
        assert is_quiet(sock)
        sock.sendall(bytes(4))
        assert sock.recv(1, socket.MSG_PEEK) == b"x"
        assert not is_quiet(sock)
    assert not is_quiet(sock)


def test_a_path_that_is_no_socket_leaves_nothing_open(tmp_path) -> None:
    """The test run fails for sockets that nobody closes."""
    with pytest.raises(FileNotFoundError):
        connected(parse(f"unix://{tmp_path}/none.sock"), 5)


def test_G096_an_answer_that_is_too_large_says_so() -> None:
    """With our own code for it."""
    error = too_large(100, 10, 200)
    assert (error.code, error.http_status, error.status) == (Code.TOO_LARGE, 200, Status.UNKNOWN)
    assert "100 bytes, which exceeds the limit of 10" in error.message
