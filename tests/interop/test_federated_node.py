"""Devices in Node, on @grpc/grpc-js and node:crypto: another gRPC, protobuf, zlib and secure aggregation than ours.

What they share with the server is `proto/federated`, which is what a device's author has in hand.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from invoker import Checkpoint
from invoker.codecs.checkpoint import read_checkpoint, write_checkpoint
from tests.conftest import SLOW
from tests.interop.tools import CLIENT, run
from tests.serving import ROOT, Served, serving

pytestmark = pytest.mark.timeout(90)

OK, INVALID_ARGUMENT, NOT_FOUND, ABORTED = 0, 3, 5, 10

BODY = bytes(range(256)) * 12288

ROUNDS = """
[[population]]
name = "plain"
retry_min_s = 5.0
retry_max_s = 7.0
[[population.task]]
name = "add"
aggregate = "tests.protocols.federated.service.functions:add"
plan = "somewhere:train"
params = {{ rate = 0.5 }}
initial = "tests.protocols.federated.service.functions:initial"
min_clients = 1
goal_clients = 1

[[population]]
name = "large"
[[population.task]]
name = "last"
aggregate = "tests.protocols.federated.service.functions:last"
plan = "somewhere:train"
initial_file = "{large}"
min_clients = 1
goal_clients = 1

[[population]]
name = "asked"
eligibility = "somewhere:eligible"
[[population.task]]
name = "first"
aggregate = "tests.protocols.federated.service.functions:add"
plan = "somewhere:train"
initial = "tests.protocols.federated.service.functions:initial"
[[population.task]]
name = "second"
aggregate = "tests.protocols.federated.service.functions:add"
plan = "somewhere:train"
initial = "tests.protocols.federated.service.functions:initial"

[[population]]
name = "secret"
[[population.task]]
name = "sums"
aggregate = "invoker.aggregators:sum"
plan = "somewhere:train"
initial_file = "{empty}"
min_clients = 3
goal_clients = 5
max_clients = 5
over_selection = 1.0
selection_timeout_s = {selection_s}
report_timeout_s = 60.0
[population.task.secagg]
min_visible = 3
dropout_rate = 0.4
round_timeout_s = {round_s}
[population.task.secagg.vectors]
w = {{ modulus = 1048576, length = 5 }}
odd = {{ modulus = 1000003, length = 3 }}
b = {{ modulus = 2, length = 9 }}
"""


@dataclass(frozen=True)
class Device:
    """What became of a device."""

    kinds: list[str]
    plan: str
    checkpoint: str
    phase: str
    task: str
    acks: int
    chunked: int
    code: int
    details: str
    windows: list[dict[str, Any]] | None = None
    eligibility: str = ""
    rejected: bool = False
    aborted: str | None = None

    @property
    def model(self) -> bytes:
        """The checkpoint that it was given."""
        return base64.b64decode(self.checkpoint)


@dataclass
class World:
    """A server, and where its definition is."""

    served: Served
    include: Path

    def devices(self, *devices: dict[str, Any]) -> list[Device]:
        """Run devices at once, to their ends."""
        proto = self.include / "invoker/_pb/federated/federated_api.proto"
        plan = {"address": self.served.grpc, "proto": str(proto), "include": str(self.include), "devices": devices}
        done = run("node", CLIENT.with_name("device.js"), stdin=json.dumps(plan), limit_s=40)
        assert done.returncode == 0, done.stderr
        return [Device(**one) for one in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server of four populations, and the folder in which the definition's import stands."""
    folder = tmp_path_factory.mktemp("rounds")
    (folder / "invoker").mkdir()
    (folder / "invoker/_pb").symlink_to(ROOT / "proto")
    empty = folder / "empty.npz"
    (folder / "large").write_bytes(BODY)
    empty.write_bytes(write_checkpoint(Checkpoint({})))
    rounds = folder / "rounds.toml"
    rounds.write_text(ROUNDS.format(empty=empty, large=folder / "large", selection_s=20.0 * SLOW, round_s=5.0 * SLOW))
    with serving(str(rounds)) as served:
        yield World(served, folder)


def report(value: bytes, **more: Any) -> dict[str, Any]:
    """A device of the population of plain sums."""
    return {"population": "plain", "report": base64.b64encode(value).decode(), **more}


def test_plain_rounds_take_reports_from_node(world: World) -> None:
    """The trace of section 2, without an eligibility round: the next device starts from what the first has reported."""
    (first,) = world.devices(report(b"5"))
    assert first.kinds == ["checkin_request_ack", "checkin_response", "report_response"]
    assert (first.code, first.task) == (OK, "add")
    assert base64.b64decode(first.plan).startswith(b"INVPLAN1\n")
    (second,) = world.devices(report(b"0"))
    assert int(second.model) == int(first.model) + 5
    assert second.phase != first.phase


def test_windows_of_the_ack_can_be_kept(world: World) -> None:
    """Both come, with a token and a minimum that is no larger than the maximum (F-002, F-056)."""
    (device,) = world.devices(report(b"0"))
    assert device.windows is not None
    for window in device.windows:
        assert window["retry_token"]
        assert 0 <= int(window["delay_min"]["seconds"]) <= int(window["delay_max"]["seconds"])


def test_large_messages_go_in_chunks_of_every_level(world: World) -> None:
    """3 MiB go up and down, packed by Node's zlib and by ours, and stay the same bytes (F-025, F-033)."""
    for levels in ([0], [0, 1], [0, 2], [0, 3], [0, 1, 2, 3]):
        (device,) = world.devices({"population": "large", "report": base64.b64encode(BODY).decode(), "levels": levels})
        assert (device.code, device.kinds[-1]) == (OK, "report_response")
        assert device.acks >= 1
        assert device.chunked >= 1
        assert device.model == BODY


def test_eligibility_decides_the_task(world: World) -> None:
    """The client is given the eligibility plan first, and then the only task that it names (F-040, F-043)."""
    given = {"population": "asked", "eligibility": True, "report": base64.b64encode(b"1").decode()}
    named, nothing = world.devices({**given, "weights": {"second": 1.0}}, {**given, "weights": {"third": 1.0}})
    assert named.kinds[:3] == ["checkin_request_ack", "eligibility_eval_checkin_response", "checkin_response"]
    assert (named.eligibility, named.task, named.code) == ("eligibility_eval_payload", "second", OK)
    assert (nothing.rejected, nothing.code) == (True, OK)


def test_other_populations_have_no_eligibility_task(world: World) -> None:
    """They say so, and the checkin goes on without it (F-040)."""
    (device,) = world.devices(report(b"0", eligibility=True))
    assert (device.eligibility, device.code) == ("no_eligibility_eval_configured", OK)
    assert device.kinds[-1] == "report_response"


def test_wrong_devices_end_alone(world: World) -> None:
    """An unknown population, a weight of zero, and one that leaves end alone; the one beside them reports."""
    given = {"population": "asked", "eligibility": True, "weights": {"first": 0.0}}
    unknown, zero, gone, good = world.devices(
        {"population": "nobody"}, given, report(b"", leaveAfter="accepted"), {"population": "large"}
    )
    assert (unknown.code, unknown.kinds) == (NOT_FOUND, [])
    assert zero.code == INVALID_ARGUMENT
    assert gone.code == 1
    assert (good.code, good.kinds[-1]) == (OK, "report_response")


INPUTS = {"w": [1, 2, 3, 1_000_000, 0], "odd": [5, 1_000_000, 7], "b": [1, 0, 1, 1, 0, 0, 0, 1, 1]}
MODULI = {"w": 1_048_576, "odd": 1_000_003, "b": 2}


def secret(number: int, **more: Any) -> dict[str, Any]:
    """A device with vectors of its own."""
    inputs = {name: [(one * number) % MODULI[name] for one in values] for name, values in INPUTS.items()}
    return {"population": "secret", "inputs": inputs, "levels": [0, 1], **more}


def sums(world: World) -> dict[str, list[int]]:
    """What the last round has left, as the next devices are told; they leave, so their round fails."""
    given = world.devices(*(secret(1, leaveAfter="accepted") for _ in range(5)))
    return {name: [int(one) for one in array] for name, array in read_checkpoint(given[0].model, Checkpoint).items()}


def expected(*numbers: int) -> dict[str, list[int]]:
    """The sums of the vectors of some devices."""
    return {
        name: [sum((one * number) % MODULI[name] for number in numbers) % MODULI[name] for one in values]
        for name, values in INPUTS.items()
    }


def test_secure_sums_of_node_are_exact(world: World) -> None:
    """Keys, shares, masks and packing of Node's crypto give the sum that the server unmasks (F-096)."""
    devices = world.devices(*(secret(number) for number in range(1, 6)))
    assert [one.code for one in devices] == [OK] * 5
    kinds = Counter(tuple(one.kinds) for one in devices)
    whole = ("checkin_request_ack", "checkin_response", "share_keys_request", "masked_input_request")
    assert all(one[:4] == whole and one[-1] == "report_response" for one in kinds), kinds
    assert sums(world) == expected(1, 2, 3, 4, 5)


@pytest.mark.parametrize("point", ["advertise", "share", "masked"])
def test_secure_sums_survive_those_who_leave(world: World, point: str) -> None:
    """A device that leaves before its masked input is not in the sum; one that leaves behind it is (F-120, F-122)."""
    numbers = (2, 3, 4, 5)
    devices = world.devices(secret(9, leaveAfter=point), *(secret(number) for number in numbers))
    assert [one.code for one in devices[1:]] == [OK] * 4, devices
    assert sums(world) == expected(*numbers, *((9,) if point == "masked" else ()))


def test_too_few_devices_learn_why(world: World) -> None:
    """Three of five leave: the other two are told, and their streams end ABORTED (F-124)."""
    leavers = [secret(1, leaveAfter="share") for _ in range(3)]
    devices = world.devices(*leavers, secret(2), secret(3))
    assert [one.code for one in devices[3:]] == [ABORTED] * 2
    assert all(one.aborted for one in devices[3:])
