"""`invoker.transports.sockets`: what transports listen on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from invoker.errors import StartupError
from invoker.transports.sockets import Purpose, UnixSocket, address_of, bind_each, bind_tcp, no_grpc, reset

TESTS = Purpose("tests", "--test", "INVOKER_HOST")


@contextmanager
def listening(path: Path, *, mode: str = "600") -> Iterator[UnixSocket]:
    one = UnixSocket(str(path), TESTS, mode=mode)
    with one.sock:
        yield one
    one.remove()


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("[::1]", "[::1]")])
def test_tcp_sockets_tell_the_port_that_they_took(host: str, shown: str) -> None:
    """Brackets around IPv6 addresses are optional, and always shown."""
    try:
        sock = bind_tcp(host, 0, TESTS)
    except StartupError as error:
        if "." in host:
            raise
        pytest.skip(str(error))  # this machine has no IPv6
    with closing(sock):
        place, _, port = address_of(sock).rpartition(":")
        assert place == shown
        with socket.create_connection((host.strip("[]"), int(port))) as client:
            assert client.getpeername()[1] == int(port)


def test_errors_name_the_place_and_where_to_change_it() -> None:
    """Another setting for a wrong host than for a taken port."""
    with closing(bind_tcp("127.0.0.1", 0, TESTS)) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(StartupError, match=rf"127\.0\.0\.1:{port} for tests: .*in use; set --test"):
            bind_tcp("127.0.0.1", port, TESTS)
    with pytest.raises(StartupError, match=r"nowhere\.invalid:0 for tests: .*; set INVOKER_HOST"):
        bind_tcp("nowhere.invalid", 0, TESTS)


def test_a_port_is_shared_on_demand_only() -> None:
    """By everybody who shares it."""
    with closing(bind_tcp("127.0.0.1", 0, TESTS, share_port=True)) as sock:
        port = sock.getsockname()[1]
        bind_tcp("127.0.0.1", port, TESTS, share_port=True).close()
        with pytest.raises(StartupError):
            bind_tcp("127.0.0.1", port, TESTS)


@pytest.mark.parametrize("mode", ["600", "660", "666"])
def test_G015_the_file_has_the_permissions_that_it_shall(tmp_path: Path, mode: str) -> None:
    """Whatever the process's own mask."""
    path = tmp_path / "s"
    mask = os.umask(0o077)
    try:
        with listening(path, mode=mode):
            assert path.stat().st_mode & 0o777 == int(mode, 8)
            connect(path)
    finally:
        os.umask(mask)
    assert not path.exists()


def test_G015_a_socket_that_nobody_serves_is_replaced(tmp_path: Path) -> None:
    """A process that was killed has left it."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with listening(path):
        connect(path)


def test_G015_a_socket_that_is_served_is_left_alone(tmp_path: Path) -> None:
    """Also when so many wait there that nobody can ask."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as client:
        other.bind(str(path))
        other.listen(0)
        with pytest.raises(StartupError, match=rf"{path} for tests: .*in use; set --test"):
            UnixSocket(str(path), TESTS)
        other.accept()[0].close()
        client.connect(str(path))
        with pytest.raises(StartupError, match="in use"):
            UnixSocket(str(path), TESTS)


@pytest.mark.parametrize(
    ("name", "why"), [("file", "is not a socket"), ("no/s", "No such file"), ("x" * 200, "too long")]
)
def test_G015_what_cannot_be_bound_is_a_clear_error(tmp_path: Path, name: str, why: str) -> None:
    """And no file is harmed."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StartupError, match=f"for tests: .*{why}.*; set --test"):
        UnixSocket(str(tmp_path / name), TESTS)
    assert (tmp_path / "file").read_text() == "mine"


def test_G015_only_its_own_file_is_removed(tmp_path: Path) -> None:
    """Another server may have taken the name meanwhile."""
    path = tmp_path / "s"
    with listening(path) as first:
        path.unlink()
        with listening(path):
            first.remove()
            connect(path)
    assert not path.exists()
    first.remove()


LIMITED = """
import resource
from invoker.transports.sockets import open_files, raise_open_files

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 800))
print(open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))
for _ in range(2):
    raise_open_files()
    print(open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_G101_a_process_may_have_as_many_connections_as_the_system_lets_it() -> None:
    """The soft limit is raised to the hard one, if that is asked for; doing so twice changes nothing."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["256 256 800", "800 800 800", "800 800 800"]


@pytest.mark.parametrize("host", ["nosuchhost.invalid", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_named_and_not_the_port(host: str) -> None:
    """By HTTP and by gRPC."""
    with pytest.raises(StartupError, match=r"for HTTP: .*; set INVOKER_HOST$"):
        bind_tcp(host, 0, Purpose("HTTP", "PORT", "INVOKER_HOST"))
    assert str(no_grpc(f"{host}:8081")).endswith("; set INVOKER_HOST")
    assert str(no_grpc("127.0.0.1:8081")).endswith("for gRPC: the port is in use; set GRPC_PORT")


def test_a_reset_connection_does_not_look_ended() -> None:
    """Its peer reads an error instead of an end."""
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as peer:
        accepted, _ = listening.accept()
        reset(accepted)
        accepted.close()
        with pytest.raises(ConnectionResetError):
            peer.recv(1)


def named(monkeypatch, *hosts):
    """Let the name ``both`` have these addresses."""
    real = socket.getaddrinfo

    def found(host, *more, **given):
        return [one for each in (hosts if host == "both" else (host,)) for one in real(each, *more, **given)]

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.parametrize("hosts", [("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2", "127.0.0.1")])
def test_H248_each_address_of_a_name_has_a_socket(monkeypatch, hosts):
    """At one port, and each address once."""
    named(monkeypatch, *hosts)
    with ExitStack() as stack:
        socks = [stack.enter_context(closing(one)) for one in bind_each("both", 0, TESTS)]
        found = [one.getsockname()[:2] for one in socks]
        assert [host for host, _ in found] == list(dict.fromkeys(hosts))
        assert len({port for _, port in found}) == 1
        for address in found:
            socket.create_connection(address, 5).close()


def test_H248_an_address_that_the_system_lacks_is_left_out(monkeypatch):
    """Unless it is the first one; one whose port is taken stops the start, and leaves no socket behind."""
    named(monkeypatch, "127.0.0.1", "192.0.2.1")
    with ExitStack() as stack:
        assert len([stack.enter_context(closing(one)) for one in bind_each("both", 0, TESTS)]) == 1
    named(monkeypatch, "192.0.2.1", "127.0.0.1")
    with pytest.raises(StartupError, match="INVOKER_HOST"):
        bind_each("both", 0, TESTS)
    named(monkeypatch, "127.0.0.1", "127.0.0.2")
    with closing(bind_tcp("127.0.0.2", 0, TESTS)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"cannot listen on 127.0.0.2:{port}"):
            bind_each("both", port, TESTS)
        bind_tcp("127.0.0.1", port, TESTS).close()
