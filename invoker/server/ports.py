"""Ports that several processes share: reserves them, and lets one process leave them without losing a connection.

A connection belongs to the listener that got its first segment (SYN). When that listener closes, the kernel resets the
connections that it has not accepted. So a leaving worker first drops new SYNs by a socket filter; the client's kernel
sends another SYN a second later, which goes to one of the other listeners. Then the worker waits until all begun
connections are accepted, and only then closes.

The listeners are found by their port among the process's own descriptors, because gRPC does not show its own. Where
the system cannot do this (it takes Linux), the listener stays open until the server stops.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import stat
import struct
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from invoker.errors import ConfigError, StartupError

HANDSHAKE_S = 0.25
"""Seconds to wait for handshakes whose SYN came before the filter: a round trip around the world."""

_LOOK_S = 0.01
_LOOKS = 200
_DESCRIPTORS = Path("/proc/self/fd")
_SO_ATTACH_FILTER = 26
_ESTABLISHED, _CLOSE_WAIT = 1, 8

# Classic BPF over the TCP header: drop when SYN is set and ACK is not.
_DROP_SYN = (
    (0x30, 0, 0, 13),  # load the flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # take
)


def reserve(host: str, port: int, transport: str, variable: str) -> socket.socket:
    """Make a socket that holds a port for the workers and never listens.

    Args:
        host: Address that the workers listen on.
        port: 0 takes a free one.
        transport: The name of the setting, for the error.
        variable: The environment variable by which another port can be set.

    Raises:
        StartupError: The port is taken, or this machine does not have the address.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("several workers need a system whose processes can share a port (SO_REUSEPORT)")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # Without SO_REUSEPORT: two servers must not share a port by accident.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(address)
        except OSError:
            sock.close()
            raise
    except OSError as error:
        raise StartupError(
            f"cannot listen on {host}:{port} for {transport}: {error.strerror}; set {variable}"
        ) from None
    return sock


async def leave(ports: Collection[int], closing: Callable[[], None] = lambda: None) -> bool:
    """Stop listening. Connections that were begun are still accepted; later ones go to another process.

    Args:
        ports: The ports of the listeners.
        closing: Called when no connection waits any more; closes listeners whose servers must do that themselves.

    Returns:
        Whether this was possible; if not, the listeners are unchanged.
    """
    found = listeners(ports)
    try:
        for one in found:
            _drop_new(one)
        await asyncio.sleep(HANDSHAKE_S)
        for _ in range(_LOOKS):
            if not any(map(_queued, found)):
                break
            await asyncio.sleep(_LOOK_S)  # there is no event for an empty queue
        closing()
        for one in found:
            with suppress(OSError):  # the socket does not listen any more
                one.shutdown(socket.SHUT_RD)
    finally:
        for one in found:
            one.close()
    return bool(found)


def listeners(ports: Collection[int]) -> list[socket.socket]:
    """Copies of the sockets of this process that listen on one of the ports; the caller closes them."""
    return [one for one in _sockets(ports) if _keep(one, one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1)]


def connections(ports: Collection[int]) -> int:
    """How many clients are connected to this process on one of the ports."""
    count = 0
    for one in _sockets(ports):
        with one:
            count += one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in (_ESTABLISHED, _CLOSE_WAIT)
    return count


def _sockets(ports: Collection[int]) -> Iterator[socket.socket]:
    """Copies of the TCP sockets of this process that are bound to one of the ports; one for each socket."""
    seen = set()
    for path in list(_DESCRIPTORS.iterdir()) if _DESCRIPTORS.exists() else ():
        try:
            about = os.fstat(int(path.name))
            if not stat.S_ISSOCK(about.st_mode) or about.st_ino in seen:
                continue
            one = socket.socket(fileno=os.dup(int(path.name)))
        except OSError:  # closed meanwhile
            continue
        seen.add(about.st_ino)
        is_tcp = one.type == socket.SOCK_STREAM and one.family in (socket.AF_INET, socket.AF_INET6)
        if _keep(one, is_tcp and one.getsockname()[1] in ports):
            yield one


def _keep(one: socket.socket, is_wanted: bool) -> bool:  # noqa: FBT001
    if not is_wanted:
        one.close()
    return is_wanted


def _drop_new(listener: socket.socket) -> None:
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in _DROP_SYN))
    # struct sock_fprog: how many instructions, and where
    value = struct.pack("@HP", len(_DROP_SYN), ctypes.addressof(program))
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, value)


def _queued(listener: socket.socket) -> bool:
    """Whether a connection waits to be accepted. For a listener, ``tcpi_unacked`` counts these."""
    info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)
    return bool(len(info) >= 28 and struct.unpack_from("I", info, 24)[0])
