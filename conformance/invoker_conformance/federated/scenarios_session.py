"""Sessions and their states: docs/reference/federated.md 3.1."""

from __future__ import annotations

import asyncio
from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.device import CHUNKS, Device
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

_BAD = StatusCode.INVALID_ARGUMENT
EMPTY = pb.ClientStreamMessage()


@scenario("FT-01", "F-001", "F-002", "F-040", "F-015", "F-047", "F-146", function="asked")
async def whole_conversation_with_eligibility(fleet: Fleet) -> None:
    """A real client's messages get an ack, an eligibility task, an acceptance, an answer and OK."""
    before = await fleet.total(weights={"first": 1.0})
    async with fleet.device() as device:
        payload = (await device.try_in(acked=True, supports_http_download=False, **CHUNKS)).eligibility_eval_payload
        if not (payload.plan and payload.execution_id):
            raise device.failure(f"{payload}", "an eligibility task with a plan and an execution_id (F-040)")
        await device.ask({"first": 1.0}, **CHUNKS)
        info = await device.accepted()
        if not info.plan or not info.init_checkpoint or info.task_name != "first":
            raise device.failure(f"{info}", "the task first, with a plan and a checkpoint (F-047)")
        stats = Packed()
        stats.Pack(pb.ClientExecutionStats(duration=Duration(seconds=1)))
        await device.report(b"5", events=[stats])
        await device.thanked()
    if (met := await fleet.total(weights={"first": 1.0})) != before + 5:
        raise fleet.failure(f"a checkpoint of {met}", f"{before + 5}")


@scenario("FT-02", "F-040", "F-015", function="solo")
async def conversation_without_an_eligibility_task(fleet: Fleet) -> None:
    """Where no eligibility task is configured the response says so, and a checkin without info is accepted."""
    async with fleet.device() as device:
        response = await device.try_in()
        if response.WhichOneof("checkin_result") != "no_eligibility_eval_configured":
            raise device.failure(f"{response}", "no_eligibility_eval_configured (F-040)")
        await device.ask()
        await device.accepted()
        await device.report(b"1")
        await device.thanked()


@scenario("FT-03", "F-002", "F-003", "F-059", "F-056", "F-054", function="solo")
async def ack_that_is_asked_for_and_not(fleet: Fleet) -> None:
    """The retry windows come in the ack if one is asked for, and otherwise in the answers."""
    async with fleet.joined() as (device,):
        await device.report(b"1")
        if not (await device.thanked()).HasField("retry_window"):
            raise device.failure("a ReportResponse without a window", "a window, since there was no ack (F-059)")
    async with fleet.joined() as (first,), fleet.device() as device:
        await device.ask()
        response = (await device.kind("checkin_response")).checkin_response
        if not response.rejection_info.HasField("retry_window"):
            raise device.failure("a rejection without a window", "a window, since there was no ack (F-059)")
        await first.leaves()
    async with fleet.device() as device:
        await device.ask(acked=True)
        await device.kind("checkin_response")


@scenario("FT-05", "F-005", function="solo")
async def population_that_nobody_knows(fleet: Fleet) -> None:
    """An unknown population is NOT_FOUND, before any ack, for checkins of either kind."""
    async with fleet.device("nobody has this") as device:
        await device.ask()
        await device.ends(StatusCode.NOT_FOUND, is_silent=True)
    request = pb.EligibilityEvalCheckinRequest(population_name="nobody has this")
    request.protocol_options_request.should_ack_checkin = True
    async with fleet.device() as device:
        await device.say(pb.ClientStreamMessage(eligibility_eval_checkin_request=request))
        if await device.ends(StatusCode.NOT_FOUND):
            raise device.failure("an ack", "the end before any ack (F-005)")


@scenario("F-006", function="solo")
async def metadata_that_name_another_population(fleet: Fleet) -> None:
    """Metadata that name another population are INVALID_ARGUMENT; the same name is accepted."""
    async with fleet.device(x_goog_population="other") as device:
        await device.ask()
        await device.ends(_BAD, is_silent=True)
    async with fleet.device(x_goog_population="solo") as device:
        await device.try_in()
        await device.leaves()


@scenario("F-007", function="keyed")
async def api_key(fleet: Fleet) -> None:
    """A conversation without the right key ends with UNAUTHENTICATED."""
    for metadata in ({}, {"x_goog_api_key": "wrong"}):
        async with fleet.device(**metadata) as device:
            await device.ask()
            await device.ends(StatusCode.UNAUTHENTICATED, is_silent=True)
    async with fleet.device(x_goog_api_key="conformance") as device:
        await device.try_in()
        await device.leaves()


@scenario("FT-06", "F-001", "F-008", function="solo")
async def report_first(fleet: Fleet) -> None:
    """A first message that is not a checkin is INVALID_ARGUMENT, and so is an end without a message."""
    for message in (
        pb.ClientStreamMessage(report_request=pb.ReportRequest(population_name="solo")),
        pb.ClientStreamMessage(secure_aggregation_client_message={"advertise_keys": {}}),
    ):
        async with fleet.device() as device:
            await device.say(message)
            await device.ends(_BAD, is_silent=True)
    async with fleet.device() as device:
        await device.half_close()
        await device.ends(_BAD, is_silent=True)


@scenario("FT-07", "F-008", "F-013", function="patient")
async def two_checkins(fleet: Fleet) -> None:
    """A second checkin, of either kind, is INVALID_ARGUMENT, and frees the place in the round."""
    async with fleet.device() as device:
        await device.ask(acked=True)
        await device.ask()
        await device.ends(_BAD)
    async with fleet.device() as device:
        await device.try_in()
        await device.say(pb.ClientStreamMessage(eligibility_eval_checkin_request={"population_name": "patient"}))
        await device.ends(_BAD)
    async with fleet.devices(2) as (first, second):
        await first.ask()
        await first.silent(0.2)  # the earlier clients have no place in the round any more
        await second.ask()
        await asyncio.gather(first.accepted(), second.accepted())


@scenario("F-008", "F-017", function="solo")
async def reports_that_cannot_be(fleet: Fleet) -> None:
    """Reports before acceptance, twice, of another round and of another population: INVALID_ARGUMENT.

    They do not count.
    """
    before = await fleet.total()
    async with fleet.device() as device:
        await device.try_in()
        await device.report(b"100")
        await device.ends(_BAD)
    named: tuple[dict[str, Any], ...] = (
        {"execution_phase_id": "another"},
        {"execution_phase_id": ""},
        {"population_name": "other"},
    )
    for wrong in named:
        async with fleet.joined() as (device,):
            await device.report(b"100", **wrong)
            await device.ends(_BAD)
    await fleet.is_total(before)
    async with fleet.joined() as (device,):
        await device.report(b"3")
        await device.report(b"100")
        await device.ends(_BAD)
    await fleet.is_total(before + 3)


@scenario("FT-08", "F-009", function="solo")
async def second_checkin_of_somebody_else(fleet: Fleet) -> None:
    """A second checkin that differs in one of the four fields that must repeat is INVALID_ARGUMENT."""
    said: dict[str, Any] = {"retry_token": "a", "attestation_measurement": "b", "client_version": "c"}
    for field in said:
        async with fleet.device() as device:
            await device.try_in(**said)
            await device.ask(**{**said, field: "x"})
            await device.ends(_BAD)
    async with fleet.device() as device:
        await device.try_in(**said)
        device.population = "other"
        await device.ask(**said)
        await device.ends(_BAD)


@scenario("FT-09", "F-012", function="asked")
async def half_close_behind_the_eligibility_task(fleet: Fleet) -> None:
    """A client that is not eligible ends with OK; so does one that was accepted, and its place is free again."""
    async with fleet.device() as device:
        await device.try_in()
        await device.leaves()
    before = await fleet.total(weights={"first": 1.0})
    async with fleet.joined(weights={"first": 1.0}) as (device,):
        await device.leaves()
    if (after := await fleet.total(weights={"first": 1.0})) != before:
        raise fleet.failure(f"a checkpoint of {after}", f"{before}, since no device has reported")


@scenario("FT-10", "F-013", function="patient")
async def cancel_while_a_cohort_is_awaited(fleet: Fleet) -> None:
    """The place of a device that cancels is free within a second, so that two others make the round."""
    async with fleet.waiting() as gone:
        gone.cancel()
    await asyncio.sleep(0.5)
    async with fleet.devices(2) as (first, second):
        await first.ask()
        await first.silent(0.3)
        await second.ask()
        await asyncio.gather(first.accepted(), second.accepted())


@scenario("FT-13", "F-004", function="patient")
async def ack_while_a_cohort_is_awaited(fleet: Fleet) -> None:
    """The ack comes at once, and the decision when the cohort is complete."""
    async with fleet.waiting() as first, fleet.device() as second:
        await second.ask(acked=True)
        await asyncio.gather(first.accepted(), second.accepted())


@scenario("F-010", function="solo")
async def client_id_of_the_wire(fleet: Fleet) -> None:
    """The client id of the wire has no effect, even if it changes between messages."""
    async with fleet.device() as device:
        request = pb.EligibilityEvalCheckinRequest(population_name="solo")
        first = pb.ClientStreamMessage(eligibility_eval_checkin_request=request, internal_client_id="one")
        await device.say(first)
        await device.kind("eligibility_eval_checkin_response")
        second = pb.ClientStreamMessage(checkin_request={"population_name": "solo"}, internal_client_id="two")
        await device.say(second)
        await device.accepted()


@scenario("FT-14", "F-011", function="solo")
async def thousand_messages_without_content(fleet: Fleet) -> None:
    """A thousand messages without content are ignored, with or without side channel events.

    One more is INVALID_ARGUMENT.
    """
    event = pb.ClientStreamMessage(serialized_side_channel_event=[Packed()])
    async with fleet.device() as device:
        for _ in range(500):
            await _say(device, EMPTY)
            await _say(device, event)
        await device.try_in()
        await device.say(EMPTY)
        await device.ends(_BAD)


async def _say(device: Device, message: pb.ClientStreamMessage) -> None:
    await device.raw(message.SerializeToString(), "")


@scenario("F-001", function="solo")
async def bytes_that_are_no_message(fleet: Fleet) -> None:
    """Bytes that are not a message are INVALID_ARGUMENT, before and after a checkin."""
    async with fleet.device() as device:
        await device.raw(b"\xff\xff\xff")
        await device.ends(_BAD)
    async with fleet.device() as device:
        await device.try_in()
        await device.raw(b"\xff\xff\xff")
        await device.ends(_BAD)


@scenario("F-060", "F-061", "F-062", "F-064", function="solo")
async def reports_of_failure(fleet: Fleet) -> None:
    """Reports of failure are answered and do not count, whatever their code; unreadable events are ignored."""
    before = await fleet.total()
    for status in (13, 2, 17, 9999, -1):
        await fleet.takes(b"100", status)
    await fleet.is_total(before)
    broken = Packed(type_url="x/google.internal.federatedml.v2.ClientExecutionStats", value=b"\xff")
    negative = Packed()
    negative.Pack(pb.ClientExecutionStats(duration=Duration(seconds=-5)))
    await fleet.takes(b"2", events=[broken, negative, Packed(type_url="a/b.C", value=b"\xff")])
    await fleet.is_total(before + 2)


@scenario("F-064", function="solo")
async def report_with_too_many_events(fleet: Fleet) -> None:
    """101 events, or more than a MiB of them, are INVALID_ARGUMENT; 100 are accepted."""
    before = await fleet.total()
    for events in ([Packed()] * 101, [Packed(value=bytes(1 << 19))] * 3):
        async with fleet.joined() as (device,):
            await device.report(b"100", events=events)
            await device.ends(_BAD)
    await fleet.takes(b"1", events=[Packed()] * 100)
    await fleet.is_total(before + 1)
