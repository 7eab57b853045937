"""Tests of `invoker.codecs.chunks.stream`."""

from __future__ import annotations

import random

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import Limits, Packed, Terms
from invoker.errors import LimitExceeded, Status, StatusError
from tests.codecs.chunks.peers import REAL, SMALL, accepted, agreed, client, exchange, report, server, shown
from tests.conftest import cpu_within


@pytest.mark.parametrize("level", range(4))
def test_F022_a_large_report_arrives_at_every_level_and_fast(level: int) -> None:
    """10 MiB in chunks of 8192, two pending, take a small part of a second beside compression."""
    data = random.Random(3).randbytes(5 * 2**20) + bytes(5 * 2**20)
    device, host = agreed(Terms(8192, 2, level))
    device.send(report(data).SerializeToString())
    with cpu_within(3):
        _, (message,) = exchange(device, host)
    assert message.report_request.report.update_checkpoint == data
    assert device.is_idle
    assert host.is_idle


def test_F024_without_acks_two_chunks_are_sent_and_nothing_more() -> None:
    """Start, two chunks, stop; each ack lets one more piece go, and the End waits too."""
    device = client()
    device.agree(SMALL)
    device.send(bytes(11))
    assert shown(device.drain(), pb.ClientStreamMessage) == ["start 11/0/11", "data 0 4", "data 1 4"]
    assert device.drain() == []
    device.receive(ack(0))
    assert shown(device.drain(), pb.ClientStreamMessage) == ["data 2 3"]
    assert not device.is_idle
    device.receive(ack(1))
    assert shown(device.drain(), pb.ClientStreamMessage) == ["end 3"]
    assert device.is_idle


def test_F136_the_credit_spans_messages() -> None:
    """The next message starts while a chunk of the last one is not acked, and has that much less credit."""
    device = client()
    device.agree(SMALL)
    device.send(bytes(3))
    device.send(bytes(7))
    assert shown(device.drain(), pb.ClientStreamMessage) == [
        "start 3/0/3", "data 0 3", "end 1", "start 7/0/7", "data 0 4",
    ]  # fmt: skip
    device.send(bytes(2))
    assert shown(device.drain(), pb.ClientStreamMessage) == []  # a third one makes no difference
    device.receive(ack(0))
    assert shown(device.drain(), pb.ClientStreamMessage) == ["data 1 3"]
    device.receive(ack(0))
    assert shown(device.drain(), pb.ClientStreamMessage) == ["end 2", "start 2/0/2", "data 0 2"]


def test_F025_every_chunk_is_acked_before_the_next_frame_is_read() -> None:
    """The acks of a message are there before its End is."""
    device, host = agreed(SMALL)
    device.send(report(bytes(1)).SerializeToString())
    for frame in device.drain():
        host.receive(frame)
        (word,) = shown([frame], pb.ClientStreamMessage)
        answer = shown(host.drain(), pb.ServerStreamMessage)
        assert answer == ([f"ack {word.split()[1]}"] if word.startswith("data") else [])


def test_F027_both_directions_are_in_transfer_at_once() -> None:
    """5 MiB go up while 5 MiB come down."""
    device, host = agreed(REAL)
    device.send(report(bytes(5 * 2**20)).SerializeToString())
    host.send(accepted(bytes(5 * 2**20)).SerializeToString())
    (down,), (up,) = exchange(device, host)
    assert down.checkin_response.acceptance_info.init_checkpoint == bytes(5 * 2**20)
    assert up.report_request.report.update_checkpoint == bytes(5 * 2**20)


def test_F029_a_whole_message_inside_a_transfer_is_a_violation() -> None:
    """Also one that is empty, or has only a message of secure aggregation."""
    secure = pb.ClientStreamMessage()
    secure.secure_aggregation_client_message.abort.early_success = False
    for message in (report(b"x"), pb.ClientStreamMessage(), secure):
        _, host = agreed(SMALL)
        host.receive(start(8, 0, 8))
        refused(host, message.SerializeToString(), "Chunk reassembly in progress")


def test_F031_a_chunk_inside_chunks_is_a_violation() -> None:
    """A reassembled message may not be a chunk."""
    device, host = agreed(SMALL)
    device.send(start(1, 0, 1))
    with pytest.raises(StatusError, match="is itself a chunk"):
        exchange(device, host)


def test_F020_without_terms_nothing_goes_in_chunks_and_none_may_come() -> None:
    """Zeros mean the same."""
    for terms in (Terms(), Terms(8192, 0), Terms(0, 2)):
        host = server()
        host.agree(terms)
        host.send(bytes(20_000))
        assert host.drain() == [bytes(20_000)]
        refused(host, start(1, 0, 1), "which were not agreed on")


def test_F019_new_terms_replace_the_old_ones_for_the_next_message() -> None:
    """A message in transfer keeps its chunks; what the peer sends may still be by the old terms."""
    device, host = agreed(SMALL)
    device.send(bytes(9))
    device.agree(Terms(6, 1))
    device.send(bytes(9))
    host.agree(Terms(6, 1))
    device.drain()
    for index in range(3):
        device.receive(ack(index))
    assert shown(device.drain(), pb.ClientStreamMessage) == ["data 2 1", "end 3", "start 9/0/9", "data 0 6"]
    host.receive(start(20, 0, 20))
    host.receive(data(0, bytes(4)))


def test_F019_terms_without_chunks_let_a_transfer_end() -> None:
    """It goes on with the credit that it had, and the next message goes whole."""
    device = client()
    device.agree(SMALL)
    device.send(bytes(9))
    device.drain()
    device.agree(Terms())
    device.send(b"whole")
    device.receive(ack(0))
    device.receive(ack(1))
    assert shown(device.drain()[:2], pb.ClientStreamMessage) == ["data 2 1", "end 3"]


def test_small_messages_go_whole_in_their_turn() -> None:
    """A server need not cut what is smaller than a chunk, but it waits for the transfer before it."""
    host = server(whole_bytes=4)
    host.agree(SMALL)
    large, small = accepted(b"123456").SerializeToString(), pb.ServerStreamMessage()
    small.report_response.SetInParent()
    host.send(large)
    host.send(small.SerializeToString())
    assert "whole" not in shown(host.drain(), pb.ServerStreamMessage)
    host.receive(ack(0, pb.ClientStreamMessage))
    host.receive(ack(1, pb.ClientStreamMessage))
    assert shown(host.drain(), pb.ServerStreamMessage)[-2:] == ["end 3", "whole"]


def test_what_is_packed_is_sent_to_many_without_being_packed_again() -> None:
    """The level is that of the pack, whatever the terms say."""
    message = accepted(bytes(5000)).SerializeToString()
    packed = Packed.of(message, 2)
    for _ in range(2):
        device, host = agreed(Terms(8192, 2, 0))
        host.send(packed)
        (got,), _nothing = exchange(device, host)
        assert got.checkin_response.acceptance_info.init_checkpoint == bytes(5000)


def test_F144_all_bytes_are_counted_when_they_are_sent() -> None:
    """With what the chunks cost; those that wait for an ack count when they go."""
    device, host = agreed(SMALL)
    device.send(report(bytes(9)).SerializeToString())
    first = device.drain()
    assert device.sent == sum(map(len, first)) < 40
    for frame in first:
        host.receive(frame)
    exchange(device, host)
    assert device.sent == host.received > 40
    assert host.sent == device.received > 0


def test_F081_a_message_that_must_wait_gets_no_acks() -> None:
    """The sender stops by itself, and goes on when it may."""
    asked: list[int] = []

    def never(size: int, upto: int) -> bool:
        asked.append(size)
        assert upto == size
        return False

    device, host = agreed(SMALL, may_receive=never)
    message = report(bytes(30)).SerializeToString()
    device.send(message)
    assert exchange(device, host) == ([], [])
    assert asked == [len(message)]
    assert host.is_held
    assert not device.is_idle
    assert list(host.resume()) == []
    _, (got,) = exchange(device, host)
    assert got == report(bytes(30))


def test_F081_the_next_message_is_asked_about_by_itself() -> None:
    """Two small ones came before the first ack; the second waits again until it may come too."""
    answers = [False, False, True]
    device, host = agreed(Terms(64, 2), may_receive=lambda _size, _upto: answers.pop(0))
    for data in (b"one", b"two", b"three"):
        device.send(report(data).SerializeToString())
    assert exchange(device, host) == ([], [])
    assert list(host.resume()) == [report(b"one")]
    assert host.is_held
    assert exchange(device, host) == ([], [])
    assert list(host.resume()) == [report(b"two")]
    _, (third,) = exchange(device, host)
    assert third == report(b"three")


def test_F081_who_sends_on_without_an_ack_breaks_the_rules() -> None:
    """What is held up is bounded, whatever comes: chunks, bytes, or pieces without bytes."""
    for frames in (
        [data(index, b"1234") for index in range(3)],
        [start(0, 0, 0)] * 9,
        [report(bytes(200_000)).SerializeToString()],
    ):
        _, host = agreed(SMALL, may_receive=lambda _size, _upto: False)
        host.receive(start(40, 0, 40))
        for frame in frames[:-1]:
            host.receive(frame)
        refused(host, frames[-1], "before")


def test_F036_what_is_no_piece_is_a_violation() -> None:
    """A chunk message needs one of its four kinds; an unknown level is no level."""
    empty = pb.ClientStreamMessage()
    empty.chunked_transfer.SetInParent()
    refused(agreed(SMALL)[1], empty.SerializeToString(), "neither start, data, ack nor end")
    refused(agreed(SMALL)[1], start(1, 4, 1), "4 is not a compression level")


def test_an_end_inside_a_message_is_told() -> None:
    """A peer that half-closes in a transfer has lost something."""
    _, host = agreed(SMALL)
    host.ended()
    host.receive(start(8, 0, 8))
    with pytest.raises(StatusError, match="ended inside a message"):
        host.ended()


def test_F034_the_limit_is_that_of_the_message() -> None:
    """A message of exactly the limit passes."""
    size = len(report(bytes(100)).SerializeToString())
    for most, fits in ((size, True), (size - 1, False)):
        device, host = agreed(SMALL, limits=Limits(message_bytes=most))
        device.send(report(bytes(100)).SerializeToString())
        if fits:
            assert exchange(device, host)[1]
        else:
            with pytest.raises(LimitExceeded):
                exchange(device, host)


def refused(host: object, frame: bytes, text: str) -> None:
    """A frame is a violation, with the status that clients take for lasting."""
    with pytest.raises(StatusError, match=text) as caught:
        host.receive(frame)  # type: ignore[attr-defined]
    assert caught.value.status is Status.INVALID_ARGUMENT


def start(size: int, level: int, blob: int) -> bytes:
    """A client begins a message."""
    message = pb.ClientStreamMessage()
    piece = message.chunked_transfer.start
    piece.uncompressed_size, piece.compression_level, piece.blob_size_bytes = size, level, blob  # type: ignore[assignment]
    piece.SetInParent()
    return message.SerializeToString()


def data(index: int, chunk: bytes) -> bytes:
    """A client sends a chunk."""
    message = pb.ClientStreamMessage()
    message.chunked_transfer.data.chunk_index = index
    message.chunked_transfer.data.chunk_bytes = chunk
    return message.SerializeToString()


def ack(index: int, kind: type = pb.ServerStreamMessage) -> bytes:
    """A peer acks a chunk."""
    message = kind()
    message.chunked_transfer.ack.chunk_index = index
    message.chunked_transfer.ack.SetInParent()
    frame: bytes = message.SerializeToString()
    return frame
