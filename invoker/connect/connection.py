"""What the commands that call a server have in common: where it is, how to reach it, and whom to trust."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from invoker.connect.failure import UsageError
from invoker.connect.tls import Tls

__all__ = ["add_connection", "add_tls", "pairs", "positive", "target_of", "tls_of"]


_SCHEMES = ("dns", "ipv4", "ipv6", "unix", "unix-abstract", "vsock", "xds")


def add_connection(group: argparse._ArgumentGroup) -> None:
    """Add the options for metadata and for the connection."""
    group.add_argument("--metadata", metavar="KEY=VALUE", action="append", default=[], help="gRPC metadata; repeatable")
    group.add_argument(
        "--connect-timeout",
        metavar="SECONDS",
        type=positive,
        default=10.0,
        help="how long to wait for a connection; default 10",
    )


def add_tls(parser: argparse.ArgumentParser) -> None:
    """Add ``--tls``, ``--ca``, ``--cert`` and ``--key`` to a command."""
    tls = parser.add_argument_group("TLS; each option but --tls implies it")
    tls.add_argument("--tls", action="store_true", help="secure the connection; trust the usual authorities")
    tls.add_argument("--ca", metavar="FILE", help="trust the authorities in this PEM file instead")
    tls.add_argument("--cert", metavar="FILE", help="our certificate (PEM), for invokers that ask for one")
    tls.add_argument("--key", metavar="FILE", help="the private key of --cert (PEM)")
    tls.add_argument("--server-name", metavar="NAME", help="expect this name in the certificate, not that of HOST")


def positive(text: str) -> float:
    """A time in seconds.

    Raises:
        argparse.ArgumentTypeError: It is no number, or not more than 0.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give seconds, more than 0")
    return seconds


def target_of(text: str) -> str:
    """Where to connect; a lone ``:PORT`` is on this machine.

    Raises:
        UsageError: It is neither HOST:PORT nor a name with a scheme that gRPC knows.
    """
    if text.partition(":")[0] in _SCHEMES:
        return text
    scheme, sign, rest = text.rpartition("://")
    host, colon, port = rest.rstrip("/").rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16
    is_host = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if sign:
        example = f"{host}:{port}" if colon and is_port and is_host else "127.0.0.1:8081"
        raise UsageError(f"{text!r} is not HOST:PORT; leave {scheme}:// out: {example}")
    if not (colon and is_port and is_host):
        met = f"has the port {port!r}" if colon and port and is_host else "names no port"
        raise UsageError(f"{text!r} {met}, and is not HOST:PORT; give for example {_example(host)}")
    return f"127.0.0.1{text}" if not host else text


def _example(host: str) -> str:
    return f"{host}:8081" if host and ":" not in host else "[::1]:8081" if host else "127.0.0.1:8081"


def pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """What was given as NAME=VALUE.

    Raises:
        UsageError: One has another form.
    """
    parted = [text.partition("=") for text in texts]
    for text, (key, sign, _) in zip(texts, parted, strict=True):
        if not sign or not key.strip():
            raise UsageError(f"{option} {text!r}: give NAME=VALUE")
    return [(key.strip(), value) for key, _, value in parted]


def tls_of(args: argparse.Namespace) -> Tls | None:
    """What the options of TLS mean; None: plain text.

    Raises:
        UsageError: A file cannot be read.
        ValueError: Only one of certificate and key is given.
    """
    given: tuple[str | None, ...] = (args.ca, args.cert, args.key, args.server_name)
    if not args.tls and not any(given):
        return None
    readable: Callable[[str], bool] = lambda path: os.access(path, os.R_OK) and not Path(path).is_dir()  # noqa: E731
    for option, path in (("--ca", args.ca), ("--cert", args.cert), ("--key", args.key)):
        if path and not readable(path):
            raise UsageError(f"{option}: cannot read {path}")
    return Tls(ca=args.ca or None, cert=args.cert or None, key=args.key or None, server_name=args.server_name or "")
