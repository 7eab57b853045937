"""The transports of GraphPipe of a real process.

HTTP by TCP, TLS and a Unix socket, bare sockets; how they open and end.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import ssl
import stat
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme

from invoker.client import GraphPipe, GraphPipeError
from invoker.tensors import Code
from tests.conftest import SLOW
from tests.e2e.process import Process, started
from tests.protocols.graphpipe.client.peer import nobody

pytestmark = pytest.mark.timeout(20)

X = np.float32([[1, 2]])
MODULE = """
import os, sys
import numpy as np
from numpy.typing import NDArray
from invoker import Context, function

@function
def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x * 2

@function
def whose(x: NDArray[np.float32], ctx: Context) -> str:
    return ctx.metadata["x-request-id"]

@function
def scaled(x: NDArray[np.float32], ctx: Context) -> NDArray[np.float32]:
    return x * np.float32((ctx.config(dict) or {}).get("by", 1))

@function
def pid(x: NDArray[np.float32]) -> int:
    return os.getpid()
"""
HELD = """
import os
import numpy as np
from numpy.typing import NDArray

def held(x: NDArray[np.float32]) -> NDArray[np.float32]:
    os.write(2, b"held\\n")  # in one piece: others write there, too
    with open("go", "rb") as go:
        go.read()  # the other end is opened, and closed
    return x * 2
"""


@dataclass
class Transports:
    """A process, and where its models are, by the name of the transport."""

    process: Process
    urls: dict[str, str]

    def model(self, transport: str, name: str = "double", **more: Any) -> GraphPipe:
        """A client; on bare sockets of the first model."""
        path = "" if transport in ("tcp", "unix") else f"/graphpipe/{name}"
        return GraphPipe(f"{self.urls[transport]}{path}", **more)


@contextmanager
def opened(directory: Path, *flags: str, env: Mapping[str, str] | None = None) -> Iterator[Transports]:
    """A process with all transports open."""
    paths = {name: directory / f"{name}.sock" for name in ("raw", "http")}
    places = (
        "--graphpipe-tcp",
        "127.0.0.1:0",
        "--graphpipe-unix",
        str(paths["raw"]),
        "--http-unix",
        str(paths["http"]),
    )
    with started("served", *places, *flags, cwd=directory, env=env) as process:
        _, address = process.ready()
        quoted = str(paths["http"]).replace("/", "%2F")
        urls = {"http": f"http://{address}", "unix+http": f"unix+http://{quoted}"}
        tcp = re.search(r"graphpipe=(127\.0\.0\.1:[1-9]\d*)", process.wait_for("ready: "))
        assert tcp is not None, process.log
        yield Transports(process, {**urls, "tcp": f"tcp://{tcp[1]}", "unix": f"unix://{paths['raw']}"})


@pytest.fixture(scope="module")
def transports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transports]:
    directory = tmp_path_factory.mktemp("doors")
    (directory / "served.py").write_text(MODULE)
    with opened(directory, env={"INVOKER_LOG_LEVEL": "debug"}) as found:
        yield found


@pytest.mark.parametrize("transport", ["http", "unix+http", "tcp", "unix"])
def test_G015_G097_GT51_our_client_reaches_every_transport(transports: Transports, transport: str) -> None:
    """By its scheme; several requests, one that fails among them."""
    with transports.model(transport) as model:
        for _ in range(2):
            assert model.infer(X).tolist() == [[2, 4]]
            with pytest.raises(GraphPipeError) as refused:
                model.infer(np.float64([1]))
            assert refused.value.code == Code.TYPE_MISMATCH
        assert model.metadata().name == "double"


def test_G015_the_whole_http_transport_is_on_the_unix_socket(transports: Transports) -> None:
    """Functions by riff's twin, probes, numbers, the page of a model; the file is its owner's alone."""
    path = Path(transports.urls["unix+http"].removeprefix("unix+http://").replace("%2F", "/"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    connection = http.client.HTTPConnection("localhost", timeout=5 * SLOW)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    named = {"Content-Type": "application/json", "Invoker-Function": "double", "Accept": "application/json"}
    for method, target, body, expected in (
        ("POST", "/", b"[1.5]", b"[3.0]"),
        ("GET", "/readyz", None, b"ok\n"),
        ("GET", "/control/is_ready", None, b"ok\n"),
        ("GET", "/metrics", None, b"invoker_"),
        ("GET", "/graphpipe", None, b'"Name": "double"'),
    ):
        connection.request(method, target, body, named if body else {})
        got = connection.getresponse()
        assert got.status == 200
        assert expected in got.read()
    connection.close()


@pytest.mark.parametrize("transport", ["http", "unix+http"])
def test_G108_headers_reach_the_context_by_every_http_transport(transports: Transports, transport: str) -> None:
    """A request's id is what the function is told."""
    with transports.model(transport, "whose", headers={"X-Request-Id": "r7"}) as model:
        assert model.infer(X).tolist() == b"r7"


@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_G016_every_model_is_reached_by_its_name_on_bare_sockets(transports: Transports, transport: str) -> None:
    """By several requests of a connection; without a name it is the first one, and unknown names are told."""
    url = transports.urls[transport]
    base = url if transport == "tcp" else f"unix://{url.removeprefix('unix://').replace('/', '%2F')}"
    for name, config, answer in (("double", "", [[2, 4]]), ("scaled", '{"by": 3}', [[3, 6]])):
        with GraphPipe(f"{base}/{name}") as model:
            assert model.metadata().name == name
            assert [model.infer(X, config=config).tolist() for _ in range(3)] == [answer] * 3
    with GraphPipe(base) as model:
        assert model.metadata().name == "double"
    with GraphPipe(f"{base}/absent") as model, pytest.raises(GraphPipeError) as refused:
        model.infer(X)
    assert refused.value.code == Code.MALFORMED
    assert "there is no model 'absent'; there are double, " in str(refused.value)


@pytest.mark.parametrize("transport", ["http", "unix+http", "tcp", "unix"])
def test_G105_G106_a_line_a_request_and_no_config_in_any(transports: Transports, transport: str) -> None:
    """Neither where it is understood nor where it is not, at the lowest level."""
    with transports.model(transport, "scaled") as model:
        assert model.infer(X, config='{"by": 2, "key": "s3cret"}').tolist() == [[2, 4]]
        if "http" in transport:
            for config in ("s3cret", '{"key": "s3cret"', '["s3cret"]'):
                with pytest.raises(GraphPipeError) as refused:
                    model.infer(X, config=config)
                assert refused.value.code == Code.CONFIG
    transports.process.wait_for(
        "POST /graphpipe/scaled answered" if "http" in transport else f"{transport} socket answered"
    )
    assert "s3cret" not in transports.process.log


def test_G015_https_and_tls_on_the_bare_socket(tmp_path: Path) -> None:
    """By our client, which trusts the authority or refuses; Unix sockets have no TLS."""
    (tmp_path / "served.py").write_text(MODULE)
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    both = str(tmp_path / "both.pem")
    with opened(tmp_path, "--tls-cert", both, "--tls-key", both, "--unix-mode", "660") as found:
        url = found.urls["http"].replace("http:", "https:") + "/graphpipe"
        rows = np.arange(600_000, dtype="f4")
        with GraphPipe(url, tls=context) as model:
            assert model.infer(X).tolist() == [[2, 4]]
            assert np.array_equal(model.infer(rows), rows * 2)
            assert model.metadata().name == "double"
        with GraphPipe(url) as model, pytest.raises(GraphPipeError, match="certificate"):
            model.infer(X)
        with found.model("unix+http") as model:
            assert model.infer(X).tolist() == [[2, 4]]
        with found.model("unix") as model:
            assert model.infer(X).tolist() == [[2, 4]]
        assert [stat.S_IMODE(one.stat().st_mode) for one in tmp_path.glob("*.sock")] == [0o660, 0o660]
        found.process.send(signal.SIGTERM)
        assert found.process.exit_code() == 0
        assert not list(tmp_path.glob("*.sock"))


def test_G104_GT59_a_drain_by_every_transport(tmp_path: Path) -> None:
    """Running inferences end, new ones are E20 on connections that are there; then all of it is gone."""
    (tmp_path / "served.py").write_text(HELD)
    os.mkfifo(tmp_path / "go")
    with opened(tmp_path) as found, ExitStack() as stack:
        process = found.process
        threads = stack.enter_context(ThreadPoolExecutor(4))
        idle = {transport: stack.enter_context(found.model(transport, "held")) for transport in found.urls}
        for model in idle.values():
            assert model.metadata().name == "held"
        running: list[Future[Any]] = []
        for transport in found.urls:
            model = stack.enter_context(found.model(transport, "held"))
            running.append(threads.submit(model.infer, X))
        wait_until(lambda: process.log.count("held\n") == len(running))
        process.send(signal.SIGTERM)
        process.wait_for("stopping: 4 invocations are running")
        asker = http.client.HTTPConnection(found.urls["http"].removeprefix("http://"), timeout=5 * SLOW)
        asker.request("GET", "/control/is_ready")
        assert asker.getresponse().status == 503
        asker.close()
        for transport, model in idle.items():
            with pytest.raises(GraphPipeError) as refused:
                model.infer(X)
            assert refused.value.code == Code.NOT_READY, transport
            assert refused.value.http_status == (503 if "http" in transport else None)
        (tmp_path / "go").write_bytes(b"")
        assert [one.result().tolist() for one in running] == [[[2, 4]]] * 4
        assert process.exit_code() == 0
        for model in idle.values():
            with pytest.raises(GraphPipeError):
                model.infer(X)
    assert not list(tmp_path.glob("*.sock"))


def test_what_a_killed_server_leaves_is_replaced(tmp_path: Path) -> None:
    """Its files are in nobody's way; those of one that lives are."""
    (tmp_path / "served.py").write_text(MODULE)
    with opened(tmp_path) as found:
        found.process.send(signal.SIGKILL)
        found.process.exit_code()
    assert len(list(tmp_path.glob("*.sock"))) == 2
    with opened(tmp_path) as found:
        for flag, name in (("--http-unix", "http.sock"), ("--graphpipe-unix", "raw.sock")):
            with started("served", flag, str(tmp_path / name), cwd=tmp_path) as second:
                assert second.exit_code() == 1
                assert f"cannot listen on {tmp_path / name} for " in second.log
        with found.model("unix+http") as model:
            assert model.infer(X).tolist() == [[2, 4]]


def test_several_workers_share_the_bare_port_and_the_root(tmp_path: Path) -> None:
    """Both answer on one port, which no other server can take."""
    (tmp_path / "served.py").write_text(MODULE)
    tcp = nobody()
    flags = ("--workers", "2", "--graphpipe-tcp", tcp, "--http-root", "graphpipe")
    with started("served:pid", *flags, cwd=tmp_path) as process:
        _, address = process.ready()
        assert f"graphpipe={tcp}" in process.wait_for("ready: ")
        for url in (f"tcp://{tcp}", f"http://{address}"):
            seen: set[int] = set()
            for _ in range(50):
                with GraphPipe(url) as model:
                    seen.add(int(model.infer(X)))
                if len(seen) == 2:
                    break
            assert len(seen) == 2, url
        with started("served:pid", *flags, cwd=tmp_path) as second:
            assert second.exit_code() == 1
            assert f"cannot listen on {tcp} for GraphPipe" in second.log
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0


def test_a_reload_loses_no_inference_on_the_bare_port(tmp_path: Path) -> None:
    """Clients that connect anew are answered throughout, and in the end by new workers; who stays idle is let go."""
    (tmp_path / "served.py").write_text(MODULE)
    tcp = nobody()
    with started("served:pid", "--workers", "2", "--graphpipe-tcp", tcp, cwd=tmp_path) as process:
        process.ready()
        host, _, port = tcp.rpartition(":")
        idle = socket.create_connection((host, int(port)), timeout=10 * SLOW)
        before = {ask_anew(tcp) for _ in range(20)}
        process.send(signal.SIGHUP)
        during = set[int]()
        while process.log.count("has retired") < 2:
            during.add(ask_anew(tcp))
        assert during & before
        assert not {ask_anew(tcp) for _ in range(20)} & before
        assert idle.recv(1) == b""
        idle.close()


def ask_anew(tcp: str) -> int:
    """The id of the worker that answers on a connection of its own."""
    with GraphPipe(f"tcp://{tcp}") as model:
        return int(model.infer(X))


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--graphpipe-tcp", "127.0.0.1:0"), "--graphpipe-tcp has port 0"),
        (("--graphpipe-unix", "raw.sock"), "--graphpipe-unix works with one process only"),
        (("--http-unix", "http.sock"), "--http-unix works with one process only"),
    ],
)
def test_what_several_workers_cannot_share_is_refused(tmp_path: Path, flags: tuple[str, ...], text: str) -> None:
    """Before anything is bound; the exit code is that of a bad setting."""
    (tmp_path / "served.py").write_text(MODULE)
    with started("served", "--workers", "2", *flags, cwd=tmp_path) as process:
        assert process.exit_code() == 2
        assert text in process.log
    assert not list(tmp_path.glob("*.sock"))


def wait_until(condition: Any) -> None:
    """Ask again and again, for what no single log line tells."""
    paused = threading.Event()
    for _ in range(int(100 * SLOW)):
        if condition():
            return
        paused.wait(0.05)
    pytest.fail("it never became so")
