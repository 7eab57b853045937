"""`AsyncGraphPipe`: the same answers, and requests that can be given up."""

from __future__ import annotations

import asyncio
import ssl

import numpy as np
import pytest

from invoker.client import AsyncGraphPipe, GraphPipeError
from invoker.errors import Status
from tests.conftest import SLOW
from tests.protocols.graphpipe.client.peer import Answer, Seen, echo, nobody, page, sample, serving


def echoing(seen: Seen) -> Answer:
    """The inputs as outputs."""
    return page(echo(seen))


async def test_an_inference_is_awaited() -> None:
    """With names, without, and a description."""
    with serving(echoing, echoing, page(sample("go_metadata_response"))) as peer:
        async with AsyncGraphPipe(peer.http, timeout_s=10) as model:
            assert (await model.infer(np.float32([1, 2]))).tolist() == [1.0, 2.0]
            assert await model.infer({"a": 1}, outputs=["a"]) == {"a": 1}
            assert (await model.metadata()).name == "echo"
        assert peer.connections == 1


async def test_requests_are_under_way_together() -> None:
    """No more than may be, the rest in turn."""
    with serving(echoing) as peer:
        async with AsyncGraphPipe(peer.http, timeout_s=10, max_requests=3) as model:
            found = await asyncio.gather(*[model.infer(number) for number in range(20)])
        assert found == list(range(20))
        assert peer.connections <= 3


async def test_a_cancelled_request_is_cut_off() -> None:
    """The server sees that nobody waits (G-013)."""
    with serving(Answer(ending="silent")) as peer:
        async with AsyncGraphPipe(peer.http, timeout_s=10) as model:
            asking = asyncio.create_task(model.infer(1))
            assert await asyncio.to_thread(peer.asked.wait, 10)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(peer.gone.wait, 10)


async def test_a_request_that_waits_for_its_turn_is_never_sent_when_cancelled() -> None:
    """It has not even a connection."""
    with serving(Answer(ending="silent")) as peer:
        async with AsyncGraphPipe(peer.http, timeout_s=10, max_requests=1) as model:
            first = asyncio.create_task(model.infer(1))
            assert await asyncio.to_thread(peer.asked.wait, 10)
            second = asyncio.create_task(model.infer(2))
            await asyncio.sleep(0)
            for task in (second, first):
                task.cancel()
            await asyncio.wait([first, second])
        assert len(peer.seen) == 1


async def test_closing_cuts_off_what_is_under_way() -> None:
    """Whoever waits is told."""
    with serving(Answer(ending="silent")) as peer:
        model = AsyncGraphPipe(peer.http, timeout_s=10)
        asking = asyncio.create_task(model.infer(1))
        assert await asyncio.to_thread(peer.asked.wait, 10)
        await model.close()
        await model.close()
        with pytest.raises(GraphPipeError) as cut:
            await asking
        assert cut.value.status is Status.UNAVAILABLE
        with pytest.raises(RuntimeError, match="shutdown"):
            await model.infer(1)


async def test_errors_are_those_of_the_plain_client() -> None:
    """Of values, of servers, of connections."""
    with serving(page(b"no\n", "400 Bad Request")) as peer:
        async with AsyncGraphPipe(peer.http, timeout_s=10) as model:
            with pytest.raises(ValueError, match="complex"):
                await model.infer(1j)
            with pytest.raises(GraphPipeError, match="no") as refused:
                await model.infer(1)
            assert refused.value.http_status == 400
    async with AsyncGraphPipe(f"http://{nobody()}") as model:
        with pytest.raises(GraphPipeError) as unreached:
            await model.infer(1)
        assert unreached.value.is_retryable


@pytest.mark.parametrize("scheme", ["https", "tcp"])
@pytest.mark.parametrize("is_closed", [True, False])
async def test_a_server_that_never_secures_a_connection_can_be_left(scheme: str, is_closed: bool) -> None:
    """By closing the client, and by cancelling the request, after which closing takes no time either."""
    accepted: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put(reader)
        await reader.read()  # until the client ends, whatever it said
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    model = AsyncGraphPipe(f"{scheme}://127.0.0.1:{port}", timeout_s=60, tls=ssl.create_default_context())
    asking = asyncio.create_task(model.infer(1))
    await accepted.get()
    if not is_closed:
        asking.cancel()
        await asyncio.wait([asking])
    async with asyncio.timeout(4 * SLOW):
        await model.close()
        await asyncio.wait([asking])
    assert asking.cancelled() or isinstance(asking.exception(), GraphPipeError)
    server.close()
