"""The store in a Redis server: what happens when the server is killed, and what does not open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from invoker.core.store import Change, Create, Get, Look, News, Put, Reason, Refused
from invoker.errors import StartupError
from invoker.stores.shared import SharedStore
from tests.stores.servers import RedisServer
from tests.stores.worlds import RedisWorld


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that may be killed."""
    made = RedisServer(tmp_path)
    yield made
    made.close()


@pytest.fixture
def world(server: RedisServer) -> Iterator[RedisWorld]:
    """With one space that lives for ten seconds."""
    made = RedisWorld(server.url)
    made.ask(Create("s", 10, b"about"))
    yield made
    made.close()


@pytest.mark.timeout(20)
def test_a_server_that_is_killed_fails_what_is_asked_meanwhile(
    world: RedisWorld, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Subscriptions end, questions are refused and logged once; when it is back, the store works again."""
    news = world.subscriber.hear()
    world.settle()
    server.kill()
    assert [world.ask(Look("s")) for _ in range(3)] == [Refused(Reason.UNAVAILABLE)] * 3
    assert caplog.text.count(" fails: ") == 1
    world.until(lambda: news in world.subscriber.told)
    assert news.take() == Refused(Reason.UNAVAILABLE)
    assert "password" not in caplog.text
    server.start()
    assert world.ask(Look("s")) == Refused(Reason.UNKNOWN), "the server kept nothing on disk"
    assert world.ask(Create("s", 10)).is_new
    again = listening(world)
    world.ask(Put("s", "a", b"1"))
    world.until(lambda: again in world.subscriber.told)
    change = again.take()
    assert isinstance(change, Change)
    assert change.value == b"1"
    assert world.ask(Get("s", "a")).value == b"1"


def listening(world: RedisWorld) -> News:
    """Subscribe, again and again until this process is subscribed to the news of the new server."""
    while True:
        news = world.subscriber.hear()
        key = world.subscriber.later(Look("s"))
        world.until(lambda key=key: key in world.subscriber.answers)  # type: ignore[misc]
        if news not in world.subscriber.told:
            return news


def test_a_question_after_a_broken_connection_is_answered(world: RedisWorld) -> None:
    """A server that closed connections which nobody used costs nobody an answer."""
    import redis

    with redis.Redis.from_url(world.url) as client:
        client.client_kill_filter(_type="normal", skipme=True)
    world.until(lambda: True)
    assert world.ask(Look("s")).about == b"about"


def test_a_broken_connection_for_news_ends_subscriptions(world: RedisWorld) -> None:
    """Since changes may have been missed."""
    import redis

    news = world.subscriber.hear()
    world.settle()
    assert isinstance(world.store, SharedStore)
    epoch = world.store._backend.epoch
    with redis.Redis.from_url(world.url) as client:
        client.client_kill_filter(_type="pubsub")
    world.until(lambda: news in world.subscriber.told)
    assert news.take() == Refused(Reason.UNAVAILABLE)
    assert world.store._backend.epoch > epoch
    assert world.ask(Put("s", "a", b"1")).value == b"1"


async def test_a_server_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    """The error names the place, and not the password."""
    pytest.importorskip("redis")
    from invoker.stores.redis import RedisBackend

    for url, place in (
        (f"unix://{tmp_path}/no.sock", "no.sock"),
        ("redis://:secret@127.0.0.1:1/0", "127.0.0.1:1"),
    ):
        with pytest.raises(StartupError, match="cannot be reached") as caught:
            SharedStore(RedisBackend(url)).start(asyncio.get_running_loop().call_later)
        assert place in str(caught.value)
        assert "secret" not in str(caught.value)
