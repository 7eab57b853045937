"""Names that Python normalises are reached as they were written and as Python has them, on every protocol."""

from __future__ import annotations

import http.client
import json
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest

from invoker.client import EvergreenSession, SyncToolBridge
from tests.conftest import SLOW
from tests.serving import ROOT, Served, run, serving
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(30)

WRITTEN = ("µ", "ﬁne", "µs", "Å")
AS_PYTHON = tuple(unicodedata.normalize("NFKC", one) for one in WRITTEN)
DECOMPOSED = (*AS_PYTHON[:3], unicodedata.normalize("NFD", "Å"))
SPELLINGS = [WRITTEN, AS_PYTHON, DECOMPOSED]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """All the functions."""
    with serving("tests.e2e.name_functions") as served:
        yield served


def ask(served: Served, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> str:
    connection = http.client.HTTPConnection(served.http, timeout=10 * SLOW)
    connection.request("POST", path, body or None, {"Accept": "*/*", **(headers or {})})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, text
    return text


def form(*pairs: tuple[str, str]) -> tuple[bytes, dict[str, str]]:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in pairs]
    return ("".join(parts) + "--b--\r\n").encode(), {"Content-Type": "multipart/form-data; boundary=b"}


JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.mark.parametrize(("micro", "fine", "name", "ring"), SPELLINGS)
def test_H243_names_over_http(server, micro, fine, name, ring):
    """In the path and the header, in queries, forms, parts, objects and lines."""
    path = f"/{quote(name)}"
    both = {micro: 2, fine: 3}
    assert ask(server, f"{path}?{urlencode(both)}") == "6.0"
    assert ask(server, "/", b"2", {"Content-Type": "text/plain", "Invoker-Function": quote(name)}) == "2.0"
    assert ask(server, path, urlencode(both).encode(), FORM) == "6.0"
    assert ask(server, path, f"{micro}=2&{fine}=3".encode(), FORM) == "6.0"
    assert ask(server, path, json.dumps(both).encode(), JSON) == "6.0"
    assert ask(server, path, json.dumps(both, ensure_ascii=False).encode(), JSON) == "6.0"
    assert ask(server, path, *form((micro, "2"), (fine, "3"))) == "6.0"
    assert ask(server, "/lines", *form((fine, "+"), (micro, "a"), (micro, "b"))) == "a+b+"
    assert ask(server, f"/lines?{urlencode({fine: '+'})}", b'"a"\n"b"\n', LINES) == "a+b+"
    body = "\n".join(json.dumps(one, ensure_ascii=False) for one in ({micro: "a"}, {ring: "b"})).encode()
    assert ask(server, "/pairs", body, LINES) == "ab"
    assert ask(server, "/pairs", body, {**LINES, "Accept": "application/x-ndjson"}) == '"ab"\n'
    assert ask(server, "/many", json.dumps({micro: [1, 2], fine: 3}).encode(), JSON) == "6"
    assert ask(server, f"/many?{urlencode([(micro, 1), (micro, 2), (fine, 3)])}") == "6"
    assert ask(server, "/outer", b"2", {"Content-Type": "text/plain"}) == "6.0"


def test_H243_two_spellings_of_one_name_are_given_twice(server):
    """They are one parameter."""
    for path, body, headers in (
        (f"/{quote('µs')}?{urlencode([('µ', 1), ('μ', 2)])}", b"", {}),
        (f"/{quote('µs')}", urlencode([("µ", 1), ("μ", 2)]).encode(), FORM),
        (f"/{quote('µs')}", json.dumps({"µ": 1, "μ": 2}).encode(), JSON),
    ):
        with pytest.raises(AssertionError, match=r"'μs' is given its input 'μ' twice"):
            ask(server, path, body, headers)


@pytest.mark.parametrize(("micro", "fine", "name", "ring"), SPELLINGS)
async def test_H243_names_over_websocket(server, micro, fine, name, ring):
    """In the path, the query and the frames."""
    async with open_peer(server.http, f"/{quote(name)}/ws?{urlencode({fine: 3})}") as peer:
        await peer.text(json.dumps({"input": micro, "data": 2}))
        await peer.text('{"end": true}')
        assert json.loads((await peer.messages())[0])["data"] == 6.0
    async with open_peer(server.http, "/pairs/ws") as peer:
        for given in ({"input": ring, "data": "b"}, {"input": micro, "data": "a"}, {"end": micro}, {"end": ring}):
            await peer.text(json.dumps(given))
        assert json.loads((await peer.messages())[0])["data"] == "ab"


@pytest.mark.parametrize(("micro", "fine", "name", "ring"), SPELLINGS)
def test_H243_names_over_riff(server, micro, fine, name, ring):
    """As the command line sends them."""
    calls = [
        (name, "6.0", micro, "2", fine, "3"),
        ("lines", "a+", micro, "a", fine, "+"),
        ("pairs", "ab", micro, "a", ring, "b"),
    ]
    for function, answer, *given in calls:
        named = [f"--arg={key}={value}" for key, value in zip(given[::2], given[1::2], strict=True)]
        done = run("call", server.grpc, "--function", function, *named, cwd=ROOT)
        assert done.stdout.decode().strip() == answer, done.stderr


@pytest.mark.parametrize(("micro", "fine", "name", "ring"), SPELLINGS)
async def test_H243_names_over_evergreen(server, micro, fine, name, ring):
    """Of actions and their inputs."""
    async with EvergreenSession(server.grpc) as session:
        assert await session.act(name, {micro: 2.0, fine: 3.0}).text() == "6.0"
        assert await session.act("pairs", {micro: "a", ring: "b"}).text() == "ab"


@pytest.mark.parametrize(("micro", "fine", "name", "ring"), SPELLINGS)
def test_H243_names_over_the_tool_bridge(server, micro, fine, name, ring):
    """Of arguments; names of tools are ASCII by its own rule."""
    with SyncToolBridge(server.grpc) as bridge, bridge.session() as session:
        assert session.call("many", 1, 2, **{fine: 3}) == 6


@pytest.mark.parametrize("name", ["µs", "μs"])
def test_H243_names_on_the_command_line(name):
    """Of what is served."""
    done = run("inspect", f"tests.e2e.name_functions:{name}", cwd=ROOT)
    assert (done.returncode, b"request/reply" in done.stdout) == (0, True), done.stderr
