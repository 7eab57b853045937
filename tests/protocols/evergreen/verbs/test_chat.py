"""Tests of the command ``chat``, as a process against a scripted peer, and against our own server."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from tests.protocols.evergreen.client.peer import SCRIPTS, Peer, Talk, inner, leaf, serve_in_thread
from tests.serving import forked_python, run, serving

CHAT = ["-W", "error", "-m", "invoker", "chat"]


async def _listed(talk: Talk, action: pb.Action) -> None:
    (output,) = (one.id for one in action.outputs)
    rows = (b'{"name": "ECHO", "inputs": [{"name": "said"}], "outputs": [{"name": "told"}]}', b'{"name": "SILENT"}')
    await talk.send(inner(output, f"{output}0", f"{output}1"))
    await talk.send(*(leaf(f"{output}{at}", row, media_type="application/json") for at, row in enumerate(rows)))


async def _begun(talk: Talk, action: pb.Action) -> None:
    await talk.send(leaf(action.outputs[0].id, b"begun", more=True))
    await talk.until(lambda: action.outputs[0].id in talk.cancels or talk.half_closed.is_set())
    await talk.send(inner(action.outputs[0].id, seq=1))


@pytest.fixture(scope="module")
def running() -> Iterator[Peer]:
    with serve_in_thread() as peer:
        yield peer


@pytest.fixture
def peer(running: Peer) -> Peer:
    """The peer of this file, which has forgotten the test before."""
    running.talks.clear()
    running.accepts = ("cancel", "discovery")
    running.scripts = dict(SCRIPTS) | {"__list_actions": _listed, "BEGUN": _begun}
    return running


def chat(peer: Peer | str, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    target = peer if isinstance(peer, str) else peer.target
    done = run("chat", target, *arguments, stdin=stdin, timeout_s=30)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def begin(peer: Peer, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    python = sys.executable if "preexec_fn" in options else forked_python()  # a fork has no terminal
    return subprocess.Popen([python, *CHAT, peer.target, *arguments], bufsize=0, **pipes)


def test_lines_are_turns(peer: Peer) -> None:
    """Each is answered with all that was said; the names come from the server; blank lines and /quit say nothing."""
    code, out, err = chat(peer, "--action", "ECHO", stdin=b"one\n\ntwo\n/quit\nthree\n")
    assert (code, out, err) == (0, "one\none|one|two\n", "")
    _, first, second = peer.talks[0].actions
    assert (first.inputs[0].name, first.outputs[0].name) == ("said", "told")
    sent = [one.chunk_fragment for one in peer.talks[0].fragments if one.chunk_fragment.metadata.role == "user"]
    assert [one.data for one in sent] == [b"one", b"two"]
    assert first.outputs[0].id in {child for one in peer.talks[0].fragments for child in one.child_ids}
    assert second.outputs[0].id != first.outputs[0].id


def test_names_are_the_usual_ones_when_the_server_does_not_tell(peer: Peer) -> None:
    """And the options win."""
    peer.accepts = ()
    assert chat(peer, "--action", "ECHO", stdin=b"hi")[:2] == (0, "hi\n")
    assert chat(peer, "--action", "ECHO", "--input", "a", "--output", "b", stdin=b"hi")[:2] == (0, "hi\n")
    names = [(talk.actions[0].inputs[0].name, talk.actions[0].outputs[0].name) for talk in peer.talks]
    assert names == [("prompt", "response"), ("a", "b")]


def test_system_config_and_file_go_first(peer: Peer, tmp_path: Path) -> None:
    """A file with its name and type, a config with every turn."""
    note = tmp_path / "note.txt"
    note.write_text("a note")
    options = ("--system", "be brief", "--file", str(note), "--config", '{"seed": 1}', "--action", "ECHO")
    code, out, _ = chat(peer, *options, stdin=b"hi\n")
    assert (code, out) == (0, "be brief|a note|hi\n")
    (shown,) = (one.chunk_fragment for one in peer.talks[0].fragments if one.chunk_fragment.data == b"a note")
    assert (shown.metadata.original_file_name, shown.metadata.mimetype, shown.metadata.role) == (
        "note.txt",
        "text/plain",
        "user",
    )
    assert [config.TypeName() for config in peer.talks[0].actions[-1].configs] == ["google.protobuf.Struct"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--config", "{"), "--config is not JSON"),
        (("--config", "[1]"), "give a JSON object"),
        (("--file", "/no/such/file"), "--file: cannot read /no/such/file"),
        (("--ca", "/no/such/file"), "--ca: cannot read"),
        (("--metadata", "x"), "give NAME=VALUE"),
        (("--action", "NOPE"), "there is no action 'NOPE'; 127.0.0.1:.* offers ECHO, SILENT"),
        ((), "give --action NAME; 127.0.0.1:.* offers ECHO, SILENT"),
    ],
)
def test_arguments_that_do_not_do(peer: Peer, arguments: tuple[str, ...], says: str) -> None:
    """One line, exit code 2."""
    code, out, err = chat(peer, *arguments, stdin=b"hi\n")
    assert (code, out) == (2, "")
    assert re.search(says, err)
    assert err.count("\n") == 1


def test_failure_ends_the_conversation(peer: Peer) -> None:
    """In one line, behind what came before it; the exit code is 1, and 3 without a connection."""
    code, out, err = chat(peer, "--action", "FAIL", "--input", "a", "--output", "b", stdin=b"hi\nmore\n")
    assert (code, out, err) == (1, "begun\n", "error: UNKNOWN: Evergreen: Action Failed: ValueError: boom\n")
    code, _, err = chat("127.0.0.1:1", "--action", "x")
    assert code == 3
    assert err.startswith("error: UNAVAILABLE")


def test_interrupt_cancels_the_answer(peer: Peer) -> None:
    """The conversation goes on without that turn."""
    with begin(peer, "--action", "BEGUN", "--input", "a", "--output", "b") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"hi\n")
        assert process.stdout.read(5) == b"begun"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == b"(cancelled)\n"
        process.stdin.write(b"again\n")
        assert process.stdout.readline() == b"\n"
        assert process.stdout.read(5) == b"begun"
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(10) == 0
    assert len(peer.talks[0].cancels) == 2


def test_interrupt_ends_a_session_that_cannot_cancel(peer: Peer) -> None:
    """With a clear word."""
    peer.accepts = ()
    with begin(peer, "--action", "BEGUN") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"hi\n")
        assert process.stdout.read(5) == b"begun"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == b"\nthe server cannot cancel one answer, so the session ends\n"
    assert peer.talks[0].cancelled.wait(5)


def test_terminal_shows_a_prompt_and_streams(peer: Peer) -> None:
    """Ctrl-C at the prompt ends it with 130, Ctrl-D with 0."""
    for key, code in ((b"\x04", 0), (b"\x03", 130)):
        ours, theirs = pty.openpty()
        options = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
        process = begin(peer, "--action", "ECHO", preexec_fn=_take_terminal, **options)
        os.close(theirs)
        seen = _until(ours, b"> ")
        os.write(ours, b"hello\n")
        seen += _until(ours, b"> ")
        assert b"hello\r\nhello\r\n> " in seen
        os.write(ours, key)
        assert process.wait(10) == code
        os.close(ours)


def test_server_that_goes_away_ends_the_conversation(peer: Peer) -> None:
    """Also while the next line is waited for."""

    async def once(talk: Talk, action: pb.Action) -> None:
        await SCRIPTS["ECHO"](talk, action)
        raise RuntimeError("the peer breaks")

    peer.scripts["ONCE"] = once
    with begin(peer, "--action", "ONCE", "--input", "a", "--output", "b") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"hi\n")
        assert process.wait(10) == 1
        assert b"error: UNKNOWN" in process.stderr.read()


def test_conversation_with_our_own_server(tmp_path: Path) -> None:
    """The sample remembers what was said, through nodes only, and a bad config is told in a line."""
    with serving("functions.generate:generate") as served:
        options = ("--action", "generate", "--config", '{"seed": 1, "max_tokens": 20}')
        code, out, err = chat(served.grpc, *options, stdin=b"My name is Ada.\nWhat is my name?\n")
        assert (code, err) == (0, "")
        assert out.splitlines()[-1] == "Your name is Ada."
        code, out, err = chat(served.grpc, "--config", '{"temperature": 9}', stdin=b"hello\n")
        assert (code, out) == (1, "")
        assert err.startswith("error: INVALID_ARGUMENT: generate: bad config")


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _until(terminal: int, end: bytes) -> bytes:
    seen = b""
    while not seen.endswith(end):
        seen += os.read(terminal, 1024)
    return seen
