"""Who may give conversations to a leader."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import grpc.aio
import pytest

from invoker.core.peers import PEER
from invoker.protocols.federated.service.relay import PASS, RELAYED_PEER
from tests.protocols.federated.service.conftest import Serve, coordinator_of, rounds_of
from tests.protocols.federated.service.devices import Device, rounds


async def test_only_processes_that_know_the_token_are_let_in(serve: Serve, tmp_path: Path) -> None:
    """Another user cannot even reach the socket."""
    async with serve(rounds(), store=f"sqlite:{tmp_path / 'store.db'}") as server:
        transport = rounds_of(server)._relay_listener
        assert transport is not None
        assert stat.S_IMODE(Path(transport.address).parent.stat().st_mode) == 0o700
        assert await rounds_of(server)._leaderships["iris"].decided(5)
        async with grpc.aio.insecure_channel(f"unix:{transport.address}") as channel:
            with pytest.raises(EOFError, match="UNAUTHENTICATED"):
                await Device(channel, **{PASS.replace("-", "_"): "wrong"}).ask()
            with pytest.raises(EOFError, match="UNAUTHENTICATED"):
                await Device(channel).ask()
    assert not Path(transport.address).parent.exists()


async def test_F139_a_relayed_device_counts_as_one_of_its_own_address(serve: Serve, tmp_path: Path) -> None:
    """It cannot choose that address, nor is it that of the relay."""
    settings = {"store": f"sqlite:{tmp_path / 'store.db'}", "federated_peer_sessions": 1}
    async with serve(rounds(), **settings) as server:
        transport = rounds_of(server)._relay_listener
        assert transport is not None
        assert await rounds_of(server)._leaderships["iris"].decided(5)
        own = {PASS.replace("-", "_"): transport.token, PEER.replace("-", "_"): "ipv4:10.0.0.9:1"}
        async with grpc.aio.insecure_channel(f"unix:{transport.address}") as channel:
            name = RELAYED_PEER.replace("-", "_")
            one, two = (Device(channel, **own, **{name: f"ipv4:10.0.0.{number}:5"}) for number in (1, 2))
            await one.ask()
            await two.ask()
            assert set(coordinator_of(server)._peers) == {"ipv4:10.0.0.1", "ipv4:10.0.0.2"}
            with pytest.raises(EOFError, match="RESOURCE_EXHAUSTED"):
                await Device(channel, **own, **{name: "ipv4:10.0.0.1:6"}).ask()
            one.call.cancel()
            two.call.cancel()


async def test_a_relayed_device_is_not_relayed_again(serve: Serve, tmp_path: Path) -> None:
    """One that was brought to a process which does not lead comes again, rather than going round in circles."""
    store = f"sqlite:{tmp_path / 'store.db'}"
    async with serve(rounds(), store=store) as leader:
        assert await rounds_of(leader)._leaderships["iris"].decided(5)
        async with serve(rounds(), store=store) as other:
            assert await rounds_of(other)._leaderships["iris"].decided(5)
            transport = rounds_of(other)._relay_listener
            assert transport is not None
            async with grpc.aio.insecure_channel(f"unix:{transport.address}") as channel:
                with pytest.raises(EOFError, match="UNAVAILABLE"):
                    await Device(channel, **{PASS.replace("-", "_"): transport.token}).ask()


async def test_what_killed_processes_have_left_is_removed(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket at which somebody listens stays, and so does one that was made a moment ago."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    transports, listeners = [], []
    for name in ("killed", "alive", "young"):
        transport = tmp_path / f"invoker-rounds-{name}" / "door"
        transport.parent.mkdir()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(transport))
        if name == "alive":
            listener.listen()
        if name != "young":
            os.utime(transport, (1, 1))
        transports.append(transport)
        listeners.append(listener)
    listeners[0].close()
    async with serve(rounds(), store=f"sqlite:{tmp_path / 'store.db'}"):
        assert [transport.parent.exists() for transport in transports] == [False, True, True]
    for listener in listeners:
        listener.close()
