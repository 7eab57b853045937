"""No update of one device is ever in the server, at no point of a round, in no form; and it stays responsive."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from invoker.protocols.federated.secagg.events import Failed, Summed
from invoker.protocols.federated.wire.packing import pack
from tests.protocols.federated.secagg.rounds import INPUT, SHARES, UNMASKING, Rounds
from tests.protocols.federated.secagg.test_server import assert_summed

LENGTH = 40


def reachable(root: Any) -> Iterator[Any]:
    """All objects that an object leads to, but not through modules, classes and functions' globals."""
    seen, left = set[int](), [root]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, ModuleType | type):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, FunctionType):
            left += [cell.cell_contents for cell in one.__closure__ or ()]
        else:
            left += gc.get_referents(one)
        if hasattr(one, "SerializeToString"):
            left.append(one.SerializeToString())


def dump(root: Any) -> bytes:
    """The contents of all that a server holds."""
    found = []
    for one in reachable(root):
        if isinstance(one, np.ndarray):
            found += [one.tobytes(), one.astype(np.uint64).tobytes() if one.dtype.kind in "iu" else b""]
        elif isinstance(one, bytes | bytearray | memoryview):
            found.append(bytes(one))
    return b"|".join(found)


def forms(values: np.ndarray[Any, Any], modulus: int) -> list[bytes]:
    """How an update may lie in memory: as numbers of 64 and 32 bits, in both orders, and packed."""
    kinds = ("<u8", ">u8", "<u4", ">u4")
    return [values.astype(kind).tobytes()[8:64] for kind in kinds] + [pack(values, modulus)[2:40]]


class Searched(Rounds):
    """A round in which the server is searched before and after everything that it does."""

    def deliver(self) -> None:
        while self.up or self.jobs:
            self.search()
            if self.up:
                self.hear(*self.up.popleft())
            else:
                job, then = self.jobs.popleft()
                result = job()
                self.search(result)
                then(result)
        self.search()

    def search(self, result: Any = None) -> None:
        """Neither the server nor what a job has just found contains any update."""
        # What the harness itself holds of the server's callbacks is cut off: that would lead to the devices.
        held = {name: value for name, value in vars(self.server).items() if name not in self.LINKS}
        held["_sums"] = {name: value for name, value in vars(self.server._sums).items() if name != "_compute"}
        held["_sums"].pop("_then", None)
        memory = dump([held, result])
        self.searched = getattr(self, "searched", 0) + 1
        for values in self.values:
            for name, (modulus, _) in self.vectors.items():
                assert not any(form in memory for form in forms(values[name], modulus))

    LINKS = ("_send_to", "_drop", "_ended", "_jobs")


@pytest.mark.parametrize("modulus", [2**20, 1000003])
def test_F140_no_update_is_ever_in_the_memory_of_the_server(modulus: int) -> None:
    """With devices that leave in every round, also when all but one vector is still to come."""
    vectors = {"w": (modulus, LENGTH)}
    rounds = Searched(7, threshold=4, vectors=vectors, later=True, lost={0: SHARES, 3: INPUT}, silent={5: UNMASKING})
    rounds.play()
    assert_summed(rounds, {1, 2, 4, 5, 6})
    assert rounds.searched > 30  # type: ignore[attr-defined]


def test_F140_the_search_finds_an_update_that_is_there() -> None:
    """In a message, in an array, in the cell of a function: else the test above would say nothing."""
    rounds = Searched(3, threshold=2, vectors={"w": (2**20, LENGTH)})
    values = rounds.values[1]["w"]
    message = rounds.clients[0].start().messages[0]
    message.masked_input_response.vectors["w"].encoded_vector = pack(values, 2**20)
    for planted in (values, {"deep": [pack(values, 2**20)]}, message, lambda: values, values.astype(np.uint32)):
        rounds.server._planted = planted  # type: ignore[attr-defined]
        with pytest.raises(AssertionError):
            rounds.search()
    del rounds.server._planted  # type: ignore[attr-defined]
    rounds.search()


@pytest.mark.parametrize("ending", [Summed, Failed])
def test_F097_when_a_round_is_over_the_server_holds_no_secret(ending: type) -> None:
    """Neither keys nor shares, whoever keeps the object."""
    shares: list[bytes] = []

    def note(index: int, message: Any) -> list[Any]:
        shares.extend(
            getattr(entry, entry.WhichOneof("oneof_shares"))
            for entry in message.unmasking_response.noise_or_prf_key_shares
            if entry.WhichOneof("oneof_shares")
        )
        return [message]

    silent = {4: INPUT} | ({} if ending is Summed else dict.fromkeys((1, 2, 3), UNMASKING))
    rounds = Searched(5, threshold=3, silent=silent, tamper=note)
    assert isinstance(rounds.play(), ending)
    assert shares
    held = {name: value for name, value in vars(rounds.server).items() if name not in (*Searched.LINKS, "_sums")}
    memory = dump(held)
    words = [np.frombuffer(share, ">u4").astype("<u4").tobytes() for share in shares]
    assert not any(share in memory for share in (*shares, *words))


@pytest.mark.timeout(60)
def test_a_hundred_devices_take_seconds() -> None:
    """Scenario 72: 10^5 elements, a tenth lost where it costs most; the devices' own work is in this time, too."""
    lost = dict.fromkeys(range(0, 100, 10), INPUT)
    rounds = Rounds(100, threshold=67, vectors={"w": (2**20, 100_000)}, lost=lost)
    began = time.perf_counter()
    rounds.play()
    took = time.perf_counter() - began
    (outcome,) = rounds.outcomes
    assert isinstance(outcome, Summed)
    expected = sum(rounds.values[index]["w"] for index in range(100) if index not in lost) % 2**20
    assert (outcome.sums["w"] == expected).all()
    assert took < 60 * float(os.environ.get("INVOKER_TEST_SLOW", "1"))
