"""What a server process has of an update: its memory, its log, its metrics and its store are searched (F-140)."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from tests.conftest import SLOW
from tests.e2e.process import Process, started
from tests.protocols.federated.service.devices import Device, rounds

pytest.importorskip("cryptography")

from invoker.protocols.federated.client.messages import SecAggTask
from invoker.protocols.federated.client.secagg import SecAggClient
from tests.protocols.federated.secagg.test_what_the_server_holds import forms

pytestmark = pytest.mark.timeout(60)

MODULUS, LENGTH = 2**20, 200
CLIENTS = 3
PIECE = 2**20
NOTHING = bytes(PIECE + 4096)
SECAGG = f"""
[population.task.secagg]
vectors = {{ w = {{ modulus = {MODULUS}, length = {LENGTH} }} }}
min_visible = {CLIENTS}
"""

Values = np.ndarray[Any, Any]


def planted(seed: int) -> Values:
    """An update that is nowhere by chance."""
    return np.random.default_rng(seed).integers(MODULUS // 8, MODULUS // 4, LENGTH).astype(np.uint64)


def traces(values: Values) -> list[bytes]:
    """How an update may lie in memory, in a file or in a text: a part of each form, since nothing need be whole."""
    message = pb.Checkpoint()
    message.aggregands["w"].values.extend(values.tolist())
    texts = [
        ", ".join(map(str, values[5:9])),
        " ".join(map(str, values[5:9])),
        values.astype("<u8").tobytes().hex()[:80],
    ]
    return [
        *forms(values, MODULUS),
        *(values.astype(kind).tobytes()[64:128] for kind in ("<f4", "<f8")),
        message.SerializeToString()[60:120],
        *(text.encode() for text in texts),
    ]


def memory(pid: int) -> Iterator[bytes]:
    """All memory that a process can write, in pieces that overlap."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as mem:
        for line in maps:
            place, rights, *rest = line.split()
            begin, end = (int(one, 16) for one in place.split("-"))
            if not rights.startswith("rw") or (rest[-1:] and rest[-1].startswith("[v")):
                continue
            for at in range(begin, end, PIECE):
                try:
                    mem.seek(at)
                    piece = mem.read(min(PIECE + 4096, end - at))
                except OSError:
                    break  # the region is gone, or is not really memory
                if piece != NOTHING[: len(piece)]:  # much is reserved and never used
                    yield piece


def found(process: Process, store: Path, http: str, *updates: Values) -> set[str]:
    """Where any of some updates is."""
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=5 * SLOW) as answer:
        metrics = answer.read()
    places = {
        "memory": memory(process.pid),
        "log": (process.log.encode(),),
        "metrics": (metrics,),
        "store": (one.read_bytes() for one in store.parent.glob(f"{store.name}*")),
    }
    wanted = {trace for values in updates for trace in traces(values)}
    return {name for name, pieces in places.items() for piece in pieces if any(one in piece for one in wanted)}


class Masked:
    """A device of a secure round that takes one step after the other."""

    def __init__(self, channel: grpc.aio.Channel, values: Values) -> None:
        self.device = Device(channel, "masked")
        self.values = values

    async def join(self) -> None:
        options = pb.SideChannelProtocolOptionsRequest()
        options.secure_aggregation.client_variant.append(secagg_pb.ClientVariant.SECAGG_CLIENT_VARIANT_NATIVE_V1)
        assert await self.device.check_in(side_channels=options)
        info = self.device.accepted.side_channel_protocol_execution_info.secure_aggregation
        task = SecAggTask(
            {"w": MODULUS},
            info.expected_number_of_clients,
            info.minimum_surviving_clients_for_reconstruction,
            info.minimum_clients_in_server_visible_aggregate,
        )
        self.client = SecAggClient(task, {"w": self.values})
        await self.say(self.client.start().messages[0])

    async def step(self, *, is_report: bool = False) -> None:
        """Answer the next message of the server."""
        turn = self.client.receive((await self.device.read()).secure_aggregation_server_message)
        turn = turn.job() if turn.job is not None else turn
        await self.say(turn.messages[0], is_report=is_report)

    async def say(self, message: Any, *, is_report: bool = False) -> None:
        whole = pb.ClientStreamMessage(secure_aggregation_client_message=message)
        if is_report:
            whole.report_request.population_name = "masked"
            whole.report_request.execution_phase_id = self.device.accepted.execution_phase_id
        await self.device.write(whole)


async def test_F140_no_update_of_a_secure_round_is_anywhere_in_the_server(tmp_path: Path) -> None:
    """Before the sum is unmasked and behind it; the same search finds what a device of a plain round reports."""
    text = rounds("masked", aggregate="last", clients=CLIENTS, selection_s=20.0, report_s=400.0) + SECAGG
    (tmp_path / "rounds.toml").write_text(text + rounds("plain", aggregate="last", clients=1))
    store = tmp_path / "store.db"
    updates = [planted(seed) for seed in range(CLIENTS)]

    async def search(*wanted: Values) -> set[str]:
        return await asyncio.to_thread(found, process, store, http, *wanted)

    with started(str(tmp_path / "rounds.toml"), env={"INVOKER_STORE": f"sqlite:{store}"}) as process:
        address, http = await asyncio.to_thread(process.ready)
        async with grpc.aio.insecure_channel(address) as channel:
            devices = [Masked(channel, values) for values in updates]
            await asyncio.gather(*(one.join() for one in devices))
            await asyncio.gather(*(one.step() for one in devices))
            await devices[0].step(is_report=True)
            await asyncio.sleep(0.2)  # it is added meanwhile, and is alone in the sum then
            assert await search(updates[0]) == set()
            await asyncio.gather(*(one.step(is_report=True) for one in devices[1:]))
            await asyncio.gather(*(one.step() for one in devices))
            for one in devices:
                await one.device.thanked()
            await asyncio.to_thread(process.wait_for, "round committed")
            assert await search(*updates) == set()
            total = sum(updates[1:], start=updates[0]) % MODULUS
            assert {"memory", "store"} <= await search(total), "the sum is what the server may see"
            await Device(channel, "plain").run(updates[0].tobytes())
            await asyncio.to_thread(process.wait_for, "round committed", 2)
            assert {"memory", "store"} <= await search(updates[0]), "else the search would find nothing at all"
