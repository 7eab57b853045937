"""fetch in Node, which is undici, and node:http2: streams both ways, and clients that leave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.interop.streams.conftest import Streamed
from tests.interop.tools import run

CLIENT = Path(__file__).parent / "client.js"

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.skipif(shutil.which("node") is None, reason="there is not a node"),
]


def node(name: str, url: str, *more: Path) -> Any:
    """What the client saw."""
    done = run("node", CLIENT, name, url, *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("function", ["echo", "sync_echo"])
def test_H003_fetch_sends_while_it_reads(streamed: Streamed, function: str) -> None:
    """Each line leaves only when the answer to the one before has come."""
    found = node("duplex", f"{streamed.url}/{function}")
    assert (found["status"], found["type"]) == (200, "application/x-ndjson")
    assert found["saw"] == ['"ONE"', '"LINE 1"', '"LINE 2"']


@pytest.mark.parametrize("function", ["echo", "sync_echo"])
def test_H003_http2_sends_while_it_reads(streamed: Streamed, function: str) -> None:
    """The same by HTTP/2 with prior knowledge."""
    found = node("http2", f"{streamed.url}/{function}")
    assert found == {"status": 200, "saw": ['"ONE"', '"LINE 1"', '"LINE 2"']}


@pytest.mark.parametrize("function", ["ticks", "sync_ticks"])
def test_H004_a_fetch_that_is_aborted_cancels_the_function(streamed: Streamed, function: str) -> None:
    """What was yielded before has come, and the function's ``finally`` runs."""
    found = node("abort", f"{streamed.url}/{function}")
    assert found == {"saw": ["1", "2", "3"], "error": "AbortError"}
    assert "done" not in streamed.waited(function, "closed")


@pytest.mark.parametrize("way", ["broken", "reset", "destroy"])
@pytest.mark.parametrize("function", ["total", "sync_total"])
def test_H015_an_upload_that_breaks_off_is_not_committed(streamed: Streamed, function: str, way: str) -> None:
    """A body of fetch that fails, RST_STREAM, and an end of the connection: none looks like the end of the body."""
    node(way, f"{streamed.url}/{function}", streamed.folder / "added")
    notes = streamed.waited(function, "closed")
    assert streamed.notes("added") == ["1", "2"]
    assert streamed.notes("committed") == []
    assert "done" not in notes


def test_fetch_reads_events(streamed: Streamed) -> None:
    """They end with the event that says so."""
    found = node("events", f"{streamed.url}/count?to=2")
    assert (found["status"], found["type"].partition(";")[0]) == (200, "text/event-stream")
    assert found["text"] == "id: 1\ndata: 1\n\nid: 2\ndata: 2\n\nevent: end\ndata: {}\n\n"
