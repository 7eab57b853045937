"""GraphPipe against a real process: HTTP by http.client, bare sockets by socket."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import trustme

from invoker.tensors import Code, read_metadata_response
from tests.conftest import SLOW
from tests.e2e.process import Process, started
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, values
from tests.tensors.samples import fixture

TIMEOUT_S = 10 * SLOW


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphpipe") / "socket"


@pytest.fixture(scope="module")
def served(path: Path) -> Iterator[Process]:
    flags = ("--graphpipe-tcp", "127.0.0.1:0", "--graphpipe-unix", str(path), "--http-root", "graphpipe")
    with started("tests.e2e.model_functions", *flags) as process:
        process.ready()
        yield process


def tcp_address(process: Process) -> tuple[str, int]:
    found = re.search(r"graphpipe=127\.0\.0\.1:(\d+)", process.wait_for("ready: "))
    assert found is not None, process.log
    return "127.0.0.1", int(found[1])


class Http:
    """A connection to the HTTP transport."""

    def __init__(self, process: Process) -> None:
        self._connection = http.client.HTTPConnection(process.ready()[1], timeout=TIMEOUT_S)

    def ask(self, method: str, target: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
        self._connection.request(method, target, body)
        got = self._connection.getresponse()
        return got.status, {name.lower(): value for name, value in got.getheaders()}, got.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def exchange(sock: socket.socket, buffer: bytes) -> bytes:
    sock.sendall(struct.pack("<I", len(buffer)) + buffer)
    with sock.makefile("rb") as stream:
        (size,) = struct.unpack("<I", stream.read(4))
        return stream.read(size)


@pytest.mark.parametrize("target", ["/", "/graphpipe", "/graphpipe/classify"])
def test_G001_G009_a_model_is_asked_by_http(served: Process, target: str) -> None:
    """At each of its paths; bytes as the Python client sends them."""
    with Http(served) as client:
        status, headers, body = client.ask("POST", target, ask(np.float32([[1, 2], [4, 3]])))
        assert (status, headers["content-type"]) == (200, "application/octet-stream")
        assert values(body) == [[1.0, 1.0], [1, 0]]
        status, headers, body = client.ask("POST", target, ask(np.float64([[1, 2]])))
        assert (status, headers["x-graphpipe-error"], code_of(body)) == (400, "8", Code.TYPE_MISMATCH)
        status, _, body = client.ask("POST", target, ask(np.float32([[1, 2]]), output_names=("label",)))
        assert (status, values(body)) == (200, [[1]])


def test_G007_G087_G100_metadata_by_http(served: Process) -> None:
    """JSON, buffer, and the same of both."""
    with Http(served) as client:
        status, _, body = client.ask("GET", "/")
        listed = json.loads(body)
        binary = read_metadata_response(client.ask("POST", "/", METADATA_REQUEST)[2])
    assert status == 200
    assert [one["Shape"] for one in listed["Inputs"]] == [[-1, 2]] == [list(one.shape) for one in binary.inputs]
    assert [one["Name"] for one in listed["Outputs"]] == ["margin", "label"] == [one.name for one in binary.outputs]
    assert [one["Type"] for one in listed["Outputs"]] == [10, 8]
    assert binary.name == "classify"
    assert binary.server.startswith("invoker/")


def test_G009_another_model_has_its_own_path(served: Process) -> None:
    """Values instead of arrays; errors of the function are E14."""
    with Http(served) as client:
        assert values(client.ask("POST", "/graphpipe/repeat", ask("ab", np.int8([2])))[2]) == [b"abab"]
        status, _, body = client.ask("POST", "/graphpipe/repeat", ask("ab", -1))
        assert (status, code_of(body)) == (500, Code.FUNCTION_FAILED)
        assert client.ask("GET", "/control/is_ready")[2] == b"ok\n"
        assert client.ask("GET", "/elsewhere")[0] == 404


def test_G016_bare_sockets(served: Process, path: Path) -> None:
    """TCP and Unix, several requests each."""
    tcp = socket.create_connection(tcp_address(served), timeout=TIMEOUT_S)
    unix = socket.socket(socket.AF_UNIX)
    unix.settimeout(TIMEOUT_S)
    unix.connect(str(path))
    for sock in (tcp, unix):
        with sock:
            assert code_of(exchange(sock, b"\xff" * 40)) is Code.MALFORMED
            assert values(exchange(sock, fixture("infer_request"))) == [[1.0], [1]]
            assert read_metadata_response(exchange(sock, METADATA_REQUEST)).name == "classify"


def test_G101_good_and_bad_requests_beside_each_other(served: Process) -> None:
    """The good ones all succeed, with what is theirs."""
    failed: list[Any] = []

    def good(number: int) -> None:
        with socket.create_connection(tcp_address(served), timeout=TIMEOUT_S) as sock:
            for step in range(20):
                rows = np.float32([[number, number + step]])
                if values(exchange(sock, ask(rows))) != [[float(step)], [int(step > 0)]]:
                    failed.append((number, step))

    def bad() -> None:
        with Http(served) as client:
            failed.extend(
                one for one in [client.ask("POST", "/", bytes([step] * 50))[0] for step in range(20)] if one != 400
            )

    threads = [threading.Thread(target=good, args=(number,)) for number in range(4)]
    threads += [threading.Thread(target=bad) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []


def test_G015_https_serves_the_same(tmp_path: Path) -> None:
    """And so does the bare socket, with TLS."""
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    flags = ("--tls-cert", str(tmp_path / "both.pem"), "--tls-key", str(tmp_path / "both.pem"))
    with started("tests.e2e.model_functions", "--graphpipe-tcp", "127.0.0.1:0", *flags) as process:
        client = http.client.HTTPSConnection(process.ready()[1], timeout=TIMEOUT_S, context=context)
        client.request("POST", "/graphpipe", fixture("infer_request"))
        assert values(client.getresponse().read()) == [[1.0], [1]]
        client.close()
        with (
            socket.create_connection(tcp_address(process), timeout=TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as sock,
        ):
            assert values(exchange(sock, fixture("infer_request"))) == [[1.0], [1]]


def test_G103_GT58_an_echo_takes_three_times_its_bytes_at_most(served: Process) -> None:
    """And 16 MiB."""
    size = 32 << 20
    buffer = ask(np.zeros(size // 4, "f4"))
    with Http(served) as client:
        before = memory(served, "VmRSS")
        assert client.ask("POST", "/graphpipe/echo", buffer)[0] == 200
        assert memory(served, "VmHWM") - before <= 3 * size + (16 << 20)


def memory(process: Process, field: str) -> int:
    """Bytes, of which the system says so much in KiB."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
