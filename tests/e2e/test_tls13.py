"""The handler that speaks TLS 1.3 only, before the gRPC port of a real server."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from invoker.client import SyncRiffClient, Tls
from tests.serving import TestServer

HANDLER = Path(__file__).parents[2] / "deploy" / "tls13.py"


class Handler:
    """The handler, and the files that clients need."""

    def __init__(self, folder: Path, to: str) -> None:
        authority = trustme.CA()
        issued, own = authority.issue_cert("localhost"), authority.issue_cert("tester@example.org")
        self.ca, self.cert, self.key = (str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem"))
        self.own_cert, self.own_key = str(folder / "own.pem"), str(folder / "own.key")
        authority.cert_pem.write_to_path(self.ca)
        issued.cert_chain_pems[0].write_to_path(self.cert)
        issued.private_key_pem.write_to_path(self.key)
        own.cert_chain_pems[0].write_to_path(self.own_cert)
        own.private_key_pem.write_to_path(self.own_key)
        command = [sys.executable, str(HANDLER), "--listen", "127.0.0.1:0", "--to", to, "--cert", self.cert]
        self.process = subprocess.Popen(
            [*command, "--key", self.key, "--client-ca", self.ca], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r":(\d+),", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])

    def shake(self, version: ssl.TLSVersion, *, has_cert: bool = True) -> str | None:
        """The version that is agreed upon; reading shows whether the certificate is taken."""
        context = ssl.create_default_context(cafile=self.ca)
        context.maximum_version = version
        if has_cert:
            context.load_cert_chain(self.own_cert, self.own_key)
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection(("127.0.0.1", self.port), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as sock,
        ):
            sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            if not sock.recv(9):
                raise ConnectionError("the front closed the connection")
            return sock.version()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def handler(tmp_path: Path) -> Iterator[Handler]:
    server = TestServer("functions.square:square")
    made = Handler(tmp_path, server.grpc)
    yield made
    made.close()
    server.close()


def test_T165_nothing_below_tls_1_3_gets_through(handler: Handler) -> None:
    """The handshake of a client that stops at TLS 1.2 fails, as that of one without a certificate; a good one calls."""
    assert handler.shake(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        handler.shake(ssl.TLSVersion.TLSv1_2)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handler.shake(ssl.TLSVersion.TLSv1_3, has_cert=False)
    tls = Tls(ca=handler.ca, cert=handler.own_cert, key=handler.own_key)
    with SyncRiffClient(f"localhost:{handler.port}", tls=tls) as client:
        assert [one.value for one in client.invoke([[7]]).collect()] == [49]
