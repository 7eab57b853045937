"""How long a round of secure aggregation takes: ``python -m benchmarks.secagg [--devices 100 500 1000]``.

The server's code is the real one: it runs on an event loop, with its heavy jobs in one thread, and a probe measures how
late the loop is. Every tenth device is lost after it has sent its shares. Such a loss costs the server most, since it
has to compute all masks between this device and the others.

One device is real too, and is timed. The others are simplified, since real ones would take minutes: they leave out the
masks that cancel between two of them, do not encrypt the shares for each other, and use polynomials of degree one for
the shares. Their messages have the sizes of real messages, and the sum is checked.

Times are compared with AES-CTR alone, by the same library in the same run: one key for each mask, without use of the
keystream. The longest job (unmasking), the longest turn of the loop and AES-CTR are processor time, so other processes
affect them little; the loop's lag is wall time, so it includes other processes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks.report import table
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.client.messages import SecAggTask
from invoker.protocols.federated.client.secagg import SecAggClient
from invoker.protocols.federated.messages import SecAggTerms
from invoker.protocols.federated.secagg.events import Outcome, Summed
from invoker.protocols.federated.secagg.server import SecAggServer
from invoker.protocols.federated.wire.derive import mask_key
from invoker.protocols.federated.wire.keys import KeyPair, open_sealed, seal
from invoker.protocols.federated.wire.masks import add_masks
from invoker.protocols.federated.wire.packing import pack
from invoker.protocols.federated.wire.shares import PRIME, split, stack

MODULUS = 2**20
MODULI = (2, 2**16, 2**20, 2**32, 2**62, 1000003, 2**40 - 87)
PROBE_S = 0.005
REAL = 1
"""The index of the real device, which is never lost."""
Up = secagg_pb.ClientToServerWrapperMessage
Down = secagg_pb.ServerToClientWrapperMessage


@dataclass
class Figures:
    """Times of one round in seconds; ``masked`` is the number of elements for which unmasking computes a mask."""

    devices: int
    server: dict[str, float] = field(default_factory=dict)
    device: dict[str, float] = field(default_factory=dict)
    job: float = 0.0
    turn: float = 0.0
    lag: float = 0.0
    masked: int = 0


class Device:
    """A simplified device (see the module)."""

    def __init__(self, index: int, devices: int, values: np.ndarray[Any, Any]) -> None:
        self.index, self.devices, self.values = index, devices, values
        self.noise, self.enc, self.own = KeyPair(), KeyPair(), os.urandom(32)
        self.shares = [self._shares(self.noise.secret), self._shares(self.own)]
        self.of_real = secagg_pb.PairOfKeyShares()

    def _shares(self, secret: bytes) -> np.ndarray[Any, Any]:
        limbs = stack(split(secret, threshold=1, count=1))[0]
        slopes = np.frombuffer(os.urandom(8 * len(limbs)), np.uint64) % np.uint64(PRIME)
        points = np.arange(1, self.devices + 1, dtype=np.uint64)
        return ((limbs + slopes * points[:, None]) % np.uint64(PRIME)).astype(">u4")

    def keys(self) -> Up:
        message = Up()
        message.advertise_keys.pair_of_public_keys.noise_pk = self.noise.public
        message.advertise_keys.pair_of_public_keys.enc_pk = self.enc.public
        return message

    def sealed(self, pairs: Sequence[secagg_pb.PairOfPublicKeys]) -> Up:
        entries = [bytes(104)] * self.devices
        entries[self.index] = b""
        noise, own = (share[REAL].tobytes() for share in self.shares)
        plain = secagg_pb.PairOfKeyShares(noise_sk_share=noise, prf_sk_share=own).SerializeToString()
        entries[REAL] = seal(self.enc.agree(pairs[REAL].enc_pk), plain)
        message = Up()
        message.share_keys_response.encrypted_key_shares.extend(entries)
        return message

    def open(self, pair: secagg_pb.PairOfPublicKeys, sealed: bytes) -> None:
        plain = open_sealed(self.enc.agree(pair.enc_pk), sealed)
        assert plain is not None
        self.of_real = secagg_pb.PairOfKeyShares.FromString(plain)

    def masked(self, request: secagg_pb.ShareKeysRequest, peers: set[int]) -> Up:
        length = len(self.values)

        def total(keys: list[bytes]) -> np.ndarray[Any, Any]:
            given = [
                mask_key(one, session=request.session_id, modulus=MODULUS, length=length, name="w") for one in keys
            ]
            return add_masks(given, MODULUS, length)

        agreed = {peer: self.noise.agree(request.pairs_of_public_keys[peer].noise_pk) for peer in peers - {self.index}}
        plus = total([self.own, *(key for peer, key in agreed.items() if peer < self.index)])
        minus = total([key for peer, key in agreed.items() if peer > self.index])
        message = Up()
        masked = (self.values + plus + np.uint64(MODULUS) - minus) % np.uint64(MODULUS)
        message.masked_input_response.vectors["w"].encoded_vector = pack(masked, MODULUS)
        return message


class Round:
    """One round with all devices, and the server on an event loop."""

    def __init__(self, devices: int, length: int, dropout: float) -> None:
        rng = np.random.default_rng(1)
        threshold = max(2, devices * 2 // 3 + 1)
        few = rng.integers(0, MODULUS, (10, length), np.uint64)
        self.values = [few[index % 10] for index in range(devices)]
        self.real = SecAggClient(SecAggTask({"w": MODULUS}, devices, threshold, 2), {"w": self.values[REAL]})
        self.others = {index: Device(index, devices, self.values[index]) for index in range(devices) if index != REAL}
        self.down: list[tuple[int, Down]] = []
        self.outcome: Outcome | None = None
        self.lost = set(range(0, devices, round(1 / dropout))) if dropout else set[int]()
        self.figures = Figures(devices)
        self._asked = secagg_pb.ShareKeysRequest()
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
        """Run the round, check the sum, and return the times."""
        up = [(index, device.keys()) for index, device in self.others.items()]
        up += [(REAL, message) for message in self.real.start().messages]
        with asyncio.Runner() as runner:
            for name in ("keys", "shares", "inputs", "unmasking"):
                began = time.perf_counter()
                runner.run(self._serve(up, self.lost if name == "inputs" else set()))
                self.figures.server[name] = time.perf_counter() - began
                down, self.down = self.down, []
                up = [answer for index, message in down for answer in self._answers(index, message)]
        assert isinstance(self.outcome, Summed), self.outcome
        left = [index for index in range(len(self.values)) if index not in self.lost]
        assert (self.outcome.sums["w"] == sum(self.values[index] for index in left) % np.uint64(MODULUS)).all()
        self._pool.shutdown()
        return self.figures

    async def _serve(self, up: list[tuple[int, Up]], lost: set[int]) -> None:
        """Give the server one message per turn of the loop, as from the network, and wait until its jobs are done."""
        probe = asyncio.create_task(self._probe())
        for index in sorted(lost):
            self.server.lost(index)
        while up:
            self._turn(lambda: self.server.receive(*up.pop()))
            await asyncio.sleep(0)
        if self._busy:
            await self._idle.wait()
        probe.cancel()

    def _turn(self, what: Callable[[], None]) -> None:
        began = time.thread_time()
        what()
        self.figures.turn = max(self.figures.turn, time.thread_time() - began)

    async def _probe(self) -> None:
        while True:
            due = time.perf_counter() + PROBE_S
            await asyncio.sleep(PROBE_S)
            self.figures.lag = max(self.figures.lag, time.perf_counter() - due)

    def _compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self._busy += 1
        self._idle.clear()

        def done(result: Any) -> None:
            self._turn(lambda: then(result))
            self._busy -= 1
            if not self._busy:
                self._idle.set()

        def timed() -> Any:
            began = time.thread_time()
            result = job()
            self.figures.job = max(self.figures.job, time.thread_time() - began)
            return result

        loop = asyncio.get_running_loop()
        self._pool.submit(timed).add_done_callback(lambda found: loop.call_soon_threadsafe(done, found.result()))

    def _ended(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def _answers(self, index: int, message: Down) -> list[tuple[int, Up]]:
        kind = message.WhichOneof("message_content") or ""
        if kind == "share_keys_request":
            self._asked = message.share_keys_request
        if index == REAL:
            began = time.perf_counter()
            turn = self.real.receive(message)
            while turn.job is not None:
                turn = turn.job()
            self.figures.device[kind] = time.perf_counter() - began
            return [(index, answer) for answer in turn.messages]
        device = self.others[index]
        if kind == "share_keys_request":
            return [(index, device.sealed(self._asked.pairs_of_public_keys))]
        if kind == "masked_input_request":
            device.open(self._asked.pairs_of_public_keys[REAL], message.masked_input_request.encrypted_key_shares[REAL])
            return [] if index in self.lost else [(index, device.masked(self._asked, self.lost | {REAL}))]
        return [(index, self._shares(index))] if kind == "unmasking_request" else []

    def _shares(self, index: int) -> Up:
        message = Up()
        for peer in range(len(self.values)):
            entry = message.unmasking_response.noise_or_prf_key_shares.add()
            if peer == REAL:
                entry.prf_sk_share = self.others[index].of_real.prf_sk_share
            elif peer in self.lost:
                entry.noise_sk_share = self.others[peer].shares[0][index].tobytes()
            else:
                entry.prf_sk_share = self.others[peer].shares[1][index].tobytes()
        return message


def aes_seconds(length: int, size: int, keys: int = 64) -> float:
    """Return the seconds of AES-CTR per element, for ``keys`` keystreams with ``size`` bytes per element."""
    zeros, into = bytes(length * size), bytearray(length * size)
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        for _ in range(keys):
            Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor().update_into(zeros, into)
        best = min(best, time.thread_time() - began)
    return best / keys / length


def mask_seconds(modulus: int, length: int, keys: int = 64) -> float:
    """Return the seconds per element of a mask, for a sum of ``keys`` masks."""
    given = [os.urandom(32) for _ in range(keys)]
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        add_masks(given, modulus, length)
        best = min(best, time.thread_time() - began)
    return best / keys / length


def main() -> None:
    """Measure masks and rounds, and print tables in Markdown."""
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
        "turn ms",
        "lag ms",
        "device s",
    ]
    rows = []
    for devices in given.devices:
        found = Round(devices, given.length, given.dropout).run()
        aes, each = aes_seconds(given.length, 3), found.job / found.masked
        rows.append(
            [
                str(devices),
                f"{sum(found.server.values()):.2f}",
                f"{found.server['unmasking']:.2f}",
                f"{each * 1e9:.2f}",
                f"{aes * 1e9:.2f}",
                f"{each / aes:.1f}",
                f"{found.turn * 1e3:.0f}",
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
