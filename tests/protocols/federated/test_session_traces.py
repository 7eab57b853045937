"""Tests of `invoker.protocols.federated.session`: whole conversations of real clients, byte for byte (F-146).

The traces ``small-*`` of tests/data/federated have chunks of 32 bytes, so that both sides need them, and each frame of
the server is compared. They were written without protobuf, from the tables of the catalogue. Beside them lie traces
that client and server both replay; tests/protocols/federated/client/golden.py writes those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.steps import Answered, Close, Send, Step
from invoker.protocols.federated.messages import (
    Accepted,
    Blob,
    Eligibility,
    Notice,
    Offer,
    ReportIn,
    ReportTaken,
    SecAggTerms,
    Secure,
)
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.protocols.federated.session import DeviceSession
from tests.protocols.federated.coordinators import NoMailbox, NotedCoordinator

FOLDER = Path(__file__).resolve().parents[2] / "data" / "federated"
SMALL = DeviceSettings(chunk_bytes=32, max_pending=2, level=0)
TASK = Eligibility("e", Blob(b"p"), Blob(b"m"))


def notice(word: str, *, is_secure: bool) -> Notice:
    """What the coordinator tells."""
    if word == "accepted":
        terms = SecAggTerms({"w": (1 << 20, 3)}, 9, 5, 4) if is_secure else None
        return Accepted(Offer("r", "t", Blob(b"p"), Blob(b"m"), terms))
    if word == "taken":
        return ReportTaken()
    message = secagg_pb.ServerToClientWrapperMessage()
    getattr(message, word).SetInParent()
    return Secure(message)


def play(name: str, coordinator: NotedCoordinator) -> Iterator[tuple[str, list[str], list[str]]]:
    """Play a trace; gives each thing that happens with what the session answers, and what it should answer."""
    session = DeviceSession(coordinator, NoMailbox(), settings=SMALL)
    session.begin()
    moves: list[tuple[str, list[str]]] = []
    for line in (FOLDER / name).read_text(encoding="ascii").splitlines():
        who, what, *_ = line.split()
        if who == "S":
            moves[-1][1].append(what)
        elif who != "#":
            moves.append((f"{who} {what}", []))
    for move, expected in moves:
        who, what = move.split()
        steps: list[Step] = []
        if what == "half-closes":
            steps = list(session.half_close())
            assert steps == [Close()]
        elif who == "C":
            steps = list(session.receive(bytes.fromhex(what)))
        else:
            told = notice(what, is_secure="secure" in name)
            steps = list(session.deliver(Answered("mail", [told])))
        yield move, [one.frame.hex() for one in steps if isinstance(one, Send)], expected
    assert session.is_closed


@pytest.mark.parametrize(("name", "task"), [("small-plain.trace", TASK), ("small-secure.trace", None)])
def test_F146_a_real_client_is_answered_byte_for_byte(name: str, task: Eligibility | None) -> None:
    """Checkins, chunks, acks, answers: each frame in its turn."""
    coordinator = NotedCoordinator(task)
    for move, frames, expected in play(name, coordinator):
        assert frames == expected, move
    noted = dict(coordinator.noted)
    assert noted["check_in"].can.levels == (0, 1, 2, 3)
    assert noted["check_in"].can.gzip
    if task is None:
        assert [value[0] for asked, value in coordinator.noted if asked == "secure"] == [
            "advertise_keys", "share_keys_response", "masked_input_response", "unmasking_response",
        ]  # fmt: skip
    else:
        assert noted["check_in"].weights == {"train": 1.5}
        assert noted["report"] == ReportIn(b"update" * 9, 0, 3.5)
