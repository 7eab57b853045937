"""curl as a pipe of the shell, by HTTP/1.1 and HTTP/2, and what it prints of events, lines and forms."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from tests.conftest import SLOW
from tests.interop.streams.conftest import Streamed
from tests.interop.tools import run

pytestmark = pytest.mark.timeout(30)

NDJSON, SSE = "Accept: application/x-ndjson", "Accept: text/event-stream"


@pytest.fixture(params=["--http1.1", "--http2-prior-knowledge"])
def protocol(request: pytest.FixtureRequest) -> str:
    """Both protocols of the port."""
    return str(request.param)


@contextmanager
def piping(*flags: str) -> Iterator[tuple[IO[bytes], IO[bytes], subprocess.Popen[bytes]]]:
    """curl in the background: its standard input and output."""
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = ["curl", "-sSN", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout, process
        finally:
            process.kill()


def _line(output: IO[bytes]) -> str:
    found = b""
    while not found.endswith(b"\n"):
        byte = output.read(1)
        assert byte, f"the output ends behind {found!r}"
        found += byte
    return found.decode().rstrip("\n")


@pytest.mark.parametrize("function", ["echo", "sync_echo"])
def test_H003_a_pipe_answers_each_line(streamed: Streamed, protocol: str, function: str) -> None:
    """``-T .`` reads standard input while it waits for the answer."""
    with piping("-X", "POST", "-T", ".", "-H", NDJSON, protocol, f"{streamed.url}/{function}") as (
        stdin,
        stdout,
        process,
    ):
        for text in ("one", "two", "three"):
            stdin.write(f"{text}\n".encode())
            assert _line(stdout) == json.dumps(text.upper())
        stdin.close()
        assert stdout.read() == b""
        assert process.wait(5) == 0


def test_H003_the_first_answer_comes_before_the_input_ends(streamed: Streamed, protocol: str) -> None:
    """``-T -`` reads nothing of the answer while it waits for a line, so the answer shows with a later one."""
    with piping("-X", "POST", "-T", "-", "-H", NDJSON, protocol, f"{streamed.url}/echo") as (stdin, stdout, process):
        sent = []
        for number in range(10):
            sent.append(f"LINE {number}")
            stdin.write(f"line {number}\n".encode())
            streamed.waited("heard", f"line {number}")
            if select.select([stdout], [], [], 0.2 * SLOW)[0]:
                break
        assert _line(stdout) == '"LINE 0"'
        stdin.close()
        assert [json.loads(line) for line in stdout.read().splitlines()] == sent[1:]
        assert process.wait(5) == 0


def test_events_are_printed_as_they_come(streamed: Streamed, protocol: str) -> None:
    """An endless function; curl is killed, and the function ends."""
    with piping("-H", SSE, protocol, f"{streamed.url}/ticks") as (_, stdout, _):
        assert [_line(stdout) for _ in range(6)] == ["id: 1", "data: 1", "", "id: 2", "data: 2", ""]
    assert "done" not in streamed.waited("ticks", "closed")


def test_text_is_printed_raw(streamed: Streamed, protocol: str) -> None:
    """Where plain text is accepted as well, a str is its own line."""
    accept = "Accept: text/event-stream, text/plain"
    done = run("curl", "-sSN", "-H", accept, protocol, "--data-binary", "hello", f"{streamed.url}/echo")
    assert done.stdout.startswith("id: 1\ndata: HELLO\n\n")


def test_H009_a_form_fills_several_inputs(streamed: Streamed, protocol: str) -> None:
    """Each part is a value of the input of its name."""
    parts = ("-F", "words=ho", "-F", "times=2", "-F", "words=hi", "-F", "times=1")
    done = run("curl", "-sSN", "-H", NDJSON, protocol, *parts, f"{streamed.url}/repeat")
    assert done.stdout == '"ho"\n"ho"\n"hi"\n'


def test_a_second_value_names_the_way(streamed: Streamed, protocol: str) -> None:
    """At / who asks for no stream is told the path at which there is one; there its values come as lines."""
    ask = ("curl", "-sS", "-X", "POST", "-w", "\n%{http_code}", protocol)
    done = run(*ask, "-H", "Invoker-Function: count", f"{streamed.url}/?to=2")
    text, _, status = done.stdout.rpartition("\n")
    assert status == "500"
    assert "/count" in text
    assert run(*ask, f"{streamed.url}/count?to=2").stdout == "1\n2\n\n200"
