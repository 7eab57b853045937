"""Tests of where the command line puts what comes back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.codecs import builtin
from invoker.connect.failure import UsageError
from invoker.protocols.riff.client.frames import Received
from invoker.protocols.riff.client.printer import Printer


def out(payload: bytes, media_type: str = "text/plain", index: int = 0, name: str = "", **headers: str) -> Received:
    frame = pb.OutputFrame(payload=payload, contentType=media_type, resultIndex=index, headers=headers)
    return Received(frame, name=name, registry=builtin())


def printed(capfdbinary: Any, *outs: Received, **options: Any) -> bytes:
    with Printer(**options) as printer:
        for one in outs:
            printer.write(one)
    shown: bytes = capfdbinary.readouterr().out
    return shown


@pytest.fixture(autouse=True)
def _real_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `capfdbinary` see what goes to the descriptor."""
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)


def test_text_is_a_line_a_value(capfdbinary: Any) -> None:
    """A newline is added where there is none."""
    assert printed(capfdbinary, out(b"a"), out(b"b\n"), out(b""), out(b'{"c":1}', "application/json")) == (
        b'a\nb\n\n{"c":1}\n'
    )


def test_text_is_shown_in_utf8(capfdbinary: Any) -> None:
    """Whatever charset it came in; what is not what it says it is comes unchanged."""
    shown = printed(
        capfdbinary,
        out(b"\xe9", "text/plain; charset=iso-8859-1"),
        out("é".encode("utf-16"), "text/plain; charset=utf-16"),
        out(b"\xff", "text/plain"),
        out(b"x", "text/plain; charset=klingon"),
    )
    assert shown == b"\xc3\xa9\n\xc3\xa9\n\xff\nx\n"


def test_binary_is_written_unchanged(capfdbinary: Any) -> None:
    """To a pipe, without anything in between."""
    assert printed(capfdbinary, out(b"\x00\n", "image/png"), out(b"\xff", "image/png")) == b"\x00\n\xff"


def test_several_outputs_begin_their_lines_with_their_names(capfdbinary: Any) -> None:
    """Each line of a value, with the index where there is no name."""
    shown = printed(capfdbinary, out(b"a\nb", name="text"), out(b"1", index=1), is_several=True)
    assert shown == b"text: a\ntext: b\n1: 1\n"


def test_raw_leaves_text_alone(capfdbinary: Any) -> None:
    """No newline, no name."""
    assert printed(capfdbinary, out(b"a"), out(b"b", index=1), is_several=True, is_raw=True) == b"ab"


def test_files_by_index_and_for_the_rest(capfdbinary: Any, tmp_path: Path) -> None:
    """`-` is stdout."""
    one, rest = tmp_path / "one", tmp_path / "rest"
    outs = (out(b"a"), out(b"\x00", "image/png", index=1), out(b"c", index=2), out(b"d", index=1))
    assert printed(capfdbinary, *outs, files={1: str(one), 2: "-"}, rest=str(rest), is_several=True) == b"2: c\n"
    assert one.read_bytes() == b"\x00d\n"
    assert rest.read_bytes() == b"a\n"


def test_wide_text_in_a_file_stays_as_it_is(capfdbinary: Any, tmp_path: Path) -> None:
    """A newline of one byte would break it."""
    path, payload = tmp_path / "wide", "é".encode("utf-16-le")
    printed(capfdbinary, out(payload, "text/plain; charset=utf-16-le"), rest=str(path))
    assert path.read_bytes() == payload


def test_binary_is_not_shown_on_a_terminal(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless stdout was asked for by name."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(UsageError, match=r"output 0 is image/png, .* give --output FILE, or --output -"):
        printed(capfdbinary, out(b"\x1b", "image/png"))
    assert printed(capfdbinary, out(b"\x1b", "image/png"), rest="-") == b"\x1b"
    assert printed(capfdbinary, out(b"a")) == b"a\n"


def test_headers_go_to_stderr(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a pipe gets the values only."""
    monkeypatch.setattr(sys, "stderr", sys.__stderr__)
    with Printer(show_headers=True, is_several=True) as printer:
        printer.write(out(b"a", name="text", Id="7"))
    shown = capfdbinary.readouterr()
    assert shown.out == b"text: a\n"
    assert shown.err == b"< text: content-type: text/plain\n< text: Id: 7\n"
