"""`Tls`: how a client proves who it is, and whom it trusts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc

__all__ = ["Tls"]

Pem = str | Path | bytes
"""A path to a PEM file, or its content as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS settings of a client; ``Tls()`` trusts the roots that gRPC brings along.

    Attributes:
        ca: Certificates of the authorities to trust.
        cert: Our own certificate chain, for invokers that ask for one (mTLS); needs ``key``.
        key: The private key of ``cert``.
        server_name: The name to expect in the invoker's certificate, when it is not the host that is dialled.

    Raises:
        ValueError: Only one of ``cert`` and ``key`` is given.
    """

    ca: Pem | None = None
    cert: Pem | None = None
    key: Pem | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ValueError("a client certificate needs both cert and key")

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files and make gRPC credentials.

        Raises:
            OSError: A file cannot be read.
        """
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self.ca), private_key=_read(self.key), certificate_chain=_read(self.cert)
        )

    def options(self) -> tuple[tuple[str, str], ...]:
        """Channel options that go with the credentials."""
        return (("grpc.ssl_target_name_override", self.server_name),) if self.server_name else ()


def _read(pem: Pem | None) -> bytes | None:
    return pem if pem is None or isinstance(pem, bytes) else Path(pem).read_bytes()
