"""What a command prints: nothing of a remote text steers a terminal, and no locale makes it fail."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.e2e.process import started
from tests.serving import forked_python

pytestmark = pytest.mark.timeout(40)

FORGED = "x\r\nhint: run this\x1b[2J\x9b1m\u202e\nend"
ESCAPED = r"x\r\nhint: run this\x1b[2J\x9b1m\u202e\nend"
ASCII = [
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "ascii"},
]


class Forger(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Ends each call of any method with a text that would forge lines."""

    def service(self, handler_call_details: object) -> object:
        def refuse(_: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            context.abort(grpc.StatusCode.INTERNAL, FORGED)
            yield b""

        return grpc.stream_stream_rpc_method_handler(refuse)


@pytest.fixture
def forger() -> Iterator[str]:
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, handlers=(Forger(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


def run(*args: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable if env else forked_python(), "-m", "invoker", *args],
        cwd=cwd, env={**os.environ, **(env or {})}, input=b"hello\n", capture_output=True, check=False, timeout=30,
    )  # fmt: skip


@pytest.mark.parametrize(
    "args",
    [
        ("call", "{}"),
        ("chat", "{}", "--action", "talk"),
        ("device", "author:train", "--server", "{}", "--population", "p", "--once"),
    ],
    ids=lambda args: args[0],
)
def test_no_error_of_a_server_forges_a_line(tmp_path: Path, forger: str, args: tuple[str, ...]) -> None:
    """It stays one line, and what would steer a terminal is escaped."""
    (tmp_path / "author.py").write_text("def train(x: list[float]) -> list[float]:\n    return x\n")
    ended = run(*(one.format(forger) for one in args), cwd=tmp_path)
    told = (ended.stdout + ended.stderr).decode()
    assert ESCAPED in told
    assert all(line.isprintable() and not line.startswith("hint: run") for line in told.split("\n"))


def test_values_do_not_steer_a_terminal_but_reach_a_pipe_as_they_are(tmp_path: Path) -> None:
    """Ends of lines and tabs stay."""
    (tmp_path / "author.py").write_text("def give(x: str) -> str:\n    return 'a\\tb\\nc\\x1b[2J\\x9bd\\r'\n")
    with started("author:give", cwd=tmp_path) as process:
        address, _ = process.ready()
        assert run("call", address, "-d", "1").stdout == "a\tb\nc\x1b[2J\x9bd\r\n".encode()
        ours, theirs = pty.openpty()
        ended = subprocess.Popen(
            [forked_python(), "-m", "invoker", "call", address, "-d", "1"], stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        assert ended.wait(30) == 0
        told = os.read(ours, 4096)
        os.close(ours)
        assert told.replace(b"\r\n", b"\n") == b"a\tb\nc\\x1b[2J\\x9bd\\r\n"


@pytest.mark.parametrize("env", ASCII)
def test_a_locale_of_ascii_fails_no_command(tmp_path: Path, env: dict[str, str]) -> None:
    """What it has no sign for is escaped; arguments and values are UTF-8."""
    (tmp_path / "author.py").write_text(
        'def grüße(name: str = "Jürgen ÷ Ω") -> str:\n    """Grüßt ÷ höflich."""\n    return f"Grüße, {name}"\n'
    )
    for args in (["inspect", "author:grüße"], ["proto", "author:grüße"], ["inspect", "author:nicht÷da"]):
        ended = run(*args, cwd=tmp_path, env=env)
        assert b"Traceback" not in ended.stderr
        assert ended.returncode == (args[1] != "author:grüße"), ended.stderr
    with started("author:grüße", cwd=tmp_path, env=env) as process:
        address, _ = process.ready()
        for args in (["-d", "Jürgen"], ["--arg", "name=Jürgen"]):
            ended = run("call", address, *args, env=env)
            assert (ended.returncode, ended.stdout) == (0, "Grüße, Jürgen\n".encode()), ended.stderr
