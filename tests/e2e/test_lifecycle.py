"""A process from its first line to its ready line: ports, entrypoints, hooks, exit codes."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from invoker.client import CallFailed, SyncRiffClient
from invoker.server.table import TABLE
from tests.e2e.process import started

pytestmark = pytest.mark.timeout(15)

JSON = "application/json"
SQUARE = "functions.square:square"
HOOKED = """
import os, socket, sys
from invoker import function

def say(text):
    sys.stderr.write(f"{text}\\n")  # at once, so that no other thread writes between

say("loaded")

def init():
    with socket.socket() as probe:
        taken = probe.connect_ex(("127.0.0.1", int(os.environ["GRPC_PORT"]))) == 0
    say("port is open" if taken else "port is closed")
    if "FAIL" in os.environ:
        raise RuntimeError("no database")

@function(init=init, destroy=lambda: say("destroyed"))
def twice(x: int) -> int:
    return 2 * x
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_taken(port: int) -> bool:
    """Whether somebody listens on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def call(address: str, *values: int) -> list[int]:
    """What the only function of a server gives."""
    with SyncRiffClient(address) as client:
        return [out.value for out in client.invoke([values], accept=JSON, content_type=JSON)]


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Path]:
    """A directory with a module `hooked` whose function tells what happens to it."""
    (tmp_path / "hooked.py").write_text(HOOKED)
    return tmp_path


def test_R001_the_port_of_GRPC_PORT_is_served() -> None:
    """A gRPC server listens on the port that `GRPC_PORT` names (R-001)."""
    port = free_port()
    with started(SQUARE, env={"GRPC_PORT": str(port)}) as process:
        assert process.ready()[0] == f"127.0.0.1:{port}"
        assert call(f"127.0.0.1:{port}", 3) == [9]


def test_R002_unset_GRPC_PORT_means_8081() -> None:
    """Without `GRPC_PORT` the gRPC transport is at 8081 (R-002)."""
    assert TABLE.read({}).grpc_port == 8081
    if is_taken(8081):
        return
    with started(SQUARE, env={"GRPC_PORT": None}) as process:
        assert process.ready()[0] == "127.0.0.1:8081"


def test_R140_unset_PORT_means_8080_and_it_can_be_switched_off() -> None:
    """The HTTP transport is at `PORT`, 8080 by default, and `--no-http` leaves it closed (R-140)."""
    assert TABLE.read({}).port == TABLE.read({"PORT": ""}).port == 8080
    if not is_taken(8080):
        with started(SQUARE, env={"PORT": None}) as process:
            assert process.ready()[1] == "127.0.0.1:8080"
    with started(SQUARE, "--no-http") as process:
        assert process.ready()[1] == ""


@pytest.mark.parametrize("text", ["", " ", "\t \n"])
def test_R003_a_blank_GRPC_PORT_counts_as_unset(text: str) -> None:
    """An empty or blank `GRPC_PORT` is the default (R-003)."""
    assert TABLE.read({"GRPC_PORT": text}).grpc_port == 8081


@pytest.mark.parametrize("text", ["http", "65536", "-1", "80.5"])
def test_R004_a_bad_GRPC_PORT_stops_the_process_at_once(text: str) -> None:
    """A port that is no number from 0 to 65535 is one line on stderr and exit code 2 (R-004)."""
    with started(SQUARE, env={"GRPC_PORT": text}) as process:
        assert process.exit_code() == 2
        assert len(process.lines) == 1
        assert json.loads(process.log)["message"].startswith(f"invoker: GRPC_PORT is '{text}'")


def test_R005_port_0_takes_a_free_one_and_names_it() -> None:
    """With `GRPC_PORT=0` two processes run side by side, each with the port of its ready line (R-005)."""
    with started(SQUARE) as first, started(SQUARE) as second:
        addresses = [process.ready()[0] for process in (first, second)]
        assert len(set(addresses)) == 2
        assert [call(address, 4) for address in addresses] == [[16], [16]]


@pytest.mark.parametrize("name", ["GRPC_PORT", "PORT"])
def test_R006_a_port_in_use_is_fatal(name: str) -> None:
    """A second server does not share the port of the first, but ends with exit code 1 and names the port (R-006)."""
    with started(SQUARE) as first:
        grpc_address, http_address = first.ready()
        port = (grpc_address if name == "GRPC_PORT" else http_address).rpartition(":")[2]
        with started(SQUARE, env={name: port}) as second:
            assert second.exit_code() == 1
            assert port in second.log
            assert "ready: " not in second.log
        assert call(grpc_address, 5) == [25]


def test_R007_only_the_riff_method_is_served() -> None:
    """`/streaming.Riff/Invoke` answers; names that differ in case or package are UNIMPLEMENTED (R-007)."""
    with started(SQUARE) as process:
        address, _ = process.ready()
        assert call(address, 2) == [4]
        with closing(grpc.insecure_channel(address)) as channel:
            for path in ("/streaming.Riff/invoke", "/Riff/Invoke", "/streaming.riff/Invoke"):
                outputs = channel.stream_stream(path)(iter([b""]), timeout=5)
                with pytest.raises(grpc.RpcError):
                    next(outputs)
                assert outputs.code() is grpc.StatusCode.UNIMPLEMENTED, path


@pytest.mark.parametrize(
    ("entrypoint", "names"),
    [("absent:fn", "absent"), ("hooked:absent", "absent"), ("hooked:os.sep", "os.sep")],
)
def test_R008_a_bad_entrypoint_stops_the_start(hooked: Path, entrypoint: str, names: str) -> None:
    """A missing module, a missing attribute and what is not callable end with exit code 1 and the name (R-008)."""
    with started(entrypoint, cwd=hooked) as process:
        assert process.exit_code() == 1
        assert names in process.log
        assert "ready: " not in process.log
        assert "Traceback" not in process.log


def test_R008_the_current_directory_is_on_the_path(hooked: Path) -> None:
    """A module beside the caller is found, also through a dotted attribute (R-008)."""
    (hooked / "dotted.py").write_text(
        "class Group:\n    @staticmethod\n    def thrice(x: int) -> int:\n        return 3 * x\n"
    )
    with started("dotted:Group.thrice", cwd=hooked) as process:
        assert call(process.ready()[0], 3) == [9]


def test_R009_the_function_is_loaded_once_before_it_is_ready(hooked: Path) -> None:
    """The module is imported before the ready line, and no invocation imports it again (R-009)."""
    with started("hooked:twice", cwd=hooked) as process:
        address, _ = process.ready()
        assert process.lines.index("loaded\n") < process.lines.index(process.wait_for("ready: "))
        assert [call(address, 1), call(address, 2)] == [[2], [4]]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert process.lines.count("loaded\n") == 1


def test_R014_the_port_opens_after_the_init_hook(hooked: Path) -> None:
    """While the init hook runs nobody listens, and the process is ready afterwards (R-014)."""
    with started("hooked:twice", cwd=hooked, env={"GRPC_PORT": str(free_port())}) as process:
        process.wait_for("port is closed")
        assert call(process.ready()[0], 21) == [42]


def test_R014_a_failing_init_hook_never_opens_the_port(hooked: Path) -> None:
    """When init raises, destroy runs, no port opens, and the exit code is not zero (R-014, R-016)."""
    with started("hooked:twice", cwd=hooked, env={"FAIL": "1"}) as process:
        assert process.exit_code() == 1
        assert "no database" in process.log
        assert "ready: " not in process.log
        assert process.lines.count("destroyed\n") == 1


def test_R016_the_process_stays_in_the_foreground() -> None:
    """It says ready once, runs until it is told to stop, and a clean stop is exit code 0 (R-016)."""
    with started(SQUARE) as process:
        address, _ = process.ready()
        assert call(address, 6) == [36]
        assert process.is_running
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert process.log.count("ready: ") == 1


BROKEN = {
    "def f(x: int) -> int:\n    return x +\n": "'author' has a syntax error at author.py:2",
    "import nosuch\ndef f(x: int) -> int:\n    return x\n": "'author' needs 'nosuch', which is not installed",
    "raise ValueError('no')\n": "'author' raised ValueError: no at author.py:1",
    "def g(x: int) -> int:\n    return x\n": "'author' has no 'f'; its functions are g",
    "def f(x: 'Nosuch') -> int:\n    return x\n": "the annotation 'Nosuch' of parameter 'x'",
    "import sys\nsys.exit(3)\n": "'author' called sys.exit(3)",
}


def test_R010_whoever_calls_is_told_why_a_function_cannot_be_loaded_anew(tmp_path: Path) -> None:
    """Over gRPC and HTTP, and by `call`; when it is mended, it is served again."""
    source, good = tmp_path / "author.py", "def f(x: int) -> int:\n    return x\n"
    source.write_text(good)
    with started("author:f", "--reload-per-invocation", cwd=tmp_path) as process:
        grpc_address, http_address = process.ready()
        with SyncRiffClient(grpc_address) as client:
            for text, why in BROKEN.items():
                source.write_text(text)
                with pytest.raises(CallFailed, match=re.escape(f"'f' cannot be reloaded: {why}")):
                    list(client.invoke([[5]], accept="application/json", content_type="application/json"))
                request = urllib.request.Request(f"http://{http_address}/f", b"5")
                with pytest.raises(urllib.error.HTTPError) as failed:
                    urllib.request.urlopen(request)
                assert why in failed.value.read().decode()
                failed.value.close()
            command = [sys.executable, "-m", "invoker", "call", grpc_address, "-d", "5"]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (told.returncode, "called sys.exit(3)" in told.stderr) == (1, True)
            source.write_text(good)
            found = list(client.invoke([[5]], accept="application/json", content_type="application/json"))
            assert [one.value for one in found] == [5]
        assert "a defect of the invoker" not in process.log
        assert "Exception" not in process.log
