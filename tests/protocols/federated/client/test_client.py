"""`invoker.protocols.federated.client.client`: a device against a scripted server, over real sockets."""

from __future__ import annotations

import asyncio
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest

from invoker import Checkpoint, Update
from invoker._pb.federated import federated_api_pb2 as pb
from invoker.client.federated import Assigned, Attempt, DeviceOptions, EligibilityAsked, FederatedClient, Report
from invoker.codecs.checkpoint import read_checkpoint, write_checkpoint
from invoker.errors import Status
from invoker.protocols.federated.client.plans import entrypoint_plan
from tests.conftest import SLOW
from tests.protocols.federated.client.peer import PeerCall, serving
from tests.protocols.federated.client.script import accepted, ack, eligibility, no_eligibility, rejected, seconds, taken
from tests.protocols.federated.client.test_session import SECAGG

MODEL = write_checkpoint(Checkpoint({"w": [1.0, 2.0]}))
PLAN = entrypoint_plan("m:train", {"rate": 2.0})


def train(checkpoint: Checkpoint, examples: Iterator[float], rate: float = 1.0) -> Update:
    """Add the examples."""
    given = list(examples)
    return Update({"w": checkpoint["w"] + rate * sum(given)}, examples=len(given))


def offer() -> pb.ServerStreamMessage:
    """The task of all tests."""
    return accepted(plan=PLAN, init_checkpoint=MODEL)


async def plain(call: PeerCall) -> None:
    """A whole round."""
    await call.hear()
    await call.say(ack(), no_eligibility())
    await call.hear()
    await call.say(offer())
    await call.hear()
    await call.say(taken())
    assert await call.hear() is None


def device(target: str, **said: Any) -> FederatedClient:
    """A device with three examples."""
    options = said.pop("options", DeviceOptions(secagg=False))
    return FederatedClient(target, "iris", {"m:train": train}, lambda: iter([1.0, 2.0, 3.0]), options=options, **said)


async def test_F075_a_round_over_the_wire() -> None:
    """The update of the function is what arrives, and the metadata say whose device it is."""
    told: list[Any] = []
    async with serving(plain) as peer:
        client = device(peer.target, tell=told.append, options=DeviceOptions(api_key="secret", secagg=False))
        attempt = await client.once()
    assert (attempt.end, attempt.status, attempt.task) == ("reported", Status.OK, "train")
    report = peer.calls[0].heard[-1].report_request.report
    assert report.status_code == 0
    assert read_checkpoint(report.update_checkpoint, Update) == Update({"w": [13.0, 14.0]}, examples=3)
    assert peer.metadata[0]["x-goog-population"] == "iris"
    assert peer.metadata[0]["x-goog-api-key"] == "secret"
    assert [type(one) for one in told] == [Assigned, Report, Attempt]
    assert client.retry == attempt.retry
    assert attempt.sent == sum(one.ByteSize() for one in peer.calls[0].heard)


async def test_the_token_of_the_last_window_comes_along() -> None:
    """The first checkin has none; the next one that of the window for accepted devices."""
    async with serving(plain) as peer:
        client = device(peer.target)
        await client.once()
        await client.once()
    tokens = [call.heard[0].eligibility_eval_checkin_request.retry_token for call in peer.calls]
    assert tokens == ["", "token-a"]


async def test_the_loop_sleeps_through_windows() -> None:
    """By the clock that it was given, which only sleeping moves."""
    clock = [1000.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    said = DeviceOptions(secagg=False, now=lambda: clock[0], sleep=sleep)
    async with serving(plain) as peer:
        client = device(peer.target, options=said)
        await client.run(3)
    assert len(peer.calls) == 3
    assert clock[0] == pytest.approx(1200.0)


async def test_F077_a_plan_that_raises_or_takes_too_long_is_reported_as_internal() -> None:
    """With an empty update, and with the time that it took."""

    def broken(checkpoint: Checkpoint, examples: Iterator[float], rate: float) -> Update:
        raise RuntimeError("boom")

    async def slow(checkpoint: Checkpoint, examples: Iterator[float], rate: float) -> Update:
        await asyncio.sleep(60)
        raise AssertionError

    for function, least in ((broken, 0.0), (slow, 0.2)):
        told: list[Any] = []
        async with serving(plain) as peer:
            said = DeviceOptions(secagg=False, plan_timeout_s=0.2)
            client = FederatedClient(peer.target, "iris", {"m:train": function}, options=said, tell=told.append)
            attempt = await client.once()
        report = peer.calls[0].heard[-1].report_request.report
        assert (report.status_code, report.update_checkpoint) == (13, b"")
        stats = pb.ClientExecutionStats()
        assert report.serialized_train_event[0].Unpack(stats)
        assert stats.duration.seconds + stats.duration.nanos / 1e9 >= least
        assert (attempt.end, attempt.retry.token) == ("failed", "token-a")
        assert any(isinstance(one, RuntimeError | TimeoutError) for one in told)


async def test_a_device_that_fails_itself_ends_its_conversation() -> None:
    """Otherwise it would wait for its own answer until the time of the session is over."""

    def broken(event: Any) -> None:
        if isinstance(event, Assigned):
            raise RuntimeError("boom")

    async with serving(plain) as peer, asyncio.timeout(5):
        attempt = await FederatedClient(peer.target, "iris", {"m:train": train}, tell=broken).once()
    assert (attempt.end, attempt.status) == ("lost", Status.INTERNAL)
    assert "boom" in attempt.detail


async def test_F074_a_plan_that_is_none_of_ours_is_reported_as_unimplemented() -> None:
    """A function that the device does not have, and a graph of another system."""
    for plan in (entrypoint_plan("m:other"), b"\x0a\x05graph"):

        async def script(call: PeerCall, plan: bytes = plan) -> None:
            await call.hear()
            await call.say(ack(), no_eligibility())
            await call.hear()
            await call.say(accepted(plan=plan, init_checkpoint=MODEL))
            await call.hear()
            await call.say(taken())
            await call.hear()

        async with serving(script) as peer:
            attempt = await device(peer.target).once()
        assert peer.calls[0].heard[-1].report_request.report.status_code == 12
        assert attempt.status is Status.UNIMPLEMENTED
        assert attempt.retry.token == "token-a"


async def test_F078_the_eligibility_plan_decides() -> None:
    """Its weights go with the checkin; without any the device half-closes; if it fails, so too, and with an error."""

    async def script(call: PeerCall) -> None:
        await call.hear()
        await call.say(ack(), asking)
        if await call.hear() is not None:
            await call.say(rejected())
            await call.hear()

    asking = eligibility()
    asking.eligibility_eval_checkin_response.eligibility_eval_payload.plan = entrypoint_plan("m:eligible")
    asking.eligibility_eval_checkin_response.eligibility_eval_payload.init_checkpoint = MODEL
    for weights, end, status in (
        ({"train": 2.0}, "rejected", Status.OK),
        ({}, "ineligible", Status.OK),
        (None, "lost", Status.INTERNAL),
    ):
        told: list[Any] = []
        async with serving(script) as peer:
            functions = {"m:eligible": lambda checkpoint, examples, weights=weights: weights}
            said = DeviceOptions(secagg=False)
            attempt = await FederatedClient(peer.target, "iris", functions, options=said, tell=told.append).once()
            await asyncio.wait_for(peer.calls[0].ended.wait(), 5)
        assert (attempt.end, attempt.status, attempt.retry.token) == (end, status, "token-r")
        assert len(peer.calls[0].heard) == (2 if weights else 1)
        assert isinstance(told[0], EligibilityAsked)


async def test_F058_statuses_of_the_server_are_kept() -> None:
    """An unknown population is permanent; a server that is not there is transient."""

    async def refuse(call: PeerCall) -> None:
        await call.hear()
        await call.context.abort(grpc.StatusCode.NOT_FOUND, "no such population")

    async with serving(refuse) as peer:
        client = device(peer.target)
        attempt = await client.once()
    assert (attempt.end, attempt.status, attempt.detail) == ("lost", Status.NOT_FOUND, "no such population")
    assert attempt.retry.in_s(time.time()) > 10_000
    attempt = await client.once()
    assert (attempt.end, attempt.status) == ("lost", Status.UNAVAILABLE)
    assert "nothing listens at" in attempt.detail
    assert 700 < attempt.retry.in_s(time.time()) < 1100


async def silent_before_ack(call: PeerCall) -> None:
    """Nothing is ever answered."""
    await call.hear()
    await call.hear()


async def silent_before_decision(call: PeerCall) -> None:
    """The round never begins."""
    await call.hear()
    await call.say(ack(), no_eligibility())
    await call.hear()
    await call.hear()


async def silent_after_report(call: PeerCall) -> None:
    """The report is never answered."""
    await call.hear()
    await call.say(ack(), no_eligibility())
    await call.hear()
    await call.say(offer())
    await call.hear()
    await call.hear()


async def withheld_acks(call: PeerCall) -> None:
    """The checkin comes in chunks, and none is acked."""
    await call.hear()
    await call.say(ack(), no_eligibility(chunk_size_for_upload=8, max_pending_chunks=2))
    while await call.hear() is not None:
        pass


@pytest.mark.parametrize("script", [silent_before_ack, silent_before_decision, silent_after_report, withheld_acks])
async def test_F145_a_device_stops_within_a_second_in_any_state(script: Any) -> None:
    """It half-closes, or cancels where frames are left; it comes again as its state says."""
    wants = [False]
    async with serving(script) as peer:
        client = device(peer.target, should_abort=lambda: wants[0])
        task = asyncio.create_task(client.once())
        await asyncio.sleep(0.3)
        wants[0], began = True, time.monotonic()
        attempt = await asyncio.wait_for(task, 5 * SLOW)
        took = time.monotonic() - began
        await asyncio.wait_for(peer.calls[0].ended.wait(), 5)
    assert took < 1.0 * SLOW
    assert (attempt.end, attempt.status) == ("aborted", Status.CANCELLED)


async def test_F145_a_device_in_secure_aggregation_says_that_it_leaves() -> None:
    """The server reads the AbortMessage, then the half-close."""
    wants = [False]

    def integers(checkpoint: Checkpoint, examples: Iterator[float], rate: float) -> Update:
        return Update({"w": np.uint64([1, 2, 3])})

    async def script(call: PeerCall) -> None:
        await call.hear()
        await call.say(ack(), no_eligibility())
        await call.hear()
        await call.say(accepted(plan=PLAN, init_checkpoint=MODEL, **SECAGG))
        await call.hear()
        wants[0] = True
        while await call.hear() is not None:
            pass

    async with serving(script) as peer:
        client = FederatedClient(peer.target, "iris", {"m:train": integers}, should_abort=lambda: wants[0])
        attempt = await asyncio.wait_for(client.once(), 5)
        await asyncio.wait_for(peer.calls[0].ended.wait(), 5)
    first, last = (one.secure_aggregation_client_message for one in peer.calls[0].heard[-2:])
    assert first.WhichOneof("message_content") == "advertise_keys"
    assert last.abort.diagnostic_info == "Abort upon external request"
    assert (attempt.end, attempt.status) == ("aborted", Status.CANCELLED)


async def test_F145_a_plan_and_a_sleep_are_stopped_too() -> None:
    """While the plan runs, and while the device waits for its window."""
    wants = [False]
    gone = asyncio.Event()

    async def slow(checkpoint: Checkpoint, examples: Iterator[float], rate: float) -> Update:
        try:
            await asyncio.sleep(60)
        finally:
            gone.set()
        raise AssertionError

    async with serving(plain) as peer:
        said = DeviceOptions(secagg=False)
        client = FederatedClient(peer.target, "iris", {"m:train": slow}, options=said, should_abort=lambda: wants[0])
        task = asyncio.create_task(client.run())
        await asyncio.sleep(0.3)
        assert not gone.is_set()
        wants[0], began = True, time.monotonic()
        await asyncio.wait_for(task, 5 * SLOW)
        assert time.monotonic() - began < 1.0 * SLOW
        assert gone.is_set()
        wants[0] = False
        assert client.retry is not None
        task = asyncio.create_task(client.run())
        await asyncio.sleep(0.3)
        wants[0] = True
        await asyncio.wait_for(task, 1 * SLOW)
        assert len(peer.calls) == 1


async def test_F069_plan_and_checkpoint_are_fetched_at_once() -> None:
    """Neither is answered before both are asked for; the second round takes them from the cache."""
    both = threading.Barrier(2, timeout=10)
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            both.wait()
            body = PLAN if self.path == "/plan" else MODEL
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    base = f"http://localhost:{server.server_port}"
    message = accepted()
    info = message.checkin_response.acceptance_info
    info.plan_resource.CopyFrom(pb.UriResource(uri=f"{base}/plan", client_cache_id="p", max_age=seconds(60)))
    info.init_checkpoint_resource.CopyFrom(
        pb.UriResource(uri=f"{base}/start", client_cache_id="s", max_age=seconds(60))
    )

    async def script(call: PeerCall) -> None:
        await call.hear()
        await call.say(ack(), no_eligibility())
        await call.hear()
        await call.say(message)
        await call.hear()
        await call.say(taken())
        await call.hear()

    try:
        async with serving(script) as peer:
            client = device(peer.target)
            attempts = [await client.once(), await client.once()]
            info.plan_resource.Clear()
            lost = await client.once()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [one.end for one in attempts] == ["reported", "reported"]
    assert sorted(paths) == ["/plan", "/start"]
    assert (lost.end, lost.status) == ("lost", Status.INVALID_ARGUMENT)
    assert lost.detail == "plan fetch failed: the server names no address"


async def test_F024_a_large_update_goes_in_chunks() -> None:
    """A hundred chunks of 1 KiB, two under way at once; the server acks each."""

    def large(checkpoint: Checkpoint, examples: Iterator[float], rate: float) -> Update:
        return Update({"w": np.arange(12_800.0)})

    whole = bytearray()

    async def script(call: PeerCall) -> None:
        await call.hear()
        await call.say(ack(), no_eligibility(chunk_size_for_upload=1024, max_pending_chunks=2))
        for answer in (offer(), taken()):
            whole.clear()
            while (message := await call.hear()) is not None:
                chunk = message.chunked_transfer
                if chunk.WhichOneof("kind") == "data":
                    whole.extend(chunk.data.chunk_bytes)
                    reply = pb.ServerStreamMessage()
                    reply.chunked_transfer.ack.chunk_index = chunk.data.chunk_index
                    await call.say(reply)
                elif chunk.WhichOneof("kind") == "end":
                    break
            await call.say(answer)
        await call.hear()

    async with serving(script) as peer:
        said = DeviceOptions(secagg=False)
        attempt = await FederatedClient(peer.target, "iris", {"m:train": large}, options=said).once()
    assert attempt.end == "reported"
    report = pb.ClientStreamMessage.FromString(bytes(whole)).report_request.report
    assert read_checkpoint(report.update_checkpoint, Update)["w"].tolist() == list(range(12_800))
    assert attempt.sent > 102_400
