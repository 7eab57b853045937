"""`tests.attack.probe`: what a probe says of a server that answers, and of servers that fail it in each way."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.attack.probe import REQUEST, Ask, Probe, ask

pytestmark = [
    pytest.mark.timeout(10),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which bytes were acknowledged"),
]

_ANSWER = b"HTTP/1.1 %d -\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def serving(*treatments: Callable[[socket.socket], object]) -> Iterator[tuple[str, int]]:
    """A server that treats each connection as the next of these says, and ends it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for treat in treatments:
                sock, _ = listener.accept()
                with sock:
                    treat(sock)

        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()
        thread.join()


def answer(sock: socket.socket, status: int = 200) -> None:
    assert sock.recv(1000) == REQUEST
    sock.sendall(_ANSWER % status)


def is_busy(sock: socket.socket) -> None:
    answer(sock, 503)


def read_only(sock: socket.socket) -> None:
    assert sock.recv(1000) == REQUEST


def leave_unread(sock: socket.socket) -> None:
    assert sock.recv(1000, socket.MSG_PEEK) == REQUEST


def stay(sock: socket.socket) -> None:
    """Until the client has gone."""
    while sock.recv(1000):
        pass


@pytest.mark.parametrize(
    ("treat", "outcome"),
    [(answer, "200"), (is_busy, "503"), (read_only, "empty"), (leave_unread, "reset"), (stay, "timeout")],
)
def test_a_request_that_has_come_is_known_whatever_became_of_it(
    treat: Callable[[socket.socket], object], outcome: str
) -> None:
    """The server's kernel has taken it, whether the server reads it or not."""
    with serving(treat) as address:
        one = ask(address, patience_s=1.0)
    assert (one.outcome, one.phase, one.has_come, one.is_well) == (outcome, "receive", True, outcome == "200")
    assert list(one.took_s) == ["connect", "send", "receive"]
    assert f"{outcome} at receive, the request had come (connect " in str(one)


def test_a_request_that_comes_after_the_end_has_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the probe were held up between its connect and its request."""
    is_ended = threading.Event()
    connect = socket.create_connection

    def slow(*args: object, **named: object) -> socket.socket:
        sock = connect(*args, **named)  # type: ignore[arg-type]  # as it was called
        assert is_ended.wait(5)
        return sock

    def end(sock: socket.socket) -> None:
        sock.close()
        is_ended.set()

    monkeypatch.setattr("tests.attack.probe.socket.create_connection", slow)
    with serving(end) as address:
        one = ask(address)
    assert one.outcome in ("empty", "reset", "broken pipe")
    assert not one.has_come
    assert "the request had not come" in str(one)


def test_who_is_not_let_in_has_not_asked() -> None:
    """No one listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        one = ask(taken.getsockname())
    assert (one.outcome, one.phase, one.has_come, list(one.took_s)) == ("refused", "connect", False, ["connect"])


def probed(monkeypatch: pytest.MonkeyPatch, *asks: Ask) -> Probe:
    """A probe that was stopped at once, and so asks on one occasion; what becomes of each request."""
    coming = iter(asks)
    monkeypatch.setattr("tests.attack.probe.ask", lambda _: next(coming))
    probe = Probe(("127.0.0.1", 0), lambda: 0.0)
    probe._is_over.set()
    probe.run()
    assert not list(coming), "it has asked too seldom"
    return probe


def test_a_probe_asks_again_only_if_its_request_had_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock says; a server that never waits for the request loses it in the end."""
    well, silent, lost = Ask("200", has_come=True), Ask("empty"), Ask("empty", has_come=True)
    probe = probed(monkeypatch, silent, silent, well)
    assert (probe.answers, probe.repeated, probe.losses) == (1, 2, [])
    probe = probed(monkeypatch, silent, lost)
    assert (probe.answers, probe.repeated, probe.losses) == (0, 1, [lost])
    probe = probed(monkeypatch, *[silent] * 10)
    assert (probe.answers, probe.repeated, probe.losses) == (0, 9, [silent])
