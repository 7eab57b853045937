"""`invoker.protocols.graphpipe.service.attach`: what of GraphPipe is served, as the settings say."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.attach.service import Surroundings
from invoker.author.lift import lift
from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.errors import ConfigError, SpecError
from invoker.execution.driver import Driver
from invoker.protocols.graphpipe.service.attach import GraphPipeService
from invoker.server.table import TABLE
from invoker.telemetry.board import Numbers
from invoker.tensors import Code
from invoker.transports.http.exchange import HttpSettings
from tests.protocols.graphpipe.asking import code_of


def echo(x: NDArray[Any]) -> NDArray[Any]:
    return x


def mode_of(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


async def is_ready() -> bool:
    return True


def service_of(function: Any = echo, **settings: Any) -> GraphPipeService:
    driver = Driver(Engine(Catalog([lift(function, read(function))]), builtin(arrays=True)))
    return GraphPipeService(Surroundings(TABLE.configured(**settings), driver, {}, is_ready, Numbers))


async def test_G016_sockets_are_opened_as_the_settings_say(tmp_path: Path) -> None:
    """Each says where it is."""
    path = str(tmp_path / "s")
    made = service_of(graphpipe_tcp="127.0.0.1:0", graphpipe_unix=path, unix_mode="640")
    await made.start()
    tcp, unix = made.addresses
    assert (tcp.transport, tcp.text) == ("graphpipe", f"127.0.0.1:{tcp.port}")
    assert tcp.port > 0
    assert unix == ("graphpipe", path, 0)
    assert mode_of(path) == 0o640
    made.leave()
    await made.stop(1)
    none = service_of()
    await none.start()
    assert not none.addresses
    await none.stop(1)


async def test_G101_idle_connections_leave_descriptors_to_the_other_service_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare socket takes a quarter of them at most, whatever the setting says."""
    monkeypatch.setattr("invoker.transports.sockets.open_files", lambda: 8)
    made = service_of(graphpipe_tcp="127.0.0.1:0")
    await made.start()
    try:
        host, _, port = made.addresses[0].text.rpartition(":")
        lines = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        refused = await asyncio.wait_for(lines[2][0].read(), 5)
        assert code_of(refused[4:]) == Code.OVERLOADED
        for _, writer in lines:
            writer.close()
    finally:
        made.leave()
        await made.stop(1)


def test_G004_G014_G079_G081_limits_are_those_of_the_settings() -> None:
    """64 MiB, 30 s, 1 KiB/s and statuses of their own, unless the settings say something else."""
    settings = service_of()._made().settings
    assert (settings.limit_bytes, settings.timeout_s) == (64 << 20, 30.0)
    assert (settings.body_s, settings.bytes_per_s) == (30.0, 1024.0)
    assert (HttpSettings().body_s, HttpSettings().body_bytes_per_s) == (30.0, 1024.0)
    assert (settings.is_root, settings.plain_status) == (False, False)
    said = service_of(
        graphpipe_bytes=5000, graphpipe_timeout_s=0.0, graphpipe_errors="200", http_root="graphpipe"
    )._made()
    assert (said.limit_bytes, said.settings.timeout_s) == (5000, 0.0)
    assert (said.settings.is_root, said.settings.plain_status) == (True, True)


def test_G107_only_its_own_paths_are_answered() -> None:
    """Unless it is to be the root."""
    made, root = service_of(), service_of(http_root="graphpipe")
    for path in ("/graphpipe", "/graphpipe/echo", "/control/is_ready"):
        assert made.http_handler(path) is not None
        assert root.http_handler(path) is not None
    for path in ("/", "/graphpiper", "/elsewhere"):
        assert made.http_handler(path) is None
        assert root.http_handler(path) is not None


async def test_a_wrong_shape_is_told_at_the_start() -> None:
    """Not to the first client."""

    def wrong(x: Annotated[NDArray[np.int8], (1.5,)]) -> None:
        raise NotImplementedError

    with pytest.raises(SpecError, match="declares a size"):
        await service_of(wrong).start()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"graphpipe_tcp": "127.0.0.1:0", "protocols": ("riff",)}, "does not have graphpipe"),
        ({"http_root": "graphpipe", "protocols": ("http",)}, "INVOKER_HTTP_ROOT, .* does not have graphpipe"),
        ({"graphpipe_unix": "/tmp/x", "workers": 2}, "works with one process only"),
        ({"http_unix": "/tmp/x", "workers": 2}, "INVOKER_HTTP_UNIX works with one process only"),
        ({"http_unix": "/tmp/x", "http": False}, "but http is not served"),
        ({"http_unix": "/tmp/x", "protocols": ("riff",)}, "but http is not served"),
        ({"graphpipe_tcp": "127.0.0.1:0", "workers": 2}, "has port 0; with several workers"),
    ],
)
def test_settings_that_cannot_be_together(settings: dict[str, Any], text: str) -> None:
    """Each is one sentence."""
    with pytest.raises(ConfigError, match=text):
        TABLE.configured(**settings)


@pytest.mark.parametrize(
    ("settings", "is_served"),
    [
        ({}, True),
        ({"http": False}, False),
        ({"http": False, "graphpipe_tcp": "localhost:0"}, True),
        ({"protocols": ("graphpipe",), "graphpipe_unix": "/tmp/x"}, True),
    ],
)
def test_what_serves_graphpipe(settings: dict[str, Any], is_served: bool) -> None:
    """The HTTP transport, or a socket of its own."""
    assert (GraphPipeService in TABLE.served(TABLE.configured(**settings))) is is_served


def test_the_port_of_the_socket_is_known_before_it_listens() -> None:
    """A supervisor reserves it; the brackets of an IPv6 address are no part of the address."""
    said = TABLE.configured(graphpipe_tcp="[::1]:4000")
    assert GraphPipeService.ports(said) == (("::1", 4000, "GraphPipe", "INVOKER_GRAPHPIPE_TCP"),)
    assert not GraphPipeService.ports(TABLE.configured())


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    """A server of other functions starts as fast as before."""
    code = (
        "import asyncio, sys\n"
        "from invoker.cli.main import build; from invoker.settings import Config\n"
        "OURS = 'invoker.protocols.graphpipe'\n"
        "HEAVY = (f'{OURS}.m', f'{OURS}.service.i', 'invoker.tensors.m', 'numpy')\n"
        "async def run():\n"
        "    server = build(Config(host='127.0.0.1', grpc_port=0, port=0), 'functions.square:square')\n"
        "    await server.start()\n"
        "    print(any(one.startswith(HEAVY) for one in sys.modules))\n"
        "    await server.stop(drain_s=0)\n"
        "asyncio.run(run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["False"], done.stderr
