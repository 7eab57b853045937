"""Heavy work of a round: `invoker.protocols.federated.secagg.jobs`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
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
    """Shares are put together and masks taken off in a thread: nothing keeps the loop busy for 100 ms."""
    rounds = Rounds(5, threshold=3, vectors={"w": (1000003, 10**6)}, silent={4: INPUT}, later=True)
    for index, client in enumerate(rounds.clients):
        rounds.turn(index, client.start())
    on_loop_s: list[float] = []
    in_thread_s: list[float] = []

    def timed(call: Callable[[], Any], took_s: list[float]) -> Any:
        began_s = time.thread_time()
        try:
            return call()
        finally:
            took_s.append(time.thread_time() - began_s)

    rounds.deliver()
    assert rounds.server.round == 2
    timed(rounds.server.elapsed, on_loop_s)
    while rounds.up or rounds.jobs:
        if rounds.up:
            timed(partial(rounds.hear, *rounds.up.popleft()), on_loop_s)
        else:
            job, then = rounds.jobs.popleft()
            made = await asyncio.to_thread(timed, job, in_thread_s)
            timed(partial(then, made), on_loop_s)
    (outcome,) = rounds.outcomes
    expected = sum(rounds.values[index]["w"] for index in range(4)) % np.uint64(1000003)
    assert (outcome.sums["w"] == expected).all()  # type: ignore[union-attr]
    slow = float(os.environ.get("INVOKER_TEST_SLOW", "1"))
    assert max(on_loop_s) < 0.1 * slow
    assert max(in_thread_s) > max(on_loop_s), "the masks were not taken off in a thread"
