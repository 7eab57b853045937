"""nghttp, h2load, curl and Node on the HTTP port, by HTTP/2: by preface, by ALPN, and by an upgrade that is ignored."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.interop.tools import run
from tests.serving import Served, serving

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(shutil.which("nghttp") is None, reason="nghttp is missing (Debian: nghttp2-client)"),
]

TYPED = ("-H", "content-type: application/json")


@dataclass(frozen=True)
class Port:
    """A port.

    Attributes:
        url: Its root.
        is_tls: Whether it speaks TLS.
        folder: A folder for bodies.
    """

    url: str
    is_tls: bool
    folder: Path

    def body(self, text: str) -> str:
        """A file with a body."""
        path = self.folder / "body"
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`functions.square:square` behind TLS."""
    folder = tmp_path_factory.mktemp("tls")
    issued = trustme.CA().issue_cert("127.0.0.1", "localhost")
    (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / "key.pem").write_bytes(issued.private_key_pem.bytes())
    files = ("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))
    with serving("functions.square:square", *files) as served:
        yield served


@pytest.fixture(params=["preface", "alpn"])
def port(request: pytest.FixtureRequest, square: Served, secured: Served, tmp_path: Path) -> Port:
    """The function in plain text and by TLS."""
    is_tls = request.param == "alpn"
    return Port(f"https://{secured.http}/" if is_tls else f"http://{square.http}/", is_tls, tmp_path)


def test_R155_nghttp_is_answered(port: Port) -> None:
    """It checks each frame, and says how each stream ended."""
    done = run("nghttp", "-v", *TYPED, "-d", port.body("7"), *(("-y",) if port.is_tls else ()), port.url)
    assert done.returncode == 0, done.stderr
    assert re.search(r":status: 200", done.stdout)
    assert "\n49" in done.stdout
    assert ("The negotiated protocol: h2" in done.stdout) == port.is_tls
    assert "END_STREAM" in done.stdout
    assert not re.search(r"GOAWAY.*\n.*error_code=(?!NO_ERROR)", done.stdout)


def test_R155_nghttp_asks_many_times_at_once(port: Port) -> None:
    """A hundred streams of one connection."""
    done = run("nghttp", "-ns", "-m", "100", *TYPED, "-d", port.body("7"), *(("-y",) if port.is_tls else ()), port.url)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"\s200\s", done.stdout)) == 100


@pytest.mark.parametrize(("clients", "streams"), [(1, 1), (4, 100)])
def test_R155_h2load_loses_nothing(port: Port, clients: int, streams: int) -> None:
    """All requests are answered with 200."""
    count = 400
    load = ("-n", str(count), "-c", str(clients), "-m", str(streams), *TYPED, "-d", port.body("7"))
    done = run("h2load", *load, port.url, limit_s=30)
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout, done.stdout
    assert f"status codes: {count} 2xx" in done.stdout


def test_R155_h2load_with_a_small_window(port: Port) -> None:
    """A body and a response that are longer than the windows, which it opens bit by bit."""
    text = "1" + " " * 300_000
    load = ("-n", "20", "-c", "2", "-m", "10", "-w", "10", "-W", "10", *TYPED, "-d", port.body(text))
    done = run("h2load", *load, port.url, limit_s=30)
    assert "20 succeeded, 0 failed" in done.stdout, done.stdout


def test_R155_curl_negotiates(port: Port) -> None:
    """HTTP/2 by ALPN, and by prior knowledge."""
    flag = "--http2" if port.is_tls else "--http2-prior-knowledge"
    done = run("curl", "-sSk", flag, *TYPED, "-d", "7", "-w", " %{http_version}", port.url)
    assert (done.returncode, done.stdout) == (0, "49 2"), done.stderr


def test_R155_an_upgrade_to_h2c_is_ignored(square: Served, tmp_path: Path) -> None:
    """The answer is one of HTTP/1.1, as RFC 9113 allows, which no longer knows this upgrade."""
    done = run("curl", "-sS", "--http2", *TYPED, "-d", "7", "-w", " %{http_version}", f"http://{square.http}/")
    assert (done.returncode, done.stdout) == (0, "49 1.1"), done.stderr
    (tmp_path / "body").write_text("7")
    done = run("nghttp", "-u", "-v", *TYPED, "-d", str(tmp_path / "body"), f"http://{square.http}/")
    assert "HTTP/1.1 200" in done.stdout + done.stderr or "HTTP Upgrade failed" in done.stdout + done.stderr
