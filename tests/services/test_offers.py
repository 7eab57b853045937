"""What the gRPC door of a process serves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from invoker.config import Config
from invoker.errors import ConfigError, InvocationError
from invoker.services.offers import Offers
from tests.drive.memory import driver_of


def square(x: int) -> int:
    return x * x


def test_a_process_without_a_protocol_does_not_load_it():
    """Neither its modules nor what it is translated with."""
    code = (
        "import asyncio, sys; from invoker.cli.main import build; from invoker.config import Config\n"
        "async def main():\n"
        "    config = Config(host='127.0.0.1', grpc_port=0, http=False, protocols=(sys.argv[1],))\n"
        "    server = build(config, 'functions.add')\n"
        "    await server.start(); await server.stop(drain_s=0)\n"
        "asyncio.run(main())\n"
        "print(*sorted({name.split('.')[2] for name in sys.modules if name.startswith('invoker.protocols.')}))"
    )
    for protocol in ("riff", "evergreen"):
        shown = subprocess.run([sys.executable, "-c", code, protocol], check=True, capture_output=True, text=True)
        assert shown.stdout.split() == [protocol]


async def test_E053_references_are_read_below_the_roots_only(tmp_path):
    """--ref-root; without one every reference is refused."""
    (tmp_path / "a.txt").write_bytes(b"content")
    uri = (tmp_path / "a.txt").as_uri()
    driver = driver_of(square)
    got: list[bytes] = []
    offers = Offers(Config(ref_roots=(str(tmp_path),)), driver, {})
    assert [one.name for one in offers.methods()] == ["Invoke", "StartSession"]
    await offers.fetch(uri, 100, got.append)
    await offers.close()
    assert got == [b"content"]
    offers = Offers(Config(), driver, {})
    offers.methods()
    with pytest.raises(InvocationError, match="Reference Refused"):
        await offers.fetch(uri, 100, got.append)
    await offers.close()


async def test_a_host_that_cannot_be_is_told_before_a_port_opens():
    """--ref-http."""
    with pytest.raises(ConfigError):
        Offers(Config(ref_http="http://a.org"), driver_of(square), {}).methods()


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ((("a", "y"),), "no function has a parameter 'y'"),
        ((("a", "xx"),), "did you mean 'x'"),
        ((("a", "x"), ("a", "x")), "'a' stands for another parameter already"),
    ],
)
async def test_E075_an_alias_for_nothing_stops_the_start(inputs, text):
    """A typo is told before a port opens."""
    with pytest.raises(ConfigError, match=text):
        Offers(Config(inputs=inputs), driver_of(square), {}).methods()
