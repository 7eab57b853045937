"""Tests of `invoker.protocols.federated.session`: what comes and goes in chunks."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from typing import Any

import msgspec
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.core.steps import Answered, Await, Close, Send
from invoker.errors import InvocationError, Status
from invoker.protocols.federated.messages import Accepted, Blob, Rejected, ReportTaken, Resume
from invoker.protocols.federated.negotiation import DeviceSettings
from tests.protocols.federated.chunked import ack, chunk, data, end, start
from tests.protocols.federated.coordinators import (
    OFFER,
    TASK,
    NotedCoordinator,
    Talk,
    checkin,
    options,
    report,
    trying,
)

REAL = DeviceSettings(chunk_bytes=8192, max_pending=2)


def accepted(settings: DeviceSettings = REAL, coordinator: NotedCoordinator | None = None) -> Talk:
    """A conversation in which the client has its task, and sends in chunks."""
    talk = Talk(coordinator, settings=settings)
    talk.say(checkin())
    talk.tell(Accepted(msgspec.structs.replace(OFFER, forms={})))
    return talk


@pytest.mark.parametrize("level", range(4))
def test_F026_a_report_of_10_mib_arrives_at_every_level(level: int) -> None:
    """By chunks of 8192, two of them pending, acked without waiting for the whole."""
    update = random.Random(7).randbytes(5 * 2**20) + bytes(5 * 2**20)
    talk = accepted(DeviceSettings(chunk_bytes=8192, level=level))
    talk.say(report(update))
    assert dict(talk.coordinator.noted)["report"].update == update
    assert talk.tell(ReportTaken()) == ["report_response"]
    assert talk.coordinator.bytes == [talk.client.received, talk.client.sent]


def test_F038_every_message_may_come_in_chunks() -> None:
    """Once there are options; the second checkin and the report do."""
    talk = Talk(NotedCoordinator(TASK), settings=DeviceSettings(chunk_bytes=3))
    talk.say(trying())
    talk.say(checkin(weights=[("train", 1.0)]))
    talk.tell(Accepted(OFFER))
    talk.say(report())
    assert talk.tell(ReportTaken()) == ["report_response"]
    assert talk.coordinator.names().count("may_receive") == talk.coordinator.names().count("received") == 2


def test_F018_the_options_are_in_the_first_response() -> None:
    """In that to the eligibility checkin, or to the checkin if there is none; also where it says no."""
    first = Talk(NotedCoordinator(TASK))
    first.say(trying())
    told = first.heard[-1].eligibility_eval_checkin_response.protocol_options_response
    assert (told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level) == (32768, 2, 1)
    for notice in (Accepted(OFFER), Rejected("full")):
        talk = Talk()
        talk.say(checkin())
        talk.tell(notice)
        assert talk.heard[-1].checkin_response.protocol_options_response == told
    free = Talk()
    free.say(trying())
    assert free.heard[-1].eligibility_eval_checkin_response.protocol_options_response == told


def test_F020_a_client_that_takes_no_chunks_gets_none_and_zeros() -> None:
    """And may send none."""
    talk = Talk(settings=DeviceSettings(chunk_bytes=1))
    talk.say(checkin(protocol_options_request=options(supports_chunked_blob_transfer=False)))
    talk.tell(Accepted(OFFER))
    told = talk.heard[-1].checkin_response.protocol_options_response
    assert (told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level) == (0, 0, 0)
    talk.say(start(1, 0, 1))
    assert "which were not agreed on" in str(talk.error)


def test_F019_what_a_second_checkin_offers_replaces_the_first() -> None:
    """Without options in it, those of the first stay."""
    for said, chunk_bytes in ((options(supports_chunked_blob_transfer=False), 0), (None, 8192)):
        talk = Talk(NotedCoordinator(TASK), settings=REAL)
        talk.say(trying(), checkin(protocol_options_request=said, weights=[("train", 1.0)]))
        talk.tell(Accepted(OFFER))
        assert talk.heard[-1].checkin_response.protocol_options_response.chunk_size_for_upload == chunk_bytes


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([start(9, 0, 9), data(1, b"123")], "chunk 0 was expected"),
        ([start(9, 0, 9), data(0, b"123"), end(2)], "after 2 chunks"),
        ([start(9, 0, 9), start(9, 0, 9)], "inside another message"),
        ([data(0, b"123")], "outside a message"),
        ([end(1)], "came without a Start"),
        ([ack(0)], "does not belong to a chunk"),
        ([start(9, 0, 9), checkin()], "Chunk reassembly in progress"),
        ([start(-1, 0, 9)], "must not be negative"),
        ([start(9, 7, 9)], "not a compression level"),
        ([start(9, 0, 9), data(0, bytes(2 * 8192 + 65537))], "exceeds the limit"),
        ([chunk()], "neither start"),
        ([start(2, 0, 2), data(0, chunk().SerializeToString()), end(1)], "is itself a chunk"),
        ([start(3, 0, 3), data(0, b"\xff\xff\xff"), end(1)], "not a valid ClientStreamMessage"),
    ],
)
def test_F028_a_client_that_breaks_the_rules_ends_only_itself(messages: list[Any], text: str) -> None:
    """INVALID_ARGUMENT to it; the coordinator hears of no report, and the one beside it goes on."""
    coordinator = NotedCoordinator()
    talk, beside = accepted(coordinator=coordinator), accepted(coordinator=coordinator)
    talk.force(*messages)
    assert talk.error.status is Status.INVALID_ARGUMENT
    assert text in str(talk.error)
    assert "report" not in coordinator.names()
    assert coordinator.bytes[1] == sum(len(one.SerializeToString()) for one in messages) + 2 * len(
        checkin().SerializeToString()
    )
    beside.say(report())
    assert "report" in coordinator.names()


def test_F030_an_ack_of_another_chunk_is_a_violation() -> None:
    """The oldest one is due first."""
    talk = Talk(settings=DeviceSettings(chunk_bytes=4))
    talk.session.receive(checkin().SerializeToString())
    talk.session.deliver(Answered("mail", [Accepted(msgspec.structs.replace(OFFER, forms={}))]))
    (close,) = talk.session.receive(ack(1).SerializeToString())
    assert isinstance(close, Close)
    assert "the oldest one without an ack is 0" in str(close.error)


def test_F034_a_message_above_the_limit_is_refused_at_its_start() -> None:
    """RESOURCE_EXHAUSTED, at exactly one byte more."""
    for size, status in ((2**20, None), (2**20 + 1, Status.RESOURCE_EXHAUSTED)):
        talk = accepted(DeviceSettings(message_bytes=2**20))
        talk.force(start(size, 1, 9))
        assert (talk.close.error.status if talk.close and talk.close.error else None) is status


@pytest.mark.parametrize("said", [1000, 2**31 - 1])
def test_F034_a_bomb_ends_only_its_conversation_in_bounded_memory(said: int) -> None:
    """64 KiB that would be 64 MiB: it stops at the size that it said, or is refused at its start."""
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(64))
    talk = accepted(DeviceSettings(message_bytes=2**20))
    tracemalloc.start()
    try:
        talk.force(start(said, 1, len(bomb)))
        for index in range(0, len(bomb), 8192):
            talk.force(data(index // 8192, bomb[index : index + 8192]))
        talk.force(end(-(-len(bomb) // 8192)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * 2**20
    assert talk.error.status in (Status.INVALID_ARGUMENT, Status.RESOURCE_EXHAUSTED)


def test_F081_a_report_may_have_to_wait_at_each_step() -> None:
    """Of 64 KiB on the wire, and then for what it inflates to; the coordinator is told of the next one, too."""
    for level, asked in ((0, [65536, 131072, 196608, 200_054]), (1, [65536, 131072, 196608, 262_144, 5_000_054])):
        update = random.Random(1).randbytes(200_000) + bytes(0 if level == 0 else 4_800_000)
        coordinator = NotedCoordinator()
        talk = accepted(DeviceSettings(chunk_bytes=8192, level=level), coordinator=coordinator)
        coordinator.allows = False
        talk.say(report(update))
        for upto in asked:
            assert "report" not in coordinator.names()
            assert coordinator.noted[-1][0] == "may_receive"
            assert abs(coordinator.asked[-1] - upto) < 8192
            talk.tell(Resume())
        assert coordinator.names()[-2:] == ["report", "received"]
        assert dict(coordinator.noted)["report"].update == update


def test_F034_what_takes_long_to_inflate_does_so_beside_the_loop() -> None:
    """It is parsed there, too. What comes behind it waits, and so does the half-close.

    What cannot be inflated ends the conversation alone.
    """
    for wrong in (b"", b"x"):
        jobs: list[Any] = []

        async def pack(key: object, job: Any) -> Any:
            raise AssertionError("the test does it")

        coordinator = NotedCoordinator()
        talk = accepted_with(pack, coordinator)
        message = report(bytes(1_000_000)).SerializeToString()
        blob = zlib.compress(message + wrong)
        talk.force(start(len(message), 1, len(blob)), data(0, blob), end(1))
        talk.half_close()
        jobs += [one for one in talk.steps if isinstance(one, Await) and one.key == "unpacked"]
        assert len(jobs) == 1
        assert not {"report", "received"} & set(coordinator.names())
        assert talk.close is None
        made = jobs[0].begin.args[1]()
        assert isinstance(made, InvocationError if wrong else pb.ClientStreamMessage)
        talk.bring(Answered("unpacked", made))
        if wrong:
            assert talk.error.status is Status.INVALID_ARGUMENT
        else:
            assert coordinator.names()[-2:] == ["report", "received"]


def accepted_with(pack: Any, coordinator: NotedCoordinator) -> Talk:
    """As `accepted`, beside a loop."""
    talk = Talk(coordinator, settings=DeviceSettings(chunk_bytes=65536, max_pending=2), pack=pack)
    talk.say(checkin())
    talk.tell(Accepted(msgspec.structs.replace(OFFER, forms={})))
    return talk


def test_F081_a_report_that_must_wait_gets_no_acks_until_the_coordinator_says_so() -> None:
    """Then it goes on to its end, and the coordinator is told that it is there behind the report."""
    coordinator = NotedCoordinator()
    talk = accepted(coordinator=coordinator)
    coordinator.allows = False
    talk.say(report(bytes(random.Random(1).randbytes(100_000))))
    assert "report" not in coordinator.names()
    coordinator.allows = True
    talk.tell(Resume())
    assert coordinator.names()[-2:] == ["report", "received"]
    assert talk.tell(ReportTaken()) == ["report_response"]


def test_F081_one_that_half_closes_while_it_waits_is_heard_to_its_end() -> None:
    """A small report is complete before its first ack."""
    coordinator = NotedCoordinator()
    talk = accepted(coordinator=coordinator)
    coordinator.allows = False
    talk.say(report())
    talk.half_close()
    assert talk.close is None
    talk.tell(Resume())
    assert coordinator.names()[-2:] == ["report", "received"]
    assert talk.tell(ReportTaken()) == ["report_response"]
    assert talk.close is not None


def test_F028_half_closing_inside_a_message_is_a_violation() -> None:
    """Something was lost."""
    talk = accepted()
    talk.force(start(9, 0, 9))
    talk.half_close()
    assert talk.error.status is Status.INVALID_ARGUMENT


def test_F024_the_server_sends_no_more_than_its_client_acks() -> None:
    """A client that reads but never acks costs one answer, and chunks of it are not made before they are sent."""
    talk = Talk(settings=DeviceSettings(chunk_bytes=4))
    sent = [one for one in talk.session.receive(checkin().SerializeToString()) if isinstance(one, Send)]
    assert not sent
    steps = talk.session.deliver(
        Answered("mail", [Accepted(msgspec.structs.replace(OFFER, checkpoint=Blob(bytes(99))))])
    )
    assert len([one for one in steps if isinstance(one, Send)]) == 3
    steps = talk.session.receive(ack(0).SerializeToString())
    assert len([one for one in steps if isinstance(one, Send)]) == 1
