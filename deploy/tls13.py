"""A handler that speaks TLS 1.3 only, for the gRPC port: grpcio cannot be told to refuse TLS 1.2.

    python deploy/tls13.py --listen 0.0.0.0:8443 --to 127.0.0.1:8081 --cert server.pem --key server.key

It ends TLS, asks for certificates of clients if ``--client-ca`` is given, and passes bytes on to the gRPC port, which
stays on loopback and speaks plain text there. nginx, HAProxy or Envoy do the same for those who run them already.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ssl
from collections.abc import Sequence

_BUFFER = 64 * 1024


def context_of(cert: str, key: str, client_ca: str = "") -> ssl.SSLContext:
    """TLS 1.3 or a refusal; HTTP/2 is agreed upon, as gRPC demands."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def serve(listen: str, to: str, context: ssl.SSLContext) -> asyncio.Server:
    """Pass each connection on; returns once it listens."""
    host, _, port = to.rpartition(":")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            print(f"{to} cannot be reached: {error}", flush=True)
            writer.close()
            return
        await asyncio.gather(_pump(reader, back_writer), _pump(back_reader, writer))

    own_host, _, own_port = listen.rpartition(":")
    return await asyncio.start_server(connected, own_host, int(own_port), ssl=context, limit=_BUFFER)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # one side is gone, so the other one is closed
        while data := await reader.read(_BUFFER):
            writer.write(data)
            await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", default="0.0.0.0:8443", help="where clients connect")
    parser.add_argument("--to", default="127.0.0.1:8081", help="the gRPC port")
    parser.add_argument("--cert", required=True, help="PEM file of the certificate chain")
    parser.add_argument("--key", required=True, help="PEM file of its key")
    parser.add_argument("--client-ca", default="", help="PEM file of the authority of clients")
    given = parser.parse_args(argv)
    server = await serve(given.listen, given.to, context_of(given.cert, given.key, given.client_ca))
    host, port = server.sockets[0].getsockname()[:2]
    print(f"TLS 1.3 on {host}:{port}, to {given.to}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
