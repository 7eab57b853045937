"""Reports of devices that are cheap to send and dear to read: 30 MB in 29 kB, sixteen at a time.

python -m tests.attack.rounds [npz chunks] [--seconds 5] [--tree DIR]

Figures: the most memory while it lasted, memory afterwards, how many devices were thanked, and what others were told.
"""

from __future__ import annotations

import asyncio
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc.aio
import numpy as np

from invoker._pb.federated import federated_api_pb2 as pb
from tests.attack.memory import Peak, settled
from tests.attack.runner import MIB, Figures, Victim, main
from tests.protocols.federated.service.devices import Device

DEVICES = 16
_BYTES = 30_000_000

FILE = f"""
[[population]]
name = "iris"
[[population.task]]
name = "train"
aggregate = "tests.attack.functions:counted"
plan = "devices:train"
initial = "tests.attack.functions:first"
min_clients = {DEVICES}
goal_clients = {DEVICES}
max_clients = {DEVICES}
over_selection = 1.0
"""


@contextmanager
def rounds_file() -> Iterator[str]:
    """A file of rounds, as the victim is given it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.toml"
        path.write_text(FILE)
        yield str(path)


@cache
def update(*, is_compressed: bool) -> bytes:
    """An update of one array of zeros, as numpy writes it."""
    file = io.BytesIO()
    (np.savez_compressed if is_compressed else np.savez)(file, w=np.zeros(_BYTES, np.int8))
    return file.getvalue()


async def chunks(device: Device, packed: tuple[int, bytes]) -> None:
    """A message in compressed chunks; all devices of a round send the same."""
    size, blob = packed
    start = pb.ChunkedTransferMessage.Start(
        uncompressed_size=size, blob_size_bytes=len(blob), compression_level=pb.ZLIB_DEFAULT
    )
    data = pb.ChunkedTransferMessage.Data(chunk_bytes=blob)
    end = pb.ChunkedTransferMessage.End(chunk_count=1)
    for piece in (
        pb.ChunkedTransferMessage(start=start),
        pb.ChunkedTransferMessage(data=data),
        pb.ChunkedTransferMessage(end=end),
    ):
        await device.write(pb.ClientStreamMessage(chunked_transfer=piece))
    while (await device.read()).WhichOneof("kind") != "report_response":
        pass


def attack(*, in_chunks: bool) -> Callable[[Victim, float], Figures]:
    """All devices of a round at once; the seconds say nothing, since one round is enough."""

    async def run(target: Victim) -> Figures:
        async with grpc.aio.insecure_channel(target.grpc) as channel:
            devices = [Device(channel) for _ in range(DEVICES)]
            await asyncio.gather(*(one.check_in(supports_chunked_blob_transfer=True) for one in devices))
            if in_chunks:
                message = devices[0].reporting(update(is_compressed=False)).SerializeToString()
                packed = len(message), zlib.compress(message, 9)
                said = [chunks(one, packed) for one in devices]
            else:
                said = [one.report(update(is_compressed=True)) for one in devices]
            ends = await asyncio.gather(*said, return_exceptions=True)
            told = Counter(str(one) or repr(one) for one in ends if isinstance(one, Exception))
            return {"thanked": len(devices) - told.total(), **told}

    def attacked(target: Victim, _seconds: float) -> Figures:
        with Peak(target) as peak:
            figures = asyncio.run(run(target))
        return {"peak MiB": peak.bytes // MIB, "after MiB": settled(target)[0] // MIB, **figures}

    return attacked


ATTACKS = {"npz": attack(in_chunks=False), "chunks": attack(in_chunks=True)}

if __name__ == "__main__":
    with rounds_file() as path:
        main(ATTACKS, path)
