"""Tests of `invoker.protocols.federated.outgoing`, by conversations."""

from __future__ import annotations

import random

import msgspec
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import Packed
from invoker.core.steps import Answered, Await, Send
from invoker.errors import InternalError, Status, StatusError
from invoker.protocols.federated.messages import Accepted, Blob, Offer, Over, ReportTaken
from invoker.protocols.federated.negotiation import DeviceSettings
from tests.protocols.federated.coordinators import OFFER, TASK, NotedCoordinator, Talk, checkin, options, report, trying

BYTES = random.Random(5).randbytes(300_000) + bytes(700_000)


def large() -> Offer:
    """An offer whose model has a megabyte."""
    return msgspec.structs.replace(OFFER, checkpoint=Blob(BYTES), forms={})


async def beside(_key: object, _job: object) -> Packed:
    """Nobody awaits it: tests give what was packed themselves."""
    raise AssertionError("nobody awaits this")


def starts(talk: Talk) -> list[pb.ChunkedTransferMessage.Start]:
    """How the server's messages in chunks began."""
    frames = [pb.ServerStreamMessage.FromString(one.frame) for one in talk.steps if isinstance(one, Send)]
    return [one.chunked_transfer.start for one in frames if one.chunked_transfer.WhichOneof("kind") == "start"]


@pytest.mark.parametrize("level", range(4))
def test_F027_a_large_answer_comes_in_chunks_at_every_level(level: int) -> None:
    """As it was agreed on, and whole at its end."""
    talk = Talk(settings=DeviceSettings(level=level, chunk_bytes=8192))
    talk.say(checkin())
    assert talk.tell(Accepted(large())) == ["checkin_response acceptance_info"]
    assert talk.heard[-1].checkin_response.acceptance_info.init_checkpoint == BYTES
    (start,) = starts(talk)
    assert start.compression_level == level
    assert (start.blob_size_bytes < start.uncompressed_size) is (level > 0)


def test_an_answer_is_packed_once_for_all_clients_that_can_do_the_same() -> None:
    """Their conversations send the same bytes; those that can do something else get a form of their own."""
    offer = large()
    for fields in ({}, {}, {"supported_compression_levels": [0]}, {}):
        talk = Talk(settings=DeviceSettings(chunk_bytes=8192))
        talk.say(checkin(protocol_options_request=options(**fields)))
        talk.tell(Accepted(offer))
        assert talk.heard[-1].checkin_response.acceptance_info.init_checkpoint == BYTES
    assert sorted(one.level for one in offer.forms.values()) == [0, 1]


def packing(offer: Offer) -> tuple[Talk, Await]:
    """A conversation that waits for its answer to be packed."""
    talk = Talk(pack=beside)
    talk.say(checkin())
    talk.awaits = 0
    steps = talk.session.deliver(Answered("mail", [Accepted(offer)]))
    (pack,) = (one for one in steps if isinstance(one, Await) and one.key == "packed")
    assert not any(isinstance(one, Send) for one in steps)
    talk.awaits = 1
    return talk, pack


def test_a_large_answer_is_compressed_beside_the_loop() -> None:
    """What the coordinator tells in between waits behind it."""
    offer = large()
    talk, pack = packing(offer)
    assert talk.tell() == []
    job = pack.begin.args[1]  # type: ignore[attr-defined]
    talk.awaits = 1
    assert talk.tell(Over(StatusError(Status.ABORTED, "the round is closed"))) == []
    assert talk.close is None
    talk.bring(Answered("packed", job()))
    assert len(starts(talk)) == 1
    assert not any(isinstance(one, Await) and one.key == "packed" for one in talk.steps)  # it was asked for once
    assert talk.error.status is Status.ABORTED
    assert len(offer.forms) == 1


def test_the_next_conversation_finds_it_packed() -> None:
    """And needs nothing beside the loop."""
    offer = large()
    talk, pack = packing(offer)
    talk.bring(Answered("packed", pack.begin.args[1]()))  # type: ignore[attr-defined]
    assert talk.heard[-1].checkin_response.acceptance_info.init_checkpoint == BYTES
    following = Talk(pack=beside)
    following.say(checkin())
    assert following.tell(Accepted(offer)) == ["checkin_response acceptance_info"]
    following.say(report())
    assert following.tell(ReportTaken()) == ["report_response"]


def test_what_cannot_be_packed_ends_the_conversation() -> None:
    """With the error that the service has for it."""
    talk, _ = packing(large())
    talk.bring(Answered("packed", InternalError()))
    assert talk.error.status is Status.INTERNAL


def test_a_client_may_leave_while_its_answer_is_packed() -> None:
    """It ends with OK, and nothing is sent."""
    talk, _ = packing(large())
    talk.half_close()
    assert talk.close is not None
    assert talk.close.error is None


def test_F039_a_large_answer_needs_chunks() -> None:
    """Without them it is RESOURCE_EXHAUSTED, with a sentence that says why."""
    talk = Talk(settings=DeviceSettings(whole_bytes=30))
    talk.say(checkin(protocol_options_request=options(supports_chunked_blob_transfer=False)))
    talk.tell(Accepted(msgspec.structs.replace(OFFER, forms={})))
    assert talk.error.status is Status.RESOURCE_EXHAUSTED
    assert "clients without chunks" in str(talk.error)


def test_F040_a_large_eligibility_task_is_packed_too() -> None:
    """Once, and kept with the task."""
    task = msgspec.structs.replace(TASK, checkpoint=Blob(BYTES), forms={})
    for _ in range(2):
        talk = Talk(NotedCoordinator(task))
        talk.say(trying())
        payload = talk.heard[-1].eligibility_eval_checkin_response.eligibility_eval_payload
        assert payload.init_checkpoint == BYTES
    assert len(task.forms) == 1


def test_F065_clients_that_download_have_forms_of_their_own() -> None:
    """One for each address that they are told; gzip makes no difference to who gets all inline."""
    offer, task = msgspec.structs.replace(OFFER, forms={}), msgspec.structs.replace(TASK, forms={})
    for http in (False, True):
        for formats in ([], [1]):
            said = options(
                supports_http_download=http,
                supports_eligibility_eval_http_download=http,
                supported_http_compression_formats=formats,
            )
            talk = Talk(NotedCoordinator(task))
            talk.say(trying(protocol_options_request=said), checkin(protocol_options_request=said, weights=[]))
            talk.tell(Accepted(offer))
            info = talk.heard[-1].checkin_response.acceptance_info
            payload = talk.heard[-2].eligibility_eval_checkin_response.eligibility_eval_payload
            for one in (info, payload):
                assert one.plan_resource.uri == (
                    "" if not http else "https://x/plan.gz" if formats else "https://x/plan"
                )
                assert one.plan == (b"" if http else b"the plan")
    assert len(offer.forms) == len(task.forms) == 3
