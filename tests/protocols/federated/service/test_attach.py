"""Rounds behind real transports: devices that speak the protocol, a server in this process."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme

from invoker.codecs.chunks import Terms
from invoker.errors import ConfigError, StartupError
from invoker.protocols.federated.service.attach import FederatedService
from invoker.server.table import TABLE
from tests.conftest import SLOW
from tests.protocols.federated.service.conftest import Serve, coordinator_of
from tests.protocols.federated.service.devices import Device, rounds


@pytest.mark.parametrize("driver", ["aio", "fast"])
async def test_rounds_are_served_on_either_transport(serve: Serve, driver: str) -> None:
    """Each round starts from what the one before has committed."""
    async with serve(rounds(), grpc_driver=driver) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        assert "federated" in server.ready_block()
        for checkpoint in (b"100", b"103", b"106"):
            got = await asyncio.gather(Device(channel).run(b"1"), Device(channel).run(b"2"))
            assert got == [checkpoint] * 2


async def test_F138_populations_and_tasks_do_not_share_state(serve: Serve) -> None:
    """Rounds of two populations run at once, and each sums its own updates."""
    async with (
        serve(rounds("iris", "rose")) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        for iris, rose in ((b"100", b"100"), (b"102", b"120")):
            devices = [Device(channel, one) for one in ("iris", "rose", "iris", "rose")]
            assert await asyncio.gather(*(one.check_in() for one in devices)) == [True] * 4
            assert [one.accepted.init_checkpoint for one in devices] == [iris, rose, iris, rose]
            for one, update in zip(devices, (b"1", b"10", b"1", b"10"), strict=True):
                await one.tell(update)
            await asyncio.gather(*(one.thanked() for one in devices))


@pytest.mark.parametrize(("driver", "level"), [("aio", 0), ("fast", 0), ("fast", 3)])
async def test_F138_a_device_that_announces_a_large_report_and_stalls_holds_up_nobody(
    serve: Serve, driver: str, level: int
) -> None:
    """Ten announce 60 MiB and send 32 KiB; those of its population and of another report 4 MiB at once."""
    text = rounds("iris", "rose", aggregate="counted", clients=12, selection_s=0.2 * SLOW).replace(
        "min_clients = 12", "min_clients = 1"
    )
    chunks = {"supports_chunked_blob_transfer": True}
    async with (
        serve(text, grpc_driver=driver) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        stalls = [Device(channel) for _ in range(10)]
        others = [Device(channel, name) for name in ("iris", "iris", "rose")]
        assert all(await asyncio.gather(*(one.check_in(**chunks) for one in (*stalls, *others))))
        for one in stalls:
            await one.stall(60 * 2**20, level=level)
        began = time.monotonic()
        for one in others:
            await one.report_chunked(random.Random(1).randbytes(4 * 2**20), Terms(32768, 2, level))
        assert time.monotonic() - began < 25
        assert coordinator_of(server).held_bytes <= 10 * 65536


async def test_F013_who_cancels_frees_the_place_within_a_second(serve: Serve) -> None:
    """The next device is accepted, though the round has room for two only."""
    async with serve(rounds()) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        gone = Device(channel)
        await gone.ask()
        coordinator = coordinator_of(server)
        assert len(coordinator._members) == 1
        gone.call.cancel()
        async with asyncio.timeout(1):
            while coordinator._members:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)
        assert await asyncio.gather(*(Device(channel).run(b"1") for _ in range(2))) == [b"100"] * 2


async def test_F084_a_function_that_returns_early_closes_the_round(serve: Serve) -> None:
    """One that raises fails the round, and the same checkpoint is served again (F-082)."""
    async with serve(rounds(aggregate="broken")) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        for _ in range(2):
            devices = [Device(channel) for _ in range(2)]
            assert await asyncio.gather(*(one.check_in() for one in devices)) == [True] * 2
            assert devices[0].accepted.init_checkpoint == b"100"
            await asyncio.gather(*(one.tell(b"1") for one in devices))
            await asyncio.gather(*(one.thanked() for one in devices), return_exceptions=True)
        assert [one.outcome for one in coordinator_of(server).tally.records][:1] == ["failed"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (rounds(aggregate="missing"), "population 'iris', task 'train': .*missing"),
        (rounds().replace("functions:initial", "functions:absent"), "population 'iris', task 'train': .*absent"),
        (rounds().replace("functions:initial", "functions:nothing"), "population 'iris', task 'train': .*nothing"),
        (rounds(head='attestation = "tests.protocols.federated.service.functions:no"'), "population 'iris': .*no"),
        (rounds(head='api_key_env = "NO_SUCH_KEY"'), "population 'iris': .*NO_SUCH_KEY"),
        (rounds(clients=0), "task 'train': min_clients"),
    ],
)
async def test_F137_what_cannot_be_served_stops_the_start(serve: Serve, text: str, said: str) -> None:
    """The text names the task, or the population."""
    with pytest.raises(StartupError, match=said):
        async with serve(text):
            pass


@pytest.mark.parametrize(
    ("settings", "is_refused"),
    [
        ({"host": "0.0.0.0"}, True),
        ({"host": "0.0.0.0", "insecure_public": True}, False),
        ({"host": "0.0.0.0", "tls_cert": "c.pem", "tls_key": "k.pem"}, False),
        ({"host": "127.0.0.1"}, False),
    ],
)
def test_F142_other_machines_need_tls(settings: dict[str, Any], is_refused: bool) -> None:
    """Or the operator's word; the process does not start without."""
    if is_refused:
        with pytest.raises(ConfigError, match="federated rounds take no devices of other machines without TLS"):
            TABLE.configured(federated="rounds.toml", protocols=("riff", "federated"), **settings)
    else:
        assert FederatedService in TABLE.served(TABLE.configured(federated="rounds.toml", **settings))


def test_it_is_served_only_where_a_file_is_given() -> None:
    """Nothing else changes without one."""
    assert FederatedService not in TABLE.served(TABLE.configured(host="127.0.0.1"))
    with pytest.raises(ConfigError, match="needs a file of rounds; see INVOKER_FEDERATED"):
        TABLE.configured(host="127.0.0.1", protocols=("federated",))
    with pytest.raises(
        ConfigError, match="riff,federated, and federated needs a file of rounds; see INVOKER_FEDERATED"
    ):
        TABLE.configured(host="127.0.0.1", protocols=("riff", "federated"))


async def test_reflection_tells_of_the_service(serve: Serve) -> None:
    """With its messages, for callers that have no proto file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    name = "google.internal.federatedml.v2.FederatedTrainingApi"
    async with (
        serve(rounds(), reflection=True) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = (
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=name),
        )
        listed, found = [one async for one in stub.ServerReflectionInfo(iter(asked))]
    assert name in [one.name for one in listed.list_services_response.service]
    files = [FileDescriptorProto.FromString(one) for one in found.file_descriptor_response.file_descriptor_proto]
    assert "FederatedTrainingApi" in [service.name for one in files for service in one.service]


async def test_F142_rounds_are_served_over_tls(serve: Serve, tmp_path: Path) -> None:
    """Devices that trust the certificate are taken; what they download is there by https."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    cert, key, trusted = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem"))
    cert.write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    given = {"tls_cert": str(cert), "tls_key": str(key)}
    credentials = grpc.ssl_channel_credentials(trusted.read_bytes())
    async with serve(rounds(clients=1), **given) as server:
        port = server.grpc_address.rpartition(":")[2]
        async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
            device = Device(channel)
            assert await device.check_in(supports_http_download=True)
            assert device.accepted.plan_resource.uri.startswith("https://localhost:")
            await device.report(b"1")
