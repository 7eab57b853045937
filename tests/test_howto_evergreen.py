"""What docs/how-to/serve-evergreen.md says of Evergreen sessions, tried with their own examples."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from invoker import Message
from invoker.client import CallFailed, EvergreenSession
from invoker.errors import Status
from tests.serving import TestServer

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "serve-evergreen.md"
BLOCK = re.compile(r"^```(\w*)(?: \w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What the shorter examples leave out.
IMPORTS = """
from collections.abc import AsyncIterator, Iterator
from typing import Any

from google.protobuf.duration_pb2 import Duration as GenerateConfig

from invoker import Context, Message, function
"""
ENDS = """
    leaves = [leaf async for leaf in prompt]
    yield Message(f"{wish and wish.seconds} {said} {len(ctx.configs)} {leaves[0].headers['role']}")
"""


def blocks(kind: str, page: Path = PAGE) -> list[str]:
    """The code of a page."""
    return [text for found, text in BLOCK.findall(page.read_text()) if found == kind]


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Starts the page's own command, whose functions lie in an empty folder."""
    menu, configs, outputs = blocks("python")
    (tmp_path / "menu.py").write_text(menu)
    (tmp_path / "more.py").write_text(f"{IMPORTS}\n{textwrap.dedent(configs)}{ENDS}\n")
    (tmp_path / "sends.py").write_text(f"{IMPORTS}\n{outputs}")
    monkeypatch.chdir(tmp_path)
    started = []

    def start(*args):
        started.append(TestServer(*args))
        return started[-1].grpc

    yield start
    for server in started:
        assert server.close() == 0


def command() -> list[str]:
    """The flags of the command with which the page names actions."""
    (line,) = [line for text in blocks("sh") for line in text.splitlines() if "--action" in line]
    return line.removeprefix("python -m invoker ").split()


@pytest.mark.timeout(60)
async def test_names_are_as_the_page_says(served):
    """Own names, module:function, names of the operator, aliases, targets, defaults."""
    target = served(*command())
    async with EvergreenSession(target) as session:
        assert await session.act("GENERATE", {"prompt": ["a ", "b"]}).text() == "A B"
        assert await session.act("menu:generate", {"prompt": "a"}).text() == "A"
        assert await session.act("DRAW", {"picture": b"abcdef", "width": 3}).value() == b"abc"
        assert await session.act("crop", {"image": b"abcdef"}, target="eu-1", outputs="any").value() == b"abcdef"
        png = Message(b"\x89PNG", media_type="image/png")
        assert await session.act("crop", {"image": png, "width": 2}).value() == b"\x89P"
    for name, options, status in (
        ("generate", {}, Status.NOT_FOUND),
        ("GENERATE", {"target": "us"}, Status.NOT_FOUND),
        ("crop", {}, Status.INVALID_ARGUMENT),
    ):
        with pytest.raises(CallFailed) as refused:
            async with EvergreenSession(target) as session:
                await session.act(name, {"prompt": "a"}, **options).text()
        assert refused.value.status is status


@pytest.mark.timeout(60)
async def test_configs_and_headers_are_as_the_page_says(served):
    """Message classes, dicts, and the metadata of leaves."""
    from google.protobuf.duration_pb2 import Duration

    async with EvergreenSession(served("more:generate")) as session:
        hello = Message("hello", headers={"role": "user"}, media_type="text/plain")
        answer = session.act("generate", {"prompt": hello}, configs=[Duration(seconds=7), {"top": 1}])
        # The first config that a dict can be made of is the Duration.
        assert await answer.text() == "7 {'value': '7s'} 2 user"
        answer = session.act("generate", {"prompt": hello}, configs=[{"top": 1}])
        assert await answer.text() == "None {'top': 1.0} 1 user"


@pytest.mark.timeout(60)
async def test_outputs_end_one_by_one_as_the_page_says(served):
    """The log has ended while the answer still waits for its prompt."""
    async with EvergreenSession(served("sends:generate")) as session:
        prompt = session.node()
        answer = session.act("generate", {"prompt": prompt}, outputs=("answer", "log"))
        assert await answer["log"].text() == "started"
        await prompt.write("it ")
        await prompt.write("works")
        await prompt.end()
        assert await answer["answer"].text() == "it works"
