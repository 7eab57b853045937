"""Heavy work of a round: `invoker.protocols.federated.secagg.jobs`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from invoker.protocols.federated.secagg.jobs import Jobs
from tests.protocols.federated.secagg.rounds import INPUT, Rounds


def test_a_job_gives_its_result_to_the_loop() -> None:
    """Also a result that looks like none."""
    found: list[Any] = []
    jobs = Jobs(lambda job, then: then(job()), lambda: found.append("broken"))
    jobs.run(lambda: None, found.append)
    jobs.run(lambda: 7, found.append)
    assert found == [None, 7]


def test_a_job_that_raises_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """What would have come then does not come."""
    found: list[Any] = []
    jobs = Jobs(lambda job, then: then(job()), lambda: found.append("broken"))
    jobs.run(lambda: 1 // 0, found.append)
    assert found == ["broken"]
    assert "ZeroDivisionError" in caplog.text


def test_when_the_round_is_over_no_job_begins_and_no_result_is_heard() -> None:
    """Of one that waits, and of one that runs."""
    waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
    found: list[Any] = []
    jobs = Jobs(lambda job, then: waiting.append((job, then)), lambda: found.append("broken"))
    jobs.run(lambda: found.append("begun"), found.append)
    jobs.run(lambda: found.append("begun late"), found.append)
    running = waiting[0][0]()
    jobs.stop()
    waiting[0][1](running)
    waiting[1][1](waiting[1][0]())
    assert found == ["begun"]
    assert jobs.are_stopped


def test_a_round_that_its_owner_gives_up_is_silent() -> None:
    """While masks are taken off: the jobs stop, no secret is kept, and nothing is told to anybody."""
    rounds = Rounds(5, threshold=3, silent={4: INPUT}, later=True)
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    rounds.deliver()
    rounds.server.elapsed()
    while rounds.server._secrets is None:
        if rounds.up:
            rounds.hear(*rounds.up.popleft())
        else:
            job, then = rounds.jobs.popleft()
            then(job())
    assert rounds.jobs or rounds.up
    said = {index: len(messages) for index, messages in rounds.sent.items()}
    rounds.server.abandon()
    rounds.server.lost(0)
    rounds.deliver()
    rounds.server.elapsed()
    assert rounds.outcomes == []
    assert {index: len(messages) for index, messages in rounds.sent.items()} == said
    assert rounds.server._secrets is None


@pytest.mark.timeout(30)
async def test_F131_the_loop_runs_on_while_masks_of_a_million_elements_are_made() -> None:
    """Shares are put together and masks taken off in a thread: a timer of the loop is never 100 ms late."""
    loop = asyncio.get_running_loop()
    rounds = Rounds(5, threshold=3, vectors={"w": (1000003, 10**6)}, silent={4: INPUT}, later=True)
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    late, is_over = [0.0], False

    async def probe() -> None:
        while not is_over:
            due = loop.time() + 0.005
            await asyncio.sleep(0.005)
            late.append(loop.time() - due)

    rounds.deliver()
    assert rounds.server.round == 2
    watching = asyncio.create_task(probe())
    rounds.server.elapsed()
    while rounds.up or rounds.jobs:
        if rounds.up:
            rounds.hear(*rounds.up.popleft())
            await asyncio.sleep(0)
        else:
            job, then = rounds.jobs.popleft()
            then(await asyncio.to_thread(job))
    is_over = True
    await watching
    (outcome,) = rounds.outcomes
    expected = sum(rounds.values[index]["w"] for index in range(4)) % np.uint64(1000003)
    assert (outcome.sums["w"] == expected).all()  # type: ignore[union-attr]
    assert len(late) > 3, "the jobs were shorter than what a timer can see"
    assert max(late) < 0.1 * float(os.environ.get("INVOKER_TEST_SLOW", "1"))
