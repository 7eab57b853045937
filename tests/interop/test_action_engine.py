"""action-engine from PyPI: its client calls our server, and our messages are understood by its server."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker.protocols.evergreen.action_engine.wire import END, HALF_CLOSE, Action, Fragment, decode
from tests.conftest import SLOW
from tests.interop.tools import run
from tests.serving import ROOT, Served, serving
from tests.transports.sockets import Peer, item, texts
from tests.transports.sockets import open_peer as connected

PYTHON = ROOT / ".interop/action-engine/bin/python"
PROGRAMS = Path(__file__).parent / "action_engine"

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.skipif(not PYTHON.is_file(), reason="action-engine has no wheel for this platform or Python"),
]


@pytest.fixture(scope="module")
def actions() -> Iterator[Served]:
    """Our server, asked to serve action-engine."""
    env = {"INVOKER_PROTOCOLS": "riff,http,action-engine", "INVOKER_SOCKET_PATH": "/actions"}
    with serving("tests.interop.action_engine.actions", env=env) as served:
        yield served


def call(action: str, *outputs: str, **more: Any) -> dict[str, Any]:
    """A call in the plan of the client; inputs by their names, and what else the plan knows."""
    known = ("id", "dispatch", "turns", "headers", "open", "type")
    plan = {key: more.pop(key) for key in known if key in more}
    return {"name": action, "id": "A", "inputs": more, "outputs": outputs or ("y",), **plan}


def converse(served: Served, *sessions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Let the client do the calls of some sessions."""
    plan = {"address": served.http, "path": "/actions", "sessions": sessions}
    done = run(PYTHON, PROGRAMS / "client.py", stdin=json.dumps(plan))
    assert done.returncode == 0, done.stderr
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def called(served: Served, action: str, *outputs: str, **more: Any) -> dict[str, Any]:
    """The account of one call."""
    ((account,),) = converse(served, [call(action, *outputs, **more)])
    return account


# Its client and our server


def test_a_plain_action_is_answered(actions: Served) -> None:
    """A value in, a value out, OK."""
    account = called(actions, "upper", x=["hello"])
    assert (account["outputs"], account["errors"], account["status"]) == ({"y": ["HELLO"]}, {}, "OK")


def test_a_plain_action_is_mapped_over_its_items(actions: Served) -> None:
    """Each is an item of the answer; a long one is compressed on the way."""
    account = called(actions, "upper", x=["a", "b" * 5000, ""])
    assert account["outputs"]["y"] == ["A", "B" * 5000, ""]


def test_outputs_stream(actions: Served) -> None:
    """In order, one message an item."""
    assert called(actions, "count", x=["300"])["outputs"]["y"] == [str(number) for number in range(300)]


def test_inputs_stream(actions: Served) -> None:
    """The next item is put when the answer to the one before has come."""
    account = called(actions, "echo", x=["one", "two", "three"], turns="x")
    assert account["outputs"]["y"] == ["one", "two", "three"]
    assert account["order"] == ["> x 0", "< y 0", "> x 1", "< y 1", "> x 2", "< y 2"]


def test_two_inputs_are_told_apart(actions: Served) -> None:
    """By their names."""
    assert called(actions, "concat", b=["B"], a=["A"])["outputs"]["y"] == ["AB"]


def test_two_outputs_are_told_apart(actions: Served) -> None:
    """By their names; one that is not listed is not sent."""
    account = called(actions, "split", "odd", "even", numbers=["1", "2", "3", "4"])
    assert account["outputs"] == {"odd": [1, 3], "even": [2, 4]}
    assert called(actions, "split", "odd", numbers=["1", "2"])["outputs"] == {"odd": [1]}


def test_objects_are_json(actions: Served) -> None:
    """Both ways."""
    account = called(actions, "describe", value=[{"b": 1, "a": [2]}], type="application/json")
    assert account["outputs"]["y"] == [{"names": ["a", "b"]}]


def test_defaults_and_headers(actions: Served) -> None:
    """A parameter that has no port keeps its default; the function sees the headers of the action."""
    assert called(actions, "greet", name=["Ada"])["outputs"]["y"] == ["Hello, Ada"]
    account = called(actions, "greet", name=["Ada"], greeting=["Hi"], headers={"title": "Lady "})
    assert account["outputs"]["y"] == ["Hi, Lady Ada"]


def test_a_failure_is_seen_by_who_reads_and_who_waits(actions: Served) -> None:
    """What came before it is delivered."""
    account = called(actions, "fail", x=["one", "two"])
    text = "Invoker: Unexpected Error: ValueError: cannot go on after one [UNKNOWN]"
    assert account["outputs"]["y"] == ["one"]
    assert account["errors"] == {"y": f"StatusNotOk: [A#y]: {text}"}
    assert account["status"] == f"StatusNotOk: {text}"


def test_a_function_chooses_its_status(actions: Served) -> None:
    """Code and text."""
    assert called(actions, "refuse", x=["Eve"])["status"] == "StatusNotOk: Eve may not [PERMISSION_DENIED]"


def test_bad_input_is_an_invalid_argument(actions: Served) -> None:
    """A media type that the parameter does not take, or a payload that is not its own."""
    assert called(actions, "describe", value=["text"], type="text/plain")["status"].endswith("[INVALID_ARGUMENT]")
    assert called(actions, "upper", nope=["x"])["status"].endswith("[INVALID_ARGUMENT]")


def test_an_unknown_action_is_not_found(actions: Served) -> None:
    """Whether the client waits for it to be accepted or for its end; the session goes on."""
    ((unknown, known),) = converse(
        actions, [call("nope", x=["x"], dispatch=True), call("upper", id="B", x=["x"], dispatch=True)]
    )
    for one in (unknown["dispatch"], unknown["status"], unknown["errors"]["y"]):
        assert "no action is named 'nope'" in one
        assert one.endswith("[NOT_FOUND]")
    assert (known["dispatch"], known["outputs"]["y"]) == ("OK", ["X"])


def test_actions_are_listed(actions: Served) -> None:
    """As its own servers list theirs."""
    listed = {one["name"]: one for one in called(actions, "__list_actions", "actions")["outputs"]["actions"]}
    assert {"upper", "concat", "split"} <= set(listed)
    text = "text/plain"
    assert listed["concat"] == {
        "name": "concat",
        "inputs": [{"name": "a", "type": text}, {"name": "b", "type": text}],
        "outputs": [{"name": "out", "type": text}],
        "description": "The two, joined.",
    }


def test_actions_of_a_session_run_side_by_side(actions: Served) -> None:
    """Each streams while the others do."""
    calls = [
        call("echo", id=f"A{number}", x=[f"{number} {one}" for one in range(20)], turns="x") for number in range(8)
    ]
    (accounts,) = converse(actions, calls)
    assert [one["outputs"]["y"] for one in accounts] == [plan["inputs"]["x"] for plan in calls]


def test_two_sessions_do_not_meet(actions: Served) -> None:
    """With equal ids."""
    one, other = converse(actions, [call("echo", x=["one"])], [call("echo", x=["other"])])
    assert (one[0]["outputs"]["y"], other[0]["outputs"]["y"]) == (["one"], ["other"])


# Our messages and its server


@pytest.fixture
def foreign() -> Iterator[str]:
    """Its server, as ``host:port``; one for each test, since it may hang once a peer has left without a close."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [PYTHON, PROGRAMS / "server.py", str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(10 * SLOW)
        if process.stdout is not None:
            process.stdout.close()


async def answer(peer: Peer, *parts: Fragment | Action) -> list[Fragment]:
    """Send one message, and take all fragments up to a status."""
    await peer.say(*parts)
    return await peer.fragments()


@pytest.mark.parametrize("places", [(0, 1, 2, 3), (None, None, None, None), (3, 1, 0, 2)])
async def test_its_server_takes_what_we_write(foreign: str, places: tuple[int | None, ...]) -> None:
    """A call, items in any order, and their end; a place that is left open is the next one."""
    async with connected(foreign) as peer:
        await peer.say(Action("A", "echo", (("x", "A#x"),), (("y", "A#y"),)))
        for seq, data in zip(places[:3], (b"d", b"b", b"a") if places[0] == 3 else (b"a", b"b", b"c"), strict=True):
            await peer.say(item("A#x", seq, data))
        if places[0] == 3:
            found = await answer(peer, item("A#x", 2, b"c"), Fragment("A#x", END, 4))
            assert texts(found, "A#y") == [b"a", b"b", b"c", b"d"]
        else:
            assert texts(await answer(peer, Fragment("A#x", END, places[3])), "A#y") == [b"a", b"b", b"c"]


async def test_its_server_reads_places_of_several_widths(foreign: str) -> None:
    """One, two and three bytes: none is taken for another one."""
    async with connected(foreign) as peer:
        await peer.say(Action("A", "echo", (("x", "A#x"),), (("y", "A#y"),)))
        await peer.say(*(item("A#x", seq, b"%d" % seq) for seq in range(300)))
        found = await answer(peer, Fragment("A#x", END, 300))
        assert texts(found, "A#y") == [b"%d" % seq for seq in range(300)]


async def test_its_server_takes_two_inputs_and_long_items(foreign: str) -> None:
    """Lengths of one, two and four bytes."""
    async with connected(foreign, deflate=True) as peer:
        await peer.say(Action("A" * 300, "concat", (("a", "l"), ("b", "r")), (("y", "n" * 300),)))
        found = await answer(peer, item("r", 0, b"r" * 300, last=True), item("l", 0, b"l" * 70_000, last=True))
        assert texts(found, "n" * 300) == [b"l" * 70_000 + b"r" * 300]
        assert found[-1].id == "A" * 300 + "#__status__"


async def test_its_server_understands_our_half_close(foreign: str) -> None:
    """It says its own, and both close with 1000."""
    async with connected(foreign) as peer:
        await peer.say()
        assert await peer.hear() == decode(HALF_CLOSE)
        assert await peer.closed() == 1000
