"""`Tls`: the certificate of a client, and the roots that it trusts; `open_channel`: makes its gRPC channel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio

Pem = str | Path | bytes
"""A path to a PEM file, or its content as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS settings of a client; ``Tls()`` trusts the roots that are part of gRPC.

    Attributes:
        ca: Certificates of the authorities to trust.
        cert: The client's own certificate chain, for servers that require one (mTLS); needs ``key``.
        key: The private key of ``cert``.
        server_name: The name to expect in the server's certificate, if it differs from the host in the address.

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


def open_channel(target: str, tls: Tls | None, max_bytes: int, *more: tuple[str, int]) -> grpc.aio.Channel:
    """Make a client's channel, which connects on first use and again after the connection was lost.

    Proxies from environment variables are ignored, since servers are on the same network. Two clients of one target
    have separate connections, so that neither disturbs the other.

    Args:
        target: ``host:port``, or any name that gRPC understands.
        tls: The TLS settings; None: plain text.
        max_bytes: The largest message that is accepted.
        more: Further options of the channel.

    Raises:
        OSError: A file of ``tls`` cannot be read.
    """
    options = [
        ("grpc.max_receive_message_length", max_bytes),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        *more,
    ]
    if tls is None:
        return grpc.aio.insecure_channel(target, options)
    return grpc.aio.secure_channel(target, tls.credentials(), [*options, *tls.options()])


def _read(pem: Pem | None) -> bytes | None:
    return pem if pem is None or isinstance(pem, bytes) else Path(pem).read_bytes()
