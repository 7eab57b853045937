"""The kinds of stores, for tests that hold for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.servers import RedisServer
from tests.stores.worlds import MemoryWorld, RedisWorld, SqliteWorld, World


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """For tests that do not stop it."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """Of a server that keeps nothing yet."""
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url


def _maker(kind: str, request: pytest.FixtureRequest) -> Callable[..., World]:
    if kind == "memory":
        return MemoryWorld
    if kind == "redis":
        url: str = request.getfixturevalue("redis_url")
        return lambda **limits: RedisWorld(url, **limits)
    path: Path = request.getfixturevalue("tmp_path")
    return lambda **limits: SqliteWorld(path / "store.db", **limits)


def _made(kind: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., World]]:
    worlds: list[World] = []
    make = _maker(kind, request)

    def made(**limits: int) -> World:
        worlds.append(make(**limits))
        return worlds[-1]

    yield made
    for world in worlds:
        world.close()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def make_world(request: pytest.FixtureRequest) -> Iterator[Callable[..., World]]:
    """Makes a world of a kind, with limits."""
    yield from _made(request.param, request)


@pytest.fixture(params=["sqlite", "redis"])
def make_shared(request: pytest.FixtureRequest) -> Iterator[Callable[..., World]]:
    """Makes a world of a kind that several processes share, with limits."""
    yield from _made(request.param, request)
