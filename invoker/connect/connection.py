"""Shared code of commands that call a server: the options of the address and the connection, and the exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from invoker.connect.failure import CallFailed, ConnectFailed, UsageError
from invoker.errors import InvokerError
from invoker.errors.wording import printable

if TYPE_CHECKING:
    from invoker.connect.tls import Tls

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
    tls.add_argument("--cert", metavar="FILE", help="client certificate (PEM), for servers that ask for one")
    tls.add_argument("--key", metavar="FILE", help="the private key of --cert (PEM)")
    tls.add_argument("--server-name", metavar="NAME", help="expect this name in the certificate, not that of HOST")


def positive(text: str) -> float:
    """Parse a time in seconds.

    Raises:
        argparse.ArgumentTypeError: The text is not a number, or not more than 0.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; give seconds, more than 0")
    return seconds


def count(text: str) -> int:
    """Parse a whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: The text is not such a number.
    """
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; give 1 or more")
    return int(text)


def ended(command: Callable[[], int], hint: Callable[[CallFailed], str] = lambda _: "") -> int:
    """Run a command, and return its exit code; an error is printed on stderr.

    Args:
        command: Returns the exit code of a clean end.
        hint: Returns advice for a failed call; empty if there is none.
    """
    try:
        return command()
    except UsageError as error:
        return complain(str(error), 2)
    except CallFailed as error:
        return complain(str(error), 3 if isinstance(error, ConnectFailed) else 1, hint(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # drop what is still buffered
        return 141
    except KeyboardInterrupt:
        return 130
    except (OSError, InvokerError) as error:
        return complain(str(error), 1)


def complain(text: str, code: int, hint: str = "") -> int:
    """Print an error on stderr, and return the exit code."""
    print(f"error: {printable(text)}", file=sys.stderr)
    if hint:
        print(f"hint: {printable(hint)}", file=sys.stderr)
    return code


def target_of(text: str) -> str:
    """The address to connect to; ``:PORT`` alone means this machine.

    Raises:
        UsageError: The text is neither HOST:PORT nor a name with a scheme of gRPC.
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
    """The names and values of options that were given as NAME=VALUE.

    Raises:
        UsageError: A text has another form.
    """
    parted = [text.partition("=") for text in texts]
    for text, (key, sign, _) in zip(texts, parted, strict=True):
        if not sign or not key.strip():
            raise UsageError(f"{option} {text!r}: give NAME=VALUE")
    return [(key.strip(), value) for key, _, value in parted]


def tls_of(args: argparse.Namespace) -> Tls | None:
    """The TLS settings that the options describe; None: plain text.

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
    from invoker.connect.tls import Tls  # it imports grpc, which --help does not need

    return Tls(ca=args.ca or None, cert=args.cert or None, key=args.key or None, server_name=args.server_name or "")
