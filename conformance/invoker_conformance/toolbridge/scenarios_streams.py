"""StreamTool and BatchExecuteTools: docs/reference/tool-bridge.md 2.5."""

from __future__ import annotations

import asyncio

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import scenario
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.values import value_in

_BLOCK = 65_536


def _contents(chunks: list[pb.ToolStreamChunk]) -> list[str]:
    return [str(chunk.WhichOneof("content")) for chunk in chunks]


@scenario("TT-37", "T-076", "T-077", function=("counted", "counted_async"))
async def streams_from_begin_to_end(host: Host) -> None:
    """A stream has numbered chunks with one id, and complete as its last chunk, also without items."""
    async with host.session() as session:
        for tool in ("counted", "counted_async"):
            for count in (0, 1, 100):
                if (met := await session.values(tool, count)) != list(range(count)):
                    raise host.failure(repr(met), f"the numbers below {count}")
            await session.chunks(tool, stream_id="mine")
        first, second = await session.chunks("counted"), await session.chunks("counted")
        if first[0].stream_id == second[0].stream_id or len(first[0].stream_id) != 32:
            raise host.failure(f"the ids {first[0].stream_id!r}, {second[0].stream_id!r}", "an uuid4 in hex for each")


@scenario("TT-38", "T-078", function="broken")
async def a_stream_that_breaks(host: Host) -> None:
    """All items before the error come, then the error."""
    async with host.session() as session:
        chunks = await session.chunks("broken", 3)
        if _contents(chunks) != ["data", "data", "data", "error"]:
            raise host.failure(str(_contents(chunks)), "three data, then error")
        session.is_error(chunks[-1].error, "InternalError")
        [refused] = await session.chunks("broken")
        session.is_error(refused.error, "ValidationError", "missing_arg")


@scenario("TT-39", "T-080", function="blocks")
async def large_items_are_split(host: Host) -> None:
    """Large bytes come in chunks of chunk_size after the metadata bytes_total; smaller ones come whole."""
    async with host.session() as session:
        for config, length, sizes in (
            (None, 200_000, [_BLOCK, _BLOCK, _BLOCK, 200_000 - 3 * _BLOCK]),
            (pb.StreamConfig(chunk_size=1000, backpressure_enabled=True), 2500, [1000, 1000, 500]),
            (None, _BLOCK, [_BLOCK]),
        ):
            chunks = await session.chunks("blocks", 1, length, config=config)
            data = [value_in(chunk.data) for chunk in chunks if chunk.WhichOneof("content") == "data"]
            if [len(one) for one in data] != sizes or b"".join(data) != bytes(length):
                raise host.failure(f"chunks of {[len(one) for one in data]} bytes", f"chunks of {sizes} bytes")
            notes = [chunk.metadata for chunk in chunks if chunk.WhichOneof("content") == "metadata"]
            told = [(note.key, value_in(note.value)) for note in notes]
            wanted = [("bytes_total", length)] if len(sizes) > 1 else []
            if told != wanted:
                raise host.failure(f"the metadata {told}", str(wanted))


@scenario("TT-40", "T-081", function=("blocks", "marks"))
async def a_reader_that_stalls(host: Host) -> None:
    """While a reader stalls, the function is asked for no more than its buffer and the transport hold."""
    watch = await host.watch("blocks.items", "blocks.closed")
    config = pb.StreamConfig(buffer_size=4, backpressure_enabled=True)
    async with host.session() as session:
        async with session.stream("blocks", 2000, _BLOCK, config=config) as stream:
            await stream.next()
            await asyncio.sleep(0.5)
            grown = await watch.grown("blocks.items")
            if grown > 1000:
                raise host.failure(f"{grown} items of 64 KiB made for a reader that took one", "at most 1000")
        await watch.reaches("blocks.closed", 1, within_s=host.timeout_s)


@scenario("TT-42", "T-082", function="blocks")
async def a_stream_without_back_pressure(host: Host) -> None:
    """The held items are bounded; beyond the bound the stream ends with an error, and no item is dropped."""
    config = pb.StreamConfig(backpressure_enabled=False)
    async with host.session() as session, session.stream("blocks", 2000, _BLOCK, config=config) as stream:
        await stream.next()
        await asyncio.sleep(0.5)
        chunks = await stream.all()
        session.is_error(chunks[-1].error, "ResourceExhausted", "stream_buffer")
        data = [value_in(chunk.data)[0] for chunk in chunks if chunk.WhichOneof("content") == "data"]
        if data != [number % 256 for number in range(1, len(data) + 1)]:
            raise host.failure("a gap between items", "each item before the error")


@scenario("TT-41", "T-083", function=("endless", "slow_steps", "marks"))
async def a_caller_that_leaves(host: Host) -> None:
    """When its caller leaves, a generator is closed, also one that blocks between its items."""
    async with host.session() as session:
        for tool, args in (("endless", ()), ("slow_steps", (0.3,))):
            watch = await host.watch(f"{tool}.closed")
            async with session.stream(tool, *args) as stream:
                for _ in range(2):
                    await stream.next()
                stream.cancel()
                await watch.reaches(f"{tool}.closed", 1)


@scenario("T-085", function="add")
async def a_stream_of_one(host: Host) -> None:
    """A plain function gives one chunk of data, and complete."""
    async with host.session() as session:
        chunks = await session.chunks("add", 1)
        if _contents(chunks) != ["data", "complete"] or value_in(chunks[0].data) != 3:
            raise host.failure(str(_contents(chunks)), "the data 3, then complete")


@scenario("TT-44", "T-088", "T-095", function=("add", "waiting"))
async def a_batch(host: Host) -> None:
    """A batch gives the results in the order of its items, and metrics that add up."""
    async with host.session() as session:
        delays = [0.2, 0.1, 0.0]
        answer = await session.batch(
            *(("waiting", each) for each in delays), batch_id="b", config=pb.BatchConfig(parallel=True)
        )
        if answer.batch_id != "b" or [session.result(each) for each in answer.results] != delays:
            raise host.failure(str(answer), f"the batch_id b, and {delays}")
        _adds_up(host, answer, 3, 3, 0)
        items = [pb.ToolCallItem(index=index, tool_id="add") for index in (7, -3)]
        request = pb.BatchToolCallRequest(session_id=session.id, items=items)
        told = await host.ask("BatchExecuteTools", request, pb.BatchToolCallResponse)
        if [one.index for one in told.results] != [7, -3]:
            raise host.failure(str([one.index for one in told.results]), "the indexes 7 and -3")


@scenario("T-091", "T-096", function="add")
async def a_batch_with_a_bad_item(host: Host) -> None:
    """An item with an error fails alone; the others of its batch succeed."""
    async with host.session() as session:
        answer = await session.batch(("add", 1), ("add",), ("nothing",), ("add", 2))
        if [each.success for each in answer.results] != [True, False, False, True]:
            raise host.failure(str(answer), "success, two errors, success")
        session.failed(answer.results[1], "ValidationError", "missing_arg")
        _adds_up(host, answer, 4, 2, 2)


@scenario("T-092", "T-093", function="add")
async def batches_that_are_refused(host: Host) -> None:
    """More than 100 items, a repeated index or a negative number is refused; an empty batch is not."""
    async with host.session() as session:
        answer = await session.batch()
        if answer.results or answer.metrics.avg_duration_ms != 0.0:
            raise host.failure(str(answer), "no results, and avg_duration_ms=0")
        await session.batch(*[("add", 1)] * 100)
        many = [pb.ToolCallItem(index=index, tool_id="add") for index in range(101)]
        twice = [pb.ToolCallItem(index=1, tool_id="add") for _ in range(2)]
        for items, config in ((many, None), (twice, None), (many[:2], pb.BatchConfig(parallel=True, max_parallel=-1))):
            request = pb.BatchToolCallRequest(session_id=session.id, items=items, config=config)
            await host.refuses("BatchExecuteTools", request, pb.BatchToolCallResponse, "ValidationError")


@scenario("TT-47", "T-089", function="busy")
async def items_at_once(host: Host) -> None:
    """Items run one by one, or as many at once as the request and the session allow; the others wait."""
    calls = [("busy", 0.2)] * 6
    async with host.session() as session, host.session(max_concurrent_tools=2) as narrow:
        for owner, config, most in (
            (session, pb.BatchConfig(), 1),
            (session, pb.BatchConfig(parallel=True, max_parallel=3), 3),
            (narrow, pb.BatchConfig(parallel=True), 2),
        ):
            answer = await owner.batch(*calls, config=config)
            met = max(owner.result(each) for each in answer.results)
            if len(answer.results) != len(calls) or met > most or (most > 1 and met == 1):
                raise host.failure(
                    f"{met} items at once, {len(answer.results)} results", f"at most {most}, more than one if allowed"
                )


@scenario("TT-45", "TT-46", "T-090", function=("add", "waiting"))
async def stopping_at_an_error(host: Host) -> None:
    """No item begins after an error; running items end."""
    async with host.session() as session:
        answer = await session.batch(("add", 1), ("add",), ("add", 2), config=pb.BatchConfig(stop_on_error=True))
        if [each.index for each in answer.results] != [0, 1]:
            raise host.failure(str(answer), "the results of the first two items alone")
        _adds_up(host, answer, 3, 1, 1)
        config = pb.BatchConfig(parallel=True, max_parallel=2, stop_on_error=True)
        answer = await session.batch(("waiting", 0.5), ("add",), ("add", 2), config=config)
        if [each.success for each in answer.results] != [True, False]:
            raise host.failure(str(answer), "the item that ran, and the one that failed")


def _adds_up(host: Host, answer: pb.BatchToolCallResponse, total: int, good: int, bad: int) -> None:
    met = answer.metrics
    if (met.total_items, met.successful_items, met.failed_items) != (total, good, bad):
        raise host.failure(str(met), f"{total} items, {good} of them good and {bad} bad")
    if not 0 <= met.avg_duration_ms <= met.total_duration_ms + 1 and not answer.results:
        raise host.failure(str(met), "a mean that is not above the total")
