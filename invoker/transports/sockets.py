"""Binds the TCP and Unix sockets on which transports listen.

A Unix socket is a file. An existing socket without a listener is replaced; a socket that is served, and any other file
of that name, is left alone. Permissions are set before anybody can connect. The file is removed when its transport
stops, unless the name belongs to another socket by then.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from invoker.errors import StartupError

_BACKLOG: Final = 1024
"""How many connections may wait to be accepted."""

_MANY_FILES: Final = 65_536

_ADDRESS_SPACE: Final = 1024 * 2**20
_THREAD_SPACE: Final = 64 * 2**20
"""The least bytes of address space that a serving process reserves, and the bytes more for each core, since gRPC starts
threads."""

_ALIVE: Final = (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A peer that is silent for 20 s is probed four times; if it does not answer, the connection ends after 80 s."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a socket, for the texts of errors.

    Attributes:
        transport: The transport that listens on it.
        setting: The setting for another port or path.
        host_setting: The setting for another host.
    """

    transport: str
    setting: str
    host_setting: str = ""

    def refusal(self, place: str, error: OSError, setting: str = "") -> StartupError:
        """The error for a socket that cannot listen at a place, with the reason."""
        why = error.strerror or str(error)
        if error.errno == errno.EADDRNOTAVAIL:
            setting = self.host_setting
        return StartupError(f"cannot listen on {place} for {self.transport}: {why}; set {setting or self.setting}")


_GRPC = Purpose("gRPC", "GRPC_PORT", "INVOKER_HOST")


def no_grpc(address: str) -> StartupError:
    """Find out whether address or port is the reason why gRPC cannot listen, which grpcio does not report."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        family, kind, protocol, _, free = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(free)
    except OSError as error:
        return _GRPC.refusal(address, error, _GRPC.host_setting)
    return StartupError(f"cannot listen on {address} for {_GRPC.transport}: the port is in use; set {_GRPC.setting}")


def open_files() -> int:
    """The number of files, connections included, that this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY_FILES if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """Raise the limit of open files as far as the system allows.

    The usual limit of 1,024 exists for a system call (select) that no loop here uses any more. A process without free
    descriptors can accept no connection, at any transport.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have a further limit of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def check_address_space() -> None:
    """Refuse a limit of the address space that leaves no room for threads; gRPC's core would wait for threads for ever.

    Raises:
        StartupError: The limit is too low.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _ADDRESS_SPACE + (os.cpu_count() or 1) * _THREAD_SPACE
    if limit != resource.RLIM_INFINITY and limit < wanted:
        raise StartupError(
            f"the address space of this process is limited to {limit >> 20} MiB (ulimit -v), and {wanted >> 20} are "
            "needed, most of them for the stacks of threads, which are never filled; raise the limit, "
            "or limit the memory of the container instead"
        )


def bind_tcp(host: str, port: int, purpose: Purpose, *, share_port: bool = False) -> socket.socket:
    """Bind a listening socket; a port that another socket listens on is noticed at once.

    Args:
        host: Name or address; of several addresses the first one is taken. Brackets around IPv6 ones may stay.
        port: 0 takes a free one.
        purpose: The purpose of the socket, for errors.
        share_port: Whether other processes may bind the same port.

    Raises:
        StartupError: The address cannot be bound.
    """
    return _bound(_addresses(host, port, purpose)[0], f"{host}:{port}", purpose, share_port=share_port)


def bind_each(host: str, port: int, purpose: Purpose, *, share_port: bool = False) -> list[socket.socket]:
    """Bind a socket to each address of a name, as gRPC does: localhost may also have an address of IPv6.

    An address that this system does not have is skipped, unless it is the first one. Otherwise as `bind_tcp`.
    """
    first, *others = _addresses(host, port, purpose)
    made = [_bound(first, f"{host}:{port}", purpose, share_port=share_port)]
    taken = made[0].getsockname()[1]
    for family, (address, _, *rest) in others:
        try:
            one = (family, (address, taken, *rest))
            made.append(_bound(one, f"{address}:{taken}", purpose, share_port=share_port))
        except _NoAddress:
            continue
        except BaseException:
            for sock in made:
                sock.close()
            raise
    return made


class _NoAddress(StartupError):
    """Raised when this system does not have the address."""


def _addresses(host: str, port: int, purpose: Purpose) -> list[tuple[int, Any]]:
    """The family and the address of each socket address of a host, in the order of the system."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except OSError as error:
        raise purpose.refusal(f"{host}:{port}", error, purpose.host_setting) from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _bound(found: tuple[int, Any], place: str, purpose: Purpose, *, share_port: bool) -> socket.socket:
    family, address = found
    try:
        # Without the protocol's number asyncio does not turn Nagle's algorithm off, and each response takes 40 ms.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _NoAddress(purpose.refusal(place, error, purpose.host_setting).detail) from None
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free, a taken one is not
        if share_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        refusal = purpose.refusal(place, error)
        raise _NoAddress(refusal.detail) if error.errno == errno.EADDRNOTAVAIL else refusal from None
    return sock


def address_of(sock: socket.socket) -> str:
    """``host:port`` of a TCP socket, with the port that was taken."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reset(sock: socket.socket) -> None:
    """Let the close of a connection reset it, so that its peer does not take the close for a normal end."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def ask_whether_alive(sock: socket.socket) -> None:
    """Turn TCP keepalive on for a connection, so that a dead peer is noticed after 80 s."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE:
        if hasattr(socket, name):  # not every system has this option; without it this takes two hours
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class UnixSocket:
    """A Unix socket that listens, and its file.

    Args:
        path: The path of the file.
        purpose: The purpose of the socket, for errors.
        mode: Permissions of the file, in octal; users who may write to it may connect.

    Attributes:
        path: The path of the file.
        sock: The socket; the caller serves and closes it.

    Raises:
        StartupError: The path cannot be bound.
    """

    def __init__(self, path: str, purpose: Purpose, *, mode: str = "600") -> None:
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.setblocking(False)
            _unlink_stale(path)
            self.sock.bind(path)
            self._file = _identity(path)
            Path(path).chmod(int(mode, 8))
            self.sock.listen(_BACKLOG)  # before this no client can connect
        except OSError as error:
            self.sock.close()
            raise purpose.refusal(path, error) from None

    def remove(self) -> None:
        """Remove the file if it is still this socket's. Idempotent."""
        with suppress(OSError):
            if _identity(self.path) == self._file:
                Path(self.path).unlink()


def _identity(path: str) -> tuple[int, int]:
    about = Path(path).lstat()
    return about.st_dev, about.st_ino


def _unlink_stale(path: str) -> None:
    """Remove a socket that has no listener any more.

    Raises:
        OSError: A process listens on it, or whether one does cannot be found out.
    """
    try:
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            raise OSError(errno.EEXIST, "a file that is not a socket is there")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except BlockingIOError:
            pass  # a process listens, and its queue of connections is full
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
