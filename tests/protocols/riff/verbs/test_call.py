"""Tests of the command ``call``, as a process against a bare peer."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.riff.verbs.call import _hint, _is_json_sent_as_text
from tests.connect.test_tls import credentials
from tests.protocols.riff.client.peer import Peer, serve_in_thread
from tests.serving import forked_python, run

CALL = ["-W", "error", "-m", "invoker", "call"]


@pytest.fixture(scope="module")
def running() -> Iterator[Peer]:
    with serve_in_thread() as peer:
        yield peer


@pytest.fixture
def peer(running: Peer) -> Peer:
    """The peer of this file, which has forgotten the test before."""
    running.starts.clear()
    running.frames.clear()
    running.cancelled.clear()
    running.half_closed.clear()
    return running


def call(peer: Peer | str, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    target = peer if isinstance(peer, str) else peer.target
    done = run("call", target, *arguments, stdin=stdin)
    return done.returncode, done.stdout, done.stderr.decode()


def begin(peer: Peer, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([forked_python(), *CALL, peer.target, *arguments], bufsize=0, **pipes)


def test_lines_of_stdin_are_values(peer: Peer) -> None:
    """And what comes back is printed a line a value."""
    assert call(peer, stdin=b"a\nb\n") == (0, b"a\nb\n", "")
    assert [(frame.payload, frame.contentType) for frame in peer.frames] == [(b"a", "text/plain"), (b"b", "text/plain")]


def test_values_travel_as_they_are_typed(peer: Peer) -> None:
    """A conversation over pipes: each answer is there before the next line is written."""
    with begin(peer) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in (b"one\n", b"two\n"):
            process.stdin.write(word)
            assert process.stdout.readline() == word
        process.stdin.close()
        assert process.wait(10) == 0


def test_end_of_the_call_does_not_wait_for_stdin(peer: Peer) -> None:
    """A reader that blocks does not hold up the end of the process."""
    with begin(peer, "--function", "source") as process:
        assert process.wait(10) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"0\n1\n2\n"


def test_closed_stdin_is_an_empty_input(peer: Peer) -> None:
    """As with `<&-` in a shell."""
    command = 'exec "$@" <&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", forked_python(), *CALL, peer.target], capture_output=True, check=False,
        timeout=20,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"note: input 0 got nothing\n")


def test_json_is_checked_and_asked_for(peer: Peer) -> None:
    """A line that is not JSON ends the call with the number of the line."""
    assert call(peer, "--json", stdin=b'1\n\n{"a": 2}\n') == (0, b'1\n{"a": 2}\n', "")
    assert list(peer.starts[0].expectedContentTypes) == ["application/json"]
    code, _, err = call(peer, "--json", stdin=b"1\noops\n")
    assert code == 2
    assert err.startswith("error: stdin, line 2 is not JSON: ")


def test_several_inputs_by_index_and_by_name(peer: Peer, tmp_path: Path) -> None:
    """Each with its own type."""
    rows = tmp_path / "rows"
    rows.write_text("1\n2\n")
    code, out, err = call(
        peer, "--function", "indexed", "--inputs", "words,rows", "--data", "a", "--data", "b", "--arg", f"rows=@{rows}",
        "--content-type", "rows=application/json", "--header", "X-Id=7",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert sorted(out.split()) == [b"0:a", b"0:b", b"1:1", b"1:2"]
    assert list(peer.starts[0].inputNames) == ["words", "rows"]
    assert {(frame.argIndex, frame.contentType, frame.headers["X-Id"]) for frame in peer.frames} == {
        (0, "text/plain", "7"),
        (1, "application/json", "7"),
    }


def test_R168_inputs_that_got_nothing_are_told(peer: Peer) -> None:
    """By index, and by name where there is one; the exit code is that of the status."""
    assert call(peer) == (0, b"", "note: input 0 got nothing\n")
    arguments = ("--function", "indexed", "--inputs", "words,rows,k", "--arg", "rows=1", "--arg", "words=@/dev/null")
    code, _, err = call(peer, *arguments)
    assert (code, err) == (0, "note: input 0 'words' got nothing\nnote: input 2 'k' got nothing\n")


def test_several_outputs_are_told_apart(peer: Peer, tmp_path: Path) -> None:
    """By name on stdout, or in files."""
    assert call(peer, "--function", "two", "--outputs", "text,size", "-d", "abc")[1] == b"text: abc\nsize: 3\n"
    sizes = tmp_path / "sizes"
    options = ("--accept", "text/plain", "--accept", "application/json", "--output", f"1={sizes}")
    assert call(peer, "--function", "two", *options, "-d", "abc", "-d", "x")[1] == b"0: abc\n0: x\n"
    assert sizes.read_bytes() == b"3\n1\n"


def test_binary_goes_to_a_file_unchanged(peer: Peer, tmp_path: Path) -> None:
    """Both ways."""
    picture, copy = tmp_path / "in.png", tmp_path / "out.png"
    picture.write_bytes(bytes(range(256)) * 10)
    options = ("--content-type", "image/png", "--accept", "image/png", "--output", str(copy))
    assert call(peer, *options, "--data", f"@{picture}") == (0, b"", "")
    assert copy.read_bytes() == picture.read_bytes()
    assert call(peer, "--content-type", "image/png", stdin=b"\x00\n\xff") == (0, b"\x00\n\xff", "")
    assert call(peer, "--raw", stdin=b"a\r\nb") == (0, b"a\r\nb", "")
    assert call(peer, "--chunk", "2", "--raw", stdin=b"abcde") == (0, b"abcde", "")
    assert [frame.payload for frame in peer.frames[-3:]] == [b"ab", b"cd", b"e"]


def test_headers_are_shown_on_stderr(peer: Peer) -> None:
    """Stdout stays what it is."""
    code, out, err = call(peer, "--no-input", "--function", "binary", "--show-headers")
    assert (code, out, err) == (0, b"\x00\xff\x1b", "< content-type: image/x-thing\n< X-Size: 3\n")


def test_error_of_the_call_is_told_on_stderr(peer: Peer) -> None:
    """After what came before it; the exit code is 1."""
    code, out, err = call(peer, "--function", "fail", "-d", "a")
    assert (code, out, err) == (1, b"a\n", "error: UNKNOWN: Invoker: Unexpected Error: ValueError: boom\n")


def test_hint_when_the_number_of_outputs_is_wrong(peer: Peer) -> None:
    """riff wants one expected type an output; people do not know."""
    code, _, err = call(peer, "--function", "arity", "-d", "a")
    assert code == 1
    assert err.splitlines()[1].startswith("hint: 1 output was asked for; give --accept once for each output")


def test_time_limit(peer: Peer) -> None:
    """Is a deadline, which the peer hears of too."""
    code, _, err = call(peer, "--function", "silent", "-d", "a", "--timeout", "0.2")
    assert code == 1
    assert err.startswith("error: DEADLINE_EXCEEDED")
    assert peer.cancelled.wait(5)


def test_nobody_there_is_exit_code_3() -> None:
    """Told from a call that failed."""
    code, _, err = call("127.0.0.1:1", "-d", "a")
    assert code == 3
    assert err.startswith("error: UNAVAILABLE: nothing listens at 127.0.0.1:1; start the server")


@pytest.mark.parametrize(
    "arguments", [["-d", "@nothing"], ["--timeout", "0"], ["--chunk", "-1"], ["--arg", "x"], ["--nonsense"]]
)
def test_mistakes_are_exit_code_2(peer: Peer, arguments: list[str]) -> None:
    """Nothing is sent."""
    code, out, err = call(peer, *arguments)
    assert (code, out) == (2, b"")
    assert "error: " in err
    assert "Traceback" not in err
    assert not peer.starts


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Programs that the test starts get SIGINT, although a shell that runs the tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_interrupt_cancels_the_call(peer: Peer) -> None:
    """Exit code 130, no traceback."""
    with begin(peer, "--function", "endless") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, b"")
    assert peer.cancelled.wait(5)


def test_reader_that_goes_away_ends_the_call_quietly(peer: Peer) -> None:
    """As with `| head -1`."""
    with begin(peer, "--function", "endless") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 141
        assert process.stderr.read() == b""
    assert peer.cancelled.wait(5)


def test_binary_is_not_shown_on_a_terminal(peer: Peer) -> None:
    """And lines are read from one."""
    own, theirs = pty.openpty()
    try:
        with begin(peer, "--function", "binary", stdin=theirs, stdout=theirs) as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith(b"reading values from the terminal")
            os.write(own, b"x\n\x04")  # Ctrl-D
            assert process.wait(10) == 2
            err = process.stderr.read()
    finally:
        os.close(own)
        os.close(theirs)
    assert err.startswith(b"error: output 0 is image/x-thing, which may upset the terminal; give --output FILE")


def test_output_that_cannot_be_written(peer: Peer) -> None:
    """A full disk is an error in one line."""
    code, _, err = call(peer, "-d", "a", "--output", "/dev/full")
    assert code == 1
    assert "No space left on device" in err
    assert "Traceback" not in err


def test_secured_connection(tmp_path: Path) -> None:
    """With the options for it, and a server's name that is not its address."""
    authority = trustme.CA()
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    with serve_in_thread(credentials(authority, "functions.example")) as peer:
        options = ("--ca", str(ca), "--server-name", "functions.example")
        assert call(peer, *options, "-d", "a") == (0, b"a\n", "")
        assert call(peer, "--tls", "-d", "a")[0] == 3


@pytest.mark.parametrize(
    ("detail", "helps"),
    [
        ("""expected object, got '{"x": 3}'; send JSON as application/json (with curl)""", True),
        ("""expected object, got '{"x": 3'...; send JSON as application/json (with curl)""", True),
        ("""expected object, got '{x}'; send JSON as application/json (with curl)""", False),
        ("text/plain cannot become float: expected float, got 'five'", False),
    ],
)
def test_json_is_hinted_at_where_it_helps(detail: str, helps: bool) -> None:
    """Where the text that the error shows is JSON, or is cut off."""
    assert _is_json_sent_as_text(detail) is helps


@pytest.mark.parametrize(
    ("status", "detail", "hint"),
    [
        (Status.RESOURCE_EXHAUSTED, "larger than max_output_bytes", "--max-output-bytes N"),
        (Status.RESOURCE_EXHAUSTED, "a message larger than max", "--chunk BYTES"),
        (Status.RESOURCE_EXHAUSTED, "too many calls", ""),
        (Status.INVALID_ARGUMENT, "a message larger than max", ""),
        (Status.INVALID_ARGUMENT, """expected object, got '{"x": 3}'; send JSON as application/json""", "--json"),
        (Status.INVALID_ARGUMENT, "several functions: say 'invoker-function'", "--function NAME"),
        (Status.INVALID_ARGUMENT, "Invoker: Protocol Violation: 1 output too few", "2 outputs were asked for"),
    ],
)
def test_a_failed_call_says_what_to_try(status: Status, detail: str, hint: str) -> None:
    """Where an option of the command helps."""
    found = _hint(CallFailed(status, detail), Namespace(outputs="a,b", accept=[]))
    assert hint in found
    assert bool(hint) == bool(found)


def test_a_failed_call_says_what_was_noted() -> None:
    """If no option helps."""
    error = CallFailed(Status.UNKNOWN, "TypeError")
    error.add_note("annotate it")
    assert _hint(error, Namespace(outputs=None, accept=[])) == "annotate it"
