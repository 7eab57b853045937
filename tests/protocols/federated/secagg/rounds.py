"""Whole rounds of secure aggregation in memory: the real server and real devices, and a wire that can do harm."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.protocols.federated.client.messages import SecAggTask, Turn
from invoker.protocols.federated.client.secagg import SecAggClient
from invoker.protocols.federated.messages import SecAggTerms
from invoker.protocols.federated.secagg.events import Drop, Outcome
from invoker.protocols.federated.secagg.server import SecAggServer
from invoker.protocols.federated.wire.shares import PRIME

UP = secagg_pb.ClientToServerWrapperMessage
DOWN = secagg_pb.ServerToClientWrapperMessage
KEYS, SHARES, INPUT, UNMASKING = "advertise_keys", "share_keys_response", "masked_input_response", "unmasking_response"
STEPS = (KEYS, SHARES, INPUT, UNMASKING)
Tamper = Callable[[int, UP], Iterable[UP]]
VECTORS = {"w": (2**20, 5)}


class Rounds:
    """One session; every device has random vectors.

    Args:
        size: How many devices.
        threshold: By default the smallest majority.
        vectors: By name, modulus and length.
        lost: By device, the message that it does not send any more, because its line breaks.
        after: By device, the last message that it sends before its line breaks.
        silent: By device, the message that it does not send any more, though its line stays.
        tamper: Called with what a device sends; what it gives is sent in its place.
        tamper_down: Likewise, for what the server sends.
        later: Jobs wait until the devices have nothing more to say, as in a slow thread.
    """

    def __init__(
        self,
        size: int,
        *,
        threshold: int | None = None,
        vectors: Mapping[str, tuple[int, int]] = VECTORS,
        min_visible: int = 1,
        expected: int | None = None,
        lost: Mapping[int, str] | None = None,
        after: Mapping[int, str] | None = None,
        silent: Mapping[int, str] | None = None,
        tamper: Tamper | None = None,
        tamper_down: Callable[[int, DOWN], Iterable[DOWN]] | None = None,
        later: bool = False,
        seed: int = 0,
    ) -> None:
        threshold = size // 2 + 1 if threshold is None else threshold
        rng = np.random.default_rng(seed)
        self.vectors = vectors
        self.values = [
            {name: rng.integers(0, modulus, length, np.uint64) for name, (modulus, length) in vectors.items()}
            for _ in range(size)
        ]
        expected = size if expected is None else expected
        task = SecAggTask({name: modulus for name, (modulus, _) in vectors.items()}, expected, threshold, min_visible)
        self.clients = [SecAggClient(task, values) for values in self.values]
        self.lost, self.after, self.silent = dict(lost or {}), dict(after or {}), dict(silent or {})
        self.tamper, self.tamper_down = tamper or (lambda _, message: [message]), tamper_down
        self.up: deque[tuple[int, UP | None]] = deque()
        self.jobs: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self.is_later = later
        self.dropped: dict[int, Drop] = {}
        self.sent: dict[int, list[DOWN]] = {index: [] for index in range(size)}
        self.errors: dict[int, str] = {}
        self.finished: set[int] = set()
        self.outcomes: list[Outcome] = []
        terms = SecAggTerms(vectors, expected, threshold, min_visible)
        self.server = SecAggServer(
            terms, size, send=self.send, drop=self.drop, ended=self.outcomes.append, compute=self.compute
        )

    def play(self) -> Outcome:
        """From the first message to the outcome; whenever nothing moves, the time limit passes."""
        self.server.start()
        for index, client in enumerate(self.clients):
            self.turn(index, client.start())
        for _ in range(8):
            self.deliver()
            if self.outcomes:
                break
            self.server.elapsed()
        self.deliver()
        (outcome,) = self.outcomes
        return outcome

    def deliver(self) -> None:
        """Until nothing moves."""
        while self.up or self.jobs:
            if self.up:
                self.hear(*self.up.popleft())
            else:
                job, then = self.jobs.popleft()
                then(job())

    def hear(self, index: int, message: UP | None) -> None:
        """The server takes a message; None: the line is broken."""
        if message is None:
            self.server.lost(index)
        else:
            self.server.receive(index, message)

    def expected(self, included: Iterable[int]) -> dict[str, list[int]]:
        """The sums of the vectors of some devices, in plain numbers."""
        included = list(included)
        return {
            name: [sum(int(self.values[index][name][at]) for index in included) % modulus for at in range(length)]
            for name, (modulus, length) in self.vectors.items()
        }

    def turn(self, index: int, turn: Turn) -> None:
        """Do what a device wants."""
        while turn.job is not None:
            turn = turn.job()
        if turn.is_done:
            self.finished.add(index)
        if turn.error is not None:
            self.finished.discard(index)
            self.errors[index] = turn.error[1]
        for message in turn.messages:
            kind = message.WhichOneof("message_content")
            if self.silent.get(index) == kind:
                continue
            if self.lost.get(index) == kind:
                self.server.lost(index)
                continue
            self.up.extend((index, one) for one in self.tamper(index, message))
            if self.after.get(index) == kind:
                self.up.append((index, None))

    def send(self, index: int, message: DOWN) -> None:
        """What the server says goes to the device at once."""
        self.sent[index].append(message)
        for one in [message] if self.tamper_down is None else self.tamper_down(index, message):
            self.turn(index, self.clients[index].receive(one))

    def drop(self, index: int, reason: Drop) -> None:
        """A device is out, once."""
        assert index not in self.dropped
        self.dropped[index] = reason

    def compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """At once, or when everybody waits."""
        if self.is_later:
            self.jobs.append((job, then))
        else:
            then(job())


def kind_of(message: UP | DOWN) -> str:
    """Which message it is."""
    return message.WhichOneof("message_content") or ""


def tampering(who: int | set[int], what: str, change: Callable[[UP], Any]) -> Tamper:
    """Some devices change one of their messages, in place; or send what the change gives."""
    devices = {who} if isinstance(who, int) else who

    def tamper(index: int, message: UP) -> Iterable[UP]:
        if index not in devices or kind_of(message) != what:
            return [message]
        changed = UP()
        changed.CopyFrom(message)
        given = change(changed)
        return [changed] if given is None or isinstance(given, (bytes, str, int)) else given

    return tamper


def wrong_share(share: bytes) -> bytes:
    """A share whose last limb is another one."""
    limb = (int.from_bytes(share[-4:], "big") + 1) % PRIME
    return share[:-4] + limb.to_bytes(4, "big")
