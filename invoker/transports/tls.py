"""Certificates for the gRPC and HTTP transports, checked before a port is opened."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from invoker.errors import ConfigError

if TYPE_CHECKING:
    import grpc

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of one server.

    Attributes:
        cert: The server's certificate, followed by its chain.
        key: Its private key, without a passphrase.
        client_ca: The authorities of client certificates; empty: clients need none.
        client_auth: Whether a client must show a certificate of ``client_ca``.
    """

    cert: str
    key: str
    client_ca: str = ""
    client_auth: bool = False

    @classmethod
    def of(cls, cert: str, key: str, client_ca: str = "") -> TlsFiles | None:
        """The files, checked; None when ``cert`` is empty: plain text. A client authority demands client certificates.

        Raises:
            ConfigError: A file is missing, unreadable, of the wrong kind, or does not match the others.
        """
        if not cert:
            return None
        files = cls(cert, key, client_ca, bool(client_ca))
        files.server_context()
        return files

    def server_context(self) -> ssl.SSLContext:
        """The TLS context of the HTTP transport: TLS 1.2 or newer; HTTP/2 and HTTP/1.1 by ALPN.

        Raises:
            ConfigError: As for `of`.
        """
        self._read()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_CIPHERS)
        context.options |= ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(["h2", "http/1.1"])
        try:
            # Without a callback OpenSSL would ask for the passphrase on the terminal, and wait.
            context.load_cert_chain(self.cert, self.key, password=_no_passphrase)
        except ssl.SSLError as error:
            raise ConfigError(_why(self.cert, self.key, error)) from None
        if self.client_ca:
            try:
                context.load_verify_locations(self.client_ca)
            except ssl.SSLError as error:
                raise ConfigError(
                    f"INVOKER_TLS_CLIENT_CA: {self.client_ca} has no certificate: {error.reason}"
                ) from None
        if self.client_auth:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """The credentials of the gRPC transport.

        Raises:
            ConfigError: As for `of`; gRPC itself would only report that it could not bind.
        """
        import grpc  # costs 60 ms, which a process without gRPC need not pay

        self.server_context()
        cert, key, client_ca = self._read()
        return grpc.ssl_server_credentials([(key, cert)], client_ca, require_client_auth=self.client_auth)

    def _read(self) -> tuple[bytes, bytes, bytes | None]:
        if self.client_auth and not self.client_ca:
            raise ConfigError("client certificates are required, but INVOKER_TLS_CLIENT_CA names no authority for them")
        cert = _bytes("INVOKER_TLS_CERT", self.cert)
        key = _bytes("INVOKER_TLS_KEY", self.key)
        return cert, key, _bytes("INVOKER_TLS_CLIENT_CA", self.client_ca) if self.client_ca else None


def _bytes(setting: str, path: str) -> bytes:
    if not path:
        raise ConfigError(f"{setting} names no file")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: cannot read {path}: {error.strerror}") from None


class _NeedsPassphrase(ssl.SSLError):
    """The private key has a passphrase, which a server cannot ask for."""

    reason = "the private key has a passphrase; give one without"


def _no_passphrase() -> str:
    raise _NeedsPassphrase


def _why(cert: str, key: str, error: ssl.SSLError) -> str:
    if isinstance(error, _NeedsPassphrase):
        return f"INVOKER_TLS_KEY: {key}: {error.reason}"
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"INVOKER_TLS_KEY: {key} is not the key of the certificate {cert}"
    return (
        f"INVOKER_TLS_CERT, INVOKER_TLS_KEY: {cert} and {key} are not a certificate and its key in PEM: {error.reason}"
    )
