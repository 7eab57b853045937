"""`invoker call` as a newcomer types it, against a server of ours."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.serving import TestServer, run

FUNCTIONS = """
from collections.abc import Iterator
from dataclasses import dataclass

from invoker import function


@dataclass
class Row:
    a: int
    b: str = "x"


@function
def hello(name: str) -> str:
    return f"hello {name}"


@function
def plain(x):
    return x


@function
def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    for word, count in zip(words, counts):
        yield word * count


@function
def both(words: Iterator[str]) -> tuple[Iterator[str], Iterator[int]]:
    first = list(words)
    return iter(first), (len(one) for one in first)


@function
def row(row: Row) -> Row:
    return row


@function
def total(items: list[int]) -> int:
    return sum(items)


@function
def half(amount: float) -> float:
    return amount / 2


@function
def bare(x):
    return x + 1


@function
def now() -> str:
    return "now"


@function
def source() -> Iterator[int]:
    yield from range(3)


@function
def joined(first: str, *more: str, end: str = "") -> str:
    return first + "".join(more) + end


@function
def marked(word: str, **marks: str) -> str:
    return word + "".join(f" {name}={mark}" for name, mark in marks.items())
"""


Call: TypeAlias = Callable[..., tuple[int, str, str]]
"""Calls a function of the catalogue above: exit code, stdout and stderr."""


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """With the driver that is the default."""
    with serving_newcomers(tmp_path_factory.mktemp("newcomer"), "fast") as call:
        yield call


@contextmanager
def serving_newcomers(folder: Path, driver: str) -> Iterator[Call]:
    module = folder / "functions_of_a_newcomer.py"
    module.write_text(FUNCTIONS)
    server = TestServer(str(module), "--grpc-driver", driver, "--no-http")

    def call(name: str, *words: str) -> tuple[int, str, str]:
        done = run("call", server.grpc, "--function", name, *words)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    try:
        yield call
    finally:
        assert server.close() == 0


@pytest.mark.timeout(60)
def test_the_other_driver_tells_names_and_types_too(tmp_path: Path) -> None:
    """What it tells is made in one place for both."""
    with serving_newcomers(tmp_path, "aio") as call:
        assert call("repeat", "--arg", "words=ho", "--arg", "counts=2") == (0, "hoho\n", "")
        assert call("hello", "--arg", "nam=Bob")[2] == "error: 'hello' has no input 'nam'; did you mean 'name'?\n"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("hello -d Bob", "hello Bob\n"),
        ("hello -d Bob --raw", "hello Bob"),
        ("hello -d Bob --accept application/json", '"hello Bob"\n'),
        ("hello --arg name=Bob", "hello Bob\n"),
        ("plain -d Bob", "Bob\n"),
        ("plain --json -d [1]", "[1]\n"),
        ("repeat --arg words=ho --arg counts=2", "hoho\n"),
        ("both -d ho", "out0: ho\nout1: 2\n"),
        ('row -d {"a":1,"b":"y"}', '{"a":1,"b":"y"}\n'),
        ("total -d [1,2]", "3\n"),
        ("joined --arg 0=a", "a\n"),
        ("joined --arg 0=a --arg 2=c --arg 1=b", "abc\n"),
        ("joined --arg 0=a --arg end=! --arg 1=b", "ab!\n"),
        ("marked --arg colour=red -d a", "a colour=red\n"),
        ("now", "now\n"),
        ("source", "0\n1\n2\n"),
    ],
)
def test_neither_names_nor_types_need_be_said(call: Call, words: str, printed: str) -> None:
    """The server tells them, and text is printed as text."""
    code, out, error = call(*words.split())
    assert (code, sorted(out.splitlines(keepends=True)), error) == (0, printed.splitlines(keepends=True), "")


@pytest.mark.timeout(60)
def test_what_the_function_does_not_take_is_told_before_it_is_called(
    call: Call,
) -> None:
    """With its names, and with the type that is wanted."""
    assert call("hello", "--arg", "nam=Bob") == (
        2,
        "",
        "error: 'hello' has no input 'nam'; did you mean 'name'?\n",
    )
    code, _, error = call("row", "-d", "hello")
    assert code == 2
    assert error.endswith("; input 'row' takes Row, which is written as application/json\n")


@pytest.mark.timeout(60)
def test_a_value_that_does_not_fit_is_told_with_the_parameter(call: Call) -> None:
    """With the value and a hint; a str that meets arithmetic, with the annotation that is missing."""
    _, _, error = call("half", "-d", "five")
    refused = "text/plain cannot become float: expected float, got 'five'"
    assert error.splitlines() == [
        f"error: UNKNOWN: Invoker: Bad Input Signal: input #0 'amount': {refused}",
    ]
    _, _, error = call("bare", "-d", "5")
    hint = "annotate it in the function (x: float), or send JSON by --json"
    assert error.splitlines()[1:] == [f"hint: 'x' has no annotation, so text arrives as a str; {hint}"]


@pytest.mark.timeout(60)
def test_ports_that_are_none_of_ours_are_told() -> None:
    """A dead one is exit code 3; the HTTP port is told from the gRPC port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listened at
        dead = f"127.0.0.1:{taken.getsockname()[1]}"
        code, error = failed(dead, "-d", "1")
    assert (code, error) == (
        3,
        f"error: UNAVAILABLE: nothing listens at {dead}; start the server, or check host and port\n",
    )
    server = TestServer("functions.square:square")
    try:
        code, error = failed(server.http, "-d", "1")
        assert code == 1
        assert f"{server.http} speaks HTTP and not gRPC" in error
        assert "give its gRPC port" in error
    finally:
        server.close()


@pytest.mark.timeout(60)
def test_the_limit_of_the_client_is_told_as_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And can be raised."""
    (tmp_path / "large_values.py").write_text("def large(x: int) -> bytes:\n    return bytes(x)\n")
    monkeypatch.chdir(tmp_path)
    server = TestServer("large_values:large")
    try:
        code, error = failed(server.grpc, "-d", "5000", "--max-output-bytes", "4000")
        assert code == 1
        assert re.search(
            r"a value of 50\d\d bytes came back, which exceeds the limit of this client, 4000 bytes", error
        )
        assert error.endswith("hint: --max-output-bytes N takes larger ones\n")
        assert failed(server.grpc, "-d", "5000", "--max-output-bytes", "6000", "--output", "here") == (0, "")
        assert (tmp_path / "here").stat().st_size == 5000
    finally:
        server.close()


def failed(target: str, *words: str) -> tuple[int, str]:
    done = run("call", target, *words)
    return done.returncode, done.stderr.decode()
