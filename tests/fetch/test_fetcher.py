"""`invoker.fetch.fetcher`: references are fetched by policy, piece by piece, and stopped in time."""

from __future__ import annotations

import asyncio
import gc
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from invoker.errors import ConfigError, InvocationError, Status, StatusError
from invoker.fetch.fetcher import Fetcher, FetchPolicy
from invoker.fetch.hosts import Address
from tests.transports.webpeer import LOOPBACK, MOST, fetcher, get, ok, peer, redirect, reply


async def refused(policy: FetchPolicy, uri: str) -> str:
    fetching = Fetcher(policy)
    with pytest.raises(InvocationError) as caught:
        await get(fetching, uri)
    await fetching.close()
    assert caught.value.status is Status.PERMISSION_DENIED
    return str(caught.value)


def threads() -> int:
    return sum(thread.name == "invoker-fetch" for thread in threading.enumerate())


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def all_left() -> None:
    """A thread says that it is done a moment before it is gone."""
    for thread in threading.enumerate():
        if thread.name == "invoker-fetch":
            thread.join(5)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    "uri",
    ["file:///etc/passwd", "http://example.org/", "https://example.org/", "ftp://x/", "gopher://x/", "x:y", "HTTP://x"],
)
async def test_E050_ET66_ref_file_default_refused_and_all_others(uri: str) -> None:
    """Nothing is allowed that the operator did not allow; the text names the scheme."""
    scheme = uri.partition(":")[0].lower()
    text = await refused(FetchPolicy(), uri)
    assert text == f"Invoker: Reference Refused: references of the scheme '{scheme}' are not allowed here"
    assert threads() == 0


async def test_E050_each_scheme_is_allowed_by_itself(tmp_path: Path) -> None:
    """Files do not open the web, nor the web files."""
    assert "'http'" in await refused(FetchPolicy(roots=(tmp_path,)), "http://example.org/")
    assert "'file'" in await refused(FetchPolicy(http="public"), f"file://{tmp_path}")
    assert "'ftp'" in await refused(FetchPolicy(roots=(tmp_path,), http="public"), "ftp://example.org/")


@pytest.mark.parametrize("uri", ["", "etc/passwd", "/etc/passwd", "./x", "//example.org/x", "example.org"])
async def test_E058_a_relative_uri_is_refused(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not looked for in the working directory, even where that is a root."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert "is not an absolute URI" in await refused(FetchPolicy(roots=(tmp_path,), http="public"), uri)


async def test_E053_a_file_comes_in_pieces_on_the_loop(tmp_path: Path) -> None:
    """Read in a thread, given here."""
    (tmp_path / "x").write_bytes(bytes(1_000_000))
    here = threading.get_ident()
    pieces: list[int] = []

    def deliver(piece: bytes) -> None:
        assert threading.get_ident() == here
        pieces.append(len(piece))

    fetching = Fetcher(FetchPolicy(roots=(tmp_path,)))
    await fetching.fetch(f"file://{tmp_path}/x", MOST, deliver)
    assert sum(pieces) == 1_000_000
    assert max(pieces) < 128 * 1024
    with pytest.raises(InvocationError, match="Limit Exceeded"):
        await fetching.fetch(f"file://{tmp_path}/x", 999_999, deliver)
    await fetching.close()


async def test_E055_pieces_come_as_they_are_sent() -> None:
    """The first is here before the peer sends the second."""
    go = asyncio.Event()

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(200, "Content-Length: 6", body=b"abc"))
        await writer.drain()
        await go.wait()
        writer.write(b"def")

    pieces: list[bytes] = []

    def deliver(piece: bytes) -> None:
        pieces.append(piece)
        go.set()

    async with peer(slowly) as served, fetcher(served.port) as fetching:
        await fetching.fetch(f"http://example.org:{served.port}/", MOST, deliver)
    assert pieces == [b"abc", b"def"]


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the client is gone."""
    await reader.read()


async def hang_in_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    await reader.read()


async def hang_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, "Content-Length: 1000", body=b"some"))
    await reader.read()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte of a header now and then: each of them in time, all of them never."""
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    gone = asyncio.ensure_future(reader.read())
    while not (await asyncio.wait({gone}, timeout=0.02))[0]:
        writer.write(b"y")


@pytest.mark.parametrize("answer", [hang, hang_in_headers, hang_in_body, drip])
async def test_E055_ET68_ref_http_timeout(answer: Callable) -> None:
    """The time counts as a whole, however busy the peer looks; then the connection is gone."""
    async with peer(answer) as served, fetcher(served.port, timeout_s=0.3) as fetching:
        started = time.monotonic()
        with pytest.raises(InvocationError, match=r"took longer than 0\.3 s") as caught:
            await get(fetching, f"http://example.org:{served.port}/")
        assert 0.25 < time.monotonic() - started < 3
        assert caught.value.status is Status.UNAVAILABLE
        await served.left.wait()


async def test_E055_redirects_share_the_time() -> None:
    """Each in time, all together not."""

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.wait([asyncio.ensure_future(reader.read())], timeout=0.15)
        writer.write(redirect("/"))

    async with peer(slow) as served, fetcher(served.port, timeout_s=0.4, redirects=100) as fetching:
        with pytest.raises(InvocationError, match="took longer"):
            await get(fetching, f"http://example.org:{served.port}/")
        assert 1 < served.connections < 10


@pytest.mark.parametrize("answer", [hang, hang_in_headers, hang_in_body, drip])
async def test_cancelling_ends_the_transfer(answer: Callable) -> None:
    """The peer sees that we are gone, and the thread ends."""
    async with peer(answer) as served, fetcher(served.port) as fetching:
        fetch = asyncio.ensure_future(get(fetching, f"http://example.org:{served.port}/"))
        await served.asked.wait()
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        await served.left.wait()
        await fetching.close()
        all_left()


async def test_cancelling_ends_a_tls_handshake() -> None:
    """A peer that takes the connection and never answers the greeting."""
    greeted = asyncio.Event()
    gone = asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        greeted.set()
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with fetcher(port) as fetching:
        fetch = asyncio.ensure_future(get(fetching, f"https://example.org:{port}/"))
        await greeted.wait()
        fetch.cancel()
        await gone.wait()
        with pytest.raises(asyncio.CancelledError):
            await fetch
    server.close()


async def test_cancelling_a_tls_transfer_ends_it() -> None:
    """In the middle of an encrypted body."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("example.org").configure_cert(context)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    came = asyncio.Event()
    async with peer(hang_in_body, tls=context) as served, fetcher(served.port, tls=trust) as fetching:
        uri = f"https://example.org:{served.port}/"
        fetch = asyncio.ensure_future(fetching.fetch(uri, MOST, lambda piece: came.set()))
        await came.wait()
        fetch.cancel()
        await served.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await fetch


async def test_nothing_is_given_after_cancelling() -> None:
    """Even when it had arrived already."""
    pieces: list[bytes] = []

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(200, body=bytes(10_000_000)))
        await writer.drain()

    async with peer(flood) as served, fetcher(served.port) as fetching:
        first = asyncio.Event()

        def deliver(piece: bytes) -> None:
            pieces.append(piece)
            first.set()

        fetch = asyncio.ensure_future(fetching.fetch(f"http://example.org:{served.port}/", 20_000_000, deliver))
        await first.wait()
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        count = len(pieces)
        await served.left.wait()
        await fetching.close()
        assert len(pieces) == count


async def test_a_receiver_that_raises_ends_the_transfer() -> None:
    """Its error comes out; the connection is closed."""

    def full(piece: bytes) -> None:
        raise StatusError(Status.RESOURCE_EXHAUSTED, "Full")

    async with peer(hang_in_body) as served, fetcher(served.port) as fetching:
        with pytest.raises(InvocationError, match="Full"):
            await fetching.fetch(f"http://example.org:{served.port}/", MOST, full)
        await served.left.wait()


async def test_a_receivers_own_timeout_error_is_not_taken_for_ours() -> None:
    """Only the clock of the fetch says that it was late."""

    def late(piece: bytes) -> None:
        raise TimeoutError("mine")

    async with peer(ok(b"x")) as served, fetcher(served.port) as fetching:
        with pytest.raises(TimeoutError, match="mine"):
            await fetching.fetch(f"http://example.org:{served.port}/", MOST, late)


async def test_a_resolver_that_hangs_is_left_behind_but_keeps_its_slot() -> None:
    """Nothing can end it; so that they do not heap up, the next fetch waits, as long as it may."""
    back = threading.Event()

    def stuck(host: str, port: int) -> list[Address]:
        back.wait(10)
        return [LOOPBACK]

    async with peer(ok(b"x")) as served:
        policy = FetchPolicy(http="public", ports=(served.port,), timeout_s=0.2)
        fetching = Fetcher(policy, resolve=stuck, is_public=lambda address: True, slots=1)
        uri = f"http://example.org:{served.port}/"
        for _ in range(2):
            with pytest.raises(InvocationError, match="took longer"):
                await get(fetching, uri)
            assert threads() == 1
        back.set()
        assert await get(fetching, uri) == b"x"
        await fetching.close()
        assert served.connections == 1, "what was given up connects to nobody"


async def test_many_fetches_run_at_once() -> None:
    """All of them, and none is left."""
    async with peer(ok(bytes(100_000))) as served, fetcher(served.port) as fetching:
        uri = f"http://example.org:{served.port}/"
        contents = await asyncio.gather(*[get(fetching, uri) for _ in range(50)])
        assert contents == [bytes(100_000)] * 50
        await fetching.close()
        all_left()


async def test_closing_ends_what_is_under_way() -> None:
    """Whoever waits for it sees an end."""
    async with peer(hang) as served, fetcher(served.port) as fetching:
        fetch = asyncio.ensure_future(get(fetching, f"http://example.org:{served.port}/"))
        await served.asked.wait()
        await fetching.close()
        with pytest.raises(InvocationError, match="Reference Failed"):
            await fetch


async def test_a_system_without_threads_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot is given back."""

    def no(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with peer(ok(b"x")) as served:
        policy = FetchPolicy(http="public", ports=(served.port,))
        fetching = Fetcher(policy, resolve=lambda *_: [LOOPBACK], is_public=lambda address: True, slots=1)
        uri = f"http://example.org:{served.port}/"
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", no)
            with pytest.raises(InvocationError, match="no thread is free"):
                await get(fetching, uri)
        assert await get(fetching, uri) == b"x"
        await fetching.close()


async def test_no_socket_is_left_open() -> None:
    """After a content, a refusal, a failure and a redirect; a forgotten one would be a warning, and that an error."""
    answers = {
        "/": ok(b"x"),
        "/gone": reply(404),
        "/on": redirect("/"),
        "/off": redirect("file:///x"),
        "/big": ok(bytes(9)),
    }
    before = descriptors()
    async with peer(answers) as served, fetcher(served.port) as fetching:
        base = f"http://example.org:{served.port}"
        for path in ("/", "/on"):
            assert await get(fetching, base + path, 5) == b"x"
        for path in ("/gone", "/off", "/big"):
            with pytest.raises(InvocationError):
                await get(fetching, base + path, 5)
        await fetching.close()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert descriptors() <= before


@pytest.mark.parametrize(
    "policy", [FetchPolicy(roots=(Path("relative"),)), FetchPolicy(http=""), FetchPolicy(http="a b")]
)
def test_a_policy_that_cannot_be_meant_is_refused_at_start(policy: FetchPolicy) -> None:
    """Before a port opens."""
    with pytest.raises(ConfigError):
        Fetcher(policy)


async def test_E054_the_hint_comes_without_roots_too() -> None:
    """E-054: whoever writes two slashes is told of the third, whether files are allowed or not."""
    with pytest.raises(
        InvocationError, match=r"'path' in it is an authority: a path needs three slashes, file:///path"
    ):
        await Fetcher(FetchPolicy()).fetch("file://path/to/file/part1", 10, lambda _: None)
