"""`invoker.transports.tls`: certificates for both transports."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from invoker.errors import ConfigError
from invoker.transports.tls import TlsFiles


class Pem:
    """Files of one authority, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.issued = self.authority.issue_cert("localhost")
        self.cert = self.file("cert.pem", b"".join(one.bytes() for one in self.issued.cert_chain_pems))
        self.key = self.file("key.pem", self.issued.private_key_pem.bytes())
        self.ca = self.file("ca.pem", self.authority.cert_pem.bytes())

    def file(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)


@pytest.fixture
def pem(tmp_path: Path) -> Pem:
    return Pem(tmp_path)


def test_no_certificate_is_plain_text() -> None:
    """Nothing is read."""
    assert TlsFiles.of("", "") is None


def test_a_context_speaks_modern_tls_and_http_2(pem: Pem) -> None:
    """Client certificates are not asked for without an authority for them."""
    files = TlsFiles.of(pem.cert, pem.key)
    assert files is not None
    context = files.server_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_NONE


def test_a_client_authority_demands_client_certificates(pem: Pem) -> None:
    """That is mTLS."""
    files = TlsFiles.of(pem.cert, pem.key, pem.ca)
    assert files == TlsFiles(pem.cert, pem.key, pem.ca, client_auth=True)
    assert files.server_context().verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("client_ca", [False, True])
def test_grpc_gets_credentials(pem: Pem, client_ca: bool) -> None:
    """The same files serve the gRPC transport."""
    files = TlsFiles.of(pem.cert, pem.key, pem.ca if client_ca else "")
    assert files is not None
    assert isinstance(files.grpc_credentials(), grpc.ServerCredentials)


def test_a_missing_file_is_named(pem: Pem) -> None:
    """With its setting and the reason."""
    for cert, key, ca, setting in (
        ("/nope.pem", pem.key, "", "CERT"),
        (pem.cert, "/nope.pem", "", "KEY"),
        (pem.cert, pem.key, "/nope.pem", "CLIENT_CA"),
    ):
        with pytest.raises(ConfigError, match=rf"INVOKER_TLS_{setting}: cannot read /nope\.pem: No such file"):
            TlsFiles.of(cert, key, ca)


def test_an_unreadable_file_is_named(pem: Pem) -> None:
    """A folder is no file."""
    with pytest.raises(ConfigError, match=r"INVOKER_TLS_CERT: cannot read .*: Is a directory"):
        TlsFiles.of(str(pem.folder), pem.key)


def test_a_key_of_another_certificate_is_told(pem: Pem) -> None:
    """The two files must match."""
    other = pem.file("other.pem", pem.authority.issue_cert("localhost").private_key_pem.bytes())
    with pytest.raises(ConfigError, match=r"other\.pem is not the key of the certificate .*cert\.pem"):
        TlsFiles.of(pem.cert, other)


def test_files_without_pem_are_told(pem: Pem) -> None:
    """Both may be at fault, since OpenSSL does not say."""
    garbage = pem.file("garbage.pem", b"garbage")
    with pytest.raises(ConfigError, match="are not a certificate and its key in PEM"):
        TlsFiles.of(garbage, pem.key)
    with pytest.raises(ConfigError, match=r"INVOKER_TLS_CLIENT_CA: .*garbage\.pem has no certificate"):
        TlsFiles.of(pem.cert, pem.key, garbage)


def test_a_key_with_a_passphrase_is_told_instead_of_asked_for(pem: Pem) -> None:
    """A server has nobody at its terminal."""
    key = serialization.load_pem_private_key(pem.issued.private_key_pem.bytes(), None)
    lock = serialization.BestAvailableEncryption(b"secret")
    traditional = serialization.PrivateFormat.PKCS8
    locked = pem.file("locked.pem", key.private_bytes(serialization.Encoding.PEM, traditional, lock))
    with pytest.raises(ConfigError, match=r"locked\.pem: the private key has a passphrase"):
        TlsFiles.of(pem.cert, locked)


def test_demanding_certificates_needs_an_authority(pem: Pem) -> None:
    """Else every client would be refused."""
    with pytest.raises(ConfigError, match="INVOKER_TLS_CLIENT_CA names no authority"):
        TlsFiles(pem.cert, pem.key, client_auth=True).server_context()


def test_a_key_is_needed(pem: Pem) -> None:
    """The text names the setting."""
    with pytest.raises(ConfigError, match="INVOKER_TLS_KEY names no file"):
        TlsFiles.of(pem.cert, "")
