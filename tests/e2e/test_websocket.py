"""WebSocket at /NAME/ws of a real process: paths, pages, loading, draining, workers, and what the log says."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.process import started
from tests.e2e.test_loading import SLOW_START
from tests.transports.sockets import Peer, open_peer

pytestmark = pytest.mark.timeout(20)

END = {"end": True}
CATALOGUE = "functions.conformance"


async def say(peer: Peer, *frames: dict[str, Any]) -> None:
    for one in frames:
        await peer.text(json.dumps(one))


async def rest(peer: Peer) -> list[Any]:
    return [json.loads(one) for one in await peer.messages()]


async def test_H040_every_function_of_a_catalogue_has_its_socket() -> None:
    """A request there that is no handshake is told so; the log has one line for each call, and no payload."""
    with started(CATALOGUE) as process:
        _, address = process.ready()
        for name, given, answer in (("square", 3, 9), ("total", 3, 3), ("echo", {"a": 1}, {"a": 1})):
            async with open_peer(address, f"/{name}/ws") as peer:
                await say(peer, {"data": given}, END)
                assert await rest(peer) == [{"output": "out", "data": answer}, END]
                assert peer.code == 1000
        async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
            for method, path, status in (
                ("GET", "/square/ws", 426),
                ("POST", "/square/ws", 405),
                ("GET", "/no/ws", 404),
            ):
                assert (await client.request(method, path)).status_code == status
        process.wait_for("invocation ended", 3)
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert "Traceback" not in process.log


async def test_H057_a_page_of_this_process_may_connect_and_no_other() -> None:
    """By the Origin that a browser says."""
    with started(CATALOGUE) as process:
        _, address = process.ready()
        for origin, status in ((f"http://{address}", 101), ("http://evil.example", 403), ("http://127.0.0.1", 403)):
            async with open_peer(address, "/square/ws", origin=origin) as peer:
                assert peer.status == status


async def test_H053_a_drain_tells_who_is_connected() -> None:
    """What runs may end within the drain; then the error comes, and 1001."""
    with started(CATALOGUE, "--drain-s", "2") as process:
        _, address = process.ready()
        async with open_peer(address, "/square/ws") as quick, open_peer(address, "/square/ws") as idle:
            await say(quick, {"data": 2})
            assert json.loads(await quick.message()) == {"output": "out", "data": 4}
            process.send(signal.SIGTERM)
            await say(quick, {"data": 3}, END)
            assert (await rest(quick), quick.code) == ([{"output": "out", "data": 9}, END], 1000)
            (last,) = await rest(idle)
            assert (last["error"]["code"], idle.code) == ("UNAVAILABLE", 1001)
        assert process.exit_code() == 1  # something was cut


async def test_who_comes_while_functions_load_may_try_again(tmp_path: Path) -> None:
    """1013 behind the error, and then it is served."""
    (tmp_path / "slow.py").write_text(
        SLOW_START.replace("x: NDArray[np.float32]) -> NDArray[np.float32]", "x: int) -> int")
    )
    os.mkfifo(tmp_path / "go")
    with started("slow:double", cwd=tmp_path) as process:
        process.wait_for("the hook runs")
        found = re.search(r"loading: calls on http=(\S+)", process.wait_for("loading: "))
        assert found is not None
        async with open_peer(found[1], "/double/ws") as early:
            (last,) = await rest(early)
            assert (last["error"]["status"], early.code) == (503, 1013)
        (tmp_path / "go").write_text("on")
        process.ready()
        async with open_peer(found[1], "/double/ws") as peer:
            await say(peer, {"data": 3}, END)
            assert await rest(peer) == [{"output": "out", "data": 6}, END]


async def test_every_worker_serves_sockets() -> None:
    """Whichever of them accepts."""
    with started(CATALOGUE, "--workers", "2") as process:
        _, address = process.ready()
        for _ in range(8):
            async with open_peer(address, "/square/ws") as peer:
                await say(peer, {"data": 3}, END)
                assert await rest(peer) == [{"output": "out", "data": 9}, END]
