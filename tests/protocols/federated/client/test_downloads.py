"""`invoker.protocols.federated.client.downloads`: bodies of a real socket, and what is refused."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator

import pytest

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.federated.client.cache import Cache
from invoker.protocols.federated.client.downloads import Downloads, Source, select_uri


class Server:
    """A server that answers each request with the same bytes, and closes.

    Attributes:
        uri: Of anything at it.
        answer: What it sends.
        requests: What it was sent.
    """

    def __init__(self) -> None:
        self.answer = b""
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://localhost:{self._socket.getsockname()[1]}/federated/secret?x=1"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self._socket.accept()
            except OSError:
                return
            with one:
                self.requests.append(one.recv(65536))
                one.sendall(self.answer)

    def close(self) -> None:
        """Stop; idempotent."""
        if self._socket.fileno() < 0:
            return
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server."""
    made = Server()
    yield made
    made.close()


@pytest.fixture
def downloads() -> Downloads:
    """Downloads of at most 1000 bytes."""
    return Downloads(Cache(None, lambda: 0.0), timeout_s=5, most_bytes=1000)


def answer(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """An answer, with a length."""
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def failed(downloads: Downloads, source: Source) -> CallFailed:
    """How a download fails."""
    with pytest.raises(CallFailed) as caught:
        downloads.fetch(source, "plan")
    return caught.value


def test_F069_a_body_is_fetched(server: Server, downloads: Downloads) -> None:
    """With a length, in chunks, or until the connection ends; what came inline is not fetched."""
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\npla\r\n1\r\nn\r\n0\r\n\r\n"
    for server.answer in (answer(b"plan"), chunked, b"HTTP/1.1 200 OK\r\n\r\nplan"):
        assert downloads.fetch(Source(uri=server.uri), "plan") == b"plan"
    assert server.requests[0].startswith(b"GET /federated/secret?x=1 HTTP/1.1\r\nHost: localhost:")
    assert downloads.fetch(Source(b"inline"), "plan") == b"inline"
    server.answer = answer(b"")
    assert downloads.fetch(Source(uri=server.uri), "plan") == b""


@pytest.mark.parametrize(
    "uri",
    [
        "", "http://127.0.0.1:80/x", "http://localhost/x", "http://localhost.evil:80/x", "http://localhost:80@evil/x",
        "HTTP://localhost:80/x", "ftp://localhost:80/x", "/x", "https://", "https://u@h/x", "http://localhost:x/",
        "https://h/a b", "https://h/\r\nX: y", "https://[::1/x", "file:///etc/passwd", "http://h:80/x",
    ],
)  # fmt: skip
def test_F068_F069_other_addresses_are_refused(downloads: Downloads, uri: str) -> None:
    """Only https, and http with the literal prefix of this machine; an empty address, too."""
    error = failed(downloads, Source(uri=uri))
    assert error.status is Status.INVALID_ARGUMENT
    assert error.detail.startswith("plan fetch failed: ")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (400, Status.INVALID_ARGUMENT), (401, Status.UNAUTHENTICATED), (403, Status.PERMISSION_DENIED),
        (404, Status.NOT_FOUND), (409, Status.ABORTED), (429, Status.RESOURCE_EXHAUSTED), (499, Status.CANCELLED),
        (501, Status.UNIMPLEMENTED), (503, Status.UNAVAILABLE), (504, Status.DEADLINE_EXCEEDED),
        (418, Status.FAILED_PRECONDITION), (500, Status.INTERNAL), (302, Status.INTERNAL), (204, Status.INTERNAL),
    ],
)  # fmt: skip
def test_F070_each_answer_has_a_status(server: Server, downloads: Downloads, code: int, status: Status) -> None:
    """As the table says; a redirect is not followed."""
    server.answer = answer(b"", "Location: http://localhost:1/", status=f"{code} Whatever")
    error = failed(downloads, Source(uri=server.uri))
    assert error.status is status
    assert error.detail == f"plan fetch failed: the server answered {code} Whatever"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        (answer(b"plan!", length=4), Status.OUT_OF_RANGE, "more than the 4 bytes"),
        (answer(b"pla", length=4), Status.INVALID_ARGUMENT, "has 3 bytes of 4"),
        (answer(b"plan", "Content-Encoding: gzip"), Status.INVALID_ARGUMENT, "compressed with 'gzip'"),
        (answer(bytes(1001)), Status.RESOURCE_EXHAUSTED, "has 1001 bytes, which exceeds the limit of 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1001), Status.RESOURCE_EXHAUSTED, "exceeds the limit of 1000 bytes"),
        (answer(b"plan", "Content-Type: a/b+gzip"), Status.INVALID_ARGUMENT, "cannot be inflated"),
        (answer(gzip.compress(b"plan")[:-3], "Content-Type: a/b+gzip"), Status.INVALID_ARGUMENT, "cut off"),
        (answer(gzip.compress(b"plan") + b"x", "Content-Type: a/b+gzip"), Status.INVALID_ARGUMENT, "follows it"),
        (
            answer(gzip.compress(bytes(1001)), "Content-Type: a/b+gzip"),
            Status.RESOURCE_EXHAUSTED,
            "when it is decompressed",
        ),
        (b"no HTTP", Status.UNAVAILABLE, "localhost"),
    ],
)
def test_F071_bodies_that_are_not_what_they_say_are_refused(
    server: Server, downloads: Downloads, sent: bytes, status: Status, text: str
) -> None:
    """Lengths, encodings and sizes; an inflated body is bounded, too."""
    server.answer = sent
    error = failed(downloads, Source(uri=server.uri))
    assert error.status is status
    assert text in error.detail
    assert "secret" not in error.detail


def test_a_server_that_is_not_there_is_unavailable(server: Server, downloads: Downloads) -> None:
    """So the client comes again as after any transient failure."""
    server.close()
    assert failed(downloads, Source(uri=server.uri)).status is Status.UNAVAILABLE


def test_F072_a_cached_body_is_fetched_once(server: Server) -> None:
    """By its id, until its age is reached; it is kept as it came, before it is inflated. Without an id it is not."""
    clock = [0.0]
    cache = Cache(None, lambda: clock[0])
    downloads = Downloads(cache, timeout_s=5)
    packed = gzip.compress(b"plan")
    server.answer = answer(packed, "Content-Type: application/octet-stream+gzip")
    source = Source(uri=server.uri, cache_id="c1", max_age_s=60)
    for _ in range(3):
        assert downloads.fetch(source, "plan") == b"plan"
    assert len(server.requests) == 1
    kept = cache.get("c1")
    assert kept is not None
    assert kept.body == packed
    clock[0] = 60.0
    downloads.fetch(source, "plan")
    assert len(server.requests) == 2
    for _ in range(2):
        downloads.fetch(Source(uri=server.uri, max_age_s=60), "plan")
    assert len(server.requests) == 4


def test_F073_slices_have_addresses_made_of_a_template() -> None:
    """Plain substitution, keys in base 10, nothing escaped."""
    template = "https://h/{served_at_id}/k={key_base10}&again={key_base10}"
    assert select_uri(template, "a/b", 17) == "https://h/a/b/k=17&again=17"
    for wrong in ("http://h/{served_at_id}/{key_base10}", "https://h/{served_at_id}", "https://h/{key_base10}", ""):
        with pytest.raises(CallFailed, match="cannot name a slice; expected") as caught:
            select_uri(wrong, "a", 1)
        assert caught.value.status is Status.INVALID_ARGUMENT
