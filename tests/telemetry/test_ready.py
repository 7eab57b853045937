"""The ready block: never silenced, short, and found by programs."""

from __future__ import annotations

import io
import json
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker import Message
from invoker.author.reader import read
from invoker.telemetry.logs import set_up
from invoker.telemetry.ready import announce, ready_block, untyped
from invoker.telemetry.samples import call_command
from tests.serving import TestServer, run

BLOCK = "ready: 100% of it on grpc=127.0.0.1:1\nserves: riff\ntry: python -m invoker call localhost:1"


@pytest.fixture
def root_logger() -> Iterator[None]:
    """The logging of this process as it was."""
    loggers = [logging.getLogger(name) for name in (None, "invoker", "asyncio", "watchfiles")]
    before = [(list(one.handlers), one.level) for one in loggers]
    yield
    for one, (handlers, level) in zip(loggers, before, strict=True):
        one.handlers[:] = handlers
        one.setLevel(level)


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("root_logger")
@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_R016_the_line_is_printed_once_at_every_level(level: str) -> None:
    """In both formats, as INFO; what stands below it are fields in JSON."""
    for style in ("json", "text"):
        stream = io.StringIO()
        set_up(level, style, stream=stream)
        announce(BLOCK)
        lines = stream.getvalue().splitlines()
        if style == "json":
            found = json.loads(lines[0])
            assert (found["level"], found["message"]) == ("info", "ready: 100% of it on grpc=127.0.0.1:1")
            assert (found["serves"], found["try"]) == ("riff", "python -m invoker call localhost:1")
            assert len(lines) == 1
        else:
            assert lines[0].endswith("INFO    ready: 100% of it on grpc=127.0.0.1:1")
            assert lines[1:] == ["    serves: riff", "    try: python -m invoker call localhost:1"]


@pytest.mark.usefixtures("root_logger")
@pytest.mark.parametrize(
    ("kind", "environment", "is_coloured"),
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
    ],
)
def test_colours_are_for_people_who_want_them(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO], environment: dict[str, str], is_coloured: bool
) -> None:
    """On a terminal only, and not with NO_COLOR; the addresses are plain in any case, for programs that look."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = kind()
    set_up("info", "text", stream=stream)
    announce(BLOCK)
    assert ("\x1b[" in stream.getvalue()) == is_coloured
    assert "ready: 100% of it on grpc=127.0.0.1:1\n" in stream.getvalue()


def test_many_names_are_counted() -> None:
    """The line stays short."""
    names = [f"name{number}" for number in range(40)]
    line, serves = ready_block(names, "grpc=127.0.0.1:8081", "riff; here", "").split("\n")
    assert line == "ready: name0, name1, name2, name3, name4 and 35 more on grpc=127.0.0.1:8081"
    assert serves == "serves: riff; here"


FUNCTIONS = """
import dataclasses, datetime, enum
from collections.abc import AsyncIterator, Iterator
from typing import Annotated
import msgspec
from invoker import Message

class Colour(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Order:
    when: datetime.datetime
    colour: Colour
    count: Annotated[int, msgspec.Meta(ge=10)]
    note: str = ""

def order(order: Order) -> str:
    return f"{order.colour.value} {order.when.year} {order.count}"

def colour(colour: Colour, at: datetime.datetime) -> str:
    return f"{colour.value} {at.year}"

def greet(name: str = "world") -> str:
    return f"hello {name}"

def generate(prompts: Iterator[str], temperature: float = 1.0, stops: list[str] = []) -> Iterator[str]:
    for prompt in prompts:
        yield f"{prompt} {temperature}"

def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)

async def talk(prompt: AsyncIterator[Message[str]]) -> AsyncIterator[str]:
    async for one in prompt:
        yield f"you said {one.payload}"
"""


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("entrypoint", "answer"),
    [
        ("functions.ticks:ticks", "1"),
        ("functions.split:split", "7"),
        ("functions.chat:chat", "you"),
        ("asked:order", "red 2026 10"),
        ("asked:colour", "red 2026"),
        ("asked:greet", "hello hello"),
        ("asked:generate", "hello 1.0"),
        ("asked:mean", "7"),
        ("asked:talk", "you said Hi"),
    ],
)
def test_R005_R016_the_call_of_the_ready_block_succeeds(
    entrypoint: str,
    answer: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is found although only errors are logged, and copied as it stands."""
    if entrypoint.startswith("asked"):
        folder = tmp_path_factory.mktemp("asked")
        (folder / "asked.py").write_text(FUNCTIONS)
        monkeypatch.chdir(folder)
    server = TestServer(entrypoint, "--log-level", "error", "--no-http")
    try:
        command = shlex.split(json.loads(server.log())["try"])
        assert command[:4] == ["python", "-m", "invoker", "chat" if entrypoint.endswith("talk") else "call"]
        asked = run(*command[3:], stdin=b"Hi\n")
        assert answer in asked.stdout.decode()
    finally:
        assert server.close() == 0


def test_H070_the_ready_message_says_where_the_page_is() -> None:
    """Below the call to copy; a process without a page says nothing of one."""
    assert ready_block(["f"], "here", "http", "call x", "http://localhost:1/").split("\n")[2:] == [
        "try: python -m invoker call x",
        "page: http://localhost:1/",
    ]
    assert "page" not in ready_block(["f"], "here", "http", "")


def test_a_parameter_without_a_type_is_told_to_its_author() -> None:
    """By its name, with what to write; nothing is said where all have types, or of messages, which tell theirs."""

    def bare(a: int, x, k=1): ...  # type: ignore[no-untyped-def]
    def typed(a: int, k: str = "") -> None: ...
    def told(a: Message[Any]) -> None: ...

    assert untyped([read(typed), read(told)]) == ""
    note = untyped([read(typed), read(bare)])
    assert note.startswith("'x' of bare has no type, so text arrives as a str; annotate it (x: float), or send JSON")
    assert ready_block(["f"], "here", "http", "", note="n").endswith("\nnote: n")


def test_the_call_to_copy_of_a_bare_function_gives_it_a_number(tmp_path: Path) -> None:
    """`x * 2` of 7 is 14, not 77."""
    scope: dict[str, Any] = {}
    source = "def double(x):\n    return x * 2\n"
    exec(source, scope)
    (tmp_path / "bare.py").write_text(source)
    server = TestServer(f"{tmp_path}/bare.py:double")
    try:
        command = shlex.split(call_command(read(scope["double"]), server.grpc, is_one=True))
        asked = run(*command)
        assert asked.stdout.strip() == b"14"
    finally:
        assert server.close() == 0
