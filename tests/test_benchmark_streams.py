"""The client of streams compares every byte, counts what it says, and does not wait for ever."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from itertools import islice

import pytest

from benchmarks import items, streamers
from benchmarks.bodies import WrongReplyError
from benchmarks.functions import gen_items
from benchmarks.measure import shown
from benchmarks.open_streams import _all_open, _close, _opened
from benchmarks.rows import ROWS, row_named
from benchmarks.servers import PEER_PYTHON, Series, all_series, serving
from benchmarks.streamers import Items, Lines, Peer, Plan, Talk, compare, drive, peers, run
from benchmarks.wire import chunk, masked, unchunked, unmasked

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
SERVERS = ["limit", *(["astarlette"] if PEER_PYTHON.exists() else [])]


def _plan(address: str, kind: str, **more: object) -> Plan:
    path = "/agen_json/ws" if kind == "talk" else "/"
    known = {"form": items.NDJSON, "connections": 2, "calls": 6, "each": 50, "window": 4}
    return Plan(kind=kind, address=address, path=path, **{**known, **more})  # type: ignore[arg-type]  # by its name


@pytest.fixture(scope="module", params=SERVERS)
def echoing(request: pytest.FixtureRequest) -> Iterator[str]:
    """Servers of echoes."""
    with serving(Series(request.param, "", request.param).command("lines"), core=None, transport="http") as (
        address,
        _,
    ):
        yield address


@pytest.fixture(scope="module", params=SERVERS)
def giving(request: pytest.FixtureRequest) -> Iterator[str]:
    """Servers of streams."""
    with serving(Series(request.param, "", request.param).command("items"), core=None, transport="http") as (
        address,
        _,
    ):
        yield address


@pytest.mark.parametrize("form", [items.SSE, items.NDJSON])
def test_streams_are_compared_whole(giving: str, form: str) -> None:
    """Every connection gets its share of streams, and each has a time to its first item."""
    took: list[float] = []
    clients = peers(_plan(giving, "items", form=form), took)
    assert drive(clients) > 0
    _closed(clients)
    assert len(took) == 6
    assert run(_plan(giving, "items", form=form))["p50"] > 0


def test_another_stream_is_a_wrong_reply(giving: str) -> None:
    """The text says where it differs."""
    clients = peers(_plan(giving, "items"), [])
    for one in clients:
        assert isinstance(one, Items)
        one.expected = one.expected.replace(b'"n":7,', b'"n":8,')
    with pytest.raises(WrongReplyError, match=r"differ at \d+: b'7,"):
        drive(clients)
    _closed(clients)


@pytest.mark.parametrize("kind", ["lines", "talk"])
def test_an_echo_is_compared_whole(echoing: str, kind: str) -> None:
    """All messages of each connection come back, in order, and then the end."""
    took: list[float] = []
    clients = peers(_plan(echoing, kind), took)
    assert drive(clients) > 0
    _closed(clients)
    assert all(isinstance(one, Lines | Talk) and one.left == 0 for one in clients)
    assert not [one for one in clients if isinstance(one, Talk) and one.due]


def test_another_message_is_a_wrong_reply(echoing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers with something of the same length is found."""
    monkeypatch.setattr(streamers, "_TOLD", unmasked(items.TOLD.replace(b"1234", b"1235")))
    clients = peers(_plan(echoing, "talk"), [])
    with pytest.raises(WrongReplyError, match="not the expected messages"):
        drive(clients)
    _closed(clients)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (HEAD + chunk(b"abc"), "incomplete"),
        (HEAD + chunk(b"abc") + LAST + b"x", "bytes after the last"),
        (HEAD + chunk(b"abd") + LAST, "differ at 2"),
        (HEAD + chunk(b"ab") + LAST, "2 bytes, 3 expected"),
        (HEAD.replace(b"200", b"206") + chunk(b"abc") + LAST, "not a stream"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "not a stream"),
    ],
)
def test_a_response_that_is_not_the_right_one_is_refused(data: bytes, said: str) -> None:
    """A cut one, a longer or shorter one, another status."""
    compare(HEAD + chunk(b":\n\na") + chunk(b"bc") + LAST, b"abc")
    with pytest.raises(WrongReplyError, match=said):
        compare(data, b"abc")


def test_a_line_that_is_cut_counts_once() -> None:
    """However the lines come in parts, as many are sent as have come back."""
    ours, theirs = socket.socketpair()
    client = Lines(ours, b"", 5, 2)
    client.begin()
    whole = HEAD + chunk(items.LINE) * 5 + LAST
    cut = whole.index(b"}\n") + 1
    for part in (whole[:cut], whole[cut : cut + 1], whole[cut + 1 : -2]):
        assert not client.arrived(part, 0.0)
    assert client.arrived(whole[-2:], 0.0)
    assert theirs.recv(1 << 16) == chunk(items.LINE) * 5 + LAST
    for sock in (ours, theirs):
        sock.close()


def test_frames_are_masked_as_a_client_must() -> None:
    """A short one and one whose length takes two bytes more."""
    for size in (5, 300):
        text = bytes(range(1, 6)) * (size // 5)
        frame = masked(text)
        start = 2 if size < 126 else 4
        mask, body = frame[start : start + 4], frame[start + 4 :]
        assert bytes(one ^ mask[at % 4] for at, one in enumerate(body)) == text
        assert unmasked(text)[2 if size < 126 else 4 :] == text
        assert frame[1] & 0x80
    assert unchunked(b"xx" + chunk(b"abc") + LAST, 2) == b"abc"


def test_open_streams_are_waited_for() -> None:
    """One that gives nothing is told from one that has given its first item."""
    with serving(Series("limit", "", "limit").command("items"), core=None, transport="http") as (address, _):
        held = _opened(address, 3)
        _all_open(held)
        _close(held)


def test_the_function_and_the_client_have_the_same_items() -> None:
    """A stream of the function, written as lines, is what the client waits for."""
    lines = b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in gen_items(3))
    assert lines == items.streamed(items.NDJSON, 3)
    events = items.streamed(items.SSE, 3)
    assert lines.splitlines() == [part.partition(b"data: ")[2] for part in islice(events.split(b"\n\n"), 3)]
    assert events.endswith(items.END_EVENT)


def test_streams_are_measured_beside_starlette() -> None:
    """Sync beside sync where there is such, and WebSockets by async functions only."""
    served = {row.name: [one.name for one in all_series("", "/older") if one.serves(row)] for row in ROWS}
    assert served["sse8"] == ["gen", "agen", "starlette", "astarlette", "limit"]
    assert served["talk8"] == ["agen", "astarlette", "limit"]
    assert served["paced"] == ["agen", "astarlette"]
    assert {"starlette", "astarlette", "limit"}.isdisjoint(served["square"] + served["8x16"])
    assert row_named("sse8").rate(2.0) == 64 * 2000 / 2
    assert [row_named(name).one for name in ("sse8", "talk8", "square", "calls")] == [
        "an item", "a message", "a request", "a call",
    ]  # fmt: skip


def test_small_figures_have_a_digit_more() -> None:
    """Below ten."""
    assert [shown(value) for value in (1234.4, 9.96, 9.94, 0.46)] == ["1,234", "10", "9.9", "0.5"]


def _closed(clients: list[Peer]) -> None:
    for one in clients:
        one.sock.close()
