"""How long a round of secure aggregation takes: ``python -m benchmarks.secagg [--devices 100 500 1000]``.

The server is the real one, and so are the devices. They take turns in one process, so that the server's time can be
told from theirs: the server's part of each round runs on a loop of its own, with its heavy jobs in one thread, and a
probe measures how late the loop is meanwhile. Every tenth device is lost after it has sent its shares, which is when
its loss costs the server most: all masks that it shares with others have to be made again.

The measure of all is AES-CTR itself, by the same library in the same run: one key for each mask, and nothing done with
the keystream.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks.report import table
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.client.federated.secagg import SecAggClient
from invoker.client.federated.words import SecAggTask, Turn
from invoker.protocols.federated.secagg.server import SecAggServer
from invoker.protocols.federated.secagg.words import Outcome, Summed
from invoker.protocols.federated.words import SecAggTerms
from invoker.secagg.masks import add_masks

MODULUS = 2**20
MODULI = (2, 2**16, 2**20, 2**32, 2**62, 1000003, 2**40 - 87)
PROBE_S = 0.005
Up = secagg_pb.ClientToServerWrapperMessage
Down = secagg_pb.ServerToClientWrapperMessage


@dataclass
class Figures:
    """What one round has taken, in seconds."""

    devices: int
    server: dict[str, float] = field(default_factory=dict)
    device: dict[str, float] = field(default_factory=dict)
    lag: float = 0.0
    masked: int = 0


class Round:
    """One round: all devices, and the server on its loop."""

    def __init__(self, devices: int, length: int, dropout: float) -> None:
        rng = np.random.default_rng(1)
        threshold = max(2, devices * 2 // 3)
        task = SecAggTask({"w": MODULUS}, devices, threshold, 2)
        self.values = rng.integers(0, MODULUS, (devices, length), np.uint64)
        self.clients = [SecAggClient(task, {"w": values}) for values in self.values]
        self.down: list[tuple[int, Down]] = []
        self.outcome: Outcome | None = None
        self.lost = set(range(0, devices, round(1 / dropout))) if dropout else set[int]()
        self.figures = Figures(devices)
        self._busy = 0
        self._idle = asyncio.Event()
        self._pool = ThreadPoolExecutor(1)
        terms = SecAggTerms({"w": (MODULUS, length)}, devices, threshold, 2)
        self.server = SecAggServer(
            terms,
            devices,
            send=lambda index, message: self.down.append((index, message)),
            drop=lambda *_: None,
            ended=self._ended,
            compute=self._compute,
        )
        included = devices - len(self.lost)
        self.figures.masked = length * (included + included * len(self.lost))

    def run(self) -> Figures:
        """Play it, and check the sum."""
        up = [(index, message) for index, client in enumerate(self.clients) for message in client.start().messages]
        with asyncio.Runner() as runner:
            for name in ("keys", "shares", "inputs", "unmasking"):
                began = time.perf_counter()
                runner.run(self._serve(up, self.lost if name == "inputs" else set()))
                self.figures.server[name] = time.perf_counter() - began
                began = time.perf_counter()
                up = list(self._answers())
                self.figures.device[name] = (time.perf_counter() - began) / len(self.clients)
        assert isinstance(self.outcome, Summed), self.outcome
        left = [index for index in range(len(self.clients)) if index not in self.lost]
        assert (self.outcome.sums["w"] == self.values[left].sum(axis=0) % MODULUS).all()
        self._pool.shutdown()
        return self.figures

    async def _serve(self, up: list[tuple[int, Up]], lost: set[int]) -> None:
        """Messages come one in a turn of the loop, as from the wire."""
        probe = asyncio.create_task(self._probe())
        for index in sorted(lost):
            self.server.lost(index)
        while up:
            self.server.receive(*up.pop())
            await asyncio.sleep(0)
        if self._busy:
            await self._idle.wait()
        probe.cancel()

    async def _probe(self) -> None:
        while True:
            due = time.perf_counter() + PROBE_S
            await asyncio.sleep(PROBE_S)
            self.figures.lag = max(self.figures.lag, time.perf_counter() - due)

    def _compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self._busy += 1
        self._idle.clear()

        def done(result: Any) -> None:
            then(result)
            self._busy -= 1
            if not self._busy:
                self._idle.set()

        loop = asyncio.get_running_loop()
        self._pool.submit(job).add_done_callback(lambda found: loop.call_soon_threadsafe(done, found.result()))

    def _ended(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def _answers(self) -> Iterator[tuple[int, Up]]:
        down, self.down = self.down, []
        for index, message in reversed(down):
            if index in self.lost and message.WhichOneof("message_content") == "masked_input_request":
                continue
            turn: Turn = self.clients[index].receive(message)
            while turn.job is not None:
                turn = turn.job()
            yield from ((index, answer) for answer in turn.messages)


def aes_seconds(length: int, size: int, keys: int = 64) -> float:
    """Seconds an element: the keystreams of so many masks, with samples of ``size`` bytes."""
    zeros, into = bytes(length * size), bytearray(length * size)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(keys):
            Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor().update_into(zeros, into)
        best = min(best, time.perf_counter() - began)
    return best / keys / length


def mask_seconds(modulus: int, length: int, keys: int = 64) -> float:
    """Seconds an element of the sum of so many masks."""
    given = [os.urandom(32) for _ in range(keys)]
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        add_masks(given, modulus, length)
        best = min(best, time.perf_counter() - began)
    return best / keys / length


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="*", default=[100, 500, 1000])
    parser.add_argument("--length", type=int, default=100_000)
    parser.add_argument("--dropout", type=float, default=0.1)
    given = parser.parse_args()
    rows = []
    for modulus in MODULI:
        size = -(-(modulus - 1).bit_length() // 8)
        aes, mask = aes_seconds(given.length, size), mask_seconds(modulus, given.length)
        rows.append([str(modulus), f"{aes * 1e9:.2f}", f"{mask * 1e9:.2f}", f"{mask / aes:.1f}"])
    print(table("Masks, for each element", ["modulus", "AES-CTR ns", "mask ns", "ratio"], rows), "\n", flush=True)
    heads = [
        "devices",
        "server s",
        "unmasking s",
        "ns an element",
        "AES-CTR ns",
        "ratio",
        "loop lag ms",
        "one device s",
    ]
    rows = []
    for devices in given.devices:
        found = Round(devices, given.length, given.dropout).run()
        aes, each = aes_seconds(given.length, 3), found.server["unmasking"] / found.masked
        rows.append(
            [
                str(devices),
                f"{sum(found.server.values()):.2f}",
                f"{found.server['unmasking']:.2f}",
                f"{each * 1e9:.2f}",
                f"{aes * 1e9:.2f}",
                f"{each / aes:.1f}",
                f"{found.lag * 1e3:.0f}",
                f"{sum(found.device.values()):.3f}",
            ]
        )
        print({name: round(value, 3) for name, value in found.server.items()}, "server by round", flush=True)
        print({name: round(value, 4) for name, value in found.device.items()}, "one device by round", flush=True)
    title = f"Rounds, {given.length} elements modulo 2^20, {given.dropout:.0%} lost"
    print(table(title, heads, rows), flush=True)


if __name__ == "__main__":
    main()
