"""FastAPI, Starlette, uvicorn, hypercorn, granian and a Jupyter kernel as witnesses of `invoker.asgi` and `serve`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.conftest import SLOW
from tests.interop.test_chromium import CHROMIUM, visited
from tests.interop.tools import run
from tests.serving import ROOT

PYTHON = ROOT / ".interop/asgi/bin/python"
PROGRAMS = Path(__file__).parent / "asgi"

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.skipif(not PYTHON.is_file(), reason="make interop installs the hosts"),
]

COMMANDS = {
    "uvicorn": "uvicorn {app} --port {port} --log-level warning",
    "uvicorn-h11": "uvicorn {app} --port {port} --http h11 --loop asyncio --log-level warning",
    "hypercorn": "hypercorn {app} --bind 127.0.0.1:{port} --log-level warning",
    "granian": "granian {app} --interface asgi --port {port} --log-level warning",
}
HOSTS = {"fast": "/fn", "star": "/fn", "bare": "", "judged": ""}
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}


@dataclass
class Host:
    """A server that runs.

    Attributes:
        port: Of 127.0.0.1.
        base: Path of the mount.
        process: To be told to stop.
        log: What it has written, once it has ended.
    """

    port: int
    base: str
    process: subprocess.Popen[str]
    log: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.base}"

    def post(self, path: str, value: object, **headers: str) -> httpx.Response:
        return httpx.post(self.url + path, json=value, headers=headers, trust_env=False, timeout=5 * SLOW)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def hosted(server: str, app: str, *, marks: Path | None = None) -> Iterator[Host]:
    """Run an application of tests/interop/asgi/hosts.py."""
    port = free_port()
    command = COMMANDS[server].format(app=f"tests.interop.asgi.hosts:{app}", port=port).split()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MARKS": str(marks or "")}
    process = subprocess.Popen(
        [str(PYTHON), "-m", *command], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    host = Host(port, HOSTS.get(app, "/fn"), process)
    try:
        until = time.monotonic() + 10 * SLOW
        while process.poll() is None and time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield host
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            host.log += process.communicate(timeout=10 * SLOW)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            host.log += process.communicate()[0]


PAIRS = [
    ("uvicorn", "fast"), ("uvicorn", "star"), ("uvicorn", "bare"), ("uvicorn-h11", "star"), ("hypercorn", "fast"),
    ("hypercorn", "bare"), ("granian", "star"), ("granian", "bare"),
]  # fmt: skip


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Servers, with hosts that pass a lifespan on and hosts that do not."""
    with hosted(*request.param) as running:
        yield running
    assert "Traceback" not in running.log, running.log


@asynccontextmanager
async def opened(host: Host, path: str, headers: dict[str, str], body: bytes | None) -> AsyncIterator[Raw]:
    """A request of which each byte is seen."""
    reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
    lines = [f"POST {host.base}{path} HTTP/1.1", f"Host: 127.0.0.1:{host.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append("Transfer-Encoding: chunked" if body is None else f"Content-Length: {len(body)}")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b""))
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


class Raw:
    """One request and its response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def give(self, data: bytes) -> None:
        """Send a chunk; an empty one is the last."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def head(self) -> str:
        return (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def chunk(self) -> bytes:
        """A chunk of the response; empty at the end."""
        size = int(await self._reader.readline(), 16)
        return (await self._reader.readexactly(size + 2))[:-2]


def test_H096_calls_pages_and_numbers_are_below_the_mount(host: Host) -> None:
    """And what is the host's stays the host's."""
    assert host.post("/square", 7).text == "49"
    assert host.post("/", 7, **{"Invoker-Function": "Model"}).text == "49"
    assert host.post("/thread", 1, Accept="text/plain").text.startswith("invoker-body-")
    with httpx.Client(base_url=host.url, trust_env=False) as client:
        assert client.get("/livez").text == "ok\n"
        assert client.get("/readyz").text == "ok\n"
        assert {one["path"] for one in client.get("/functions").json()["functions"]} >= {"/square", "/gated"}
        described = client.get("/openapi.json").json()
        assert described["servers"] == [{"url": "."}]
        assert "/square" in described["paths"]
        assert "invoker_invocations" in client.get("/metrics").text
        assert client.post("/nothing", json=1).status_code == 404


def test_H098_foreign_pages_are_refused_behind_every_host(host: Host) -> None:
    """By what browsers say of them."""
    own = f"http://127.0.0.1:{host.port}"
    for headers, status in (
        ({"Origin": own}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example", "Origin": own}, 403),
        ({"Host": "my.example"}, 200),
    ):
        assert host.post("/square", 7, **headers).status_code == status


async def test_H099_an_item_leaves_before_the_next_one_is_there(host: Host) -> None:
    """As server-sent events; the function waits for another request meanwhile."""
    name = json.dumps(f"gate {host.port}").encode()
    async with opened(host, "/gated", {**JSON, "Accept": "text/event-stream"}, name) as raw:
        head = await raw.head()
        assert "text/event-stream" in head
        events = b""
        while b"first" not in events:
            events += await raw.chunk()
        assert b"second" not in events
        assert (await asyncio.to_thread(host.post, "/open_gate", f"gate {host.port}")).text == "true"
        while b"event: end" not in events:
            events += await raw.chunk()
        assert b"second" in events
        assert await raw.chunk() == b""


async def test_H099_streams_pass_both_ways(host: Host) -> None:
    """Each item is answered before the next one is sent."""
    async with opened(host, "/double", NDJSON, None) as raw:
        raw.give(b"1\n")
        assert " 200" in (await raw.head())
        for number in range(1, 5):
            assert await raw.chunk() == b"%d\n" % (2 * number)
            raw.give(b"%d\n" % (number + 1) if number < 4 else b"")
        assert await raw.chunk() == b""


@pytest.mark.parametrize("function", ["endless", "silent"])
async def test_H099_a_client_that_leaves_cancels_the_function(host: Host, function: str) -> None:
    """While it gives items, and while it gives none."""
    name = f"{function} {host.port}"
    async with opened(
        host, f"/{function}", {**JSON, "Accept": "application/x-ndjson"}, json.dumps(name).encode()
    ) as raw:
        if function == "endless":
            await raw.head()
            await raw.chunk()
        else:
            await asyncio.sleep(0.3)
    assert (await asyncio.to_thread(host.post, "/ended", name)).text == "true"


def test_H099_limits_hold(host: Host) -> None:
    """A body that is too long, announced or not."""
    assert host.post("/square", [1] * 1000).status_code == 413
    chunks = iter([b"[", b"1," * 2000, b"1]"])
    answer = httpx.post(f"{host.url}/square", content=chunks, headers=JSON, trust_env=False, timeout=5 * SLOW)
    assert answer.status_code == 413


def test_H099_much_passes(host: Host) -> None:
    """Ten MiB, in order and whole."""
    with httpx.stream(
        "POST", f"{host.url}/large", json=160, headers={"Accept": "multipart/mixed"}, trust_env=False, timeout=10 * SLOW
    ) as answer:
        assert answer.status_code == 200
        assert sum(one.count(b"x" * 100) for one in answer.iter_bytes(1 << 20)) > 160 * 600


async def test_H096_H098_H099_websockets_pass(host: Host) -> None:
    """A stranger's client: items, limits, much, the own origin and a foreign one; who leaves cancels the function."""
    base = host.url.replace("http", "ws")
    done = await asyncio.to_thread(run, PYTHON, PROGRAMS / "sockets.py", base, "1000")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "subprotocol": "invoker.v1",
        "answers": [0, 2, 4],
        "last": {"end": True},
        "close": 1000,
        "too long": [["error"], 1009],
        "bytes": 50 * 65536,
        "evil": 403,
    }
    assert (await asyncio.to_thread(host.post, "/ended", f"socket {base}")).text == "true"


@pytest.mark.parametrize(("server", "app"), [*zip(COMMANDS, ["fast"] * 4, strict=True), ("hypercorn", "bare")])
def test_H097_stop_hooks_run_at_the_shutdown(server: str, app: str, tmp_path: Path) -> None:
    """Start hooks before the first request, once."""
    marks = tmp_path / "marks"
    with hosted(server, app, marks=marks) as running:
        assert running.post("/square", 2).text == "4"
        assert marks.read_text() == "entered\n"
    assert marks.read_text() == "entered\nleft\n", running.log


@pytest.mark.parametrize("server", COMMANDS)
def test_H097_without_a_lifespan_the_first_request_starts_it(server: str, tmp_path: Path) -> None:
    """And the log says how to do better."""
    marks = tmp_path / "marks"
    with hosted(server, "star", marks=marks) as running:
        assert not marks.exists()
        assert running.post("/square", 2).text == "4"
        assert running.post("/square", 2).text == "4"
        assert marks.read_text() == "entered\n"
    assert "lifespan=app.lifespan" in running.log


def test_H098_a_host_that_lets_pages_in_and_checks_names(tmp_path: Path) -> None:
    """CORS and names are the host's; what it lets in is listed here, too, and answered once."""
    with hosted("uvicorn", "guarded") as running:
        answer = running.post("/square", 7, Origin="https://friend.example")
        assert (answer.status_code, answer.text) == (200, "49")
        assert answer.headers.get_list("access-control-allow-origin") == ["https://friend.example"]
        assert running.post("/square", 7, Origin="https://evil.example").status_code == 403
        assert running.post("/square", 7, Host="evil.example").status_code == 400
    assert "Traceback" not in running.log


@pytest.mark.timeout(90)
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: NO BROWSER WAS TRIED; apt-get install chromium")
def test_H098_a_hostile_page_runs_nothing_in_a_browser(tmp_path: Path) -> None:
    """It tries all that a page can; where all pages are let in, that does run the function."""
    marks = tmp_path / "marks"
    for app, calls in (("closed", set()), ("open_to_all", {"beacon", "cors", "no type", "preflighted", "text"})):
        with hosted("uvicorn", app, marks=marks) as running:
            profile = tmp_path / app
            profile.mkdir()
            (met,) = visited(f"127.0.0.1:{running.port}{running.base}", profile, "evil.example")
        assert calls <= set(marks.read_text().splitlines() if marks.exists() else ())
        assert marks.exists() == bool(calls)
        assert (met["numbers"] == "TypeError") != bool(calls)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("server", ["uvicorn", "hypercorn", "granian"])
def test_H096_H099_the_conformance_suite_finds_no_difference(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its chapter of HTTP, against what another server brings."""
    port = free_port()
    monkeypatch.setenv("RIFF_PORT", str(port))
    with hosted(server, "judged") as running:
        addresses = ("--http", f"127.0.0.1:{running.port}", "--target", f"127.0.0.1:{port}")
        done = run(sys.executable, "-m", "invoker_conformance", *addresses, "--chapter", "http", limit_s=20)
    assert done.returncode == 0, done.stdout


def test_H097_the_how_to_works() -> None:
    """docs/how-to/mount-into-fastapi.md, as its reader does it, with FastAPI's test client."""
    done = run(
        PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ROOT, f"{ROOT}/tests/test_pages.py", "-k",
        "mount-into", limit_s=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_H097_test_clients_start_it_as_their_loops_live() -> None:
    """Once if the client is entered, else for each request; nothing is left in any case."""
    done = run(PYTHON, PROGRAMS / "clients.py")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "entered": ["0", "1", "4"],
        "redirected": "9",
        "socket": 81,
        "starts when entered": ["started", "stopped"],
        "not entered": ["0", "1", "4"],
        "starts when not entered": ["started", "stopped"] * 3,
        "httpx": "25",
        "threads": [],
    }


@pytest.mark.timeout(60)
def test_H091_H094_a_notebook_serves(tmp_path: Path) -> None:
    """In a real kernel: cells run again, async cells, the stop, and the end of the kernel."""
    marks = tmp_path / "marks"
    done = run(PYTHON, PROGRAMS / "notebook.py", marks, limit_s=40)
    assert done.returncode == 0, done.stderr
    _, shown, *printed = json.loads(done.stdout)
    assert shown.startswith("<Serving square on http://localhost:")
    assert printed == ["49", "50 False True", "('lambda',) 8", "True []", "7"]
    assert marks.read_text() == "left"
